import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Step } from '../support/mock-model.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import * as ui from '../support/ui.ts'

const crlf = '\uFEFFone\r\ntwo\r\nthree\r\n'
const scenarios: Record<string, Step[]> = {
  t1: [{ tools: [{ name: 'write', args: { file_path: 'a.txt', content: 'a1\n' } }] }, { text: 'Turn one is done.' }],
  t2: [
    { tools: [
      { name: 'edit', args: { file_path: 'a.txt', old_string: 'a1', new_string: 'a2' } },
      { name: 'write', args: { file_path: 'lib/deep/n1.txt', content: 'n1\n' } },
      { name: 'write', args: { file_path: 'lib/deep/n2.txt', content: 'n2\n' } },
      { name: 'read', args: { file_path: 'hand.txt' } },
    ] },
    { tools: [{ name: 'edit', args: { file_path: 'hand.txt', old_string: 'h0', new_string: 'h2' } }] },
    { text: 'Turn two is done.' },
  ],
  t3: [
    { tools: [{ name: 'read', args: { file_path: 'crlf.txt' } }] },
    { tools: [{ name: 'edit', args: { file_path: 'crlf.txt', old_string: 'two', new_string: 'TWO' } }] },
    { text: 'Turn three is done.' },
  ],
  next: [{ text: 'The next turn is done.' }],
}


const texts = { one: 'First task.', two: 'Second task.', three: 'Third task.' }

/** Three turns, then the user's own edit of a file that turn 2 had changed. */
async function threeTurns(): Promise<World> {
  const world = await startWorld({ scenarios, files: { 'crlf.txt': crlf, 'hand.txt': 'h0\n' } })
  await world.ask('First task. [scenario:t1]')
  await world.ask('Second task. [scenario:t2]')
  await world.ask('Third task. [scenario:t3]')
  writeFileSync(join(world.workspace, 'hand.txt'), 'h2 and my own words\n')
  return world
}

const rollbackButton = (world: World, turn: number) => world.page.getByRole('button', { name: `Roll back to before turn ${turn}`, exact: true })

/** Files as turn 2 found them, but for the one that the user edited by hand. */
function expectFilesBeforeTurn2(world: World): void {
  expect(world.read('a.txt')).toBe('a1\n')
  expect(existsSync(join(world.workspace, 'lib'))).toBe(false)
  expect(readFileSync(join(world.workspace, 'crlf.txt'), 'utf8')).toBe(crlf)
  expect(world.read('hand.txt')).toBe('h2 and my own words\n')
  expect(readdirSync(world.workspace).filter(name => name.includes('turnback'))).toEqual([])
}

/** The transcript shows turn 1 and nothing of turns 2 and 3. */
async function expectRowsOfTurn1Only(world: World): Promise<void> {
  await world.page.getByText('Turn one is done.').waitFor()
  for (const text of ['Turn two is done.', 'Turn three is done.']) {
    await expect.poll(() => world.page.getByText(text).filter({ visible: true }).count()).toBe(0)
  }
  await expect.poll(() => rollbackButton(world, 1).filter({ visible: true }).count()).toBe(1)
  for (const turn of [2, 3]) await expect.poll(() => rollbackButton(world, turn).filter({ visible: true }).count()).toBe(0)
  await world.page.getByText('2 turns rolled back').waitFor()
}

/** The next turn works, is numbered on, and its request, which a strict provider takes, holds nothing of the withdrawn turns. */
async function expectNextTurn(world: World, number: number): Promise<void> {
  await ui.composer(world.page).fill('')
  await world.ask('Next task. [scenario:next]')
  const request = world.lastRequestTexts().join('\n')
  expect(request).toContain(texts.one)
  expect(request).toContain('Next task.')
  for (const gone of [texts.two, texts.three, 'Turn two is done.', 'Turn three is done.', 'n1\n', 'TWO']) expect(request).not.toContain(gone)
  expect(request.split('[The user rolled back').length).toBe(2)
  expect(world.model.unexpected).toEqual([])
  await expect.poll(() => rollbackButton(world, number).count()).toBe(1)
}

describe('from the button', () => {
  let world: World
  beforeAll(async () => { world = await threeTurns() })
  afterAll(() => world?.dispose())

  test('every finished turn has exactly one rollback button', async () => {
    for (const turn of [1, 2, 3]) await expect.poll(() => rollbackButton(world, turn).count()).toBe(1)
  })

  test('field 61: one click, a click outside and Escape change nothing on disk and nothing in the log', async () => {
    const log = world.sessionLog().length
    const before = readFileSync(join(world.workspace, 'a.txt'))

    await rollbackButton(world, 2).click()
    await world.page.getByRole('dialog').getByText('crlf.txt').waitFor()
    await world.page.mouse.click(5, 5)
    await world.page.getByRole('dialog').waitFor({ state: 'hidden' })
    await rollbackButton(world, 2).click()
    await world.page.getByRole('dialog').getByText('crlf.txt').waitFor()
    await world.page.keyboard.press('Escape')
    await world.page.getByRole('dialog').waitFor({ state: 'hidden' })

    expect(world.sessionLog().length).toBe(log)
    expect(readFileSync(join(world.workspace, 'a.txt'))).toEqual(before)
  })

  test('the dialog names each file and what happens to it, and a confirm does exactly that', async () => {
    await rollbackButton(world, 2).click()
    const dialog = world.page.getByRole('dialog', { name: 'Roll back to before turn 2' })
    for (const name of ['hand.txt', 'a.txt', 'crlf.txt', 'n1.txt', 'n2.txt']) await dialog.getByText(name).waitFor()
    await dialog.getByText('Edited outside of this session since the agent last wrote it.').waitFor()
    await ui.screenshot(world.page, 'dialog-ready')
    await dialog.getByRole('button', { name: 'Roll back 2 turns and 4 files' }).click()
    const done = world.page.getByRole('dialog', { name: 'Rolled back to before turn 2' })
    await done.getByText('4 files are as they were before.').waitFor()
    await done.getByText('1 file was kept as it is.').waitFor()
    await ui.screenshot(world.page, 'dialog-done')

    expectFilesBeforeTurn2(world)
    await done.getByRole('button', { name: 'Close' }).last().click()
  })

  test('rows and buttons of the withdrawn turns are gone and the prompt of turn 2 is in the composer', async () => {
    await expectRowsOfTurn1Only(world)
    await expect.poll(() => ui.composer(world.page).inputValue()).toBe('Second task. [scenario:t2]')
    expect(await ui.composer(world.page).evaluate(element => element === document.activeElement)).toBe(true)
    await ui.screenshot(world.page, 'after-rollback')
  })

  test('the same after a reload of the page', async () => {
    await world.page.reload()
    await ui.waitForBoot(world.page)
    await ui.openSession(world.page, /Session t1/)

    await expectRowsOfTurn1Only(world)
    expectFilesBeforeTurn2(world)
  })

  test('field 49: the same after a restart of the host, before anything was sent', async () => {
    await world.restartHost()
    await ui.openSession(world.page, /Session t1/)

    await expectRowsOfTurn1Only(world)
    expectFilesBeforeTurn2(world)
  })

  test('field 46 and 50: the next turn works, is numbered on and reads nothing of what was withdrawn', async () => {
    await expectNextTurn(world, 4)
    expect(world.pageErrors).toEqual([])
  })
})

describe('from the composer', () => {
  let world: World
  beforeAll(async () => { world = await threeTurns() })
  afterAll(() => world?.dispose())

  test('a typed /rollback 2 does the same and says what it kept', async () => {
    await ui.runCommand(world.page, '/rollback 2')
    await expectRowsOfTurn1Only(world)

    expectFilesBeforeTurn2(world)
    await world.page.getByText('some files not put back').waitFor()
    await world.page.locator('[data-turnback-session]').getByRole('button', { name: 'Details' }).click()
    await world.page.getByText('hand.txt').filter({ visible: true }).first().waitFor()
    await ui.screenshot(world.page, 'typed-rollback')
  })

  test('the typed undo puts every file back to what it was before the rollback', async () => {
    await ui.runCommand(world.page, '/rollback undo')
    // The page is in the copy now, which has all three turns; the original stays rolled back.
    await world.page.getByText('Turn three is done.').filter({ visible: true }).waitFor()
    await ui.openSession(world.page, /Session t1(?! \()/)
    await world.page.getByText('file changes undone').waitFor()

    expect(world.read('lib/deep/n1.txt')).toBe('n1\n')
    expect(world.read('lib/deep/n2.txt')).toBe('n2\n')
    expect(world.read('a.txt')).toBe('a2\n')
    // The host's own edit drops the byte order mark; undo brings back what was there, not what should have been.
    expect(readFileSync(join(world.workspace, 'crlf.txt'), 'utf8')).toBe('one\r\nTWO\r\nthree\r\n')
    expect(world.read('hand.txt')).toBe('h2 and my own words\n')
    await ui.screenshot(world.page, 'typed-undo')
  })

  test('the next turn works, is numbered on and reads nothing of what was withdrawn', async () => {
    await expectNextTurn(world, 4)
    expect(world.pageErrors).toEqual([])
  })
})
