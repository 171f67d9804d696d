import { readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openStore } from '../../host/store/store.ts'
import { aWorld, edits, runs, writes, type Chat, type World } from '../support/in-process-host.ts'

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
  await chat.turn('more', ...[1, 2, 3].map(at => writes(`huge${at}.txt`, big('y').repeat(6))))

  expect(host.complaints.filter(line => line.includes('store'))).toEqual([expect.stringContaining('maxStoreBytes')])
  expect(storeBytes(world)).toBeLessThanOrEqual(MiB)
  // `more` ended with one that did not fit; the page shows it.
  expect((await host.ask('hello', {})).value.problems).toMatchObject([{ contract: 'store', detail: expect.stringContaining('maxStoreBytes') }])
  expect((await chat.command('/rollback preview 2')).text).toMatch(/huge\.txt/)
  await chat.command('/rollback 3')
  expect(world.read('a.txt')).toBe('2')
  expect(world.read('huge.txt')).toBe(big('x').repeat(6))
})

/** A session with a first turn whose records the age limit took, opened again in a new host. */
async function anAgedSession(world: World): Promise<Chat> {
  const first = await world.start()
  await (await first.open('aged')).turn('first', ...edits('a.txt', '1', '2'))
  await first.stop()
  for (const file of readdirSync(packs(world))) utimesSync(join(packs(world), file), 1, 1)
  const store = openStore({ root: join(world.home, 'data', 'turnback', 'v1') })
  await store.tidy()
  await store.close()
  return (await world.start()).open('aged')
}

it('a session over the age limit says that its records are gone, not that there is nothing to do', async () => {
  const chat = await anAgedSession(aWorld({ 'a.txt': '1' }))

  const { text } = await chat.command('/rollback preview 1')

  expect(text).toContain('1 call was not recorded')
  expect(text).toContain('Some records of these turns are missing or damaged')
})

it('what it records from then on never stands in for what is gone, and its next turn is rolled back as ever', async () => {
  const world = aWorld({ 'a.txt': '1' })
  const chat = await anAgedSession(world)
  await chat.turn('second', ...edits('a.txt', '2', '3'))

  // The state before turn 2 is not the one before turn 1: the file stays.
  expect((await chat.command('/rollback preview 1')).text).toContain('Not restorable (records are missing): a.txt')
  const { text } = await chat.command('/rollback preview 2')
  expect(text).not.toContain('missing')
  await chat.command('/rollback 2')
  expect(world.read('a.txt')).toBe('2')
  await chat.command('/rollback 1')
  expect(world.read('a.txt')).toBe('2')
})

it('a folder of a name that the settings leave out is not looked at around a command in a plain folder', async () => {
  const world = aWorld({ 'a.txt': '1', 'data/b.txt': '1' })
  const chat = await (await world.start({ settings: { ignoreFolders: ['data'] } })).open()
  await chat.turn('first', runs('echo 2 | tee a.txt data/b.txt'))

  await chat.command('/rollback 1')

  expect(world.tree()).toMatchObject({ 'a.txt': '1', 'data/b.txt': '2\n' })
})

it('records that were made smaller give every byte back, also to a host that had read them before', async () => {
  const world = aWorld({ 'a.txt': '0' })
  // Equal but for one line, so that the versions are kept as differences.
  const version = (turn: number): string => `${big('line ')}\nversion ${turn}\n${big('more ')}`
  const first = await world.start()
  const chat = await first.open('long')
  for (let turn = 1; turn <= 6; turn += 1) await chat.turn(`turn ${turn}`, writes('v.txt', version(turn)))
  await first.stop()
  const second = await (await world.start()).open('long')
  await second.turn('turn 7', writes('other.txt', 'o'))
  const preview = await second.command('/rollback preview 3')
  for (const file of readdirSync(packs(world))) utimesSync(join(packs(world), file), 1, 1)
  const bytesBefore = storeBytes(world)
  const store = openStore({ root: join(world.home, 'data', 'turnback', 'v1') })
  expect(await store.reencode()).toMatchObject({ segments: 1 })
  await store.close()
  expect(storeBytes(world)).toBeLessThan(bytesBefore / 2)

  expect(await second.command('/rollback preview 3')).toMatchObject({ text: preview.text })
  await second.command('/rollback 3')
  expect(world.read('v.txt')).toBe(version(2))
  await second.command('/rollback undo')
  expect(world.read('v.txt')).toBe(version(6))
})
