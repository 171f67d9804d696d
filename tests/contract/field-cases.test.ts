import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { markerTexts } from '../../src/surface/marker.ts'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, lineOf, reads, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'
import { dsh } from './support/dsh-packages.ts'
import type { ModelRequest } from './support/scripted-model.ts'

/** Real situations, numbered as in the list that users' reports were collected in. The disk and the model's next request are looked at, never our own report alone. */

/** Paths that the operating system refuses to write, with the errno. */
const blocked = vi.hoisted(() => new Map<string, string>())
beforeEach(() => { blocked.clear() })
afterEach(() => { vi.unstubAllEnvs() })

vi.mock(import('../../host/restore/file-system.ts'), async (load) => {
  const real = await load()
  const check = (path: string): void => {
    const code = blocked.get(path)
    if (code !== undefined) throw Object.assign(new Error(`${code}: injected, ${path}`), { code })
  }
  return {
    ...real,
    nodeFileSystem: {
      ...real.nodeFileSystem,
      rename: async (from, to) => { check(to); await real.nodeFileSystem.rename(from, to) },
      unlink: async (path) => { check(path); await real.nodeFileSystem.unlink(path) },
    },
  }
})

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const listed = async (chat: Chat, turn: number): Promise<readonly string[]> => (await previewOf(chat, turn)).rows.map(row => row.shown)
const marker = `user: ${markerTexts['all-files']}`
const asked = (chat: Chat): readonly string[] => chat.lastRequest().messages.map(lineOf).filter(line => !line.includes('Current runtime context'))

/** Carries out the plan for a turn with these paths put back. */
async function putBack(chat: Chat, turn: number, ...paths: string[]): Promise<void> {
  const { token } = await previewOf(chat, turn)
  const { planId } = (await chat.host.ask('plan', { sessionId: chat.id, turn, token, putBack: paths })).value
  expect((await chat.command(`/rollback --plan ${planId}`)).kind).toBe('success')
}

/** What a strict provider of the OpenAI kind demands of a request. */
function expectStrictOrder({ messages }: ModelRequest): void {
  const open = new Set<string>()
  for (const { role, content } of messages) {
    expect(content.length).toBeGreaterThan(0)
    expect(['user', 'assistant']).toContain(role)
    for (const block of content) {
      if (block.type === 'text') expect(block.text).not.toBe('')
      if (block.type === 'tool-call') open.add(block.id)
      if (block.type === 'tool-result') expect(open.delete(block.callId ?? block.toolCallId ?? block.id)).toBe(true)
    }
  }
  expect([...open]).toEqual([])
}

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x', '-c', 'core.autocrlf=true', ...args], {
    cwd: folder, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: '1' }, stdio: ['ignore', 'pipe', 'ignore'],
  })

describe('destroys nothing the session never wrote', () => {
  it('field 1: an ignored file stays when the ignore rule is rolled back', async () => {
    const world = aWorld({ '.gitignore': 'dist/', 'notes/private.txt': 'secret' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', ...edits('.gitignore', 'dist/', 'dist/\nnotes/'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('field 3: of two hundred files of another program only the edited one is put back', async () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`gen/${at}.txt`, `content ${at}`]))
    const world = aWorld(files)
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', ...edits('gen/7.txt', 'content 7', 'changed'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('field 4: a file that the turn looked for in vain and the user then made is not ours', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', reads('report.csv'))
    world.write('report.csv', 'u')

    expect(await listed(chat, 1)).toEqual([])
    await chat.command('/rollback 1')

    expect(world.read('report.csv')).toBe('u')
  })

  it('field 5: a broken git changes nothing', async () => {
    const world = aWorld({ '.git': 'gitdir: /nowhere', '.gitignore': 'secret.env', 'secret.env': 'k', 'a.txt': '1' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('field 7: what the user has staged stays staged, and the index is not touched', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '.')
    git(world.ws, 'commit', '-q', '-m', 'start')
    world.write('b.txt', '2')
    git(world.ws, 'add', 'b.txt')
    const index = () => createHash('sha256').update(readFileSync(join(world.ws, '.git', 'index'))).digest('hex')
    const before = { index: index(), staged: git(world.ws, '--no-optional-locks', 'diff', '--cached') }
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
    expect(index()).toBe(before.index)
    expect(git(world.ws, '--no-optional-locks', 'diff', '--cached')).toBe(before.staged)
  })
})

describe("keeps the user's own edits", () => {
  it('field 8: a file changed since is kept, or can be got back after it was put back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '2+mine')
    expect((await previewOf(chat, 1)).rows).toMatchObject([{ action: 'keep', conflict: 'changed-since' }])

    await putBack(chat, 1, join(world.ws, 'a.txt'))
    expect(world.read('a.txt')).toBe('1')
    await chat.command('/rollback undo')
    expect(world.read('a.txt')).toBe('2+mine')
  })

  it('an undo makes a removed folder again with the mode it had', async () => {
    const world = aWorld({})
    const chat = await opened(world)
    await chat.turn('first', writes('made/deep/n.txt', 'n'))
    chmodSync(join(world.ws, 'made'), 0o2750)
    chmodSync(join(world.ws, 'made/deep'), 0o700)
    await chat.command('/rollback 1')
    expect(world.tree()).toEqual({})

    await chat.command('/rollback undo')

    expect(world.read('made/deep/n.txt')).toBe('n')
    expect(['made', 'made/deep'].map(path => (statSync(join(world.ws, path)).mode & 0o7777).toString(8))).toEqual(['2750', '700'])
  })

  it('field 9: a file that only the user changed is not in the list', async () => {
    const world = aWorld({ 'q.md': 'x' })
    const chat = await opened(world)
    await chat.turn('first', 'just talk')
    world.write('q.md', 'y')

    expect(await listed(chat, 1)).toEqual([])
    await chat.command('/rollback 1')

    expect(world.read('q.md')).toBe('y')
  })

  it('field 10: a rollback goes back to what the turn found, which is the user’s text', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    await chat.turn('second', ...edits('a.txt', '3', '4'))

    await chat.command('/rollback 2')

    expect(world.read('a.txt')).toBe('3')
  })

  it('field 11: a file beside the edited one keeps the user’s text, with the repository two levels up', async () => {
    const world = aWorld({ 'sub/deep/main.py': '1', 'sub/deep/README': 'r' })
    git(world.ws, 'init', '-q')
    const chat = await (await world.start()).open('s1', { cwd: join(world.ws, 'sub', 'deep') })
    await chat.turn('first', ...edits('main.py', '1', '2'))
    world.write('sub/deep/README', 'mine')

    await chat.command('/rollback 1')

    expect([world.read('sub/deep/main.py'), world.read('sub/deep/README')]).toEqual(['1', 'mine'])
  })

  it('field 78: an edit from between two turns is marked, kept by default, and none of its states is lost', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    await chat.turn('second', ...edits('a.txt', '3', '4'))
    expect((await previewOf(chat, 1)).rows).toMatchObject([{ action: 'keep', conflict: 'edited-between', putBackAction: 'write' }])

    await chat.command('/rollback 2')
    expect(world.read('a.txt')).toBe('3')
    await putBack(chat, 1, join(world.ws, 'a.txt'))
    expect(world.read('a.txt')).toBe('1')
    await chat.command('/rollback undo')
    expect(world.read('a.txt')).toBe('3')
  })

  it('field 78: by default the file with the edit from between stays as it is and is named', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    await chat.turn('second', ...edits('a.txt', '3', '4'))

    const { text } = await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('4')
    expect(text).toContain('Kept, contains an edit from between two turns: a.txt')
    expect(chat.surface()).toContain(`user: ${markerTexts['some-files']}`)
  })
})

describe('restores all of it, to the right state', () => {
  it('field 13: files of several turns', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    await chat.turn('second', ...edits('b.txt', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('field 14: a file of an earlier turn is restored, not deleted', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', writes('t.txt', 'v1'))
    await chat.turn('second', ...edits('t.txt', 'v1', 'v2'))

    await chat.command('/rollback 2')

    expect(world.read('t.txt')).toBe('v1')
  })

  it('field 15: the first turn of a new session', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
  })

  it('field 16: a file that came in from outside after its turn is not in the list of a later one', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '5')
    await chat.turn('second', ...edits('b.txt', '1', '2'))

    expect(await listed(chat, 2)).toEqual(['b.txt'])
    await chat.command('/rollback 2')

    expect(world.tree()).toEqual({ 'a.txt': '5', 'b.txt': '1' })
  })

  it('field 17: one rollback after another, each to its own state', async () => {
    const world = aWorld({ a: '0', b: '0', c: '0' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a', '0', '1'))
    await chat.turn('second', ...edits('b', '0', '1'))
    await chat.turn('third', ...edits('a', '1', '2'), ...edits('c', '0', '1'))
    await chat.turn('fourth', ...edits('c', '1', '2'))

    await chat.command('/rollback 4')
    expect(world.tree()).toEqual({ a: '2', b: '1', c: '1' })
    await chat.command('/rollback 3')
    expect(world.tree()).toEqual({ a: '1', b: '1', c: '0' })
    await chat.command('/rollback 1')
    expect(world.tree()).toEqual({ a: '0', b: '0', c: '0' })
  })

  it('field 18: a name that was rolled back and then taken by the user is the user’s, also after a restart', async () => {
    const world = aWorld({ 'y.txt': '1' })
    const first = await opened(world)
    await first.turn('first', writes('x.txt', 'x'))
    await first.command('/rollback 1')
    world.write('x.txt', 'u')
    await first.host.stop()
    const chat = await opened(world)
    await chat.turn('second', ...edits('y.txt', '1', '2'))

    expect(await listed(chat, 2)).toEqual(['y.txt'])
    await chat.command('/rollback 2')

    expect(world.tree()).toEqual({ 'x.txt': 'u', 'y.txt': '1' })
  })
})

describe('commands', () => {
  it.each([
    [19, 'sed -i s/1/2/ a.txt'],
    [20, 'rm a.txt'],
  ])('field %i: what "%s" did is listed and taken back', async (_number, command) => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', runs(command))

    const preview = await chat.command('/rollback preview 1')
    const done = await chat.command('/rollback 1')

    for (const { text } of [preview, done]) {
      expect(text).toContain('a.txt')
      expect(text).not.toContain('not covered')
    }
    expect(world.tree()).toEqual({ 'a.txt': '1' })
    expect(chat.surface()).toEqual([`user: ${markerTexts['all-files']}`])
  })

  it.each([
    [19, 'sed -i s/1/2/ a.txt'],
    [20, 'rm a.txt'],
  ])('field %i: "%s" from before the plugin is named, and there is no all-clear', async (_number, command) => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false })
    const chat = await host.open()
    await chat.turn('first', runs(command))
    await host.install()

    const preview = await chat.command('/rollback preview 1')
    const done = await chat.command('/rollback 1')

    for (const { text } of [preview, done]) expect(text).toContain(`1 command ran whose changes are not covered: ${command}`)
    expect(preview.text).not.toContain('No file change is recorded')
    expect(chat.surface()).toEqual([`user: ${markerTexts['some-files']}`])
  })
})

describe('created files and folders', () => {
  it('field 22: new files go with the folders made for them, and the folder that was there stays', async () => {
    const world = aWorld()
    mkdirSync(join(world.ws, 'src'))
    const chat = await opened(world)
    await chat.turn('first', writes('src/n1.txt', '1'), writes('lib/deep/n2.txt', '2'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ src: 'folder' })
  })

  it('field 23: an empty file is an empty file again', async () => {
    const world = aWorld({ '__init__.py': '' })
    const chat = await opened(world)
    await chat.turn('first', reads('__init__.py'), writes('__init__.py', 'x'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ '__init__.py': '' })
  })

  it('field 25: a folder goes only with the turn that made it', async () => {
    const world = aWorld()
    mkdirSync(join(world.ws, 'keep'))
    const chat = await opened(world)
    await chat.turn('first', 'one')
    await chat.turn('second', 'two')
    await chat.turn('third', writes('deep/x.txt', 'x'))
    await chat.turn('fourth', 'four')
    await chat.turn('fifth', writes('deep/y.txt', 'y'), writes('keep/z.txt', 'z'))

    await chat.command('/rollback 5')
    expect(world.tree()).toEqual({ deep: 'folder', 'deep/x.txt': 'x', keep: 'folder' })
    await chat.command('/rollback 3')
    expect(world.tree()).toEqual({ keep: 'folder' })
  })
})

describe('bytes, modes and links', () => {
  it('field 27: line ends are those of the start, whatever git thinks of them', async () => {
    const world = aWorld({ '.gitattributes': '* text=auto', 'lf.txt': 'a\nb\n', 'crlf.txt': 'a\r\nb\r\n' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'config', 'core.autocrlf', 'true')
    git(world.ws, 'add', '.')
    const before = { lf: world.bytes('lf.txt'), crlf: world.bytes('crlf.txt') }
    const chat = await opened(world)
    await chat.turn('first', ...edits('lf.txt', 'a', 'A'), ...edits('crlf.txt', 'a', 'A'))

    await chat.command('/rollback 1')

    expect({ lf: world.bytes('lf.txt'), crlf: world.bytes('crlf.txt') }).toEqual(before)
  })

  it('field 29: contents and permission bits', async () => {
    const world = aWorld({ 'run.sh': '1', key: '1' })
    chmodSync(join(world.ws, 'run.sh'), 0o755)
    chmodSync(join(world.ws, 'key'), 0o600)
    const chat = await opened(world)
    await chat.turn('first', ...edits('run.sh', '1', '2'), ...edits('key', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'run.sh': '1', key: '1' })
    expect(['run.sh', 'key'].map(name => statSync(join(world.ws, name)).mode & 0o777)).toEqual([0o755, 0o600])
  })

  it('field 31: a path that became a link to somewhere else is left alone, and so is what it points to', async () => {
    const world = aWorld({ 'cfg.txt': '1', 'dir/in.txt': '1' })
    const outside = join(world.home, '..', 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'x'), '2')
    writeFileSync(join(outside, 'in.txt'), '2')
    const chat = await opened(world)
    await chat.turn('first', ...edits('cfg.txt', '1', '2'), ...edits('dir/in.txt', '1', '2'))
    world.remove('cfg.txt')
    symlinkSync(join(outside, 'x'), join(world.ws, 'cfg.txt'))
    world.remove('dir')
    symlinkSync(outside, join(world.ws, 'dir'))

    const { text } = await chat.command('/rollback 1')

    expect([readFileSync(join(outside, 'x'), 'utf8'), readFileSync(join(outside, 'in.txt'), 'utf8')]).toEqual(['2', '2'])
    expect(world.tree()).toMatchObject({ 'cfg.txt': `-> ${join(outside, 'x')}`, dir: `-> ${outside}` })
    expect(text).toMatch(/Kept.*cfg\.txt/)
    expect(text).toMatch(/Not restorable \(a link stands in its path\): dir\/in\.txt/)
  })

  it('field 32: files that are not concerned, or are as wanted already, are not rewritten', async () => {
    const world = aWorld(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}.txt`, '1'])))
    const facts = (name: string) => ({ ino: statSync(join(world.ws, name)).ino, mtimeMs: statSync(join(world.ws, name)).mtimeMs })
    const chat = await opened(world)
    await chat.turn('first', ...edits('0.txt', '1', '2'), ...edits('1.txt', '1', '2'))
    world.write('1.txt', '1')
    const before = Array.from({ length: 49 }, (_, at) => facts(`${at + 1}.txt`))

    await chat.command('/rollback 1')

    expect(world.read('0.txt')).toBe('1')
    expect(Array.from({ length: 49 }, (_, at) => facts(`${at + 1}.txt`))).toEqual(before)
  })
})

describe('paths and workspaces', () => {
  it('field 33: names in any script are restored and shown as they are', async () => {
    const names = ['公共函数.cpp', '日本語 ノート.txt']
    const world = aWorld(Object.fromEntries(names.map(name => [name, '1'])))
    const chat = await opened(world)
    await chat.turn('first', ...names.flatMap(name => edits(name, '1', '2')))

    const { text } = await chat.command('/rollback preview 1')
    await chat.command('/rollback 1')

    for (const name of names) expect(text).toContain(name)
    expect(names.map(name => world.read(name))).toEqual(['1', '1'])
  })

  it('field 34: a file outside the workspace that a file tool wrote is restored too', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const outside = join(world.home, '..', 'o.txt')
    writeFileSync(outside, '1')
    const chat = await opened(world, { sandbox: 'danger-full-access' })
    await chat.turn('first', ...edits('a.txt', '1', '2'), ...edits(outside, '1', '2'))

    await chat.command('/rollback 1')

    expect([world.read('a.txt'), readFileSync(outside, 'utf8')]).toEqual(['1', '1'])
  })

  it('field 35: a repository inside the workspace is just folders', async () => {
    const world = aWorld({ 'repo1/a.txt': '1' })
    git(join(world.ws, 'repo1'), 'init', '-q')
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', ...edits('repo1/a.txt', '1', '2'), writes('repo1/n.txt', 'n'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('field 36: a folder that becomes a link between two turns is no trouble for later ones', async () => {
    const world = aWorld({ 'skills/x.md': '1', 'b.txt': '1', 'agents/keep': 'k' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('skills/x.md', '1', '2'))
    renameSync(join(world.ws, 'skills'), join(world.ws, 'agents/skills'))
    symlinkSync('agents/skills', join(world.ws, 'skills'))
    await chat.turn('second', ...edits('b.txt', '1', '2'), ...edits('skills/x.md', '2', '3'))

    await chat.command('/rollback 2')

    expect(world.tree()).toMatchObject({ 'b.txt': '1', 'agents/skills/x.md': '2', skills: '-> agents/skills' })
  })

  it('field 37: a sibling of the session’s folder keeps the user’s text', async () => {
    const world = aWorld({ 'mono/front/a': '1', 'mono/back/b': '1' })
    const chat = await (await world.start()).open('s1', { cwd: join(world.ws, 'mono', 'front') })
    await chat.turn('first', ...edits('a', '1', '2'))
    world.write('mono/back/b', 'mine')

    await chat.command('/rollback 1')
    expect([world.read('mono/front/a'), world.read('mono/back/b')]).toEqual(['1', 'mine'])
    await chat.command('/rollback undo')
    expect([world.read('mono/front/a'), world.read('mono/back/b')]).toEqual(['2', 'mine'])
  })

  it('field 38: works the same where git is not installed', async () => {
    const world = aWorld({ 'a.txt': '1' })
    vi.stubEnv('PATH', join(world.home, 'nothing'))
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), writes('n.txt', 'n'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '1' })
  })
})

describe('several sessions in one workspace', () => {
  it('field 39: each goes back with its own files only', async () => {
    const world = aWorld({ a: '1', b: '1' })
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await mine.turn('first', ...edits('a', '1', '2'))
    await other.turn('first', ...edits('b', '1', '2'))

    expect(await listed(mine, 1)).toEqual(['a'])
    await mine.command('/rollback 1')

    expect(world.tree()).toEqual({ a: '1', b: '2' })
  })

  it('field 40: what another session wrote since is kept, and after a put back can be got back', async () => {
    const world = aWorld({ 's.txt': '1' })
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await mine.turn('first', ...edits('s.txt', '1', '2'))
    await other.turn('first', ...edits('s.txt', '2', '3'))
    expect((await previewOf(mine, 1)).rows).toMatchObject([{ action: 'keep', conflict: 'other-session' }])

    await putBack(mine, 1, join(world.ws, 's.txt'))
    expect(world.read('s.txt')).toBe('1')
    await mine.command('/rollback undo')
    expect(world.read('s.txt')).toBe('3')
  })

  it('field 41: a write of another session during the turn is not in the list', async () => {
    const world = aWorld()
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    host.model.script.push({ hang: 'thinking' })
    mine.send('first')
    await expect.poll(() => host.model.requests.length).toBe(1)
    await other.turn('first', writes('b.txt', 'b'))
    mine.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await mine.agent.whenIdle()
    await mine.turn('second', writes('a.txt', 'a'))

    expect(await listed(mine, 1)).toEqual(['a.txt'])
  })
})

describe('subagents', () => {
  const delegate = { tools: [['subagent', { description: 'd', prompt: 'p' }]] } as const

  it('field 42: what a subagent wrote goes back with the turn that started it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', delegate, ...edits('a.txt', '1', '2'), writes('s.txt', 's'), 'child done', 'done')

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('field 43: the state before a turn is what the subagent of the turn before left', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), delegate, ...edits('a.txt', '2', '3'), 'child done', 'done')
    await chat.turn('second', ...edits('a.txt', '3', '4'))

    await chat.command('/rollback 2')
    expect(world.read('a.txt')).toBe('3')
    await chat.command('/rollback 1')
    expect(world.read('a.txt')).toBe('1')
  })
})

describe('a running turn', () => {
  it.each([
    [44, (chat: Chat) => chat.host.ask('preview', { sessionId: chat.id, turn: 1 }).then(reply => reply.failure?.code)],
    [45, (chat: Chat) => chat.command('/rollback 1').then(({ kind, text }) => kind === 'error' && text!.includes('Stop it or wait') && 'turn-running')],
  ])('field %i: is in the way of a rollback, and after it was stopped no more', async (_number, act) => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    chat.host.model.script.push({ hang: 'thinking' })
    chat.send('second')
    await expect.poll(() => chat.host.model.requests.length).toBe(4)
    const surface = chat.surface()

    expect(await act(chat)).toBe('turn-running')
    expect(world.read('a.txt')).toBe('2')
    expect(chat.surface()).toEqual(surface)

    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()
    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })
})

describe("the model's next request", () => {
  it('field 46: is one that a strict provider accepts', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), 'one')
    await chat.turn('second', ...edits('a.txt', '2', '3'), 'two')
    for (const turn of [2, 1]) {
      await chat.command(`/rollback ${turn}`)
      await chat.turn('next', reads('a.txt'), 'sure')
      expectStrictOrder(chat.lastRequest())
    }
  })

  it('field 47: is not half cut when a compaction covers the turn', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    for (const turn of [1, 2, 3, 4]) await chat.turn(`turn ${turn}`, ...edits('a.txt', `${turn}`, `${turn + 1}`), 'x'.repeat(2000))
    chat.host.model.script.push('They counted.')
    expect((await chat.command('/compact')).kind).toBe('success')
    await chat.turn('turn 5', 'five')
    const before = { tree: world.tree(), surface: chat.surface() }

    const { kind, text } = await chat.command('/rollback 2')

    expect(kind).toBe('error')
    expect(text).toBe('Turn 2 is part of a compacted summary, and the summary cannot be cut in two. Choose a turn after the compaction, or put back its files only: /rollback 2 files')
    expect({ tree: world.tree(), surface: chat.surface() }).toEqual(before)
  })

  it('field 48: has no to-do list of a withdrawn turn, and the answer says what the host keeps of it', async () => {
    const world = aWorld()
    const chat = await opened(world, {
      before: async (ctx) => { await ctx.plugin(await dsh('dsh-tool-todo'), { allowParallelInProgress: false }) },
    })
    await chat.turn('first', 'one')
    await chat.turn('second', { tools: [['todo_write', { todos: [{ content: 'Paint the shed', status: 'in_progress' }] }]] }, 'two')
    expect(chat.events().some(event => event.type === 'todo/write')).toBe(true)

    const { text } = await chat.command('/rollback 2')
    await chat.turn('third', 'three')

    expect(text).toMatch(/Not rolled back: .*to-do/i)
    expect(asked(chat)).toEqual(['user: first', 'assistant: one', marker, 'user: third'])
  })

  it('field 49: is without the withdrawn turn when the host was stopped right after the rollback', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const first = await opened(world)
    await first.turn('first', 'one')
    await first.turn('second', ...edits('a.txt', '1', '2'), 'two')
    await first.command('/rollback 2')
    await first.host.stop()

    const chat = await opened(world)
    await chat.turn('third', 'three')

    expect(world.read('a.txt')).toBe('1')
    expect(asked(chat)).toEqual(['user: first', 'assistant: one', marker, 'user: third'])
  })

  it('field 50: holds what was before the turn and the new message only', async () => {
    const world = aWorld()
    const chat = await opened(world)
    for (const turn of ['first', 'second', 'third']) await chat.turn(turn, `about ${turn}`)
    await chat.command('/rollback 2')

    await chat.turn('new', 'sure')

    expect(asked(chat)).toEqual(['user: first', 'assistant: about first', marker, 'user: new'])
  })

  it('field 51: still has the system prompt after the first turn was rolled back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), 'one')
    const { system } = chat.lastRequest()
    await chat.command('/rollback 1')

    await chat.turn('second', 'two')

    expect(world.read('a.txt')).toBe('1')
    expect(system).toContain('You are scripted.')
    expect(chat.lastRequest().system).toBe(system)
    expect(asked(chat)).toEqual([marker, 'user: second'])
  })
})

describe('restarts', () => {
  it('field 70: a turn of an earlier run of the host can be rolled back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const first = await opened(world)
    await first.turn('first', ...edits('a.txt', '1', '2'))
    await first.host.stop()

    await (await opened(world)).command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
  })

  it('field 72: the session opens after a restart, and again with the plugin gone', async () => {
    const world = aWorld()
    const first = await opened(world)
    await first.turn('first', 'one')
    await first.turn('second', 'two')
    await first.command('/rollback 2')
    const lines = first.surface()
    await first.host.stop()

    for (const plugin of [true, false]) {
      const chat = await opened(world, { plugin })
      expect(chat.surface()).toEqual(lines)
      await chat.host.stop()
    }
  })

  it('field 73: the whole history loads after two more turns and a restart', async () => {
    const world = aWorld()
    const first = await opened(world)
    await first.turn('first', 'one')
    await first.turn('second', 'two')
    await first.command('/rollback 2')
    await first.turn('third', 'three')
    await first.turn('fourth', 'four')
    const types = first.events().map(event => event.type)
    await first.host.stop()

    const chat = await opened(world)

    expect(chat.events().slice(0, types.length).map(event => event.type)).toEqual(types)
    expect(chat.surface().filter(line => !line.includes('Current runtime context')))
      .toEqual(['user: first', 'assistant: one', marker, 'user: third', 'assistant: three', 'user: fourth', 'assistant: four'])
  })
})

describe('hosts that are not as expected', () => {
  it('field 74: a host without optional services starts, and the command works', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, { without: ['sessionProjections', 'tokenMeter', 'jobs', 'connection'] })
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })

  it('field 74: what a host lacks is said once', async () => {
    const { serviceOf } = await import('./support/dsh-packages.ts')
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, {
      complains: true, without: ['connection'],
      before: async (ctx) => { await ctx.plugin(await serviceOf('connection', { rpc: {} })) },
    })
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    expect(chat.host.complaints).toEqual([expect.stringContaining('[turnback] channel: Error: connection has neither fetch.register nor rpc.handle')])
    expect((await chat.command('/rollback 1')).kind).toBe('success')
  })

  it('field 74: a session log that cannot be read in any known way is the answer of the command', async () => {
    const world = aWorld()
    const chat = await opened(world, { complains: true })
    await chat.turn('first', 'one')
    Object.defineProperty(chat.session, 'events', { value: undefined })

    const answer = await chat.host.ctx.commands.execute(chat.agent, '/rollback 1', [], new AbortController().signal)

    expect(answer.result).toMatchObject({ kind: 'error', text: expect.stringContaining('neither events nor snapshotEvents') })
  })

  it('field 75: without DSH_HOME the home folder’s .dsh is used', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, {
      before: () => {
        vi.stubEnv('DSH_HOME', undefined)
        vi.stubEnv('HOME', world.home)
      },
    })
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
    expect(statSync(join(world.home, '.dsh', 'data', 'turnback', 'v1', 'packs')).isDirectory()).toBe(true)
  })
})

describe('an honest result', () => {
  it.each(['EBUSY', 'EPERM', 'EACCES', 'EROFS'])('field 76: a file that cannot be written (%s) is named as failed, and no success is claimed for it', async (code) => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), ...edits('b.txt', '1', '2'), writes('n.txt', 'n'))
    blocked.set(join(world.ws, 'a.txt'), code)
    blocked.set(join(world.ws, 'n.txt'), code)

    const { text } = await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '2', 'b.txt': '1', 'n.txt': 'n' })
    expect(text).toContain('Put back: b.txt')
    expect(text).toMatch(new RegExp(`FAILED \\(${code}\\), left as it was: a\\.txt, n\\.txt`))
    expect(text).not.toMatch(/(Put back|Deleted): .*(a|n)\.txt/)
    expect(chat.surface()).toContain(`user: ${markerTexts['some-files']}`)
  })

  it('field 79: turns from before the plugin are named as not recorded, later ones are covered', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false })
    const chat = await host.open()
    await chat.turn('first', 'one')
    await chat.turn('second', writes('old.txt', 'o'))
    await host.install()
    await chat.turn('third', ...edits('a.txt', '1', '2'))

    const early = await chat.command('/rollback preview 2')
    expect(early.text).toContain('1 call was not recorded, its changes are not covered: old.txt')
    expect((await previewOf(chat, 3)).gaps).toEqual([])
    await chat.command('/rollback 3')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'old.txt': 'o' })
  })
})
