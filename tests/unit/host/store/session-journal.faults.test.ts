import { expect, test } from 'vitest'
import { faultyFs, type FaultPoint } from './store-faults.ts'
import { aSession, aStore, before, blob, positionOf, readAll, workspace } from './store-world.ts'

const faultsOfAppend: readonly [FaultPoint, string][] = [
  ['file.write', 'ENOSPC'],
  ['file.write', 'EIO'],
  ['file.datasync', 'EIO'],
  ['file.sync', 'EIO'],
  ['open', 'EACCES'],
  ['open', 'EROFS'],
  ['mkdir', 'EROFS'],
  ['readdir', 'EACCES'],
]

test.each(faultsOfAppend)('first append: %s fails with %s, nothing is half there, the next one works', async (point, code) => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const content = blob('bytes')
  const journal = world.open({ fs }).journal(aSession, workspace)

  faults.set(point, code)
  const failed = await journal.append({ entries: [before('a', content)], blobs: [content] })
  faults.clear()

  expect(failed).toEqual({ ok: false, failure: { code: 'store-unavailable', facts: { detail: `${code}: injected` } } })
  expect(await journal.hasBlob(content.digest)).toBe(false)
  for (const each of [journal, world.open().journal(aSession, workspace)]) expect(await readAll(each)).toMatchObject({ names: [], holes: [] })
  await positionOf(journal, { entries: [before('b', content)], blobs: [content] })
  for (const each of [journal, world.open().journal(aSession, workspace)]) {
    expect(await readAll(each)).toMatchObject({ names: ['b'], holes: [] })
    expect(await each.readBlob(content.digest)).toEqual(content.bytes)
  }
})

const faultsOfLater = faultsOfAppend.filter(([point]) => point === 'file.write' || point === 'file.datasync')

test.each(faultsOfLater)('later append: %s fails with %s, the file ends where it did, the next one works', async (point, code) => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const journal = world.open({ fs }).journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a')] })
  const bytes = await world.pack('session-1-1.pack')

  faults.set(point, code)
  const failures = [await journal.append({ entries: [before('x')], blobs: [blob('x')] }), await journal.append({ entries: [before('y')] })]
  faults.clear()

  expect(failures.map((result) => !result.ok && result.failure.code)).toEqual(['store-unavailable', 'store-unavailable'])
  expect(await world.pack('session-1-1.pack')).toEqual(bytes)
  await positionOf(journal, { entries: [before('b')] })
  for (const each of [journal, world.open().journal(aSession, workspace)]) {
    expect(await readAll(each)).toMatchObject({ names: ['a', 'b'], positions: [2, 3], holes: [] })
  }
})

test('when the torn bytes cannot be cut off, the next append goes to a new segment', async () => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const journal = world.open({ fs }).journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a')] })

  faults.set('file.write', 'ENOSPC').set('file.truncate', 'EIO')
  const failed = await journal.append({ entries: [before('x'), before('y'), before('z')], blobs: [blob('x')] })
  faults.clear()
  const inBetween = await readAll(journal)
  await positionOf(journal, { entries: [before('b')] })

  expect(failed).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
  expect(inBetween).toMatchObject({ names: ['a'], holes: [] })
  expect(await world.packs()).toEqual(['session-1-1.pack', 'session-1-2.pack'])
  expect(await readAll(journal)).toMatchObject({ names: ['a', 'b'], holes: [] })
  expect((await readAll(world.open().journal(aSession, workspace))).holes).toEqual([])
})

test('a write that takes a few bytes at a time is carried through', async () => {
  const world = await aStore()
  const { fs, bytesPerWrite } = faultyFs()
  bytesPerWrite.limit = 7
  const content = blob('some bytes to keep')

  await positionOf(world.open({ fs }).journal(aSession, workspace), { entries: [before('a', content)], blobs: [content] })

  const restarted = world.open().journal(aSession, workspace)
  expect((await readAll(restarted)).names).toEqual(['a'])
  expect(await restarted.readBlob(content.digest)).toEqual(content.bytes)
})

test('a write that takes nothing ends as a failure, not as an endless loop', async () => {
  const world = await aStore()
  const { fs, bytesPerWrite } = faultyFs()
  bytesPerWrite.limit = 0

  const failed = await world.open({ fs }).journal(aSession, workspace).append({ entries: [before('a')] })

  expect(failed).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
})

test('fifty appends to a full disk leave no bytes behind', async () => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const journal = world.open({ fs }).journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a')] })
  const size = (await world.pack('session-1-1.pack')).length

  faults.set('file.write', 'ENOSPC')
  for (let n = 0; n < 50; n += 1) await journal.append({ entries: [before('x')], blobs: [blob(Buffer.alloc(10_000))] })

  expect(await world.packs()).toEqual(['session-1-1.pack'])
  expect((await world.pack('session-1-1.pack')).length).toBe(size)
})

test('a segment that cannot be read is a hole until it can be read again', async () => {
  const world = await aStore()
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('a')] })
  const { fs, faults } = faultyFs()
  const journal = world.open({ fs }).journal(aSession, workspace)

  faults.set('file.read', 'EIO')
  const unreadable = await readAll(journal)
  faults.clear()

  expect(unreadable).toMatchObject({ names: [], after: [0], holes: ['segment 1 cannot be read: EIO'] })
  expect(await readAll(journal)).toMatchObject({ names: ['a'], holes: [] })
})

test('a store folder that cannot be listed is a failure of reading, never an empty session', async () => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const store = world.open({ fs })
  faults.set('readdir', 'EACCES')

  expect(await store.journal(aSession, workspace).read()).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
  expect(await store.journal(aSession, workspace).readBlob(blob('x').digest)).toBeUndefined()
  expect(await store.sessions()).toEqual([])
  expect(await store.openOps()).toEqual([])
})

test('after close an append is refused', async () => {
  const world = await aStore()
  const store = world.open()
  const journal = store.journal(aSession, workspace)
  const underWay = journal.append({ entries: [before('a')] })

  await store.close()

  expect(await underWay).toMatchObject({ ok: true })
  expect(await journal.append({ entries: [before('b')] })).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
})
