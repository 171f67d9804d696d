import { expect, it } from 'vitest'
import { aWorld, edits, runs, type Host } from '../support/in-process-host.ts'

const names = Array.from({ length: 200 }, (_, at) => `f${at}.txt`)
const files = Object.fromEntries(names.map(name => [name, 'before\n']))
const progressOf = async (host: Host, sessionId: string) => (await host.ask('progress', { sessionId })).value as { stage?: string; done: number; total: number }

it('a rollback that is stopped before it writes changes nothing, in files and conversation', async () => {
  const world = aWorld(files)
  const host = await world.start()
  const chat = await host.open()
  await chat.turn('all', runs('for f in f*.txt; do echo after > $f; done'))
  const [tree, surface] = [world.tree(), chat.surface()]

  const done = chat.command('/rollback 1')
  while ((await progressOf(host, chat.id)).stage === undefined) await new Promise(setImmediate)
  expect((await host.ask('stop', { sessionId: chat.id })).value).toEqual({ isStopping: true })

  expect(await done).toMatchObject({ kind: 'error', text: expect.stringContaining('stopped before anything was changed') })
  expect([world.tree(), chat.surface()]).toEqual([tree, surface])
  expect(await progressOf(host, chat.id)).toEqual({ done: 0, total: 0 })
  // And nothing of it stands in the way of the next.
  await chat.command('/rollback 1')
  expect(world.read('f7.txt')).toBe('before\n')
})

it('says how many files are through, and once it writes it goes on to its end', async () => {
  const world = aWorld({ ...files, 'a.txt': '1' })
  const host = await world.start()
  const chat = await host.open()
  await chat.turn('all', ...edits('a.txt', '1', '2'), runs('for f in f*.txt; do echo after > $f; done'))
  const seen: Promise<unknown>[] = []
  let steps = 0
  host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => {
    if (phase === 'file' && steps++ % 40 === 0) seen.push(progressOf(host, chat.id), host.ask('stop', { sessionId: chat.id }))
  })

  await chat.command('/rollback 1')

  const answers = await Promise.all(seen)
  expect(answers).toContainEqual({ stage: 'writing', done: expect.any(Number), total: 201 })
  expect(answers.some(answer => (answer as { done?: number }).done! > 100)).toBe(true)
  expect(JSON.stringify(answers)).not.toContain('"isStopping":true')
  expect([world.read('a.txt'), world.read('f199.txt')]).toEqual(['1', 'before\n'])
})
