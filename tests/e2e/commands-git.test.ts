import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keptOf, newFolder, previewOf, rowsOf, turn, withKept } from '../support/command-turn.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import { exactTreeOf } from '../support/exact-tree.ts'
import { git, gitOutcome, gitPrint, twinOf } from '../support/git-repo.ts'
import { sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import { edit, read, runs, steps } from '../support/tool-steps.ts'
import * as ui from '../support/ui.ts'
import { fill, userRepo } from '../support/user-folder.ts'

/**
 * Commands of git in the real host. A twin of each repository, in which the same command runs without us, tells what
 * the command alone does; ours must be the same, traps included, and a rollback changes no byte below `.git`.
 */

const inPage = 'git switch -q side; echo x > x.txt'
let world: World
let rpc: SessionRpc
beforeAll(async () => {
  world = await startWorld({ prepare: userRepo, scenarios: { switch: steps(runs(inPage)) } })
  rpc = sessionRpc(world.home, () => world.host.url)
})
afterAll(() => world?.dispose())

/** The same second for every commit, stash and reflog line, here and in the twin. */
const dated = "export GIT_COMMITTER_DATE='2020-02-02T00:00:00Z' GIT_AUTHOR_DATE='2020-02-02T00:00:00Z'; "

interface GitCase {
  readonly name: string
  readonly command: string
  /** What the preview lists. */
  readonly rows: readonly string[]
  /** HEAD is somewhere else afterwards. */
  readonly moves?: boolean
}

const cases: readonly GitCase[] = [
  { name: 'checkout of a file with unsaved changes', command: 'git checkout -q -- a.txt', rows: ['a.txt write'] },
  { name: 'stash of all there is', command: 'git stash -q -u', rows: ['a.txt write', 'b.txt write', 'u.txt recreate'] },
  // Git does not keep the mode 0600.
  { name: 'stash and pop', command: 'git stash -q -u; git stash pop -q', rows: ['u.txt write'] },
  { name: 'commit of what was there', command: 'git commit -q -a -m next', rows: [], moves: true },
  { name: 'commit of what the command wrote', command: 'echo c2 > c.txt; git commit -q -a -m next', rows: ['c.txt git-moved'], moves: true },
  { name: 'reset --hard', command: 'git reset -q --hard', rows: ['a.txt write', 'b.txt write'] },
  {
    name: 'reset --hard to an older commit', command: 'git reset -q --hard HEAD~1', moves: true,
    rows: ['a.txt write', 'b.txt write', 'c.txt git-moved'],
  },
  {
    name: 'switch to another branch, and a new file', command: inPage, moves: true,
    rows: ['c.txt git-moved', 'd/1 git-moved', 'side/n.txt git-moved', 'x.txt delete'],
  },
  { name: 'mv', command: 'git mv c.txt e.txt', rows: ['c.txt recreate', 'e.txt delete'] },
  { name: 'clean', command: 'git clean -q -f -d', rows: ['u.txt recreate'] },
  { name: 'commands that only read', command: 'git log --oneline; git show --stat HEAD; git branch', rows: [] },
]

describe('a command of git', () => {
  test.each(cases.map((one, at) => [one.name, one, at] as const))('%s', async (_name, { command, rows, moves = false }, at) => {
    const folder = newFolder(world, `git-${at}`, userRepo)
    const [before, start, twin] = [exactTreeOf(folder), gitOutcome(folder), twinOf(folder)]
    const id = await rpc.create(folder)
    await turn(world, rpc, id, runs(dated + command))
    execFileSync('bash', ['-c', dated + command], { cwd: twin })
    const left = gitOutcome(folder)
    expect(left).toEqual(gitOutcome(twin))
    const preview = await previewOf(rpc, id)
    const print = gitPrint(folder)

    const answer = await rpc.command(id, '/rollback 1')

    expect(answer.kind).toBe('success')
    for (const path of keptOf(preview)) expect(answer.text).toContain(path)
    const after = gitPrint(folder)
    expect({ ...after, status: '' }).toEqual({ ...print, status: '' })
    expect(rowsOf(preview).filter(row => !row.startsWith('empty '))).toEqual(rows)
    expect(preview.gaps).toEqual([])
    expect(exactTreeOf(folder)).toEqual(withKept(before, left.tree, keptOf(preview)))
    // Where the command left HEAD and the index alone, the user sees their work as it was.
    if (left.index === start.index && !moves) expect(after.status).toBe(start.status)
    expect(preview.gitMoves.map(move => move.turn)).toEqual(moves ? [1] : [])
  })

  test('rm -rf .git takes what git had saved for us: what the same command then changed is left alone and named', async () => {
    const folder = newFolder(world, 'git-gone', userRepo)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder)
    await turn(world, rpc, id, runs('rm -rf .git; echo c2 > c.txt; rm d/2 u.txt; echo a2 > a.txt; echo x > x.txt'))
    const [left, preview] = [exactTreeOf(folder), await previewOf(rpc, id)]
    const lost = ['c.txt', 'd/2', 'x.txt']
    expect(rowsOf(preview)).toEqual(['a.txt write', 'c.txt skip', 'd/2 skip', 'u.txt recreate', 'x.txt skip'])
    expect(preview.gaps).toMatchObject([{ reason: 'over-budget', count: 1 }, { reason: 'not-saved', count: lost.length }])

    const answer = await rpc.command(id, '/rollback 1')

    for (const words of ['could not be looked at whole', ...lost]) expect(answer.text).toContain(words)
    expect(existsSync(join(folder, '.git'))).toBe(false)
    expect(exactTreeOf(folder)).toEqual(withKept(before, left, lost))
  })

  test('rm -rf .git alone: every file is as it was, and the turn is not said to be covered', async () => {
    const folder = newFolder(world, 'git-gone-alone', userRepo)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder)
    await turn(world, rpc, id, runs('rm -rf .git'))

    expect(await previewOf(rpc, id)).toMatchObject({ rows: [], gaps: [{ reason: 'over-budget', count: 1 }] })
    expect((await rpc.command(id, '/rollback 1')).text).toContain('could not be looked at whole')
    expect(exactTreeOf(folder)).toEqual(before)
  })

  test('that commits what a file tool wrote: the file goes back, the commit stays', async () => {
    const folder = newFolder(world, 'git-edit', userRepo)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder)
    await turn(world, rpc, id, read('c.txt'), edit('c.txt', 'c1', 'c2'), runs('git commit -q -a -m next'))
    expect(rowsOf(await previewOf(rpc, id))).toEqual(['c.txt write'])
    const print = gitPrint(folder)

    await rpc.command(id, '/rollback 1')

    expect(exactTreeOf(folder)).toEqual(before)
    expect({ ...gitPrint(folder), status: '' }).toEqual({ ...print, status: '' })
    expect(git(folder, 'log', '-1', '--format=%s')).toBe('next\n')
  })
})

describe('in the page', () => {
  test('the dialog says what git moved and how to take that back, and keeps those files', async () => {
    const before = exactTreeOf(world.workspace)
    await world.ask('Switch. [scenario:switch]')
    const [left, print] = [exactTreeOf(world.workspace), gitPrint(world.workspace)]
    await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
    const dialog = world.page.getByRole('dialog')
    for (const name of ['c.txt', '1', 'n.txt', 'x.txt']) await dialog.getByText(name, { exact: true }).first().waitFor()
    await dialog.getByText('Changed by git itself, kept unless you choose otherwise').first().waitFor()
    await ui.screenshot(world.page, 'commands-git-switch')
    await dialog.getByRole('button', { name: 'Roll back 1 turn and 1 file' }).click()
    await dialog.getByText('3 files were kept as they are.').waitFor()

    expect(exactTreeOf(world.workspace)).toEqual(Object.fromEntries(Object.entries(left).filter(([path]) => path !== 'x.txt')))
    expect({ ...gitPrint(world.workspace), status: '' }).toEqual({ ...print, status: '' })
    // The advice is the whole way back.
    git(world.workspace, 'switch', '-q', 'main')
    expect(exactTreeOf(world.workspace)).toEqual(before)
    expect(world.pageErrors).toEqual([])
  })

  test('the way back is named in the dialog', async () => {
    await world.page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
    await world.ask('Switch once more. [scenario:switch]')
    await world.page.getByRole('button', { name: 'Roll back to before turn 2', exact: true }).click()

    const advice = world.page.getByRole('dialog').getByText('git switch main')
    await expect.poll(() => advice.count(), { timeout: 5_000 }).toBeGreaterThan(0)
    await ui.screenshot(world.page, 'commands-git-advice')
  })
})

test('the traps would have noticed', () => {
  const folder = newFolder(world, 'git-traps', userRepo)
  const print = gitPrint(folder)
  fill(folder, { 'pass.secret': 'other\n' })
  git(folder, 'status', '--porcelain')
  git(folder, 'commit', '-q', '-a', '-m', 'next')
  git(folder, 'checkout', '-q', 'HEAD~1')

  const noticed = new Set(readFileSync(join(folder, '.git', 'trace'), 'utf8').trim().split('\n'))
  expect([...noticed].toSorted()).toEqual([
    'clean', 'commit-msg', 'fsmonitor', 'post-checkout', 'post-commit', 'post-index-change', 'pre-commit', 'prepare-commit-msg',
    'reference-transaction', 'smudge',
  ])
  expect(gitPrint(folder).files['.git']).not.toBe(print.files['.git'])
})
