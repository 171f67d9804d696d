import { readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { aWorld, edits, writes, type World } from '../support/in-process-host.ts'

const MiB = 1024 * 1024
const packs = (world: World): string => join(world.home, 'data', 'turnback', 'v1', 'packs')
const storeBytes = (world: World): number => readdirSync(packs(world)).reduce((sum, file) => sum + statSync(join(packs(world), file)).size, 0)
const big = (letter: string): string => Array.from({ length: 40_000 }, (_, at) => `${letter}${at}`).join('\n').slice(0, 240_000)

it('a session that fills the store keeps working, stays below the limit, and names what it can take back no more', async () => {
  const world = aWorld({ 'a.txt': '0' })
  const chat = await (await world.start({ settings: { maxStoreBytes: MiB } })).open()
  for (let turn = 1; turn <= 8; turn += 1) {
    await chat.turn(`turn ${turn}`, writes(`f${turn}.txt`, big(String(turn))))
    expect(storeBytes(world)).toBeLessThanOrEqual(MiB)
  }
  expect(world.read('f8.txt')).toBe(big('8'))

  expect((await chat.command('/rollback preview 1')).text).toContain('Some records of these turns are missing or damaged')
  await chat.command('/rollback 8')

  expect(world.tree()).not.toHaveProperty('f8.txt')
  expect(world.tree()).toHaveProperty('f1.txt')
})

it('a store that is full of what must stay refuses to record, says so once, and the write is named as not covered', async () => {
  const world = aWorld({ 'a.txt': '1' })
  const host = await world.start({ settings: { maxStoreBytes: MiB }, complains: true })
  const chat = await host.open()
  await chat.turn('first', ...edits('a.txt', '1', '2'))
  await chat.turn('second', writes('huge.txt', big('x').repeat(6)))
  await chat.turn('third', ...edits('a.txt', '2', '3'))

  expect(storeBytes(world)).toBeLessThanOrEqual(MiB)
  expect((await host.ask('hello', {})).value.problems.filter(({ contract }: { contract: string }) => contract === 'store').length).toBeLessThanOrEqual(1)
  expect((await chat.command('/rollback preview 2')).text).toMatch(/huge\.txt/)
  await chat.command('/rollback 3')
  expect(world.read('a.txt')).toBe('2')
  expect(world.read('huge.txt')).toBe(big('x').repeat(6))
})

it('sessions that nobody used for longer than the age limit are forgotten at the start of a host', async () => {
  const world = aWorld({ 'a.txt': '1' })
  const first = await world.start()
  await (await first.open('aged')).turn('first', ...edits('a.txt', '1', '2'))
  await first.stop()
  for (const file of readdirSync(packs(world))) utimesSync(join(packs(world), file), 1, 1)

  const { openStore } = await import('../../host/store/store.ts')
  const store = openStore({ root: join(world.home, 'data', 'turnback', 'v1') })
  await store.tidy()
  await store.close()

  const chat = await (await world.start()).open('aged')
  expect((await chat.command('/rollback preview 1')).text).toContain('1 call was not recorded')
})
