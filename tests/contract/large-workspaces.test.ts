import type * as NodeChildProcess from 'node:child_process'
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, reads, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'
import type { DiskHooks } from '../support/watched-disk.ts'

/** Workspaces and sessions of a size that a naive rollback tool chokes on. What is bounded is our work on the disk, counted, never the time it takes. */

const disk = vi.hoisted((): DiskHooks => ({ calls: [], bytesRead: new Map() }))
const started = vi.hoisted((): { programs: string[] } => ({ programs: [] }))
vi.mock('node:fs/promises', async (load) => {
  const { watchedDisk } = await import('../support/watched-disk.ts')
  return watchedDisk(await load(), disk)
})
vi.mock('node:fs', async (load) => {
  const { watchedSyncDisk } = await import('../support/watched-disk.ts')
  return watchedSyncDisk(await load(), disk)
})
vi.mock('node:child_process', async (load) => {
  const real = await load<typeof NodeChildProcess>()
  const watched = (...args: Parameters<typeof NodeChildProcess.spawn>) => {
    started.programs.push(String(args[0]))
    return real.spawn(...args)
  }
  return { ...real, spawn: watched }
})

const forget = (): void => {
  disk.calls = []
  disk.bytesRead = new Map()
  started.programs = []
}
beforeEach(forget)
afterEach(() => { vi.unstubAllEnvs() })

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => {
  const reply = await chat.host.ask('preview', { sessionId: chat.id, turn })
  expect(reply).toMatchObject({ ok: true })
  return reply.value
}
const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x', ...args], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

const YESTERDAY_SEC = 1_700_000_000

/** `count` old files in folders of a hundred. They are names of one file per folder, because new files are what takes time. */
function fill(folder: string, count: number): void {
  for (let at = 0; at < count; at += 100) {
    const into = join(folder, `d${at / 100}`)
    mkdirSync(into, { recursive: true })
    const seed = join(into, '0.txt')
    writeFileSync(seed, `files of ${at}\n`)
    utimesSync(seed, YESTERDAY_SEC, YESTERDAY_SEC)
    for (let name = 1; name < Math.min(100, count - at); name += 1) linkSync(seed, join(into, `${name}.txt`))
  }
}

/** Calls of ours on the disk at and below `folder`. */
const callsIn = (folder: string, ...fns: string[]) =>
  disk.calls.filter(({ fn, path }) => (path === folder || path.startsWith(`${folder}/`)) && (fns.length === 0 || fns.includes(fn)))
const folderReads = (world: World) => callsIn(world.ws, 'readdir', 'opendir', 'glob')
const bytesReadIn = (folder: string): number =>
  [...disk.bytesRead].reduce((sum, [path, bytes]) => (path.startsWith(`${folder}/`) ? sum + bytes : sum), 0)

const packsOf = (world: World): string => join(world.home, 'data/turnback/v1/packs')
const storeBytes = (world: World): number => readdirSync(packsOf(world)).reduce((sum, name) => sum + statSync(join(packsOf(world), name)).size, 0)
/** How often bytes that cannot be made smaller stand in the store. */
function copiesInStore(world: World, bytes: Buffer): number {
  const part = bytes.subarray(100, 200)
  let copies = 0
  for (const name of readdirSync(packsOf(world))) {
    const pack = readFileSync(join(packsOf(world), name))
    for (let at = pack.indexOf(part); at !== -1; at = pack.indexOf(part, at + 1)) copies += 1
  }
  return copies
}

interface Facts { readonly ino: bigint; readonly mtimeNs: bigint; readonly ctimeNs: bigint; readonly digest: string }
function factsOf(folder: string): ReadonlyMap<string, Facts> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return new Map(files.map((entry) => {
    const path = join(entry.parentPath, entry.name)
    const { ino, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [path, { ino, mtimeNs, ctimeNs, digest: createHash('sha256').update(readFileSync(path)).digest('hex') }]
  }))
}

const programs: readonly (readonly [string, (text: string) => ReturnType<typeof writes>])[] = [
  ['a file tool', text => writes('round2.txt', text)], ['a command', text => runs(`echo ${text} > round2.txt`)],
]

describe.each(programs)('with %s', (_name, makes) => {
  it('field 2: of five thousand files, half of them untracked, only the one the turn made goes', async () => {
    const world = aWorld()
    fill(world.ws, 2500)
    git(world.ws, 'init', '-q', '-b', 'main')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    fill(join(world.ws, 'untracked'), 2500)
    world.write('.git/info/exclude', 'd1*\n')
    const before = factsOf(world.ws)
    expect(before.size).toBeGreaterThan(5000)
    const chat = await opened(world)
    await chat.turn('first', makes('n'))

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ shown: 'round2.txt', action: 'delete' }] })
    await chat.command('/rollback 1')

    expect(world.exists('round2.txt')).toBe(false)
    expect(factsOf(world.ws)).toEqual(before)
  })

  it('field 32: of fifty files the forty-nine that are not concerned are never rewritten, nor by the undo', async () => {
    const world = aWorld(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}.txt`, `text ${at}`])))
    const chat = await opened(world)
    const before = factsOf(world.ws)
    await chat.turn('first', ...edits('7.txt', 'text', 'words'), makes('n'))
    const others = (facts: ReadonlyMap<string, Facts>) => new Map([...facts].filter(([path]) => !/\/(7|round2)\.txt$/.test(path)))
    expect(others(before).size).toBe(49)

    await chat.command('/rollback 1')
    expect([world.read('7.txt'), others(factsOf(world.ws))]).toEqual(['text 7', others(before)])
    await chat.command('/rollback undo')
    expect([world.read('7.txt'), others(factsOf(world.ws))]).toEqual(['words 7', others(before)])
  })
})

describe('without a rollback', () => {
  it('field 12: a file edited and then moved by a command stays where it is, and nothing recreates it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), runs('mv a.txt b.txt'))
    await chat.turn('the next message', 'fine')
    await previewOf(chat, 1)
    await chat.host.stop()
    const again = await opened(world)
    await again.turn('after a restart', 'fine')

    expect(world.tree()).toEqual({ 'b.txt': '2' })
  })
})

describe('a turn without a command', () => {
  it('field 67: reads no folder and starts no program, in fifty thousand files with a huge untracked one', async () => {
    const world = aWorld({ 'a.txt': '1' })
    fill(join(world.ws, 'many'), 50_000)
    git(world.ws, 'init', '-q', '-b', 'main')
    writeFileSync(join(world.ws, 'huge.img'), '')
    truncateSync(join(world.ws, 'huge.img'), 4.8e9)
    const chat = await opened(world)
    forget()

    await chat.turn('chat only', 'hello')
    // Whose session it is, is asked of the folder's own name.
    expect(callsIn(world.ws).filter(({ fn, path }) => path !== world.ws || !['exists', 'realpath', 'lstat'].includes(fn))).toEqual([])
    await chat.turn('one edit', ...edits('a.txt', '1', '2'))
    await previewOf(chat, 1)

    expect(folderReads(world)).toEqual([])
    expect(started.programs).toEqual([])
    // Before and after the write, at the turn's end and for the preview; on this path and its parents alone.
    expect(new Set(callsIn(world.ws).map(({ path }) => path))).toEqual(new Set([world.ws, join(world.ws, 'a.txt')]))
    expect(callsIn(join(world.ws, 'a.txt')).length).toBeLessThan(40)
    expect(callsIn(world.ws).length).toBeLessThan(150)
    // The count can tell: a command is looked around, with git.
    writeFileSync(join(world.ws, '.git/info/exclude'), 'many\n')
    await chat.turn('a command', runs('true'))
    expect(started.programs).toContain('git')
    await chat.command('/rollback 2')
    expect(world.read('a.txt')).toBe('1')
    expect(disk.bytesRead.get(join(world.ws, 'huge.img'))).toBeUndefined()
  }, 60_000)

  it('reads no folder where there is no git either; a command does', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/b.txt': '1' })
    const chat = await opened(world)
    forget()

    await chat.turn('one edit', ...edits('a.txt', '1', '2'), writes('d/n.txt', 'n'))
    await chat.command('/rollback 1')
    expect(folderReads(world)).toEqual([])
    await chat.turn('a command', runs('true'))
    expect(folderReads(world).length).toBeGreaterThan(1)
  })
})

describe('a hundred thousand files', () => {
  const COUNT = 100_000

  it('in a plain folder: a look stops at its budget, commands are named in one notice, file tools are covered as ever', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    fill(join(world.ws, 'many'), COUNT)
    const chat = await opened(world, { settings: { maxBracketFiles: 5000 } })
    forget()
    await chat.turn('first', runs('echo 2 > a.txt'))
    // Two looks of five thousand paths and a few calls on each; the tree has twenty times as many.
    expect(callsIn(world.ws, 'lstat').length).toBeLessThan(6 * 5000)
    expect(folderReads(world).length).toBeLessThan(200)
    expect(bytesReadIn(world.ws)).toBeLessThan(5000 * 20)
    await chat.turn('second', runs('rm many/d1/5.txt'), ...edits('b.txt', '1', '2'))

    const { gaps, rows } = await previewOf(chat, 1)
    const { text } = await chat.command('/rollback 1')

    expect(gaps).toEqual([{ reason: 'over-budget', count: 2, names: ['echo 2 > a.txt', 'rm many/d1/5.txt'] }])
    expect(rows.filter(({ action }) => !['skip', 'none'].includes(action)).map(row => [row.shown, row.action])).toEqual([['a.txt', 'write'], ['b.txt', 'write']])
    expect(text?.match(/could not be looked at whole/g)).toHaveLength(1)
    // What the look did reach before its budget ended is back; what it did not reach is not guessed at.
    expect([world.read('a.txt'), world.read('b.txt'), world.exists('many/d1/5.txt')]).toEqual(['1', '1', false])
    expect(readdirSync(join(world.ws, 'many')).length).toBe(COUNT / 100)
  }, 90_000)

  it('in a git work tree: git tells what changed, and no more of them is read than that', async () => {
    const world = aWorld({ 'a.txt': '1', 'gone.txt': '1', 'many/d2/alone.txt': '1' })
    fill(join(world.ws, 'many'), COUNT)
    git(world.ws, 'init', '-q', '-b', 'main')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    const chat = await opened(world)
    // What git does not tell of a file is learned once, in portions.
    let learned = 0
    for (let looks = 0; looks < 30 && (looks === 0 || callsIn(join(world.ws, 'many'), 'lstat').length > 3 * COUNT / 100); looks += 1) {
      forget()
      await chat.turn('nothing', runs('true'))
      learned += callsIn(join(world.ws, 'many'), 'lstat', 'open').length
    }
    expect(learned).toBeLessThan(1.5 * COUNT)
    const [turn] = chat.events().filter(event => event.type === 'turn/start').map(event => event.data.turn + 1).slice(-1)
    forget()
    await chat.turn('work', runs('echo 2 > a.txt; rm gone.txt; echo n > many/d1/n.txt; sed -i s/1/2/ many/d2/alone.txt'))
    // Each folder twice, to see whether something came or went in it, and no file that is as it was.
    expect(callsIn(join(world.ws, 'many'), 'lstat', 'open').length).toBeLessThan(2.2 * COUNT / 100)
    expect(folderReads(world).length).toBeLessThan(10)

    expect(await previewOf(chat, turn)).toMatchObject({ gaps: [], rows: [
      { shown: 'a.txt', action: 'write' }, { shown: 'gone.txt', action: 'recreate' }, { shown: 'many/d1/n.txt', action: 'delete' }, { shown: 'many/d2/alone.txt', action: 'write' },
    ] })
    await chat.command(`/rollback ${turn}`)

    expect(git(world.ws, 'status', '--porcelain')).toBe('')
  }, 90_000)
})

describe('a workspace that is the home folder, above it, or the whole disk', () => {
  const places: readonly (readonly [string, (world: World) => string])[] = [
    ['the home folder', ({ ws }) => ws],
    ['the home folder under another name', (world) => {
      symlinkSync(world.ws, join(world.home, 'me'))
      return join(world.home, 'me')
    }],
    ['a folder above the home folder', ({ ws }) => join(ws, '..')],
    ['the root of the disk', () => '/'],
  ]
  it.each(places)('%s is not searched: a command is named, and file tools are covered', async (_what, placeOf) => {
    const world = aWorld({ 'a.txt': '1', 'docs/letter.txt': 'mine' })
    const place = placeOf(world)
    vi.stubEnv('HOME', world.ws)
    const chat = await (await world.start({ sandbox: 'danger-full-access' })).open('s1', { cwd: place })
    forget()
    await chat.turn('first', runs(`echo 2 > ${join(world.ws, 'docs/letter.txt')}`), ...edits(join(world.ws, 'a.txt'), '1', '2'))

    const { gaps, rows } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(folderReads(world)).toEqual([])
    expect(disk.calls.filter(({ fn, path }) => ['readdir', 'opendir'].includes(fn) && !path.startsWith(world.home))).toEqual([])
    expect(gaps).toMatchObject([{ reason: 'command', count: 1 }])
    expect(rows.map(row => [row.path, row.action])).toEqual([[join(world.ws, 'a.txt'), 'write']])
    expect([world.read('a.txt'), world.read('docs/letter.txt')]).toEqual(['1', '2\n'])
  })

  it('the home folder with a repository of its own: git tells, and the ignored rest of it is left alone', async () => {
    const world = aWorld({ '.gitignore': '*\n!.profile\n', '.profile': '1', 'docs/letter.txt': 'mine' })
    vi.stubEnv('HOME', world.ws)
    git(world.ws, 'init', '-q', '-b', 'main')
    git(world.ws, 'add', '.profile', '.gitignore', '-f')
    git(world.ws, 'commit', '-qm', 'start')
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 > .profile; echo theirs > docs/letter.txt'))

    const { gaps, rows } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    // Either of the two: looked at with git, or refused and named.
    expect(gaps.length === 1 || rows.map(row => row.shown).join() === '.profile').toBe(true)
    expect(world.read('docs/letter.txt')).toBe('theirs\n')
  })
})

describe('a long session', () => {
  const isLong = process.env.TURNBACK_LONG === '1'
  const EDITS = isLong ? 200 : 30

  it(`field 66: ${EDITS} edits of a megabyte: each state is in the store once, the untouched big file is not, and all of them come back`, async () => {
    const world = aWorld()
    const lines = Array.from({ length: 16_000 }, () => randomBytes(32).toString('hex'))
    const stateAfter = (turn: number) => Buffer.from(lines.map((line, at) => (at < turn ? `changed in turn ${at + 1}` : line)).join('\n'))
    world.write('log.txt', stateAfter(0))
    const image = randomBytes(30 * 1024 * 1024)
    world.write('image.bin', image)
    const chat = await opened(world)
    for (let turn = 1; turn <= EDITS; turn += 1) {
      await chat.turn(`turn ${turn}`, ...edits('log.txt', lines[turn - 1]!, `changed in turn ${turn}`))
      // Each holds all that was read before.
      chat.host.model.requests.length = 0
    }
    const full = storeBytes(world)
    // To and fro between two states that are there already: entries, and no bytes again.
    const [last, line] = [`changed in turn ${EDITS}`, lines[EDITS - 1]!]
    for (let times = 0; times < 5; times += 1) await chat.turn('to and fro', ...edits('log.txt', last, line), ...edits('log.txt', line, last))

    const states = (EDITS + 1) * stateAfter(0).length
    expect(full).toBeLessThan(states + EDITS * 4096)
    expect(storeBytes(world) - full).toBeLessThan(20 * 4096)
    expect(copiesInStore(world, image)).toBe(0)
    for (const turn of [EDITS, Math.ceil(EDITS / 2), 2, 1]) {
      expect((await previewOf(chat, turn)).gaps).toEqual([])
      await chat.command(`/rollback ${turn}`)
      expect(world.bytes('log.txt').equals(stateAfter(turn - 1))).toBe(true)
    }
    expect(world.bytes('image.bin').equals(image)).toBe(true)
  }, isLong ? 180_000 : 60_000)

  it('field 68: two hundred and forty-eight turns that never touch an image keep no copy of it', async () => {
    const image = randomBytes(200_000)
    const world = aWorld({ 'a.txt': '0' })
    world.write('image.jpg', image)
    utimesSync(join(world.ws, 'image.jpg'), YESTERDAY_SEC, YESTERDAY_SEC)
    git(world.ws, 'init', '-q', '-b', 'main')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    const chat = await opened(world)
    await chat.turn('read', reads('a.txt'))
    for (let turn = 1; turn <= 248; turn += 1) await chat.turn(`turn ${turn}`, turn % 20 === 0 ? runs(`echo ${turn} > c.txt`) : writes('a.txt', `${turn}`))

    expect(copiesInStore(world, image)).toBe(0)
    expect(storeBytes(world)).toBeLessThan(1_000_000)
    // The count can tell: once a command takes it away, the one copy that is needed is there.
    await chat.turn('and gone', runs('rm image.jpg'))
    expect(copiesInStore(world, image)).toBe(1)
    await chat.command('/rollback 250')
    expect(world.bytes('image.jpg').equals(image)).toBe(true)
    expect(copiesInStore(world, image)).toBe(1)
  }, 120_000)

  it('field 68: in a plain folder, where only we have it, an image that commands ran beside is kept once', async () => {
    const image = randomBytes(200_000)
    const world = aWorld({ 'a.txt': '0' })
    world.write('image.jpg', image)
    const chat = await opened(world)
    for (let turn = 1; turn <= 30; turn += 1) await chat.turn(`turn ${turn}`, runs(`echo ${turn} > c.txt`))

    expect(copiesInStore(world, image)).toBe(1)
  })
})
