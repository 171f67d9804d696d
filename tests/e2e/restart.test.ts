import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import { expectOk, sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import * as ui from '../support/ui.ts'

/** What a restart of the host must not change. One home, several sessions. */

const write = (name: string, content: string) => ({ name: 'write', args: { file_path: name, content } })
const scenarios: Record<string, Step[]> = {
  'a-t1': [{ tools: [write('a/one.txt', '1\n')] }, { text: 'A one.' }],
  'a-t2': [{ tools: [write('a/two.txt', '2\n')] }, { text: 'A two.' }],
  'b-t1': [{ tools: [write('b/one.txt', '1\n')] }, { text: 'B one.' }],
  'b-t2': [{ tools: [write('b/two.txt', '2\n')] }, { text: 'B two.' }],
  'c-t1': [
    { tools: [{ name: 'read', args: { file_path: 'c.txt' } }] },
    { tools: [{ name: 'edit', args: { file_path: 'c.txt', old_string: '1', new_string: '2' } }] },
    { text: 'C one.' },
  ],
  'next': [{ text: 'The next turn is done.' }],
  'later': [{ text: 'One more turn is done.' }],
}

let world: World
let rpc: SessionRpc
let a: string
let b: string
let c: string
beforeAll(async () => {
  world = await startWorld({ scenarios, files: { 'c.txt': '1\n' } })
  rpc = sessionRpc(world.home, () => world.host.url)
  ;[a, b, c] = [await rpc.create(), await rpc.create(), await rpc.create()]
  await rpc.ask(a, 'First of A. [scenario:a-t1]')
  await rpc.ask(b, 'First of B. [scenario:b-t1]')
  await rpc.ask(a, 'Second of A. [scenario:a-t2]')
  await rpc.ask(b, 'Second of B. [scenario:b-t2]')
  await rpc.ask(c, 'First of C. [scenario:c-t1]')
})
afterAll(() => world?.dispose())

const visible = (text: string) => world.page.getByText(text).filter({ visible: true })
const button = (turn: number) => world.page.getByRole('button', { name: `Roll back to before turn ${turn}`, exact: true }).filter({ visible: true })

test('two sessions in one home do not mix', async () => {
  const ofA = await rpc.turnback('preview', { sessionId: a, turn: 2 })
  expect(ofA.ok && ofA.value.rows.map(row => row.shown)).toEqual(['a/two.txt'])
  expect(await rpc.command(a, '/rollback 2')).toMatchObject({ kind: 'success' })

  expect([world.read('a/one.txt'), world.read('a/two.txt')]).toEqual(['1\n', undefined])
  expect([world.read('b/one.txt'), world.read('b/two.txt')]).toEqual(['1\n', '2\n'])
  const ofB = await rpc.turnback('timeline', { sessionId: b })
  expect(ofB.ok && ofB.value.ops).toEqual([])
  expect(ofB.ok && ofB.value.turns.map(turn => turn.state)).toEqual(['available', 'available'])
})

test('field 49: stopped without sending anything, the rollback stands after the start, on screen and for the model', async () => {
  await world.restartHost('SIGTERM')
  // A page asks for the rollbacks of a session as soon as it draws it, which may be before the host has it live.
  const early = rpc.turnback('timeline', { sessionId: a })
  await ui.openSession(world.page, /Session a-t1/)
  await visible('A one.').first().waitFor()
  expect(expectOk(await early).ops).toHaveLength(1)

  await expect.poll(() => visible('A two.').count()).toBe(0)
  await world.page.getByText('1 turn rolled back').waitFor()
  expect(world.read('a/two.txt')).toBeUndefined()
  await world.ask('Go on with A. [scenario:next]')
  const request = world.lastRequestTexts().join('\n')
  expect(request).toContain('First of A.')
  expect(request).not.toContain('Second of A.')
})

test('field 70: a turn from before the restart can be rolled back after it', async () => {
  await ui.openSession(world.page, /Session c-t1/)
  await button(1).click()
  await world.page.getByRole('dialog').getByRole('button', { name: 'Roll back 1 turn and 1 file' }).click()
  await world.page.getByRole('dialog').getByText('1 file is as it was before.').waitFor()

  expect(world.read('c.txt')).toBe('1\n')
  await world.page.keyboard.press('Escape')
  await world.page.getByText('A fresh start').waitFor()
  await ui.screenshot(world.page, 'restart-hero')
})

test('field 73: after two more turns and a restart the whole history is there, and the undo works', async () => {
  await ui.openSession(world.page, /Session a-t1/)
  await world.ask('And on with A. [scenario:later]')
  await world.page.reload()
  await ui.waitForBoot(world.page)
  await world.restartHost('SIGTERM')
  await ui.openSession(world.page, /Session a-t1/)

  for (const text of ['A one.', 'The next turn is done.', 'One more turn is done.']) await visible(text).first().waitFor()
  await expect.poll(() => visible('A two.').count()).toBe(0)
  for (const [turn, count] of [[1, 1], [2, 0], [3, 1], [4, 1]] as const) await expect.poll(() => button(turn).count()).toBe(count)
  expect(await rpc.command(a, '/rollback undo')).toMatchObject({ kind: 'success' })
  expect(world.read('a/two.txt')).toBe('2\n')
  expect(world.pageErrors).toEqual([])
})
