import { expect, it } from 'vitest'
import { MODEL_HINT } from '../../host/dsh/model-hint.ts'
import { aWorld, edits, type Host } from '../support/in-process-host.ts'

/** How often each request so far holds the hint, wherever in it. */
const hints = (host: Host): readonly number[] => host.model.requests.map(request => JSON.stringify(request).split(MODEL_HINT).length - 1)

it('the model is asked once, in the system prompt, to change files with the file tools', async () => {
  const world = aWorld({ 'a.txt': '1' })
  const host = await world.start()
  const chat = await host.open()
  await chat.turn('first', ...edits('a.txt', '1', '2'))
  await chat.command('/rollback 1')
  await chat.turn('second', 'two')

  expect(hints(host)).toEqual([1, 1, 1, 1])
  expect(host.model.requests.every(({ system }) => system.includes(MODEL_HINT))).toBe(true)
  // A prompt that changes costs the model's cache.
  expect(new Set(host.model.requests.map(({ system }) => system)).size).toBe(1)
})

it('is one line, names no variable and holds for every session and subagent', async () => {
  const world = aWorld()
  const host = await world.start()
  const chat = await host.open()
  await chat.turn('first', { tools: [['subagent', { description: 'd', prompt: 'p' }]] }, 'child done', 'done')
  await (await host.open('s2')).turn('other', 'two')

  expect(hints(host)).toEqual([1, 1, 1, 1])
  expect(MODEL_HINT).not.toMatch(/[\n{}]/)
})

it('is not asked with the setting off, nor once the plugin is gone', async () => {
  const world = aWorld()
  const off = await world.start({ settings: { modelHint: false } })
  await (await off.open()).turn('first', 'one')
  expect(hints(off)).toEqual([0])
  await off.stop()

  const host = await world.start({ plugin: false })
  const installed = await host.install()
  const chat = await host.open('s2')
  await chat.turn('first', 'one')
  await installed.dispose()
  await chat.turn('second', 'two')
  await host.install()
  await chat.turn('third', 'three')

  expect(hints(host)).toEqual([1, 0, 1])
})

it('leaves a session that opens and goes on without the plugin', async () => {
  const world = aWorld({ 'a.txt': '1' })
  const host = await world.start()
  await (await host.open()).turn('first', ...edits('a.txt', '1', '2'))
  await host.stop()

  const without = await world.start({ plugin: false })
  const chat = await without.open()
  await chat.turn('second', 'two')

  expect(hints(without)).toEqual([0])
  expect(chat.surface()).toContain('user: first')
})

it('a section of that name by somebody else is told, and fails nothing', async () => {
  const world = aWorld({ 'a.txt': '1' })
  const host = await world.start({
    complains: true,
    before: (ctx) => { ctx.get('systemPrompt').section({ name: 'turnback:file-tools', order: 1, text: 'Somebody else.' }) },
  })
  const chat = await host.open()
  await chat.turn('first', ...edits('a.txt', '1', '2'))

  expect(hints(host)).toEqual([0, 0, 0])
  expect(host.complaints.filter(line => line.includes('model hint'))).toHaveLength(1)
  await chat.command('/rollback 1')
  expect(world.read('a.txt')).toBe('1')
})
