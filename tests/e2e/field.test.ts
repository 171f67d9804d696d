import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packPlugin, startHost } from '../support/dsh-host.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import { startMockModel, type Step } from '../support/mock-model.ts'
import { expectOk, sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import { treeOf } from '../support/tree.ts'
import * as ui from '../support/ui.ts'

/**
 * Field cases about git, about files the session never wrote and about shell commands. Every case
 * has a folder and a session of its own.
 */

const read = (path: string) => ({ name: 'read', args: { file_path: path } })
const write = (path: string, content: string) => ({ name: 'write', args: { file_path: path, content } })
const edit = (path: string, from: string, to: string) => ({ name: 'edit', args: { file_path: path, old_string: from, new_string: to } })
/** Reads and edits in two steps, as the host's policy wants it. */
const editing = (...edits: [path: string, from: string, to: string][]): Step[] => [
  { tools: edits.map(([path]) => read(path)) }, { tools: edits.map(args => edit(...args)) }, { text: 'Done.' },
]

const runs = (command: string) => ({ name: 'bash', args: { command, description: 'Work in the shell' } })
/** Tools one after another, each in a step of its own. */
const steps = (...tools: ReturnType<typeof read | typeof runs>[]): Step[] => [...tools.map(tool => ({ tools: [tool] })), { text: 'Done.' }]

const names = ['公共函数.cpp', '日本語 ノート.txt'] as const
const scenarios: Record<string, Step[]> = {
  'ignore': editing(['.gitignore', 'dist/', 'dist/\nnotes/']),
  'one-of-many': editing(['f117.txt', '117', 'changed']),
  'staged': editing(['a.txt', '1', '2']),
  'names': editing([names[0], '1', '2'], [names[1], '1', '2']),
  'plain': [{ tools: [read('a.txt'), write('n.txt', 'n\n')] }, ...editing(['a.txt', '1', '2']).slice(1)],
  'sed': steps(runs('sed -i s/1/2/ a.txt')),
  'overwrite-and-rm': steps(runs('echo 9 > a.txt; rm -r d')),
  'rm': steps(runs('rm d.txt')),
  'move': steps(read('a.txt'), edit('a.txt', '1', '2'), runs('mv a.txt b.txt')),
}

let world: World
let rpc: SessionRpc
beforeAll(async () => {
  world = await startWorld({ scenarios, files: Object.fromEntries(names.map(name => [name, '1\n'])) })
  rpc = sessionRpc(world.home, () => world.host.url)
})
afterAll(() => world?.dispose())

/** A folder beside the workspace with these files. */
function folderWith(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(world.workspace, '..', name)
  mkdirSync(folder)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  return folder
}

const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org']
const git = (folder: string, ...args: string[]) => execFileSync('git', [...identity, ...args], { cwd: folder, encoding: 'utf8' })

test('field 1: an ignore rule that the agent adds does not make an untracked file disappear', async () => {
  const folder = folderWith('ignore', { '.gitignore': 'dist/\n', 'notes/private.txt': 'mine\n' })
  git(folder, 'init', '-q')
  git(folder, 'add', '.gitignore')
  git(folder, 'commit', '-q', '-m', 'start')
  const before = treeOf(folder)
  const id = await rpc.create(folder)
  await rpc.ask(id, 'Ignore the notes. [scenario:ignore]')
  expect(readFileSync(join(folder, '.gitignore'), 'utf8')).toBe('dist/\nnotes/\n')

  expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })
  expect(treeOf(folder)).toEqual(before)
})

test('field 3: of 200 files made by another program only the edited one is touched', async () => {
  const folder = folderWith('many', Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${at}.txt`, `${at}\r\n`])))
  const before = treeOf(folder)
  const id = await rpc.create(folder)
  await rpc.ask(id, 'Edit one. [scenario:one-of-many]')
  expect(readFileSync(join(folder, 'f117.txt'), 'utf8')).toBe('changed\r\n')
  const preview = expectOk(await rpc.turnback('preview', { sessionId: id, turn: 1 }))
  expect(preview.rows.map(row => [row.shown, row.action])).toEqual([['f117.txt', 'write']])

  expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })
  expect(treeOf(folder)).toEqual(before)
})

test('field 7: what the user has staged stays staged, and the index is not written', async () => {
  const folder = folderWith('staged', { 'a.txt': '1\n', 'b.txt': '1\n' })
  git(folder, 'init', '-q')
  git(folder, 'add', '.')
  git(folder, 'commit', '-q', '-m', 'start')
  writeFileSync(join(folder, 'b.txt'), '2\n')
  git(folder, 'add', 'b.txt')
  const staged = git(folder, 'diff', '--cached')
  const index = readFileSync(join(folder, '.git', 'index'))
  const id = await rpc.create(folder)
  await rpc.ask(id, 'Edit a. [scenario:staged]')

  expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })
  expect(readFileSync(join(folder, '.git', 'index')).equals(index)).toBe(true)
  expect(git(folder, 'diff', '--cached')).toBe(staged)
  expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('1\n')
})

test('field 5: a broken .git changes nothing in the outcome', async () => {
  const folder = folderWith('broken', { 'a.txt': '1\n', 'secret.env': 'k\n', '.gitignore': 'secret.env\n', '.git': 'gitdir: nowhere\n' })
  const before = treeOf(folder)
  const id = await rpc.create(folder)
  await rpc.ask(id, 'Edit a. [scenario:staged]')

  expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })
  expect(treeOf(folder)).toEqual(before)
})

/** What is in the folder, git's own files left out. */
const filesOf = (folder: string) => Object.fromEntries(Object.entries(treeOf(folder)).filter(([path]) => !/^\.git(\/|$)/.test(path)))

interface ShellCase {
  readonly name: string
  readonly files: Readonly<Record<string, string>>
  /** One per turn. */
  readonly turns: readonly string[]
  /** What the turns leave, and what is there after the last of them is taken back. */
  readonly left: Readonly<Record<string, string | null>>
  readonly back: Readonly<Record<string, string | null>>
  /** Rows of the dialog: name, action, and whether a file tool wrote it or commands alone. */
  readonly rows: readonly (readonly [string, string, string])[]
}

const shellCases: readonly ShellCase[] = [
  {
    name: 'field 19: a file that only sed changed is back',
    files: { 'a.txt': '1\n' }, turns: ['sed'], left: { 'a.txt': '2\n' }, back: { 'a.txt': '1\n' },
    rows: [['a.txt', 'write', 'shell']],
  },
  {
    name: 'field 21: a file overwritten and a folder removed by a command are back',
    files: { 'a.txt': '1\n', 'd/1': 'one', 'd/2': 'two', 'd/3': 'three' }, turns: ['overwrite-and-rm'],
    left: { 'a.txt': '9\n' }, back: { 'a.txt': '1\n', 'd': null, 'd/1': 'one', 'd/2': 'two', 'd/3': 'three' },
    rows: [['a.txt', 'write', 'shell'], ['d/1', 'recreate', 'shell'], ['d/2', 'recreate', 'shell'], ['d/3', 'recreate', 'shell']],
  },
  {
    name: 'field 24: a file that a command removed in an earlier turn stays away',
    files: { 'a.txt': '1\n', 'd.txt': 'd' }, turns: ['rm', 'staged'], left: { 'a.txt': '2\n' }, back: { 'a.txt': '1\n' },
    rows: [['a.txt', 'write', 'tool']],
  },
  {
    name: 'field 26: a file that was edited and then moved is back under its old name alone',
    files: { 'a.txt': '1\n' }, turns: ['move'], left: { 'b.txt': '2\n' }, back: { 'a.txt': '1\n' },
    rows: [['a.txt', 'recreate', 'tool'], ['b.txt', 'delete', 'shell']],
  },
]

const places: readonly (readonly [string, readonly ShellCase[], (folder: string) => void])[] = [
  ['a plain folder', shellCases, () => {}],
  ['a git work tree', shellCases.filter(({ name }) => name.startsWith('field 21')), (folder) => {
    git(folder, 'init', '-q')
    git(folder, 'add', '.')
    git(folder, 'commit', '-q', '-m', 'start')
  }],
]

describe.each(places)('shell commands in %s', (place, cases, prepare) => {
  test.each(cases.map(one => [one.name, one] as const))('%s', async (name, { files, turns, left, back, rows }) => {
    const folder = folderWith(`${name.slice(0, 8)} in ${place}`, files)
    prepare(folder)
    const id = await rpc.create(folder)
    for (const turn of turns) await rpc.ask(id, `Do it. [scenario:${turn}]`)
    expect(filesOf(folder)).toEqual(left)
    const preview = expectOk(await rpc.turnback('preview', { sessionId: id, turn: turns.length }))
    expect(preview.rows.map(row => [row.shown, row.action, row.origin])).toEqual(rows)
    expect(preview.gaps).toEqual([])

    expect(await rpc.command(id, `/rollback ${turns.length}`)).toMatchObject({ kind: 'success' })
    expect(filesOf(folder)).toEqual(back)
  })
})

test('field 33: names in other scripts stand in the dialog as they are, and both files come back', async () => {
  await world.ask('Edit both. [scenario:names]')
  await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
  const dialog = world.page.getByRole('dialog')
  for (const name of names) await dialog.getByText(name).first().waitFor()
  await ui.screenshot(world.page, 'field-33-names')
  await dialog.getByRole('button', { name: 'Roll back 1 turn and 2 files' }).click()
  await dialog.getByText('2 files are as they were before.').waitFor()

  for (const name of names) expect(world.read(name)).toBe('1\n')
  expect(world.pageErrors).toEqual([])
})

test('field 38: a plain folder on a machine without git', async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-e2e-')))
  const model = await startMockModel({ scenarios })
  const home = join(base, 'home')
  const workspace = join(base, 'workspace')
  const programs = join(base, 'no-programs')
  mkdirSync(programs)
  const host = await startHost({
    home, workspace, modelUrl: model.url, plugins: [await packPlugin()], skipNotice: true, openWorkspace: true, env: { PATH: programs },
  })
  try {
    writeFileSync(join(workspace, 'a.txt'), '1\n')
    const alone = sessionRpc(home, () => host.url)
    const id = await alone.create()
    await alone.ask(id, 'Edit and write. [scenario:plain]')
    expect(treeOf(workspace)).toEqual({ 'a.txt': '2\n', 'n.txt': 'n\n' })

    expect(await alone.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })
    expect(treeOf(workspace)).toEqual({ 'a.txt': '1\n' })
    expect(host.log()).not.toContain('[turnback]')
  } finally {
    await host.stop()
    await model.close()
    rmSync(base, { recursive: true, force: true, maxRetries: 5 })
  }
})
