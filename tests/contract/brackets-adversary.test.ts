import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lutimesSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'

const YESTERDAY_SEC = 1_700_000_000

/** Whoever commits; the commands of a test need it as well, so it is in the repository's own settings. */
const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** Files as old as in a repository that was there yesterday: their stat data tell that they are as committed. */
function commitAll(folder: string): void {
  git(folder, 'init', '-q', '-b', 'main')
  for (const path of git(folder, 'ls-files', '-z', '--others', '--exclude-standard').split('\0')) {
    if (path !== '' && !path.endsWith('/')) lutimesSync(join(folder, path), YESTERDAY_SEC, YESTERDAY_SEC)
  }
  git(folder, 'config', 'user.name', 't')
  git(folder, 'config', 'user.email', 't@t')
  git(folder, 'add', '-A')
  git(folder, 'commit', '-qm', 'start')
}

const kinds: readonly (readonly [string, (world: World) => void])[] = [
  ['a plain folder', () => {}],
  ['a git work tree', (world) => { commitAll(world.ws) }],
]

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const rowsOf = async (chat: Chat, turn: number) => (await previewOf(chat, turn)).rows.map(({ shown, action }) => `${action} ${shown}`)
/** Times of files come from a coarser clock than ours. */
const olderThanAnyLook = () => new Promise(resolve => { setTimeout(resolve, 120) })
const tool = (name: string, args: object) => ({ tools: [[name, args]] as const })
/** The workspace's files, without what git keeps for itself. */
const filesOf = (world: World): Record<string, string> =>
  Object.fromEntries(Object.entries(world.tree()).filter(([path]) => !/(^|\/)\.git(\/|$)/.test(path)))

describe.each(kinds)('a command in %s', (_name, prepare) => {
  it('that replaces a file by a link and a link by a file', async () => {
    const world = aWorld({ 'a.txt': 'a', 'target.txt': 't' })
    symlinkSync('target.txt', join(world.ws, 'l'))
    prepare(world)
    const start = filesOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm a.txt && ln -s target.txt a.txt && rm l && echo plain > l'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
  })

  it('that replaces a file by a folder and a folder by a file', async () => {
    const world = aWorld({ 'a.txt': 'a', 'd/x': 'x', 'd/y': 'y' })
    prepare(world)
    const start = filesOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm a.txt && mkdir a.txt && echo in > a.txt/in && rm -r d && echo plain > d'))

    const rows = await rowsOf(chat, 1)
    await chat.command('/rollback 1')

    // What cannot be put back in one go is kept and named; nothing is left half way.
    if (rows.every(row => !row.startsWith('skip'))) expect(filesOf(world)).toEqual(start)
    else expect(rows.length).toBeGreaterThan(3)
  })

  it('that changes a file over the size limit: named, skipped, never deleted', async () => {
    const world = aWorld({ 'big.bin': 'b'.repeat(3000), 'old.bin': 'o'.repeat(3000), 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world, { settings: { maxFileBytes: 1000 } })
    await chat.turn('first', runs('head -c 2000 /dev/zero > big.bin; head -c 4000 /dev/zero > new.bin; rm old.bin; echo 2 > a.txt'))

    const { rows, gaps } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(gaps).toEqual([{ reason: 'too-large', count: 3, names: expect.arrayContaining(['big.bin', 'new.bin', 'old.bin']) }])
    expect(rows.filter(({ shown }) => shown !== 'a.txt').every(({ action }) => action === 'skip')).toBe(true)
    expect(world.bytes('big.bin')).toHaveLength(2000)
    expect(world.bytes('new.bin')).toHaveLength(4000)
    expect(world.read('a.txt')).toBe('1')
  })

  it('that touches no file over the limit says nothing of it', async () => {
    const world = aWorld({ 'big.bin': 'b'.repeat(3000) })
    prepare(world)
    const chat = await opened(world, { settings: { maxFileBytes: 1000 } })
    await chat.turn('first', runs('echo 2 > a.txt'))

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ shown: 'a.txt', action: 'delete' }] })
  })

  it('that rewrites and removes read-only files: bytes and modes are back', async () => {
    const world = aWorld({ 'ro.txt': 'ro', 'gone.txt': 'gone' })
    for (const file of ['ro.txt', 'gone.txt']) chmodSync(join(world.ws, file), 0o444)
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('chmod 600 ro.txt; echo w > ro.txt; rm -f gone.txt'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual({ 'ro.txt': 'ro', 'gone.txt': 'gone' })
    const modes = ['ro.txt', 'gone.txt'].map(file => statSync(join(world.ws, file)).mode & 0o777)
    expect(modes).toEqual([0o444, 0o444])
  })

  it('field 30: a link to a folder outside that became a folder takes nothing outside along', async () => {
    const outside = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-outside-')))
    onTestFinished(() => { rmSync(outside, { recursive: true }) })
    writeFileSync(join(outside, 'keep.txt'), 'kept')
    const world = aWorld({ 'a.txt': '1' })
    symlinkSync(outside, join(world.ws, 'ext'))
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm ext && mkdir ext'), writes('ext/keep.txt', 'ours'))

    await chat.command('/rollback 1')

    expect(readFileSync(join(outside, 'keep.txt'), 'utf8')).toBe('kept')
    expect(world.tree()['ext/keep.txt']).toBeUndefined()
  })

  it('that fails halfway: what it did until then is taken back', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('set -e; echo 2 > a.txt; false; echo 2 > b.txt'))
    expect(world.read('a.txt')).toBe('2\n')

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ shown: 'a.txt', action: 'write' }] })
    await chat.command('/rollback 1')
    expect(filesOf(world)).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it('that is stopped in the middle: what it did until then is taken back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    chat.host.model.script.push(runs('echo 2 > a.txt; echo n > n.txt; sleep 30'))
    chat.send('first')
    await expect.poll(() => world.read('n.txt'), { timeout: 5000 }).toBe('n\n')
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()

    expect(await rowsOf(chat, 1)).toEqual(['write a.txt', 'delete n.txt'])
    await chat.command('/rollback 1')
    expect(filesOf(world)).toEqual({ 'a.txt': '1' })
  })

  it('of a subagent is the turn’s own', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', 'one')
    await chat.turn('second', tool('subagent', { description: 'run', prompt: 'run' }), runs('rm a.txt; echo 2 > b.txt'), 'child done', 'two')

    expect(await previewOf(chat, 2)).toMatchObject({ gaps: [], rows: [{ shown: 'a.txt', turns: [2] }, { shown: 'b.txt', turns: [2] }] })
    await chat.command('/rollback 2')
    expect(filesOf(world)).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it('in the background is seen when it ends, and not taken back by default', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    chat.host.model.script.push(tool('bash', { command: 'sleep 0.3; echo 2 > a.txt', description: 'Later', run_in_background: true }))
    chat.send('first')
    await expect.poll(() => world.read('a.txt'), { timeout: 5000 }).toBe('2\n')
    await chat.agent.whenIdle()

    await expect.poll(() => rowsOf(chat, 1), { timeout: 5000 }).toEqual(['keep a.txt'])
    expect((await previewOf(chat, 1)).gaps).toEqual([])
  })

  it('of two sessions at once: what changed meanwhile is kept by default', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    prepare(world)
    const host = await world.start()
    const [one, two] = [await host.open('one'), await host.open('two')]
    host.model.script.push(runs('touch started; while [ ! -e go ]; do sleep 0.05; done; echo 2 > a.txt'))
    one.send('first')
    await expect.poll(() => world.exists('started'), { timeout: 5000 }).toBe(true)
    host.model.script.push(runs('echo 2 > b.txt; touch go; sleep 0.5'))
    two.send('first')
    await expect.poll(() => world.read('b.txt'), { timeout: 5000 }).toBe('2\n')
    await Promise.all([one.agent.whenIdle(), two.agent.whenIdle()])

    for (const chat of [one, two]) {
      const { rows } = await previewOf(chat, 1)
      expect(rows.length).toBeGreaterThan(0)
      expect(rows.every(({ action }) => action === 'keep')).toBe(true)
      await chat.command('/rollback 1')
    }
    expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['2\n', '2\n'])
  })

  it('that empties the workspace: everything is back', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/e/f.txt': 'f', 'd/g.txt': 'g', 'empty.txt': '' })
    prepare(world)
    const start = filesOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm -rf ./*'))
    expect(filesOf(world)).toEqual({})

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
  })

  it('that moves a file: it is back under its old name alone', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/x.txt': 'x', 'd/y.txt': 'y' })
    symlinkSync('x.txt', join(world.ws, 'd/link'))
    prepare(world)
    const start = filesOf(world)
    await olderThanAnyLook()
    const chat = await opened(world)
    await chat.turn('first', runs('mv a.txt b.txt; mv d e; cp -l b.txt c.txt'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
  })

  it('that moves a file in from where nobody looks never loses it', async () => {
    const world = aWorld({ '.gitignore': '.env\nnode_modules/\n', 'node_modules/.env': 'secret', 'a.txt': '1' })
    prepare(world)
    await olderThanAnyLook()
    const chat = await opened(world)
    await chat.turn('first', runs('mv node_modules/.env env.bak; echo 2 > a.txt'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
    expect(Object.values(world.tree())).toContain('secret')
  })

  it('that writes through a hard link: the file is as before, and the new name is named', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    await olderThanAnyLook()
    const chat = await opened(world)
    await chat.turn('first', runs('ln a.txt b.txt; echo 2 > b.txt'))

    const rows = await rowsOf(chat, 1)
    await chat.command('/rollback 1')

    // The name cannot be told from a file moved in from where nobody looked.
    expect(rows).toEqual(['write a.txt', 'skip b.txt'])
    expect(filesOf(world)).toEqual({ 'a.txt': '1', 'b.txt': '2\n' })
  })

  it('that makes a pipe ends, and the pipe is left alone', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('mkfifo pipe; echo 2 > a.txt'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
    expect(statSync(join(world.ws, 'pipe')).isFIFO()).toBe(true)
  })

  it('that makes, removes and moves folders with nothing in them: all are as before, with their modes', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/x.txt': 'x' })
    for (const folder of ['empty', 'moved', 'd/inner/most']) mkdirSync(join(world.ws, folder), { recursive: true })
    chmodSync(join(world.ws, 'empty'), 0o700)
    prepare(world)
    const start = filesOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('mkdir -p n/e/w; rmdir empty; mv moved elsewhere; rm -r d'))

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
    expect(statSync(join(world.ws, 'empty')).mode & 0o777).toBe(0o700)
  })

  it('that makes a folder somebody then uses leaves that folder', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('mkdir -p n/e'))
    world.write('n/e/mine.txt', 'mine')

    await chat.command('/rollback 1')

    expect(world.read('n/e/mine.txt')).toBe('mine')
  })

  it('that removes, replaces or opens up a private file: it is private again', async () => {
    const names = ['removed.key', 'replaced.key', 'opened.key']
    const world = aWorld(Object.fromEntries(names.map(file => [file, 'secret'])))
    for (const file of names) chmodSync(join(world.ws, file), 0o600)
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm removed.key; echo new > t; mv t replaced.key; chmod 640 opened.key'))

    expect(await rowsOf(chat, 1)).toEqual(['write opened.key', 'recreate removed.key', 'write replaced.key'])
    await chat.command('/rollback 1')

    expect(names.map(file => [world.read(file), statSync(join(world.ws, file)).mode & 0o777])).toEqual(names.map(() => ['secret', 0o600]))
  })

  it('that removes a pipe names it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    execFileSync('mkfifo', [join(world.ws, 'pipe')])
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm pipe'))

    expect(await rowsOf(chat, 1)).toEqual(['skip pipe'])
    await chat.command('/rollback 1')
    expect(world.exists('pipe')).toBe(false)
  })

  it('field 33: that uses names in other scripts, with blanks and line breaks', async () => {
    const names = ['公共函数.cpp', '日本語 ノート.txt', 'line\nbreak', ':(top)x', '-rf', 'back\\slash']
    const world = aWorld(Object.fromEntries(names.map(path => [path, '1'])))
    prepare(world)
    const start = filesOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('for f in ./*; do echo 2 > "$f"; done; echo n > "neu ü\n.txt"; rm ./-rf'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
  })

  it('beside another one of the same turn', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    prepare(world)
    const start = filesOf(world)
    const chat = await opened(world)
    const both = ['echo 2 > a.txt; sleep 0.2; echo 3 > a.txt', 'sleep 0.1; rm b.txt; echo n > n.txt']
    await chat.turn('first', { tools: both.map(command => ['bash', { command, description: 'Run' }] as const) })

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
  })

  it('after a user’s edit in the same turn takes the command’s change back to that edit', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', 'one')
    world.write('a.txt', 'mine')
    await chat.turn('second', runs('echo theirs >> a.txt'))

    await chat.command('/rollback 2')

    expect(world.read('a.txt')).toBe('mine')
  })

  it('never lists or removes what ignore rules or the list of built folders leave out', async () => {
    const world = aWorld({ '.gitignore': 'node_modules/\n', 'node_modules/p/i.js': '1', 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 > node_modules/p/i.js; echo n > node_modules/p/n.js; echo 2 > a.txt'))

    expect(await rowsOf(chat, 1)).toEqual(['write a.txt'])
    await chat.command('/rollback 1')
    expect(world.tree()).toMatchObject({ 'node_modules/p/i.js': '2\n', 'node_modules/p/n.js': 'n\n', 'a.txt': '1' })
  })
})

describe('a command that changes what git ignores', () => {
  it.each([
    ['new', (world: World) => world.write('.gitignore', '*.log\n')],
    ['changed', (world: World) => world.write('.gitignore', '*.log\n*.tmp\n')],
  ] as const)('is another one than the user, whose rules are %s and not committed', async (kind, edit) => {
    const world = aWorld({ 'a.txt': '1', ...(kind === 'changed' ? { '.gitignore': '*.log\n' } : {}) })
    commitAll(world.ws)
    edit(world)
    const chat = await opened(world)
    await chat.turn('first', runs('echo n > new.txt; echo 2 > a.txt'))

    expect(await rowsOf(chat, 1)).toEqual(['write a.txt', 'delete new.txt'])
    await chat.command('/rollback 1')
    expect(Object.keys(world.tree())).not.toContain('new.txt')
  })

  it('and makes a file that the new rules show never has it deleted for an old one', async () => {
    const world = aWorld({ '.gitignore': '*.log\n', 'old.log': 'mine' })
    commitAll(world.ws)
    const chat = await opened(world)
    await chat.turn('first', runs('echo "*.tmp" > .gitignore; echo new > new.log'))

    await chat.command('/rollback 1')

    expect(world.tree()).toMatchObject({ '.gitignore': '*.log\n', 'old.log': 'mine' })
  })

  it.each([
    ['.gitignore', '*.log\n', ''],
    ['.git/info/exclude', '*.log\n', ''],
    ['the settings', '', 'git config core.excludesFile /dev/null;'],
  ])('in %s, and rewrites an ignored file, leaves that file alone', async (place, rules, command) => {
    const world = aWorld({ 'a.txt': '1' })
    if (place === '.gitignore') world.write(place, rules)
    commitAll(world.ws)
    if (place === '.git/info/exclude') world.write(place, rules)
    if (command !== '') {
      world.write('.git/rules', '*.log\n')
      git(world.ws, 'config', 'core.excludesFile', join(world.ws, '.git/rules'))
    }
    world.write('old.log', 'mine')
    const chat = await opened(world)
    await chat.turn('first', runs(`${command === '' ? `: > ${place};` : command} echo 2 > t && mv t old.log`))

    await chat.command('/rollback 1')

    expect(world.read('old.log')).toBe('2\n')
  })

  it('by adding an ignored file to the index, newly written, leaves that file alone', async () => {
    const world = aWorld({ '.gitignore': '*.log\n', 'old.log': 'mine' })
    commitAll(world.ws)
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 > t && mv t old.log && git add -f old.log'))

    await chat.command('/rollback 1')

    expect(world.read('old.log')).toBe('2\n')
  })

  it('by forgetting a tracked file that is then ignored: the file is as it was', async () => {
    const world = aWorld({ 'a.txt': '1' })
    commitAll(world.ws)
    const chat = await opened(world)
    await chat.turn('first', runs('echo a.txt > .gitignore; git rm -q --cached a.txt; echo 2 > a.txt'))

    // The rules are new, so that no file is known to be.
    expect(await rowsOf(chat, 1)).toEqual(['skip .gitignore', 'write a.txt'])
    await chat.command('/rollback 1')
    expect(world.read('a.txt')).toBe('1')
  })
})

describe('a command of git itself', () => {
  const world = (): World => {
    const made = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    commitAll(made.ws)
    return made
  }

  it('commit changes no file, so nothing is listed', async () => {
    const at = world()
    at.write('a.txt', 'dirty')
    const chat = await opened(at)
    await chat.turn('first', runs('git commit -qam two'))

    expect(await previewOf(chat, 1)).toMatchObject({ rows: [], gaps: [] })
    await chat.command('/rollback 1')
    expect(at.read('a.txt')).toBe('dirty')
    expect(git(at.ws, 'log', '--format=%s')).toBe('two\nstart\n')
  })

  it('commit of what the same command wrote: the write is taken back', async () => {
    const at = world()
    const chat = await opened(at)
    await chat.turn('first', runs('echo 2 > a.txt; git commit -qam two'))

    expect((await rowsOf(chat, 1))).toHaveLength(1)
    const { text } = await chat.command('/rollback 1')
    // Whether it counts as git’s move or the command’s write, the file is named.
    expect(text).toContain('a.txt')
    expect(git(at.ws, 'log', '--format=%s')).toBe('two\nstart\n')
  })

  it('stash takes the user’s unsaved change away; the rollback brings it back', async () => {
    const at = world()
    at.write('a.txt', 'dirty')
    at.write('u.txt', 'untracked')
    const chat = await opened(at)
    await chat.turn('first', runs('git stash -q -u'))
    expect(filesOf(at)).toEqual({ 'a.txt': '1', 'b.txt': '1' })

    await chat.command('/rollback 1')

    expect(filesOf(at)).toEqual({ 'a.txt': 'dirty', 'b.txt': '1', 'u.txt': 'untracked' })
    expect(git(at.ws, 'stash', 'list')).toContain('stash@{0}')
  })

  it('reset --hard takes the user’s unsaved change away; the rollback brings it back', async () => {
    const at = world()
    at.write('a.txt', 'dirty')
    git(at.ws, 'add', 'a.txt')
    at.write('b.txt', 'dirty too')
    const chat = await opened(at)
    await chat.turn('first', runs('git reset -q --hard'))

    await chat.command('/rollback 1')

    expect(filesOf(at)).toEqual({ 'a.txt': 'dirty', 'b.txt': 'dirty too' })
  })

  it('reset --hard to an older commit over unsaved changes brings those back too', async () => {
    const at = world()
    at.write('a.txt', '2')
    git(at.ws, 'commit', '-qam', 'two')
    at.write('a.txt', 'dirty')
    const chat = await opened(at)
    await chat.turn('first', runs('git reset -q --hard HEAD~1'))

    const { rows } = await previewOf(chat, 1)
    expect(rows).toMatchObject([{ shown: 'a.txt', action: 'write' }])
    await chat.command('/rollback 1')
    expect(at.read('a.txt')).toBe('dirty')
  })

  it('checkout of one file takes the user’s unsaved change away; the rollback brings it back', async () => {
    const at = world()
    at.write('a.txt', 'dirty')
    const chat = await opened(at)
    await chat.turn('first', runs('git checkout -q -- a.txt'))
    expect(at.read('a.txt')).toBe('1')

    await chat.command('/rollback 1')

    expect(at.read('a.txt')).toBe('dirty')
  })

  it('clean -fdx of ignored files brings nothing back that was not saved, and of untracked ones all', async () => {
    const at = world()
    at.write('u/x.txt', 'x')
    const chat = await opened(at)
    await chat.turn('first', runs('git clean -qfd'))

    await chat.command('/rollback 1')

    expect(at.read('u/x.txt')).toBe('x')
  })
})

describe('a command in a repository that keeps files in another form', () => {
  it('by line ends: the very bytes are back, also where the command changed the rules', async () => {
    const world = aWorld({ '.gitattributes': '*.bat text eol=crlf\n', 'a.bat': 'one\r\ntwo\r\n', 'b.bat': 'b\r\n' })
    commitAll(world.ws)
    const start = filesOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('sed -i s/one/1/ a.bat; rm b.bat; : > .gitattributes'))

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual(start)
  })

  it('by a filter: the very bytes are back, and the filter is not run by us', async () => {
    const world = aWorld({ '.gitattributes': '*.bin filter=short\n', 'a.bin': 'long content\n' })
    git(world.ws, 'init', '-q', '-b', 'main')
    const marker = join(world.home, 'ran')
    git(world.ws, 'config', 'filter.short.clean', `touch ${marker}; cut -c -4`)
    commitAll(world.ws)
    rmSync(marker)
    const chat = await opened(world)
    await chat.turn('first', runs('rm a.bin'))

    await chat.command('/rollback 1')

    expect(world.read('a.bin')).toBe('long content\n')
    expect(existsSync(marker)).toBe(false)
  })
})

describe('a command that deletes .git', () => {
  it('lists only the files that changed, and brings back what it can', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1', 'c.txt': '1' })
    commitAll(world.ws)
    world.write('c.txt', 'dirty')
    const chat = await opened(world)
    await chat.turn('first', runs('rm -rf .git; echo 2 > c.txt'))

    expect(await rowsOf(chat, 1)).toEqual(['write c.txt'])
    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual({ 'a.txt': '1', 'b.txt': '1', 'c.txt': 'dirty' })
  })

  it('and a committed file with it: the file is back, or named', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    commitAll(world.ws)
    const chat = await opened(world)
    await chat.turn('first', runs('rm -rf .git a.txt; echo n > n.txt'))

    const { text } = await chat.command('/rollback 1')

    expect(text).toContain('a.txt')
    expect(text).not.toContain('b.txt')
    expect(world.read('b.txt')).toBe('1')
  })

  it('and makes a new one: only what changed is listed', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    commitAll(world.ws)
    const chat = await opened(world)
    await chat.turn('first', runs('rm -rf .git; git init -q; echo 2 > n.txt'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toMatchObject({ 'a.txt': '1', 'b.txt': '1' })
  })
})

describe('a command in a repository inside the workspace', () => {
  it('that is nested: its files are back', async () => {
    const world = aWorld({ 'a.txt': '1', 'repo/x.txt': '1', 'repo/y.txt': '1' })
    commitAll(join(world.ws, 'repo'))
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', 'a.txt')
    const chat = await opened(world)
    await chat.turn('first', runs('cd repo && echo 2 > x.txt && rm y.txt && echo n > n.txt'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toMatchObject({ 'a.txt': '1', 'repo/x.txt': '1', 'repo/y.txt': '1' })
    expect(world.exists('repo/n.txt')).toBe(false)
  })

  it('field 35: that is nested in a plain folder: its files are back', async () => {
    const world = aWorld({ 'repo1/a.txt': '1' })
    commitAll(join(world.ws, 'repo1'))
    const chat = await opened(world)
    await chat.turn('first', runs('cd repo1 && echo 2 > a.txt && echo n > n.txt'))

    await chat.command('/rollback 1')

    expect(filesOf(world)).toEqual({ 'repo1': 'folder', 'repo1/a.txt': '1' })
    expect(git(join(world.ws, 'repo1'), 'status', '--porcelain')).toBe('')
  })

  it('that is a submodule: its files are back', async () => {
    const origin = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-origin-')))
    onTestFinished(() => { rmSync(origin, { recursive: true }) })
    writeFileSync(join(origin, 'x.txt'), '1')
    commitAll(origin)
    const world = aWorld({ 'a.txt': '1' })
    commitAll(world.ws)
    git(world.ws, 'submodule', 'add', '-q', origin, 'sub')
    git(world.ws, 'commit', '-qm', 'sub')
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 > sub/x.txt; echo n > sub/n.txt'))

    await chat.command('/rollback 1')

    expect(world.read('sub/x.txt')).toBe('1')
    expect(world.exists('sub/n.txt')).toBe(false)
  })

  it('that stops being one: its files are not taken for new ones', async () => {
    const world = aWorld({ 'a.txt': '1', 'repo/x.txt': '1', 'repo/y.txt': '1' })
    commitAll(join(world.ws, 'repo'))
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', 'a.txt')
    const chat = await opened(world)
    await chat.turn('first', runs('rm -rf repo/.git; sed -i s/1/2/ repo/x.txt'))

    expect(await rowsOf(chat, 1)).toEqual(['skip repo/x.txt'])
    await chat.command('/rollback 1')
    expect(filesOf(world)).toMatchObject({ 'repo/x.txt': '2', 'repo/y.txt': '1' })
  })

  it('that is removed whole: each of its files is named', async () => {
    const world = aWorld({ 'a.txt': '1', 'repo/x.txt': '1', 'repo/u.txt': 'untracked' })
    commitAll(join(world.ws, 'repo'))
    git(join(world.ws, 'repo'), 'rm', '-q', '--cached', 'u.txt')
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', 'a.txt')
    const chat = await opened(world)
    await chat.turn('first', runs('rm -rf repo'))

    expect(await rowsOf(chat, 1)).toEqual(['recreate repo/u.txt', 'skip repo/x.txt'])
    await chat.command('/rollback 1')
    expect(world.read('repo/u.txt')).toBe('untracked')
  })

  it('field 37: that the workspace is a part of: what is beside the workspace is left alone', async () => {
    const world = aWorld({ '.gitignore': '*.log\n', 'front/a': '1', 'back/b': '1', 'front/old.log': 'mine' })
    commitAll(world.ws)
    const host = await world.start()
    const chat = await host.open('s1', { cwd: join(world.ws, 'front') })
    await chat.turn('first', runs(`cd ${world.ws}/front; echo 2 > a; echo n > n; : > ../.gitignore; echo 2 > t; mv t old.log`))
    world.write('back/b', 'mine')

    await chat.command('/rollback 1')

    expect(world.tree()).toMatchObject({ 'front/a': '1', 'back/b': 'mine', 'front/old.log': '2\n' })
  })

  it('that is cloned by the command is not taken apart', async () => {
    const world = aWorld({ 'a.txt': '1' })
    commitAll(world.ws)
    const chat = await opened(world)
    await chat.turn('first', runs('git clone -q . copy && echo mine > copy/mine.txt'))

    await chat.command('/rollback 1')

    expect(world.exists('copy/.git/HEAD')).toBe(true)
    expect(git(join(world.ws, 'copy'), 'status', '--porcelain')).toBe('?? mine.txt\n')
  })
})

describe('a workspace that may not be looked at', () => {
  it.each([['the root of the disk', '/'], ['the home folder', homedir()]])('%s: the command is named', async (_name, cwd) => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start()
    const chat = await host.open('s1', { cwd })
    await chat.turn('first', runs('true'), ...edits(join(world.ws, 'a.txt'), '1', '2'))

    const { gaps } = await previewOf(chat, 1)

    expect(gaps).toEqual([{ reason: 'command', count: 1, names: ['true'] }])
  })
})
