import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../support/e2e-world.ts'
import { isConversation, type Step } from '../support/mock-model.ts'
import * as ui from '../support/ui.ts'

/** The conversation after an undo and after a branch: in a session of its own, which the page opens. */

const write = (name: string, content: string) => ({ name: 'write', args: { file_path: name, content } })
const scenarios: Record<string, Step[]> = {
  one: [{ tools: [write('one.txt', '1\n')] }, { text: 'Turn one is done.' }],
  two: [{ tools: [write('two.txt', '2\n')] }, { text: 'Turn two is done.' }],
  three: [{ tools: [{ name: 'bash', args: { command: 'rm one.txt', description: 'Remove it' } }] }, { text: 'Turn three is done.' }],
  next: [{ tools: [write('next.txt', 'n\n')] }, { text: 'The next turn is done.' }],
  later: [{ text: 'A later turn is done.' }],
}

let world: World
beforeAll(async () => {
  world = await startWorld({ scenarios, files: { 'old.txt': 'old\n' } })
  await world.ask('First task. [scenario:one]')
  await world.ask('Second task. [scenario:two]')
  await world.ask('Third task. [scenario:three]')
})
afterAll(() => world?.dispose())

const visible = (text: string) => world.page.getByText(text).filter({ visible: true })
const row = (name: RegExp) => world.page.getByRole('treeitem', { name })
const copy = /Session one \(before rollback\)/
const original = /Session one(?! \()/
const files = () => ['one.txt', 'two.txt', 'next.txt'].map(name => world.read(name))
const turns = ['Turn one is done.', 'Turn two is done.', 'Turn three is done.']
const toolsOfLastRequest = () => (world.model.requests.findLast(isConversation)?.body as { tools?: readonly unknown[] } | undefined)?.tools?.length ?? 0

async function expectTurns(shown: readonly string[]): Promise<void> {
  for (const text of turns) await expect.poll(() => visible(text).count(), { timeout: 10_000 }).toBe(shown.includes(text) ? 1 : 0)
}

test('the undo in the bar puts the files back and opens the whole conversation in a copy', async () => {
  await ui.runCommand(world.page, '/rollback 2')
  await expectTurns([turns[0]!])
  expect(files()).toEqual(['1\n', undefined, undefined])
  await world.page.getByRole('button', { name: 'Undo (opens a copy)' }).filter({ visible: true }).click()

  await expectTurns(turns)
  await row(copy).waitFor()
  expect(files()).toEqual([undefined, '2\n', undefined])
  expect(await visible('rolled back').count()).toBe(0)
  await ui.screenshot(world.page, 'undo-copy')
})

test('its next prompt is sent with the whole earlier conversation, the tools and nothing of the rollback', async () => {
  await ui.composer(world.page).fill('')
  await world.ask('Next task. [scenario:next]')

  const request = world.lastRequestTexts().join('\n')
  for (const text of ['First task.', 'Second task.', 'Third task.', 'Turn three is done.', 'Next task.']) expect(request).toContain(text)
  expect(request).not.toContain('[The user rolled back')
  expect(toolsOfLastRequest()).toBe(25)
  expect(world.model.unexpected).toEqual([])
  expect(files()).toEqual([undefined, '2\n', 'n\n'])
})

test('the original stays rolled back, and its bar leads to the copy', async () => {
  await ui.openSession(world.page, original)
  await visible('file changes undone').waitFor()
  await expectTurns([turns[0]!])
  await ui.screenshot(world.page, 'undo-original')
  await world.page.getByRole('button', { name: 'Open the copy' }).filter({ visible: true }).click()

  await expectTurns(turns)
  await visible('The next turn is done.').waitFor()
})

test('after a restart the copy is whole and goes on', async () => {
  await world.restartHost('SIGTERM')
  await ui.openSession(world.page, copy)
  await expectTurns(turns)

  await world.ask('A later task. [scenario:later]')
  const request = world.lastRequestTexts().join('\n')
  for (const text of ['First task.', 'Third task.', 'Next task.', 'A later task.']) expect(request).toContain(text)
  expect(toolsOfLastRequest()).toBe(25)
})

test('a turn from before the copy was made can be rolled back in it, and that undone from the dialog', async () => {
  await world.page.getByRole('button', { name: 'Roll back to before turn 2', exact: true }).filter({ visible: true }).click()
  const dialog = world.page.getByRole('dialog')
  await dialog.getByRole('button', { name: /^Roll back 4 turns and 3 files/ }).click()
  await dialog.getByText('3 files are as they were before.').waitFor()
  expect(files()).toEqual(['1\n', undefined, undefined])
  await dialog.getByRole('button', { name: 'Undo (opens a copy)' }).click()

  await dialog.waitFor({ state: 'hidden' })
  await expectTurns(turns)
  await visible('A later turn is done.').waitFor()
  expect(files()).toEqual([undefined, '2\n', 'n\n'])
  // A copy of a copy says so once.
  await expect.poll(() => row(copy).count()).toBe(2)
})

test('the undo of the undo puts the files back again and opens the session it was made from', async () => {
  await ui.composer(world.page).fill('')
  await ui.runCommand(world.page, '/rollback undo')

  await visible('4 turns rolled back').waitFor()
  await expectTurns([turns[0]!])
  expect(files()).toEqual(['1\n', undefined, undefined])
})

test('a typed branch leaves the session as it is and opens one that ends before the turn', async () => {
  await ui.openSession(world.page, original)
  await ui.newSession(world.page)
  await world.ask('First of another. [scenario:two]')
  await world.ask('Second of another. [scenario:next]')
  await ui.runCommand(world.page, '/rollback 2 branch')

  await row(/Session two \(branch before turn 2\)/).waitFor()
  await expect.poll(() => visible('The next turn is done.').count(), { timeout: 10_000 }).toBe(0)
  await visible('Turn two is done.').waitFor()
  expect([world.read('two.txt'), world.read('next.txt')]).toEqual(['2\n', undefined])
  await ui.screenshot(world.page, 'branch')
  await ui.composer(world.page).fill('')
  await world.ask('Instead. [scenario:later]')
  const request = world.lastRequestTexts().join('\n')
  expect(request).toContain('First of another.')
  expect(request).not.toContain('Second of another.')

  await ui.openSession(world.page, /Session two(?! \()/)
  await visible('The next turn is done.').waitFor()
  expect(await visible('rolled back').count()).toBe(0)
  expect(world.pageErrors).toEqual([])
})

test('the rolled-back original can be archived from its bar, and the copy stays', async () => {
  await ui.openSession(world.page, original)
  await world.page.getByRole('button', { name: 'Archive this session' }).filter({ visible: true }).click()
  await world.page.getByRole('button', { name: 'Archive for good?' }).filter({ visible: true }).click()

  await expect.poll(() => world.page.getByRole('treeitem', { name: original }).count()).toBe(0)
  await visible('4 turns rolled back').waitFor()
  await world.page.reload()
  await ui.waitForBoot(world.page)
  expect(await world.page.getByRole('treeitem', { name: original }).count()).toBe(0)
})
