import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newFolder, previewOf, rowsOf, turn } from '../support/command-turn.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import { exactTreeOf } from '../support/exact-tree.ts'
import { gitPrint } from '../support/git-repo.ts'
import { sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import { edit, read, runs, steps } from '../support/tool-steps.ts'
import * as ui from '../support/ui.ts'
import { fill, userFolder, userRepo } from '../support/user-folder.ts'

/**
 * Commands of the shell in the real host, in a plain folder and in a git work tree: after the rollback every byte,
 * mode, link and folder is as before the turn, and below `.git` nothing was ever touched.
 */

const sources = Array.from({ length: 200 }, (_, at) => `src/m${at % 10}/f${at}.ts`)
const source = (at: number) => `const name${at} = "n${at}"\r\n`.repeat(1 + at % 50)
/** What a formatter does: other quotes, other line ends, and a file of its own. */
const format = `find src -name '*.ts' -exec sed -i -e 's/"/\\x27/g' -e 's/\\r$//' {} + ; echo done > .format-cache`

let world: World
let rpc: SessionRpc
beforeAll(async () => {
  const files = Object.fromEntries(sources.map((path, at) => [path, source(at)]))
  world = await startWorld({ files, scenarios: { format: steps(runs(format)) } })
  rpc = sessionRpc(world.home, () => world.host.url)
})
afterAll(() => world?.dispose())

interface ShellCase {
  readonly name: string
  readonly command: string
  /** What the preview lists. */
  readonly rows: readonly string[]
  /** More arguments of the call. */
  readonly call?: object
}

const cases: readonly ShellCase[] = [
  {
    name: 'sed -i', command: "sed -i 's/1/9/' a.txt b.txt crlf.txt run.sh pass.secret",
    rows: ['a.txt write', 'b.txt write', 'crlf.txt write', 'pass.secret write', 'run.sh write'],
  },
  {
    name: 'rm -r', command: 'rm -r d bin.dat link none.txt',
    rows: ['bin.dat recreate', 'd/1 recreate', 'd/2 recreate', 'd/in/3 recreate', 'link recreate', 'none.txt recreate'],
  },
  {
    name: 'mv of a folder, a file and a link', command: 'mv d e; mv run.sh e/go.sh; mv link in.lnk',
    rows: [
      'd/1 recreate', 'd/2 recreate', 'd/in/3 recreate', 'e/1 delete', 'e/2 delete', 'e/go.sh delete', 'e/in/3 delete',
      'in.lnk delete', 'link recreate', 'run.sh recreate',
    ],
  },
  { name: 'mkdir -p and a file in it', command: 'mkdir -p new/deep/er; echo x > new/deep/x.txt', rows: ['new/deep/x.txt delete'] },
  { name: 'mkdir -p alone', command: 'mkdir -p bare/in d/more', rows: [] },
  { name: 'rmdir', command: 'rmdir empty', rows: [] },
  {
    name: 'other modes, another target, another kind',
    command: 'chmod 644 run.sh; chmod 755 c.txt; ln -sfn d/1 link; rm a.txt; ln -s b.txt a.txt; rm none.txt; mkdir none.txt',
    rows: ['a.txt write', 'c.txt write', 'link write', 'none.txt write', 'run.sh write'],
  },
  { name: 'cp over bytes that are no text', command: 'head -c 5000 /dev/urandom > bin.dat; cp -a bin.dat copy.dat', rows: ['bin.dat write', 'copy.dat delete'] },
  {
    name: 'a command that fails halfway', command: 'set -e; echo 9 > a.txt; rm d/1; cat no-such-file; rm d/2',
    rows: ['a.txt write', 'd/1 recreate'],
  },
  {
    name: 'a command that is killed by its timeout', command: 'echo 9 > a.txt; rm d/1; echo half > n.txt; sleep 20; rm d/2', call: { timeoutMs: 800 },
    rows: ['a.txt write', 'd/1 recreate', 'n.txt delete'],
  },
]

const places: readonly (readonly [string, (folder: string) => void])[] = [['a plain folder', userFolder], ['a git work tree', userRepo]]

describe.each(places)('in %s', (_place, make) => {
  const isGit = make === userRepo
  /** Undefined in a plain folder. */
  const printOf = (folder: string) => (isGit ? gitPrint(folder) : undefined)

  test.each(cases.map((one, at) => [one.name, one, at] as const))('%s', async (_name, { command, rows, call }, at) => {
    const folder = newFolder(world, `${isGit ? 'git' : 'plain'}-${at}`, make)
    const [before, print] = [exactTreeOf(folder), printOf(folder)]
    const id = await rpc.create(folder)
    await turn(world, rpc, id, runs(command, call))
    expect(exactTreeOf(folder)).not.toEqual(before)
    expect({ ...printOf(folder), status: '' }).toEqual({ ...print, status: '' })
    const preview = await previewOf(rpc, id)

    expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })

    expect(exactTreeOf(folder)).toEqual(before)
    expect(printOf(folder)).toEqual(print)
    expect(rowsOf(preview).filter(row => !isFolderRow(row))).toEqual(rows)
    expect(preview.gaps).toEqual([])
  })

  test('several turns, back one after another', async () => {
    const folder = newFolder(world, `${isGit ? 'git' : 'plain'}-turns`, make)
    const id = await rpc.create(folder)
    const states = [exactTreeOf(folder)]
    for (const command of ['echo 2 > a.txt; mkdir -p x/y; echo y > x/y/y.txt', 'true', 'mv x z; chmod 600 a.txt', 'rm -r z d; ln -s c.txt l2']) {
      await turn(world, rpc, id, runs(command), runs('ls'))
      states.push(exactTreeOf(folder))
    }
    await turn(world, rpc, id, read('c.txt'), edit('c.txt', 'c', 'C'), runs('sed -i s/C/D/ c.txt; mv c.txt C.txt'))
    const print = printOf(folder)

    for (const number of [5, 3, 2, 1]) {
      expect(await rpc.command(id, `/rollback ${number}`)).toMatchObject({ kind: 'success' })
      expect(exactTreeOf(folder)).toEqual(states[number - 1])
    }
    expect({ ...printOf(folder), status: '' }).toEqual({ ...print, status: '' })
  })
})

/** Folders may be listed or not; what is there afterwards is what counts. */
const isFolderRow = (row: string): boolean => /^(bare|bare\/in|d|d\/in|d\/more|e|e\/in|empty|new|new\/deep|new\/deep\/er) /.test(row)

describe('a formatter over 200 files, in the page', () => {
  test('the dialog lists them, and each is as it was', async () => {
    const before = exactTreeOf(world.workspace)
    await world.ask('Format. [scenario:format]')
    expect(readFileSync(join(world.workspace, sources[7]!), 'utf8')).toContain("'n7'\n")
    await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
    const dialog = world.page.getByRole('dialog')
    await dialog.getByText('.format-cache').first().waitFor()
    const group = dialog.getByRole('button', { name: /^Put back to how they were/ })
    expect(await group.innerText()).toMatch(/ 200$/)
    await group.click()
    await dialog.getByText('f0.ts').filter({ visible: true }).first().waitFor()
    await dialog.getByText(/^changed while .+ ran$/).filter({ visible: true }).first().waitFor()
    expect(await dialog.getByText('Not covered').count()).toBe(0)
    await ui.screenshot(world.page, 'commands-formatter')
    await dialog.getByRole('button', { name: 'Roll back 1 turn and 201 files' }).click()
    await dialog.getByText('201 files are as they were before.').waitFor()

    expect(exactTreeOf(world.workspace)).toEqual(before)
  })

  test('the undo formats them again, and what somebody wrote meanwhile is kept', async () => {
    fill(world.workspace, { [sources[3]!]: 'mine\n' })
    const { mtimeMs } = statSync(join(world.workspace, sources[3]!))
    await world.page.getByRole('dialog').getByRole('button', { name: 'Undo (opens a copy)' }).click()
    await world.page.getByRole('dialog').waitFor({ state: 'hidden' })
    await world.page.getByRole('treeitem', { name: /\(before rollback\)/ }).waitFor()

    expect(readFileSync(join(world.workspace, sources[7]!), 'utf8')).toContain("'n7'\n")
    expect(readFileSync(join(world.workspace, sources[3]!), 'utf8')).toBe('mine\n')
    expect(statSync(join(world.workspace, sources[3]!)).mtimeMs).toBe(mtimeMs)
    expect(world.pageErrors).toEqual([])
  })
})
