import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, reads, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'
import { errno, type DiskHooks } from '../support/watched-disk.ts'

/** Disks that refuse, change and fill up while we look at them. What we could not see is said, what we did not see is never touched. */

const disk = vi.hoisted((): DiskHooks => ({ calls: [], bytesRead: new Map() }))
vi.mock('node:fs/promises', async (load) => {
  const { watchedDisk } = await import('../support/watched-disk.ts')
  return watchedDisk(await load(), disk)
})
vi.mock('node:fs', async (load) => {
  const { watchedSyncDisk } = await import('../support/watched-disk.ts')
  return watchedSyncDisk(await load(), disk)
})

beforeEach(() => {
  disk.calls = []
  disk.bytesRead = new Map()
  disk.before = undefined
})
afterEach(() => { vi.unstubAllEnvs() })

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => {
  const reply = await chat.host.ask('preview', { sessionId: chat.id, turn })
  expect(reply).toMatchObject({ ok: true })
  return reply.value
}
const actions = ({ rows }: Preview) => Object.fromEntries(rows.map(row => [row.shown, row.skip === undefined ? row.action : `skip ${row.skip}`]))
/** Names of gaps as a person reads them, whether a path comes whole or not. */
const gapsOf = ({ gaps }: Preview, { ws }: World) => gaps.map(gap => ({ ...gap, names: gap.names.map(name => name.replace(`${ws}/`, '')).toSorted() }))
const filesOf = (world: World): Record<string, string> =>
  Object.fromEntries(Object.entries(world.tree()).filter(([path]) => path !== '.git' && !path.startsWith('.git/')))

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x', ...args], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
function commitAll({ ws }: World): void {
  git(ws, 'init', '-q', '-b', 'main')
  git(ws, 'add', '-A')
  git(ws, 'commit', '-qm', 'start')
}
const kinds: readonly (readonly [string, (world: World) => void])[] = [['a plain folder', () => {}], ['a git work tree', commitAll]]

describe.each(kinds)('a folder in %s that lets nobody look in', (_kind, prepare) => {
  /** Names at and below `folder` answer EACCES; the host itself gets through. */
  const lock = (folder: string): void => {
    disk.before = ({ fn, path }) => {
      const isBelow = path.startsWith(`${folder}/`)
      if (isBelow || (path === folder && ['readdir', 'opendir'].includes(fn))) throw errno('EACCES', path)
    }
  }

  it('has its files named as unreadable when a file tool writes them, and they stay; the others are back', async () => {
    const world = aWorld({ 'locked/a.txt': '0', 'b.txt': '0' })
    prepare(world)
    const chat = await opened(world)
    lock(join(world.ws, 'locked'))
    await chat.turn('first', ...edits('locked/a.txt', '0', '1'), writes('locked/n.txt', 'n'), ...edits('b.txt', '0', '1'))
    disk.before = undefined

    const preview = await previewOf(chat, 1)
    const { text } = await chat.command('/rollback 1')

    expect(actions(preview)).toEqual({ 'b.txt': 'write', 'locked/a.txt': 'skip unreadable', 'locked/n.txt': 'skip unreadable' })
    expect(gapsOf(preview, world)).toEqual([{ reason: 'unreadable', count: 2, names: ['locked/a.txt', 'locked/n.txt'] }])
    expect(text).toContain('Not restorable (it cannot be read): locked/a.txt, locked/n.txt')
    expect(filesOf(world)).toEqual({ 'b.txt': '0', locked: 'folder', 'locked/a.txt': '1', 'locked/n.txt': 'n' })
  })

  it('is said around a command, and nothing in it is ever taken for new or gone', async () => {
    const world = aWorld({ 'locked/a.txt': '0', 'locked/gone.txt': '0', 'b.txt': '0' })
    prepare(world)
    const chat = await opened(world)
    lock(join(world.ws, 'locked'))
    await chat.turn('first', runs('echo 1 > locked/a.txt; echo n > locked/n.txt; rm locked/gone.txt; echo 1 > b.txt'))
    disk.before = undefined

    const preview = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(preview.gaps.length).toBeGreaterThan(0)
    expect(actions(preview)['b.txt']).toBe('write')
    expect(filesOf(world)).toEqual({ 'b.txt': '0', locked: 'folder', 'locked/a.txt': '1\n', 'locked/n.txt': 'n\n' })
  })

  it('only until the command opened it has none of its files deleted', async () => {
    const world = aWorld({ 'locked/a.txt': '0', 'b.txt': '0' })
    prepare(world)
    const chat = await opened(world, {
      before: (ctx) => {
        ctx.on('tools/execute', (exec: { name: string }, next: () => Promise<unknown>) => {
          if (exec.name === 'bash') disk.before = undefined
          return next()
        })
      },
    })
    lock(join(world.ws, 'locked'))
    await chat.turn('first', runs('chmod 700 locked; echo 1 > b.txt'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual({ 'b.txt': '0', locked: 'folder', 'locked/a.txt': '0' })
  })
})

describe('a file that changes while it is read', () => {
  const grow = (path: string, times: number): void => {
    let left = times
    disk.before = (call) => {
      if (call.fn === 'file.read' && call.path === path && left-- > 0) appendFileSync(path, '+')
    }
  }

  it('once, before a file tool writes it, is read again: exactly what was there last is back', async () => {
    const world = aWorld({ 'log.txt': '0' })
    const chat = await opened(world)
    await chat.turn('first', reads('log.txt'))
    // The host's own guard would refuse a file that moved since it was read.
    chat.host.ctx.on('fs/edit-intent', async (_target: unknown, _exec: unknown, next: () => Promise<unknown>) => {
      await next()
      return undefined
    }, { prepend: true })
    grow(join(world.ws, 'log.txt'), 1)
    await chat.turn('second', { tools: [['edit', { file_path: 'log.txt', old_string: '0', new_string: '1' }]] })
    expect(world.read('log.txt')).toBe('1+')

    await chat.command('/rollback 2')

    expect(world.read('log.txt')).toBe('0+')
  })

  it('all the time around a command is named as unreadable and left', async () => {
    const world = aWorld({ 'log.txt': '0', 'b.txt': '0' })
    const log = join(world.ws, 'log.txt')
    const chat = await opened(world)
    grow(log, Infinity)
    await chat.turn('first', runs('echo more >> log.txt; echo 1 > b.txt'))
    disk.before = undefined
    const left = world.read('log.txt')

    const preview = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(gapsOf(preview, world)).toEqual([{ reason: 'unreadable', count: 1, names: ['log.txt'] }])
    expect([world.read('log.txt'), world.read('b.txt')]).toEqual([left, '0'])
  })
})

describe('a store on a disk that fills up', () => {
  const isStore = (path: string): boolean => path.includes('/data/turnback/')
  const isWrite = (fn: string): boolean => ['file.write', 'file.writev', 'file.writeFile', 'file.appendFile'].includes(fn)
  /** No file of the store grows beyond this. */
  const room = (bytes: number): void => {
    disk.before = ({ fn, path }) => {
      if (isStore(path) && isWrite(fn) && statSync(path).size > bytes) throw errno('ENOSPC', fn)
    }
  }
  const storeBytes = (world: World): number => {
    const packs = join(world.home, 'data/turnback/v1/packs')
    return readdirSync(packs).reduce((sum, name) => sum + statSync(join(packs, name)).size, 0)
  }

  it('keeps what it had: earlier turns go back, later ones are named, every tool works, one complaint', async () => {
    const world = aWorld({ 'a.txt': '0', 'b.txt': '0' })
    const chat = await opened(world, { complains: true })
    await chat.turn('first', ...edits('a.txt', '0', '1'))
    room(storeBytes(world) - 1)
    for (const at of [1, 2, 3]) await chat.turn(`turn ${at}`, ...edits('b.txt', String(at - 1), String(at)), runs(`echo ${at} > c${at}.txt`))
    expect(world.tree()).toMatchObject({ 'b.txt': '3', 'c3.txt': '3\n' })
    const full = storeBytes(world)
    disk.before = undefined

    const { gaps, rows } = await previewOf(chat, 1)
    const { text } = await chat.command('/rollback 1')

    expect(rows.map(row => [row.shown, row.action])).toEqual([['a.txt', 'write']])
    expect(gaps.map(gap => [gap.reason, gap.count])).toEqual([['no-record', 3], ['command', 3]])
    expect(text).toContain('Put back: a.txt')
    expect(world.tree()).toEqual({ 'a.txt': '0', 'b.txt': '3', 'c1.txt': '1\n', 'c2.txt': '2\n', 'c3.txt': '3\n' })
    expect(full).toBeLessThan(4096)
    expect(chat.host.complaints).toEqual([expect.stringContaining('ENOSPC')])
  })

  it.each(['ENOSPC', 'EACCES', 'EROFS'])('field 69: not writable (%s) for fifty turns: it does not grow, one notice, the tools keep working', async (code) => {
    const world = aWorld({ 'a.txt': '0', 'image.jpg': 'j'.repeat(10_000) })
    const chat = await opened(world, { complains: true })
    await chat.turn('first', reads('a.txt'))
    await chat.turn('second', writes('a.txt', 'start'))
    const before = storeBytes(world)
    disk.before = ({ fn, path }) => {
      if (isStore(path) && (isWrite(fn) || ['open', 'mkdir', 'rename'].includes(fn))) throw errno(code, fn)
    }

    for (let turn = 1; turn <= 50; turn += 1) await chat.turn(`turn ${turn}`, writes('a.txt', `${turn} ${'x'.repeat(1000)}`), runs(`echo ${turn} > c.txt`))

    expect([world.read('a.txt')?.slice(0, 3), world.read('c.txt')]).toEqual(['50 ', '50\n'])
    expect(chat.events().filter(event => event.type === 'turn/end').every(event => event.data.reason.kind === 'completed')).toBe(true)
    expect(storeBytes(world)).toBe(before)
    expect(chat.host.complaints).toEqual([expect.stringContaining(code)])
    expect((await chat.host.ask('hello', {})).value.problems).toMatchObject([{ contract: 'store', detail: expect.stringContaining(code) }])
  }, 90_000)
})

describe('git that fails', () => {
  /** A `git` before the real one on the path, as a shell script; `$N` is the number of the call. */
  function fakeGit(world: World, script: string): void {
    const folder = join(world.home, 'bin')
    mkdirSync(folder)
    const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
    writeFileSync(join(folder, 'git'), `#!/bin/sh\necho x >> ${folder}/calls\nN=$(wc -l < ${folder}/calls)\n${script}\nexec ${real} "$@"\n`)
    chmodSync(join(folder, 'git'), 0o755)
    vi.stubEnv('PATH', `${folder}:${process.env.PATH}`)
  }
  const start = { 'a.txt': '0', 'gone.txt': '0', 'd/b.txt': '0' }
  const work = [...edits('d/b.txt', '0', '1'), runs('echo 1 > a.txt; rm gone.txt; echo n > n.txt')]

  it('with 128 at every call: the workspace is looked at as a plain folder, and all is back', async () => {
    const world = aWorld(start)
    commitAll(world)
    fakeGit(world, 'echo "fatal: bad object HEAD" >&2; exit 128')
    const chat = await opened(world)
    await chat.turn('first', ...work)

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual({ ...start, d: 'folder' })
  })

  it('because the folder belongs to somebody else (safe.directory): all is back, and git is not told to trust it', async () => {
    const world = aWorld(start)
    commitAll(world)
    for (const path of ['', '.git']) chownSync(join(world.ws, path), 12345, 12345)
    vi.stubEnv('HOME', world.home)
    expect(() => git(world.ws, 'status')).toThrow()
    const chat = await opened(world)
    await chat.turn('first', ...work)

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual({ ...start, d: 'folder' })
    expect(readdirSync(world.home)).not.toContain('.gitconfig')
  })

  it.each(Array.from({ length: 14 }, (_, at) => at + 1))('with 128 from call %i on never loses a file, and what is not back is named', async (from) => {
    const world = aWorld({ ...start, '.gitignore': 'kept.env', 'kept.env': 'k', 'mine.txt': 'untracked' })
    commitAll(world)
    world.write('later.txt', 'untracked too')
    const before = filesOf(world)
    fakeGit(world, `[ "$N" -ge ${from} ] && { echo "fatal: index file corrupt" >&2; exit 128; }`)
    const chat = await opened(world)
    await chat.turn('first', ...work)
    const after = filesOf(world)

    const { gaps, rows } = await previewOf(chat, 1)
    await chat.command('/rollback 1')
    const now = filesOf(world)

    const changed = Object.keys({ ...before, ...after }).filter(path => before[path] !== after[path])
    for (const path of Object.keys({ ...before, ...now })) {
      if (changed.includes(path)) expect([before[path], after[path]]).toContain(now[path])
      else expect([path, now[path]]).toEqual([path, before[path]])
    }
    const open = changed.filter(path => now[path] !== before[path])
    const isNamed = (path: string): boolean => gaps.length > 0 || rows.some(row => row.shown === path && ['skip', 'keep'].includes(row.action))
    expect(open.filter(path => !isNamed(path))).toEqual([])
  })
})

describe.each(kinds)('a sparse file of ten gigabytes in %s', (_kind, prepare) => {
  const TEN_GB = 10 * 1024 ** 3

  it('is looked at and never read; unchanged it is not spoken of, changed it is named and left', async () => {
    const world = aWorld({ 'a.txt': '0' })
    prepare(world)
    const huge = join(world.ws, 'huge.img')
    writeFileSync(huge, '')
    truncateSync(huge, TEN_GB)
    const chat = await opened(world)
    await chat.turn('first', runs('echo 1 > a.txt'))
    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.turn('second', runs(`truncate -s +1 huge.img; echo 2 > a.txt`))

    const preview = await previewOf(chat, 2)
    await chat.command('/rollback 2')

    expect(gapsOf(preview, world)).toEqual([{ reason: 'too-large', count: 1, names: ['huge.img'] }])
    expect(actions(preview)).toEqual({ 'a.txt': 'write', 'huge.img': 'skip too-large' })
    expect([world.read('a.txt'), statSync(huge).size]).toEqual(['1\n', TEN_GB + 1])
    expect(disk.bytesRead.get(huge)).toBeUndefined()
  })

  it('made by the command is named, and not deleted', async () => {
    const world = aWorld({ 'a.txt': '0' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs(`truncate -s ${TEN_GB} huge.img`))

    const preview = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(actions(preview)).toEqual({ 'huge.img': 'skip too-large' })
    expect(statSync(join(world.ws, 'huge.img')).size).toBe(TEN_GB)
    expect(disk.bytesRead.get(join(world.ws, 'huge.img'))).toBeUndefined()
  })
})
