import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import * as ui from '../support/ui.ts'

/** Every kind of finished turn has exactly one rollback button, and rollbacks may be stacked down to nothing. */

const write = (name: string) => ({ name: 'write', args: { file_path: name, content: `${name}\n` } })
const scenarios: Record<string, Step[]> = {
  stopped: [{ tools: [write('stopped.txt')] }, { tools: [{ name: 'bash', args: { command: 'sleep 60', description: 'Sleep for a minute' } }] }],
  streaming: [{ tools: [write('streaming.txt')] }, { text: 'Half of an answer', hold: true }],
  thinking: [{ reasoning: 'I only think.', hold: true }],
  failing: [{ tools: [write('failing.txt')] }, { status: 400 }],
  plain: [{ text: 'A plain answer.' }],
  late: [{ tools: [write('late.txt')] }, { text: 'A late answer.' }],
}

let world: World
beforeAll(async () => { world = await startWorld({ scenarios }) })
afterAll(() => world?.dispose())

const buttons = (turn: number) => world.page.getByRole('button', { name: `Roll back to before turn ${turn}`, exact: true })
const visible = (text: string) => world.page.getByText(text).filter({ visible: true })

async function expectOneButtonEach(turns: readonly number[]): Promise<void> {
  for (const turn of turns) await expect.poll(() => buttons(turn).filter({ visible: true }).count()).toBe(1)
  await expect.poll(() => world.page.getByRole('button', { name: /^Roll back to before/ }).filter({ visible: true }).count()).toBe(turns.length)
}

async function confirmBefore(turn: number, words: string): Promise<void> {
  await buttons(turn).filter({ visible: true }).click()
  await world.page.getByRole('dialog').getByRole('button', { name: words }).click()
  await world.page.getByRole('dialog', { name: `Rolled back to before turn ${turn}` }).waitFor()
  await world.page.keyboard.press('Escape')
  await ui.composer(world.page).fill('')
}

test('turn 1, stopped in a tool before any text: one button, and the host\'s row of produced files', async () => {
  await ui.sendPrompt(world.page, 'Be stopped. [scenario:stopped]')
  await world.page.getByText('Sleep for a minute').first().waitFor()
  await expect.poll(() => world.read('stopped.txt')).toBe('stopped.txt\n')
  await ui.stopTurn(world.page)

  await expectOneButtonEach([1])
  await visible('Produced').waitFor()
  await ui.screenshot(world.page, 'turn-kinds-stopped')
})

test('turn 2, stopped while its text streams; turn 3, stopped while it only thinks', async () => {
  await ui.sendPrompt(world.page, 'Stream. [scenario:streaming]')
  await visible('Half of an answer').waitFor()
  await ui.stopTurn(world.page)
  await expectOneButtonEach([1, 2])
  await ui.sendPrompt(world.page, 'Think. [scenario:thinking]')
  await world.model.held()
  await ui.stopTurn(world.page)

  await expectOneButtonEach([1, 2, 3])
})

test('turn 4, failed at the model after a tool; turn 5, a plain one', async () => {
  await world.ask('Fail. [scenario:failing]')
  await world.ask('Talk. [scenario:plain]')

  await expectOneButtonEach([1, 2, 3, 4, 5])
  await ui.screenshot(world.page, 'turn-kinds-all')
})

test('the same after a reload', async () => {
  await world.page.reload()
  await ui.waitForBoot(world.page)
  await ui.openSession(world.page, /Session stopped/)
  await visible('A plain answer.').waitFor()

  await expectOneButtonEach([1, 2, 3, 4, 5])
})

test('a rollback, a new turn, and a rollback over both', async () => {
  await confirmBefore(4, 'Roll back 2 turns and 1 file')
  expect(world.read('failing.txt')).toBeUndefined()
  await expectOneButtonEach([1, 2, 3])
  await world.ask('Later. [scenario:late]')
  await expectOneButtonEach([1, 2, 3, 6])
  await confirmBefore(3, 'Roll back 2 turns and 1 file')

  expect(world.read('late.txt')).toBeUndefined()
  await expectOneButtonEach([1, 2])
  await expect.poll(() => visible('A late answer.').count()).toBe(0)
  await ui.screenshot(world.page, 'turn-kinds-over-a-rollback')
})

test('before turn 1: everything is hidden and a welcome stands in its place', async () => {
  await confirmBefore(1, 'Roll back 2 turns and 2 files')

  expect([world.read('stopped.txt'), world.read('streaming.txt')]).toEqual([undefined, undefined])
  await visible('A fresh start').waitFor()
  await expectOneButtonEach([])
  for (const text of ['Be stopped.', 'Half of an answer', 'Produced', 'Think.', 'A plain answer.']) expect(await visible(text).count()).toBe(0)
  await ui.screenshot(world.page, 'turn-kinds-nothing-left')
})

test('a new prompt starts over: the request holds no withdrawn word, the system prompt stays', async () => {
  await world.ask('Start over. [scenario:plain]')
  const request = world.lastRequestTexts()

  await expectOneButtonEach([7])
  expect(request[0]).toMatch(/^system: ./)
  expect(request.join('\n')).toContain('Start over.')
  for (const text of ['Be stopped.', 'Half of an answer', 'Think.', 'Later.']) expect(request.join('\n')).not.toContain(text)
  expect(world.model.unexpected).toEqual([])
  expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
  expect(world.pageErrors).toEqual([])
})
