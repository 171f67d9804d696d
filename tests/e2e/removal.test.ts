import { afterAll, beforeAll, expect, test } from 'vitest'
import { packPlugin, addPlugin, runDsh } from '../support/dsh-host.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import { expectOk, sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import * as ui from '../support/ui.ts'

/** Field 72: without the plugin the host reads what the plugin left, and with it again everything is as before. */

const write = (name: string, content: string) => ({ name: 'write', args: { file_path: name, content } })
const runs = (command: string) => ({ name: 'bash', args: { command, description: 'Work in the shell' } })
const scenarios: Record<string, Step[]> = {
  t1: [{ tools: [write('one.txt', '1\n')] }, { text: 'Turn one is done.' }],
  t2: [{ tools: [write('two.txt', '2\n'), runs('true')] }, { text: 'Turn two is done.' }],
  without: [
    { tools: [write('without.txt', 'w\n'), runs('echo s > shell.txt')] }, { text: 'Without the plugin.' },
  ],
}

let world: World
let rpc: SessionRpc
let sessionId: string
beforeAll(async () => {
  world = await startWorld({ scenarios })
  rpc = sessionRpc(world.home, () => world.host.url)
  sessionId = await rpc.create()
  await rpc.ask(sessionId, 'First task. [scenario:t1]')
  await rpc.ask(sessionId, 'Second task. [scenario:t2]')
  await rpc.command(sessionId, '/rollback 2')
})
afterAll(() => world?.dispose())

const visible = (text: string) => world.page.getByText(text).filter({ visible: true })

test('after removal the session opens, shows everything, and the model still does not read what was withdrawn', async () => {
  await world.host.stop('SIGTERM')
  await runDsh(world.home, ['plugin', '--profile', 'web', 'remove', 'dsh-turnback'])
  await world.restartHost('SIGTERM')
  await ui.openSession(world.page, /Session t1/)

  await visible('Turn one is done.').first().waitFor()
  await visible('Turn two is done.').first().waitFor()
  expect(await world.page.getByRole('button', { name: /Roll back/ }).count()).toBe(0)
  expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
  await world.ask('Go on without it. [scenario:without]')
  await visible('Without the plugin.').first().waitFor()
  const request = world.lastRequestTexts().join('\n')
  expect(request).toContain('First task.')
  expect(request).not.toContain('Second task.')
  expect(world.host.log()).not.toContain('turnback')
  await ui.screenshot(world.page, 'removal-without')
})

test('installed again, the rows are hidden again and the records are there', async () => {
  await world.host.stop('SIGTERM')
  await addPlugin(world.home, await packPlugin())
  await world.restartHost('SIGTERM')
  await ui.openSession(world.page, /Session t1/)

  await visible('Turn one is done.').first().waitFor()
  await world.page.getByText('1 turn rolled back').waitFor()
  await expect.poll(() => visible('Turn two is done.').count()).toBe(0)
  const { turns, ops } = expectOk(await rpc.turnback('timeline', { sessionId }))
  expect(turns.map(turn => [turn.turn, turn.state])).toEqual([[3, 'available'], [2, 'rolled-back'], [1, 'available']])
  expect(turns.map(turn => [turn.files, turn.commands])).toEqual([[0, 1], [0, 0], [1, 0]])
  expect(ops.map(op => op.outcomes.map(({ result }) => result))).toEqual([['restored']])
  await ui.screenshot(world.page, 'removal-again')
})

test('field 79: what happened without the plugin is named as not covered, and the rest goes back', async () => {
  const preview = expectOk(await rpc.turnback('preview', { sessionId, turn: 3 }))
  expect(preview.gaps).toEqual([
    { reason: 'no-record', count: 1, names: ['without.txt'] },
    { reason: 'command', count: 1, names: ['echo s > shell.txt'] },
  ])
  const answer = await rpc.command(sessionId, '/rollback 1')

  expect(answer).toMatchObject({ kind: 'success' })
  expect(answer.text).toContain('1 call was not recorded')
  expect(answer.text).toContain('1 command ran whose changes are not covered: echo s > shell.txt')
  expect(['one.txt', 'without.txt', 'shell.txt'].map(name => world.read(name))).toEqual([undefined, 'w\n', 's\n'])
  expect(world.pageErrors).toEqual([])
})
