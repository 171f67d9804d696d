import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, readFileSync, readdirSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, reads, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'
import type { Step } from './support/scripted-model.ts'

/** Every way in which a model of the presets changes one file, against everything a path can be. Bytes are compared, never texts. */

interface Preset {
  readonly name: string
  readonly options: HostOptions
  /** Makes a file that is not there. */
  create(path: string, text: string): readonly Step[]
  /** Replaces `from`, which the file holds once. */
  replace(path: string, from: string, to: string): readonly Step[]
}

const tool = (name: string, args: object): Step => ({ tools: [[name, args]] })
const program = (code: string): Step => tool('run_code', { code, description: 'Change a file' })
const js = JSON.stringify

const presets: readonly Preset[] = [
  {
    name: 'standard', options: {},
    create: (file_path, content) => [tool('write', { file_path, content })],
    replace: (file_path, old_string, new_string) => [reads(file_path), tool('edit', { file_path, old_string, new_string })],
  },
  {
    name: 'minimal', options: {},
    create: (path, file_text) => [tool('str_replace_editor', { command: 'create', path, file_text })],
    replace: (path, old_str, new_str) => [
      tool('str_replace_editor', { command: 'view', path }), tool('str_replace_editor', { command: 'str_replace', path, old_str, new_str }),
    ],
  },
  {
    name: 'code', options: { tools: 'code' },
    create: (file_path, content) => [program(`await tools.write(${js({ file_path, content })})`)],
    replace: (file_path, old_string, new_string) =>
      [program(`await tools.read(${js({ file_path })}); await tools.edit(${js({ file_path, old_string, new_string })})`)],
  },
]

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => {
  const reply = await chat.host.ask('preview', { sessionId: chat.id, turn })
  expect(reply).toMatchObject({ ok: true })
  return reply.value
}
const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8)

/** Rolls back and demands that nothing of the turn was unseen. */
async function rollsBack(chat: Chat, turn: number): Promise<void> {
  expect((await previewOf(chat, turn)).gaps).toEqual([])
  expect(await chat.command(`/rollback ${turn}`)).toMatchObject({ kind: 'success' })
}

/** As a person types it, as another system stores it, as a program would never: each is one name for us. */
const names: readonly (readonly [string, string])[] = [
  ['composed (NFC)', 'caf\u00e9.txt'],
  ['decomposed (NFD)', 'cafe\u0301.txt'],
  ['an emoji of several code points', '👩‍👩‍👧‍👦.md'],
  ['right to left', 'קובץ-ملف.txt'],
  ['a direction mark inside', 'a\u202etxt.exe'],
  ['a line break', 'two\nlines.txt'],
  ['a leading dash', '-rf'],
  ['a blank at both ends', ' a b .txt '],
  ['shell signs', '$(rm -r .);"\'`*?[x].txt'],
  ['a backslash', 'a\\b.txt'],
  ['two hundred bytes of a script of three bytes', `${'漢'.repeat(65)}.txt`],
  ['dots', '..a..'],
  ['a control character', 'a\u0001\u007f.txt'],
]

describe.each(presets)('the file tools of preset $name', ({ options, create, replace }) => {
  it.each([
    ['CRLF line ends', Buffer.from('one\r\ntwo\r\nthree\r\n')],
    ['mixed line ends', Buffer.from('one\r\ntwo\nthree\rfour\r\n')],
    ['a byte order mark', Buffer.from('\ufeffone two\n')],
    ['no line end at the end', Buffer.from('one two')],
    ['blank lines at the end', Buffer.from('two\n\n\n')],
    ['both forms of one character', Buffer.from('e\u0301 two \u00e9\n')],
    ['a line of a megabyte', Buffer.from(`two ${'x'.repeat(1024 * 1024)}`)],
  ])('give back a text with %s byte for byte', async (_what, bytes) => {
    const world = aWorld()
    world.write('f.txt', bytes)
    const chat = await opened(world, options)
    await chat.turn('first', ...replace(join(world.ws, 'f.txt'), 'two', 'TWO'))
    expect(world.bytes('f.txt').includes('TWO')).toBe(true)

    await rollsBack(chat, 1)

    expect(world.bytes('f.txt').equals(bytes)).toBe(true)
  })

  it('delete what they made, empty or not, with its folders, and an undo makes it again', async () => {
    const world = aWorld({ 'kept/a.txt': '1' })
    const before = world.tree()
    const chat = await opened(world, options)
    const made = ['new/deep/n.txt', 'kept/n.txt', 'empty.txt']
    await chat.turn('first', ...made.flatMap(path => create(join(world.ws, path), path === 'empty.txt' ? '' : 'n')))
    const after = world.tree()
    expect(after).toMatchObject({ 'empty.txt': '', 'new/deep/n.txt': 'n', 'kept/n.txt': 'n' })

    await rollsBack(chat, 1)
    expect(world.tree()).toEqual(before)
    await chat.command('/rollback undo')
    expect(world.tree()).toEqual(after)
  })

  it.each([0o755, 0o600, 0o444, 0o4755, 0o2755, 0o1644, 0o000])('give back the mode %o with the bytes', async (mode) => {
    const world = aWorld({ 'f.txt': 'two\n' })
    chmodSync(join(world.ws, 'f.txt'), mode)
    const chat = await opened(world, options)
    await chat.turn('first', ...replace(join(world.ws, 'f.txt'), 'two', 'TWO'))
    expect(world.read('f.txt')).toBe('TWO\n')

    await rollsBack(chat, 1)

    expect([world.read('f.txt'), modeOf(join(world.ws, 'f.txt'))]).toEqual(['two\n', mode.toString(8)])
  })

  it.each(names)('give back a file with a name that is or has %s, and its neighbours stay', async (_what, name) => {
    const world = aWorld({ [name]: 'two', 'beside.txt': 'b' })
    const before = readdirSync(world.ws, { encoding: 'buffer' }).map(entry => entry.toString('hex')).toSorted()
    const chat = await opened(world, options)
    await chat.turn('first', ...replace(join(world.ws, name), 'two', 'TWO'), ...create(join(world.ws, `${name.slice(0, 20)}.new`), 'n'))
    expect(world.read(name)).toBe('TWO')

    const { rows } = await previewOf(chat, 1)
    await rollsBack(chat, 1)

    expect(rows.map(row => row.shown)).toContain(name)
    expect([world.read(name), world.read('beside.txt')]).toEqual(['two', 'b'])
    expect(readdirSync(world.ws, { encoding: 'buffer' }).map(entry => entry.toString('hex')).toSorted()).toEqual(before)
  })

  it('keep names apart that differ in their form or their case only', async () => {
    const alike = ['caf\u00e9.txt', 'cafe\u0301.txt', 'read.me', 'READ.me', 'ﬁ', 'fi']
    const world = aWorld(Object.fromEntries(alike.map((name, at) => [name, `two ${at}`])))
    const before = world.tree()
    const chat = await opened(world, options)
    await chat.turn('first', ...replace(join(world.ws, alike[0]!), 'two', 'TWO'), ...replace(join(world.ws, 'READ.me'), 'two', 'TWO'))
    await chat.turn('second', ...replace(join(world.ws, alike[1]!), 'two', 'TWO'), ...create(join(world.ws, 'Read.me'), 'n'))
    expect(Object.keys(world.tree())).toHaveLength(7)

    await rollsBack(chat, 2)
    expect(world.tree()).toEqual({ ...before, [alike[0]!]: 'TWO 0', 'READ.me': 'TWO 3' })
    await rollsBack(chat, 1)
    expect(world.tree()).toEqual(before)
  })

  it('write through a link of a file, of a folder and of a link: the file behind is back and every link stays', async () => {
    const world = aWorld({ 'real/f.txt': 'two', 'real/g.txt': 'two' })
    symlinkSync('real/f.txt', join(world.ws, 'file-link'))
    symlinkSync('real', join(world.ws, 'folder-link'))
    symlinkSync('folder-link', join(world.ws, 'link-link'))
    const before = world.tree()
    const chat = await opened(world, options)
    await chat.turn('first', ...replace(join(world.ws, 'file-link'), 'two', 'TWO'),
      ...replace(join(world.ws, 'link-link/g.txt'), 'two', 'TWO'), ...create(join(world.ws, 'link-link/n.txt'), 'n'))
    expect(world.tree()).toMatchObject({ 'real/f.txt': 'TWO', 'real/g.txt': 'TWO', 'real/n.txt': 'n' })

    const { rows } = await previewOf(chat, 1)
    await rollsBack(chat, 1)

    expect(rows.map(row => row.shown).toSorted()).toEqual(['real/f.txt', 'real/g.txt', 'real/n.txt'])
    expect(world.tree()).toEqual(before)
  })

  it('write where a link leads to nothing: the link is as it was, and nothing is left', async () => {
    const world = aWorld({})
    symlinkSync('nowhere.txt', join(world.ws, 'dangling'))
    const before = world.tree()
    const chat = await opened(world, options)
    await chat.turn('first', ...create(join(world.ws, 'dangling'), 'n'))

    await rollsBack(chat, 1)

    expect(world.tree()).toEqual(before)
  })

  it('write outside the workspace, by an absolute path, by ".." and through a link, where they may', async () => {
    const world = aWorld({ 'a.txt': 'two' })
    const outside = join(world.home, '..', 'outside')
    mkdirSync(outside)
    for (const name of ['abs.txt', 'up.txt', 'link.txt', 'stays.txt']) writeFileSync(join(outside, name), 'two')
    symlinkSync(outside, join(world.ws, 'way-out'))
    const chat = await opened(world, { ...options, sandbox: 'danger-full-access' })
    await chat.turn('first', ...replace(join(outside, 'abs.txt'), 'two', 'TWO'), ...replace(`${world.ws}/../outside/up.txt`, 'two', 'TWO'),
      ...replace(join(world.ws, 'way-out/link.txt'), 'two', 'TWO'), ...create(join(outside, 'made/n.txt'), 'n'))
    expect(readFileSync(join(outside, 'made/n.txt'), 'utf8')).toBe('n')

    const { rows } = await previewOf(chat, 1)
    await rollsBack(chat, 1)

    expect(rows.map(row => [row.path, row.action])).toEqual([
      [join(outside, 'abs.txt'), 'write'], [join(outside, 'link.txt'), 'write'], [join(outside, 'made/n.txt'), 'delete'], [join(outside, 'up.txt'), 'write'],
    ])
    expect(rows.every(row => row.shown === row.path)).toBe(true)
    expect(readdirSync(outside).toSorted()).toEqual(['abs.txt', 'link.txt', 'stays.txt', 'up.txt'])
    for (const name of readdirSync(outside)) expect(readFileSync(join(outside, name), 'utf8')).toBe('two')
    expect(readlinkSync(join(world.ws, 'way-out'))).toBe(outside)
  })

  it('are refused outside by the sandbox: nothing is recorded, and nothing is called uncovered', async () => {
    const world = aWorld({ 'a.txt': 'two' })
    const outside = join(world.ws, '..', 'outside.txt')
    writeFileSync(outside, 'two')
    const chat = await opened(world, { ...options, sandbox: 'read-only' })
    await chat.turn('first', ...replace(outside, 'two', 'TWO'), ...create(join(world.ws, 'n.txt'), 'n'), ...replace(join(world.ws, 'a.txt'), 'two', 'TWO'))
    expect([readFileSync(outside, 'utf8'), world.tree()]).toEqual(['two', { 'a.txt': 'two' }])

    const { rows, gaps } = await previewOf(chat, 1)

    expect({ rows: rows.filter(row => row.action !== 'none'), gaps }).toEqual({ rows: [], gaps: [] })
  })

  it('work in a workspace that is named through a link', async () => {
    const world = aWorld({ 'a.txt': 'two' })
    const link = join(world.home, '..', 'link')
    symlinkSync(world.ws, link)
    const chat = await (await world.start(options)).open('s1', { cwd: link })
    await chat.turn('first', ...replace(join(link, 'a.txt'), 'two', 'TWO'), ...create(join(world.ws, 'n.txt'), 'n'))
    expect(world.tree()).toEqual({ 'a.txt': 'TWO', 'n.txt': 'n' })

    const { rows } = await previewOf(chat, 1)
    await rollsBack(chat, 1)

    expect(rows.map(row => row.shown)).toEqual(['a.txt', 'n.txt'])
    expect(world.tree()).toEqual({ 'a.txt': 'two' })
  })

  it('change a file that has a second name: its bytes are back and the other name keeps its own', async () => {
    const world = aWorld({ 'a.txt': 'two' })
    linkSync(join(world.ws, 'a.txt'), join(world.ws, 'same.txt'))
    const chat = await opened(world, options)
    await chat.turn('first', ...replace(join(world.ws, 'a.txt'), 'two', 'TWO'))

    await rollsBack(chat, 1)

    expect(world.tree()).toEqual({ 'a.txt': 'two', 'same.txt': 'two' })
  })

  it('over the size limit: the file is named with the reason, and neither taken for absent nor touched', async () => {
    const world = aWorld({ 'big.txt': `two ${'x'.repeat(3000)}`, 'grows.txt': 'two', 'shrinks.txt': `two${'x'.repeat(3000)}` })
    const long = 'y'.repeat(3000)
    const chat = await opened(world, { ...options, settings: { maxFileBytes: 1000 } })
    await chat.turn('first', ...replace(join(world.ws, 'big.txt'), 'two', 'TWO'), ...replace(join(world.ws, 'grows.txt'), 'two', long),
      ...replace(join(world.ws, 'shrinks.txt'), `two${'x'.repeat(3000)}`, 'small'), ...create(join(world.ws, 'new.txt'), long))
    const after = world.tree()
    expect(after).toMatchObject({ 'grows.txt': long, 'shrinks.txt': 'small', 'new.txt': long })

    const { rows, gaps } = await previewOf(chat, 1)
    const done = await chat.command('/rollback 1')

    expect(Object.fromEntries(rows.map(row => [row.shown, [row.action, row.skip]]))).toEqual({
      'big.txt': ['skip', 'too-large'], 'grows.txt': ['skip', 'too-large'], 'shrinks.txt': ['skip', 'too-large'], 'new.txt': ['skip', 'too-large'],
    })
    expect(gaps).toMatchObject([{ reason: 'too-large', count: 4 }])
    expect(gaps[0]!.names.map(name => name.replace(`${world.ws}/`, '')).toSorted()).toEqual(Object.keys(after).toSorted())
    expect(done.text).toContain('over the size limit')
    expect(world.tree()).toEqual(after)
  })

  it('are refused where a folder, a pipe or a device is: nothing hangs, is recorded or called uncovered', async () => {
    const world = aWorld({ 'folder/in.txt': 'in' })
    execFileSync('mkfifo', [join(world.ws, 'pipe')])
    const chat = await opened(world, { ...options, sandbox: 'danger-full-access' })
    await chat.turn('first', ...['folder', 'pipe'].flatMap(name => create(join(world.ws, name), 'n')), ...create('/dev/null', 'n'))
    expect([world.read('folder/in.txt'), statSync(join(world.ws, 'pipe')).isFIFO(), statSync('/dev/null').isCharacterDevice()]).toEqual(['in', true, true])

    const { rows, gaps } = await previewOf(chat, 1)

    expect({ rows: rows.filter(row => row.action !== 'none'), gaps }).toEqual({ rows: [], gaps: [] })
  })
})
