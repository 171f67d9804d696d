import { appendFile, chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { sessionId } from '../../../../src/ids.ts'
import { rawBlob, zstdBlob, zstdSupport } from '../../../../host/store/blob-encoding.ts'
import { scanFrames, scanStart } from '../../../../host/store/frame.ts'
import { aSession, aStore, before, blob, frameOf, positionOf, readAll, workspace } from './store-world.ts'

test('gives back entries and bytes, in this run and after a restart', async () => {
  const world = await aStore()
  const old = blob('old\r\n\0\xff')
  const journal = world.open().journal(aSession, workspace)

  await positionOf(journal, { entries: [before('a', old)], blobs: [old] })
  await positionOf(journal, { entries: [before('b'), before('c')] })

  const restarted = world.open().journal(aSession, workspace)
  for (const each of [journal, restarted]) {
    expect(await each.read()).toEqual({
      ok: true,
      // record 1 is the segment header, 2 the blob
      value: { entries: [{ position: 3, entry: before('a', old) }, { position: 4, entry: before('b') }, { position: 5, entry: before('c') }], holes: [], position: 5 },
    })
    expect(await each.readBlob(old.digest)).toEqual(old.bytes)
    expect(await each.hasBlob(old.digest)).toBe(true)
    expect(await each.hasBlob(blob('never').digest)).toBe(false)
    expect(await each.readBlob(blob('never').digest)).toBeUndefined()
  }
})

test('a session nobody wrote to is empty, and reading it makes no folder', async () => {
  const world = await aStore()

  expect(await readAll(world.open().journal(aSession, workspace))).toEqual({ names: [], positions: [], holes: [], after: [], position: 0 })

  await expect(stat(world.root)).rejects.toThrow('ENOENT')
})

test('stores equal bytes once: in one batch, in a later one, after a restart', async () => {
  const world = await aStore()
  const big = blob(Buffer.alloc(100_000, 'x'))
  const journal = world.open().journal(aSession, workspace)

  await positionOf(journal, { entries: [before('a', big)], blobs: [big, big] })
  await positionOf(journal, { entries: [before('b', big)], blobs: [big] })
  const one = (await world.pack('session-1-1.pack')).length
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('c', big)], blobs: [big] })

  expect(one).toBeLessThan(102_000)
  expect((await world.pack('session-1-2.pack')).length).toBeLessThan(2_000)
})

test('keeps the order of calls that were not waited for', async () => {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  const names = Array.from({ length: 20 }, (_, index) => `f${index}`)

  const positions = await Promise.all(names.map((name) => positionOf(journal, { entries: [before(name)], blobs: [blob(name)] })))

  expect(positions).toEqual(names.map((_, index) => 3 + 2 * index))
  expect((await readAll(journal)).names).toEqual(names)
  expect((await readAll(world.open().journal(aSession, workspace))).names).toEqual(names)
})

test('two sessions in one home do not mix, also when one id begins with the other', async () => {
  const world = await aStore()
  const store = world.open()
  const ids = ['session-1', 'session-1-1', 'Session-1'].map(sessionId)

  for (const id of ids) await positionOf(store.journal(id, workspace), { entries: [before(`of-${id}`)], blobs: [blob(id)] })

  const restarted = world.open()
  for (const id of ids) {
    expect((await readAll(restarted.journal(id, workspace))).names).toEqual([`of-${id}`])
    expect(await Promise.all(ids.map((other) => restarted.journal(id, workspace).hasBlob(blob(other).digest)))).toEqual(ids.map((other) => other === id))
  }
  expect([...(await restarted.sessions())].sort()).toEqual([...ids].sort())
})

test('does not read a segment of another session that was put under its name', async () => {
  const world = await aStore()
  await positionOf(world.open().journal(sessionId('other'), workspace), { entries: [before('secret')] })
  await writeFile(join(world.root, 'packs', 'session-1-1.pack'), await world.pack('other-1.pack'))

  const read = await readAll(world.open().journal(aSession, workspace))

  expect(read.names).toEqual([])
  expect(read.holes).toEqual(['record 0 of segment 1 does not read'])
})

test('each start makes its own segment and leaves the earlier one as it is', async () => {
  const world = await aStore()
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('a')] })
  const first = await world.pack('session-1-1.pack')

  await positionOf(world.open().journal(aSession, workspace), { entries: [before('b')] })

  expect(await world.packs()).toEqual(['session-1-1.pack', 'session-1-2.pack'])
  expect(await world.pack('session-1-1.pack')).toEqual(first)
  expect(await readAll(world.open().journal(aSession, workspace))).toMatchObject({ names: ['a', 'b'], positions: [2, 4], holes: [] })
})

test('goes on in a new segment above the size limit', async () => {
  const world = await aStore()
  const journal = world.open({ maxSegmentBytes: 1_000 }).journal(aSession, workspace)

  for (const name of ['a', 'b', 'c', 'd']) await positionOf(journal, { entries: [before(name)], blobs: [blob(name.repeat(600))] })

  expect((await world.packs()).length).toBe(4)
  expect(await readAll(journal)).toMatchObject({ names: ['a', 'b', 'c', 'd'], holes: [], position: 12 })
  expect(await readAll(world.open().journal(aSession, workspace))).toMatchObject({ names: ['a', 'b', 'c', 'd'], holes: [], position: 12 })
})

test('sees what another process adds, and both agree on the order', async () => {
  const world = await aStore()
  const one = world.open().journal(aSession, workspace)
  const two = world.open().journal(aSession, workspace)
  const theirs = blob('theirs')

  await positionOf(one, { entries: [before('a')] })
  await positionOf(two, { entries: [before('b', theirs)], blobs: [theirs] })
  await positionOf(one, { entries: [before('c')] })
  await positionOf(two, { entries: [before('d')] })

  expect(await readAll(one)).toMatchObject({ names: ['a', 'b', 'c', 'd'], holes: [] })
  expect(await two.read()).toEqual(await one.read())
  expect(await one.readBlob(theirs.digest)).toEqual(theirs.bytes)
})

test('two processes that start at once do not take one segment', async () => {
  const world = await aStore()
  const journals = Array.from({ length: 6 }, () => world.open().journal(aSession, workspace))

  await Promise.all(journals.map((journal, index) => positionOf(journal, { entries: [before(`p${index}`)] })))

  expect((await world.packs()).length).toBe(6)
  const read = await readAll(world.open().journal(aSession, workspace))
  expect([...read.names].sort()).toEqual(['p0', 'p1', 'p2', 'p3', 'p4', 'p5'])
  expect(read.holes).toEqual([])
})

test('ends at a torn tail, and a new segment behind it is no hole', async () => {
  const world = await aStore()
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('a')] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  await appendFile(path, (await readFile(path)).subarray(0, 50))

  const journal = world.open().journal(aSession, workspace)
  await positionOf(journal, { entries: [before('b')] })

  expect(await readAll(journal)).toMatchObject({ names: ['a', 'b'], positions: [2, 4], holes: [] })
  expect(await readAll(world.open().journal(aSession, workspace))).toMatchObject({ names: ['a', 'b'], positions: [2, 4], holes: [] })
})

test('a damaged record in the middle is a hole at its place', async () => {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  for (const name of ['a', 'b', 'c']) await positionOf(journal, { entries: [before(name)] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const bytes = await readFile(path)
  bytes[bytes.indexOf('b-b')] = 0x58
  await writeFile(path, bytes)

  const read = await readAll(world.open().journal(aSession, workspace))

  expect(read).toMatchObject({ names: ['a', 'c'], positions: [2, 4], after: [2], position: 4 })
  expect(read.holes).toEqual(['records 2 to 2 of segment 1 are damaged or missing'])
})

test('a lost segment is a hole, and so is a segment shorter than its successor knew it', async () => {
  const world = await aStore()
  for (const name of ['a', 'b', 'c']) await positionOf(world.open().journal(aSession, workspace), { entries: [before(name), before(`${name}2`)] })
  const path = (n: number): string => join(world.root, 'packs', `session-1-${n}.pack`)
  const first = await readFile(path(1))

  await writeFile(path(1), first.subarray(0, first.length - 1))
  const shorter = await readAll(world.open().journal(aSession, workspace))
  await writeFile(path(1), first)
  await rm(path(2))
  const lost = await readAll(world.open().journal(aSession, workspace))

  expect(shorter).toMatchObject({ names: ['a', 'b', 'b2', 'c', 'c2'], positions: [2, 5, 6, 8, 9], after: [2] })
  expect(shorter.holes).toEqual(['segment 1 ends after 2 records, it had 3'])
  expect(lost).toMatchObject({ names: ['a', 'a2', 'c', 'c2'], positions: [2, 3, 8, 9], after: [3], holes: ['segment 2 is missing'] })
})

test('an entry that a later version wrote is a hole, not a crash', async () => {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a')] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const { end } = scanFrames(await readFile(path), scanStart)
  await appendFile(path, frameOf(end.nonce!, 2, 'journal', 'raw', [Buffer.from('{"kind":"from-the-future"}')]))
  await appendFile(path, frameOf(end.nonce!, 3, 'journal', 'raw', [Buffer.from(JSON.stringify(before('b')))]))

  const read = await readAll(world.open().journal(aSession, workspace))

  expect(read).toMatchObject({ names: ['a', 'b'], after: [2], holes: ['record 2 of segment 1 does not read'] })
})

test('refuses an entry that would not read back', async () => {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  const wrong = { ...before('a'), path: 'relative' } as JournalEntry

  const appended = await journal.append({ entries: [before('ok'), wrong] })

  expect(appended).toMatchObject({ ok: false, failure: { code: 'internal' } })
  expect((await readAll(journal)).names).toEqual([])
})

test('does not take frames for records that lie inside a saved file', async () => {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a')] })
  await positionOf(world.open().journal(sessionId('other'), workspace), { entries: [before('x'), before('y'), before('z'), before('secret')] })
  const copies = blob(Buffer.concat([await world.pack('session-1-1.pack'), await world.pack('other-1.pack')]))
  await positionOf(journal, { entries: [before('copy', copies)], blobs: [copies] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const bytes = await readFile(path)
  bytes[bytes.indexOf(copies.digest, 0, 'hex') - 1]! ^= 1 // the frame around the copies is damaged: the search goes through them
  await writeFile(path, bytes)

  const damaged = world.open().journal(aSession, workspace)

  expect(await readAll(damaged)).toMatchObject({ names: ['a', 'copy'], positions: [2, 4], after: [2] })
  expect(await damaged.readBlob(copies.digest)).toBeUndefined()
})

test('decodes zstd and chains of deltas, and checks the digest', async () => {
  expect(zstdSupport()).toBe('dictionary')
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  const versions = [0, 1, 2].map((n) => blob(`${'line of text\n'.repeat(500)}${n}`))
  const [first, second, third] = versions as [typeof versions[0], typeof versions[0], typeof versions[0]]
  const wrong = blob('wrong')
  await positionOf(journal, { entries: [before('a', first)] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const nonce = scanFrames(await readFile(path), scanStart).end.nonce!
  const frames = [
    frameOf(nonce, 2, 'blob', 'zstd', await zstdBlob(first.digest, first.bytes)),
    frameOf(nonce, 3, 'blob', 'zstd-delta', await zstdBlob(second.digest, second.bytes, first)),
    frameOf(nonce, 4, 'blob', 'zstd-delta', await zstdBlob(third.digest, third.bytes, second)),
    frameOf(nonce, 5, 'blob', 'zstd', rawBlob(wrong.digest, zstdCompressSync(Buffer.from('other bytes')))),
    frameOf(nonce, 6, 'blob', 'zstd', rawBlob(blob('not zstd').digest, Buffer.from('not zstd'))),
    frameOf(nonce, 7, 'blob', 'zstd-delta', await zstdBlob(blob('loop').digest, Buffer.from('loop'), { ...first, digest: blob('loop').digest })),
  ]
  expect(frames[2]!.length).toBeLessThan(200)
  await appendFile(path, Buffer.concat(frames))

  const restarted = world.open().journal(aSession, workspace)

  for (const version of versions) expect(await restarted.readBlob(version.digest)).toEqual(version.bytes)
  for (const bad of [wrong, blob('not zstd'), blob('loop')]) expect(await restarted.readBlob(bad.digest)).toBeUndefined()
})

test('bytes that went bad on disk are not given out, and are stored again by the next append', async () => {
  const world = await aStore()
  const content = blob('precious')
  const journal = world.open().journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a', content)], blobs: [content] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const bytes = await readFile(path)
  bytes[bytes.indexOf('precious')]! ^= 1
  await writeFile(path, bytes)

  expect(await journal.readBlob(content.digest)).toBeUndefined()
  await positionOf(journal, { entries: [before('a', content)], blobs: [content] })

  expect(await journal.readBlob(content.digest)).toEqual(content.bytes)
})

test('when the store folder is removed under it, the next append is not lost', async () => {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  const content = blob('bytes')
  await positionOf(journal, { entries: [before('a', content)], blobs: [content] })

  await rm(world.root, { recursive: true })
  await positionOf(journal, { entries: [before('b', content)], blobs: [content] })

  const restarted = world.open().journal(aSession, workspace)
  expect((await readAll(restarted)).names).toEqual(['b'])
  expect(await restarted.readBlob(content.digest)).toEqual(content.bytes)
  expect((await readAll(journal)).names).toEqual(['b'])
})

test('folders are 0700 and files 0600, whatever the umask', async () => {
  const world = await aStore()
  const old = process.umask(0)
  try {
    const store = world.open()
    await positionOf(store.journal(aSession, workspace), { entries: [before('a')] })
    await store.lock(aSession)
    await store.markOpenOp(aSession, 'op000001' as never)
  } finally {
    process.umask(old)
  }
  const mode = async (...path: string[]): Promise<string> => ((await stat(join(world.root, ...path))).mode & 0o7777).toString(8)

  expect(await Promise.all([mode(), mode('packs'), mode('ops'), mode('locks')])).toEqual(['700', '700', '700', '700'])
  expect(await Promise.all([mode('packs', 'session-1-1.pack'), mode('locks', 'session-1.lock'), mode('ops', 'session-1.op000001.json')])).toEqual(['600', '600', '600'])
})

test('files in the folder that are no segments are left alone', async () => {
  const world = await aStore()
  await mkdir(join(world.root, 'packs'), { recursive: true })
  for (const name of ['notes.txt', 'session-1-01.pack', 'session-1-x.pack', 'session-1-1.pack.bak']) await writeFile(join(world.root, 'packs', name), 'x')
  await chmod(join(world.root, 'packs', 'notes.txt'), 0o644)

  const journal = world.open().journal(aSession, workspace)
  await positionOf(journal, { entries: [before('a')] })

  expect(await readAll(journal)).toMatchObject({ names: ['a'], holes: [] })
  expect((await world.packs()).length).toBe(5)
})
