import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import * as ui from '../support/ui.ts'

/** Lines typed in the composer. Each answers with a sentence a person can act on and leaves everything else alone. */

const write = (name: string, content: string) => ({ name: 'write', args: { file_path: name, content } })
const scenarios: Record<string, Step[]> = {
  t1: [{ tools: [write('one.txt', '1\n')] }, { text: 'Turn one is done.' }],
  t2: [
    { tools: [write('two.txt', '2\n'), write('lib/deep/n.txt', 'n\n')] },
    { tools: [{ name: 'bash', args: { command: 'echo x > shell.txt; rm old.txt', description: 'Work in the shell' } }] },
    { text: 'Turn two is done.' },
  ],
  long: [{ tools: [write('three.txt', '3\n')] }, { text: 'Turn three is under way.', hold: true }, { text: 'Turn three is done.' }],
}

let world: World
beforeAll(async () => {
  world = await startWorld({ scenarios, files: { 'old.txt': 'old\n' } })
  await world.ask('First task. [scenario:t1]')
  await world.ask('Second task. [scenario:t2]')
})
afterAll(() => world?.dispose())

/** Types a line, waits for its answer and gives the words of its card in the chat. */
const type = (line: string, answer: string | RegExp): Promise<string> => answerTo(() => ui.runCommand(world.page, line), answer)

async function answerTo(act: () => Promise<void>, answer: string | RegExp): Promise<string> {
  const cards = world.page.locator('pre').filter({ hasText: answer, visible: true })
  const before = await cards.count()
  await act()
  await expect.poll(() => cards.count()).toBe(before + 1)
  return cards.last().innerText()
}

/** What the conversation consists of: log lines that are neither the trace of a command nor pieces of a stream. */
const conversation = () => world.sessionLog().filter(line => !/^command\/|chunk/.test(String(line.type)))
/** The answer of the last command as the log keeps it; where a marker says the same, the chat shows the bar instead. */
const lastAnswer = async () => {
  await expect.poll(() => world.sessionLog().at(-1)?.type).toBe('command/done')
  return world.sessionLog().at(-1)?.data as { kind: string, text: string } | undefined
}
const files = () => ['one.txt', 'two.txt', 'lib/deep/n.txt', 'shell.txt', 'old.txt', 'three.txt'].map(name => world.read(name))

test.each([
  ['/rollback help', '/rollback <turn>: go back to before that turn', '/rollback undo: undo the last rollback'],
  ['/rollback list', 'Turns, newest first.', 'Second task.'],
  ['/rollback preview 2', 'Before turn 2: 1 turn would leave the conversation.', 'Nothing has been done. Run /rollback 2 to do it.'],
  ['/rollback abc', '“abc” is not something /rollback knows.', '/rollback help'],
  ['/rollback 0', '“0” is no turn number: turns count from 1.', '/rollback list'],
  ['/rollback -1', '“-1”', '/rollback'],
  ['/rollback 99', 'There is no turn 99 in this session; the last one is turn 2.', 'Type /rollback list to see the turns.'],
  ['/rollback 2 extra', 'There is a word too many: “extra”. Nothing was done', '/rollback help'],
  ['/rollback undo', 'There is no rollback to undo in this session.', '/rollback list'],
  ['/rollback preview', 'Which turn?', '/rollback list'],
])('%s answers in words and changes nothing', async (line, sentence, remedy) => {
  const [log, disk] = [conversation(), files()]
  const answer = await type(line, sentence)

  expect(answer).toContain(remedy)
  expect(conversation()).toEqual(log)
  expect(files()).toEqual(disk)
})

test('the answers read well', async () => {
  await ui.screenshot(world.page, 'commands-refusals')
  await world.page.locator('pre').filter({ hasText: 'Turns, newest first.' }).last().scrollIntoViewIfNeeded()
  await ui.screenshot(world.page, 'commands-help-list-preview')

  const list = await world.page.locator('pre').filter({ hasText: 'Turns, newest first.' }).last().innerText()
  expect(list.split('\n').find(row => row.includes('Second task.'))).toMatch(/ · 4 files$/)
  const preview = await world.page.locator('pre').filter({ hasText: 'Before turn 2' }).innerText()
  expect(preview.split('\n')).toEqual([
    'Before turn 2: 1 turn would leave the conversation.',
    'Would be deleted: lib/deep/n.txt, shell.txt, two.txt',
    'Would be recovered: old.txt',
    'Folders that would go if they are empty: lib/deep, lib',
    'Files that git ignores, and folders such as node_modules, are not looked at around commands.',
    'Nothing has been done. Run /rollback 2 to do it.',
  ])
  // Nothing is cut off at the side.
  for (const card of await world.page.locator('pre').filter({ visible: true }).all()) {
    expect(await card.evaluate(element => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0)
  }
})

test('field 44, field 45: while a turn runs a rollback is refused, from the button and typed; after it was stopped it works', async () => {
  await ui.sendPrompt(world.page, 'Third task. [scenario:long]')
  await world.model.held()
  await world.page.getByText('Turn three is under way.').waitFor()
  const [log, disk] = [conversation(), files()]
  const button = world.page.getByRole('button', { name: 'Roll back to before turn 2', exact: true })
  expect(await button.getAttribute('aria-disabled')).toBe('true')
  await button.focus()
  await world.page.keyboard.press('Enter')
  expect(await world.page.getByRole('dialog').count()).toBe(0)
  await ui.composer(world.page).fill('/rollback 2')
  await ui.composer(world.page).press('Enter')
  await world.page.locator('pre').filter({ hasText: 'A turn is still running. Stop it or wait for it to end, then roll back.' }).waitFor()
  await ui.screenshot(world.page, 'commands-running')

  expect(conversation()).toEqual(log)
  expect(files()).toEqual(disk)
  await ui.stopTurn(world.page)
  await ui.runCommand(world.page, '/rollback 3')
  await world.page.getByText('1 turn rolled back').waitFor()
  expect(world.read('three.txt')).toBeUndefined()
  expect(await lastAnswer()).toMatchObject({ kind: 'success', text: expect.stringContaining('Deleted: three.txt') })
})

test('/rollback 2 acts and the bar in its place gives the details; a second one says that it is done already', async () => {
  await ui.composer(world.page).fill('')
  await ui.runCommand(world.page, '/rollback 2')
  await expect.poll(files).toEqual(['1\n', undefined, undefined, undefined, 'old\n', undefined])
  // The files are back before the command answers.
  await expect.poll(async () => (await lastAnswer())?.text.split('\n')).toEqual([
    'Rolled back to before turn 2: 1 turn left the conversation.',
    'Recovered: old.txt',
    'Deleted: lib/deep/n.txt, shell.txt, two.txt',
    'Empty folders removed: lib/deep, lib',
    'To undo this: /rollback undo. The files come back in place; the conversation opens as a copy of this session from before the rollback.',
  ])
  await world.page.locator('[data-turnback-session]').getByRole('button', { name: 'Details' }).filter({ visible: true }).click()
  await world.page.getByText('lib/deep/n.txt').filter({ visible: true }).first().waitFor()
  await ui.screenshot(world.page, 'commands-rolled-back')

  const log = conversation()
  await ui.composer(world.page).fill('')
  await type('/rollback 2', 'Turn 2 was already rolled back.')
  expect(conversation()).toEqual(log)
})

test('a blank argument is the bare form: turns and usage, nothing else', async () => {
  const [log, disk] = [conversation(), files()]
  // Key by key: the host takes the command at the blank; a whole line put there at once would open the list of turns.
  await ui.composer(world.page).pressSequentially('/rollback ')
  const answer = await answerTo(() => ui.composer(world.page).press('Enter'), '/rollback help: this text')

  expect(answer).toContain('First task.')
  expect(conversation()).toEqual(log)
  expect(files()).toEqual(disk)
  expect(world.pageErrors).toEqual([])
  expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
})

test('/rollback undo puts the files back and says where the conversation is', async () => {
  const [original] = world.sessionIds()
  await ui.composer(world.page).fill('')
  await ui.runCommand(world.page, '/rollback undo')
  await expect.poll(() => JSON.stringify(world.sessionLog(original).at(-1)), { timeout: 10_000 }).toMatch(/command\/done.*this session stays as it is\./)

  expect(JSON.stringify(world.sessionLog(original).at(-1))).toContain('two.txt')
  expect(files()).toEqual(['1\n', '2\n', 'n\n', 'x\n', undefined, undefined])
  await ui.screenshot(world.page, 'commands-undone')
})
