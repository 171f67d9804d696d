import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newFolder, previewOf, rowsOf, turn } from '../support/command-turn.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import { exactTreeOf } from '../support/exact-tree.ts'
import { gitPrint } from '../support/git-repo.ts'
import { expectOk, sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import { edit, read, runs, steps, write, type ToolCall } from '../support/tool-steps.ts'
import * as ui from '../support/ui.ts'
import { fill, userFolder, userRepo } from '../support/user-folder.ts'

/**
 * Changes that others than the turn's own calls make, in the real host: jobs in the background, subagents, programs
 * of the code mode, persistent shells, and a second session in the same folder.
 */

const job = 'sleep 0.7; echo 9 > a.txt; rm d/1; echo late > late.txt'
const afterJob = ['a.txt shared', 'd/1 shared', 'late.txt shared']

let world: World
let rpc: SessionRpc
beforeAll(async () => {
  world = await startWorld({
    prepare: userRepo,
    scenarios: { job: [...steps(runs(`sleep 2; ${job}`, { run_in_background: true })), { text: 'The job has ended.' }] },
  })
  rpc = sessionRpc(world.home, () => world.host.url)
})
afterAll(() => world?.dispose())

const inBackground = (command: string): ToolCall => runs(command, { run_in_background: true })
const places: readonly (readonly [string, (folder: string) => void])[] = [['a plain folder', userFolder], ['a git work tree', userRepo]]

/** A session whose first turn has started this in the background and is over. */
async function started(name: string, make: (folder: string) => void, command: string) {
  const folder = newFolder(world, name, make)
  const before = exactTreeOf(folder)
  const id = await rpc.create(folder)
  await turn(world, rpc, id, inBackground(command))
  return { folder, before, id }
}

/** The end of a job makes the host open a turn; waits until that one has ended, too. */
async function endOfTurn(id: string, number: number): Promise<void> {
  const turns = async () => expectOk(await rpc.turnback('timeline', { sessionId: id })).turns
  await expect.poll(async () => (await turns()).length, { timeout: 15_000 }).toBe(number)
  await rpc.whenIdle(id)
}

describe.each(places)('a job that writes after the turn, in %s', (place, make) => {
  test('nothing is rolled back while it runs; then its changes are listed, kept and named', async () => {
    const { folder, before, id } = await started(`kept-${place.length}`, make, job)
    const print = make === userRepo ? gitPrint(folder) : undefined
    expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'error', text: expect.stringContaining('sleep 0.7') })
    expect(exactTreeOf(folder)).toEqual(before)
    await endOfTurn(id, 2)
    const left = exactTreeOf(folder)
    expect(left).not.toEqual(before)
    const preview = await previewOf(rpc, id)
    expect(rowsOf(preview)).toEqual(afterJob)
    expect(preview.gaps).toEqual([])

    const { text } = await rpc.command(id, '/rollback 1')

    for (const name of ['a.txt', 'd/1', 'late.txt']) expect(text).toContain(name)
    expect(exactTreeOf(folder)).toEqual(left)
    if (print !== undefined) expect({ ...gitPrint(folder), status: '' }).toEqual({ ...print, status: '' })
  })
})

describe('a job that writes after the turn', () => {
  test('whoever chooses to put its changes back has every byte as before the turn', async () => {
    const { folder, before, id } = await started('back', userRepo, job)
    await endOfTurn(id, 2)

    expect(await rpc.confirm(id, 1, ['a.txt', 'd/1', 'late.txt'])).toMatchObject({ kind: 'success' })

    expect(exactTreeOf(folder)).toEqual(before)
  })

  test('and goes on beside a later turn: its changes stay on the turn that started it', async () => {
    const { folder, before, id } = await started('beside', userRepo, 'sleep 0.4; echo 1 > one.txt; sleep 2.5; echo 2 > two.txt')
    await expect.poll(() => existsSync(join(folder, 'one.txt'))).toBe(true)
    await turn(world, rpc, id, runs('echo x > x.txt; rm c.txt'))
    expect(existsSync(join(folder, 'two.txt'))).toBe(false)
    await endOfTurn(id, 3)
    expect(rowsOf(await previewOf(rpc, id, 1))).toEqual(['c.txt recreate', 'one.txt shared', 'two.txt shared', 'x.txt delete'])
    expect(rowsOf(await previewOf(rpc, id, 2))).toEqual(['c.txt recreate', 'x.txt delete'])

    await rpc.command(id, '/rollback 2')

    expect(exactTreeOf(folder)).toEqual({ ...before, 'one.txt': 'file 644 1\n', 'two.txt': 'file 644 2\n' })
  })
})

describe('a job, in the page', () => {
  test('the dialog refuses while it runs, and then shows what it changed, as kept', async () => {
    const before = exactTreeOf(world.workspace)
    await world.ask('Start it. [scenario:job]')
    await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
    const dialog = world.page.getByRole('dialog')
    await dialog.getByText(/sleep 2/).first().waitFor()
    await ui.screenshot(world.page, 'commands-job-running')
    await world.page.keyboard.press('Escape')
    await world.page.getByText('The job has ended.').waitFor()
    await ui.waitForIdle(world.page)
    await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
    await dialog.getByText('late.txt').first().waitFor()
    expect(await dialog.getByText(/Changed while a command ran/).count()).toBe(3)
    await ui.screenshot(world.page, 'commands-job-ended')
    for (const path of ['a.txt', 'd/1']) await dialog.getByLabel(`What to do with ${path}`).getByText('Put back', { exact: true }).click()
    await dialog.getByRole('button', { name: 'Roll back 2 turns and 2 files' }).click()
    await dialog.getByText('1 file was kept as it is.').waitFor()

    expect(exactTreeOf(world.workspace)).toEqual({ ...before, 'late.txt': 'file 644 late\n' })
    expect(world.pageErrors).toEqual([])
  })
})

describe.each(places)('calls within calls, in %s', (place, make) => {
  const place_ = place.replaceAll(' ', '-')
  const changes = "sed -i 's/1/9/' a.txt; rm -r d; mv b.txt e.txt; mkdir -p new/deep; echo x > new/deep/x.txt"

  test('field 42: a subagent that uses file tools and the shell', async () => {
    const folder = newFolder(world, `subagent-${place_}`, make)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder)
    world.model.setScenario(`child-${id}`, steps(read('c.txt'), edit('c.txt', 'c', 'C'), write('s.txt', 's\n'), runs(changes)))
    const prompt = `Change them. [scenario:child-${id}]`
    await turn(world, rpc, id, { name: 'subagent', args: { description: 'Change files', prompt, run_in_background: false } })
    expect(existsSync(join(folder, 's.txt'))).toBe(true)
    expect((await previewOf(rpc, id)).gaps).toEqual([])

    expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })

    expect(exactTreeOf(folder)).toEqual(before)
  })

  test('a subagent in the background that writes after the turn: nothing of it is passed over', async () => {
    const folder = newFolder(world, `late-subagent-${place_}`, make)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder)
    world.model.setScenario(`child-${id}`, steps(runs('sleep 1'), write('s.txt', 's\n'), runs('rm d/1')))
    const prompt = `Change them. [scenario:child-${id}]`
    await turn(world, rpc, id, { name: 'subagent', args: { description: 'Change files', prompt, run_in_background: true } })
    expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'error' })
    await endOfTurn(id, 2)
    const preview = await previewOf(rpc, id)
    expect(preview.rows.map(row => row.shown)).toEqual(['d/1', 's.txt'])
    expect(preview.gaps.map(gap => gap.reason).filter(reason => reason !== 'late')).toEqual([])

    expect(await rpc.confirm(id, 1, preview.rows.filter(row => row.action === 'keep').map(row => row.shown))).toMatchObject({ kind: 'success' })

    expect(exactTreeOf(folder)).toEqual(before)
  })

  test.each([['that ends well', ''], ['that fails halfway', "throw new Error('halfway')"]])('a program of the code mode %s', async (_how, end) => {
    const folder = newFolder(world, `code-${end.length}-${place_}`, make)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder, 'code')
    const code = `
      await tools.write({ file_path: 'n.txt', content: 'n' })
      await tools.bash(${JSON.stringify({ command: changes, description: 'Change files' })})
      await tools.read({ file_path: 'c.txt' }); await tools.edit({ file_path: 'c.txt', old_string: 'c', new_string: 'C' })
      ${end}`
    await turn(world, rpc, id, { name: 'run_code', args: { code, description: 'Change files' } })
    expect(existsSync(join(folder, 'new/deep/x.txt')) && existsSync(join(folder, 'n.txt'))).toBe(true)
    expect((await previewOf(rpc, id)).gaps).toEqual([])

    expect(await rpc.command(id, '/rollback 1')).toMatchObject({ kind: 'success' })

    expect(exactTreeOf(folder)).toEqual(before)
  })

  test('a persistent shell, also what it leaves behind to write later', async () => {
    const folder = newFolder(world, `shell-${place_}`, make)
    const before = exactTreeOf(folder)
    const id = await rpc.create(folder, 'minimal')
    const bash = (command: string): ToolCall => ({ name: 'bash', args: { command } })
    await turn(world, rpc, id, bash('cd d; export WHAT=9'), bash('echo $WHAT > 2; rm 1; (sleep 0.7; echo late > late.txt) & true'))
    await expect.poll(() => existsSync(join(folder, 'd/late.txt'))).toBe(true)
    const preview = await previewOf(rpc, id)
    expect(rowsOf(preview)).toEqual(['d/1 recreate', 'd/2 write', 'd/late.txt shared'])

    await rpc.confirm(id, 1, ['d/late.txt'])

    expect(exactTreeOf(folder)).toEqual(before)
  })
})

describe.each(places)('two sessions at the same time, in %s', (place, make) => {
  const two = async (name: string) => {
    const folder = newFolder(world, `${name}-${place.replaceAll(' ', '-')}`, make)
    return { folder, before: exactTreeOf(folder), mine: await rpc.create(folder), other: await rpc.create(folder) }
  }

  test('commands of both at once: neither takes the other’s changes back unasked', async () => {
    const { folder, before, mine, other } = await two('both')
    await Promise.all([
      turn(world, rpc, mine, runs('sleep 0.2; echo mine > a.txt; echo mine > m.txt; sleep 1')),
      turn(world, rpc, other, runs('sleep 0.5; echo other > c.txt; rm d/1')),
    ])
    const left = exactTreeOf(folder)
    for (const id of [mine, other]) {
      const { rows, gaps } = await previewOf(rpc, id)
      for (const row of rows) expect(row).toMatchObject({ action: 'keep', conflict: expect.stringMatching(/^(shared|other-session)$/) })
      expect(gaps).toEqual([])
    }
    expect((await previewOf(rpc, mine)).rows.map(row => row.shown)).toEqual(expect.arrayContaining(['a.txt', 'm.txt']))
    expect((await previewOf(rpc, other)).rows.map(row => row.shown)).toEqual(expect.arrayContaining(['c.txt', 'd/1']))

    expect((await rpc.command(other, '/rollback 1')).text).toContain('d/1')
    expect(exactTreeOf(folder)).toEqual(left)
    await rpc.confirm(mine, 1, ['a.txt', 'm.txt'])
    expect(exactTreeOf(folder)).toEqual({ ...before, 'c.txt': left['c.txt'], 'd/1': undefined })
  })

  test('field 39, field 41: a file tool of one beside a command of the other: each list holds its own, each goes back alone', async () => {
    const { folder, before, mine, other } = await two('tool')
    await Promise.all([
      turn(world, rpc, other, runs('sleep 1.2; echo other > c.txt')),
      turn(world, rpc, mine, runs('true'), write('n.txt', 'n\n'), read('b.txt'), edit('b.txt', '1', '2')),
    ])
    const left = exactTreeOf(folder)
    expect((await previewOf(rpc, mine)).rows.map(row => row.shown)).toEqual(['b.txt', 'n.txt'])
    expect((await previewOf(rpc, other)).rows.map(row => row.shown)).toEqual(['c.txt'])

    await rpc.command(mine, '/rollback 1')
    expect(exactTreeOf(folder)).toEqual({ ...before, 'c.txt': left['c.txt'] })
    await rpc.confirm(other, 1, rowsOf(await previewOf(rpc, other)).filter(row => !row.endsWith('write')).map(() => 'c.txt'))
    expect(exactTreeOf(folder)).toEqual(before)
  })

  test('a file that both changed one after the other: kept for the first, who may have it back and undo that', async () => {
    const { folder, before, mine, other } = await two('after')
    await turn(world, rpc, mine, runs('echo mine > a.txt'))
    await turn(world, rpc, other, runs('echo other > a.txt'))
    const left = exactTreeOf(folder)
    expect((await previewOf(rpc, mine)).rows).toMatchObject([{ shown: 'a.txt', action: 'keep', conflict: 'other-session' }])
    await rpc.confirm(mine, 1, ['a.txt'])
    expect(exactTreeOf(folder)).toEqual(before)
    await rpc.command(mine, '/rollback undo')
    expect(exactTreeOf(folder)).toEqual(left)

    await rpc.command(other, '/rollback 1')
    expect(exactTreeOf(folder)['a.txt']).toBe('file 644 mine\n')
  })

  test('what the user saved since stays as it is', async () => {
    const { folder, before, mine } = await two('user')
    await turn(world, rpc, mine, runs('echo mine > a.txt'))
    fill(folder, { 'b.txt': 'my own words\n', 'a.txt': 'my own words\n' })

    await rpc.command(mine, '/rollback 1')

    expect(exactTreeOf(folder)).toEqual({ ...before, 'a.txt': 'file 644 my own words\n', 'b.txt': 'file 644 my own words\n' })
  })
})
