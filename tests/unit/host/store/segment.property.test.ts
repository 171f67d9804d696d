import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { emptyView, readSegment, type SegmentView } from '../../../../host/store/segment.ts'
import { nodeFs } from '../../../../host/store/store-fs.ts'
import { aSession, aStore, before, blob, positionOf, readAll, workspace } from './store-world.ts'

const contents = ['one', 'two TBK1 two', ''].map(blob)

/** A small segment of several batches, and what is in it. */
async function smallSegment(): Promise<{ world: Awaited<ReturnType<typeof aStore>>; path: string; whole: Buffer }> {
  const world = await aStore()
  const journal = world.open().journal(aSession, workspace)
  for (const content of contents) await positionOf(journal, { entries: [before(`f${contents.indexOf(content)}`, content)], blobs: [content] })
  return { world, path: join(world.root, 'packs', 'session-1-1.pack'), whole: await world.pack('session-1-1.pack') }
}

async function viewOf(path: string, bytes: Buffer): Promise<SegmentView> {
  await writeFile(path, bytes)
  const view = emptyView(1)
  await readSegment(nodeFs, path, bytes.length, aSession, view)
  return view
}

test('a file cut at any byte loads, and gives a prefix of the records without a hole', async () => {
  const { path, whole } = await smallSegment()
  const all = await viewOf(path, whole)
  let records = 0

  for (let length = 0; length <= whole.length; length += 1) {
    const view = await viewOf(path, whole.subarray(0, length))

    expect(view.holes).toEqual([])
    expect(view.end.number).toBeGreaterThanOrEqual(records)
    expect(view.entries).toEqual(all.entries.slice(0, view.entries.length))
    expect(view.blobs).toEqual(all.blobs.slice(0, view.blobs.length))
    // Blobs stand before the entry that names them.
    expect(view.blobs.length).toBeGreaterThanOrEqual(view.entries.length)
    records = view.end.number
  }
  expect(records).toBe(7)
})

test('a file cut at any byte can be written behind by the next process', async () => {
  const { world, path, whole } = await smallSegment()

  await fc.assert(fc.asyncProperty(fc.nat(whole.length), async (length) => {
    await writeFile(path, whole.subarray(0, length))
    await rm(join(world.root, 'packs', 'session-1-2.pack'), { force: true })
    const store = world.open()
    await positionOf(store.journal(aSession, workspace), { entries: [before('next')] })
    await store.close()

    const read = await readAll(world.open().journal(aSession, workspace))

    expect(read.holes).toEqual([])
    expect(read.names).toEqual([...['f0', 'f1', 'f2'].slice(0, read.names.length - 1), 'next'])
  }), { numRuns: 30 })
})

test('bytes flipped anywhere never give a wrong entry or wrong bytes, and lost records in the middle are a hole', async () => {
  const { world, path, whole } = await smallSegment()
  const all = await viewOf(path, whole)
  const flip = fc.record({ at: fc.nat(whole.length - 1), by: fc.integer({ min: 1, max: 255 }) })

  await fc.assert(fc.asyncProperty(fc.array(flip, { minLength: 1, maxLength: 3 }), async (flips) => {
    const bytes = Buffer.from(whole)
    for (const { at, by } of flips) bytes[at]! ^= by
    const view = await viewOf(path, bytes)
    const journal = world.open().journal(aSession, workspace)

    for (const entry of view.entries) expect(all.entries).toContainEqual(entry)
    for (const { digest, bytes: content } of contents) {
      const read = await journal.readBlob(digest)
      if (read) expect(read).toEqual(content)
    }
    const seen = new Set([...view.entries.map(({ number }) => number), ...view.blobs.map(({ place }) => place.number), ...(view.header ? [0] : [])])
    const lostBeforeEnd = Array.from({ length: view.end.number }, (_, number) => number).filter((number) => !seen.has(number))
    expect(view.holes.length > 0).toBe(lostBeforeEnd.length > 0)
  }), { numRuns: 300 })
})
