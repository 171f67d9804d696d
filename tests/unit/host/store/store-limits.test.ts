import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sessionId } from '../../../../src/ids.ts'
import { nodeFs, type StoreFs } from '../../../../host/store/store-fs.ts'
import { errno } from './store-faults.ts'
import { aStore, before, blob, positionOf, readAll, type Blob } from './store-world.ts'

const MiB = 1024 * 1024
const DAY_MS = 24 * 60 * 60_000
type World = Awaited<ReturnType<typeof aStore>>

const files = (root: string): Record<string, number> =>
  !existsSync(join(root, 'packs')) ? {} : Object.fromEntries(readdirSync(join(root, 'packs')).map(file => [file, statSync(join(root, 'packs', file)).size]))
const bytesIn = (root: string): number => Object.values(files(root)).reduce((sum, bytes) => sum + bytes, 0)
const segmentsOf = (root: string, session: string): string[] => Object.keys(files(root)).filter(file => file.startsWith(`${session}-`) && file.endsWith('.pack')).toSorted()
/** Bytes that nothing packs. */
const noise = (seed: number, length: number): Uint8Array => createHash('shake256', { outputLength: length }).update(String(seed)).digest()
const limits = (maxBytes: number) => () => ({ maxBytes, maxDays: 90 })

/** Every segment of the session was last written to so long ago. */
function aged(root: string, session: string, ms: number): void {
  const atSec = (Date.now() - ms) / 1000
  for (const file of segmentsOf(root, session)) utimesSync(join(root, 'packs', file), atSec, atSec)
}

/** A session of an earlier host with one record and one blob per segment. */
async function aSessionOf(world: World, session: string, segments: number, bytes = 1000): Promise<Blob[]> {
  const store = world.open({ maxSegmentBytes: 1 })
  const blobs = Array.from({ length: segments }, (_, at) => blob(noise(at + session.length * 1000, bytes)))
  for (const [at, content] of blobs.entries()) await positionOf(store.journal(sessionId(session), '/w'), { entries: [before(`${session}${at}`)], blobs: [content] })
  await store.close()
  return blobs
}

test('two hosts on one home: after no append is the limit passed, what is there reads back exactly, a refusal changes nothing', async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.record({ host: fc.nat(1), session: fc.nat(2), length: fc.integer({ min: 1, max: 400_000 }), again: fc.boolean() }), { minLength: 5, maxLength: 30 }),
    async (appends) => {
      const world = await aStore()
      const hosts = [world.open({ limits: limits(MiB) }), world.open({ limits: limits(MiB) })]
      const stored: { readonly host: number; readonly session: number; readonly content: Blob }[] = []
      for (const [at, { host, session, length, again }] of appends.entries()) {
        const journal = hosts[host]!.journal(sessionId(`h${host}s${session}`), '/w')
        const old = stored.findLast(one => one.host === host && one.session === session)
        const content = again && old ? old.content : blob(noise(at, length))
        const sizes = files(world.root)
        const done = await journal.append({ entries: [before(`r${at}`)], blobs: [content] })
        expect(bytesIn(world.root)).toBeLessThanOrEqual(MiB)
        if (done.ok) {
          stored.push({ host, session, content })
          expect(await journal.readBlob(content.digest)).toEqual(content.bytes)
        } else {
          expect(done.failure.code).toBe('store-full')
          expect(files(world.root)).toEqual(sizes)
        }
      }
      for (const { host, session, content } of stored) {
        const journal = hosts[host]!.journal(sessionId(`h${host}s${session}`), '/w')
        const bytes = await journal.readBlob(content.digest)
        expect(bytes === undefined || bytes.equals(content.bytes)).toBe(true)
        expect(await journal.hasBlob(content.digest)).toBe(bytes !== undefined)
      }
    },
  ), { numRuns: 20 })
}, 60_000)

test('appends of several sessions at once do not pass the limit together', async () => {
  const world = await aStore()
  const store = world.open({ limits: limits(MiB) })
  const appends = Array.from({ length: 24 }, (_, at) =>
    store.journal(sessionId(`s${at % 6}`), '/w').append({ entries: [before(`r${at}`)], blobs: [blob(noise(at, 90_000))] }))
  let most = 0
  const watch = setInterval(() => { most = Math.max(most, bytesIn(world.root)) }, 1)
  await Promise.all(appends)
  clearInterval(watch)

  expect(Math.max(most, bytesIn(world.root))).toBeLessThanOrEqual(MiB)
  expect(bytesIn(world.root)).toBeGreaterThan(MiB / 2)
})

test('an append that no removal could make room for removes nothing', async () => {
  const world = await aStore()
  await aSessionOf(world, 'old', 4, 100_000)
  aged(world.root, 'old', DAY_MS)
  mkdirSync(join(world.root, 'packs'), { recursive: true })
  writeFileSync(join(world.root, 'packs', 'foreign.tmp'), Buffer.alloc(700_000))
  const sizes = files(world.root)

  const done = await world.open({ limits: limits(1_200_000) }).journal(sessionId('new'), '/w').append({ entries: [before('n')], blobs: [blob(noise(1, 600_000))] })

  expect(done).toMatchObject({ ok: false, failure: { code: 'store-full' } })
  expect(files(world.root)).toEqual(sizes)
})

test('what is removed at the front of a session is one hole, and its bytes read as gone', async () => {
  const world = await aStore()
  const blobs = await aSessionOf(world, 'old', 5, 100_000)
  aged(world.root, 'old', DAY_MS)

  await positionOf(world.open({ limits: limits(600_000) }).journal(sessionId('new'), '/w'), { entries: [before('n')], blobs: [blob(noise(1, 300_000))] })

  const gone = 5 - segmentsOf(world.root, 'old').length
  expect(gone).toBeGreaterThan(1)
  expect(segmentsOf(world.root, 'old')).toEqual(Array.from({ length: 5 - gone }, (_, at) => `old-${gone + at + 1}.pack`))
  const journal = world.open().journal(sessionId('old'), '/w')
  expect(await readAll(journal)).toMatchObject({ holes: [`segments 1 to ${gone} are missing`], after: [0], names: [3, 4].map(at => `old${at}`).slice(gone - 3) })
  expect(await journal.readBlob(blobs[0]!.digest)).toBeUndefined()
  expect(await journal.readBlob(blobs[4]!.digest)).toEqual(blobs[4]!.bytes)
})

test('a session whose records all went says so, also when it is written to again, and never takes a number twice', async () => {
  const world = await aStore()
  await aSessionOf(world, 's', 3)
  const session = sessionId('s')
  // It has read them before they go, and another host removes them.
  const live = world.open()
  expect(await readAll(live.journal(session, '/w'))).toMatchObject({ holes: [], position: 9 })
  aged(world.root, 's', 100 * DAY_MS)
  expect(await world.open().tidy()).toMatchObject({ ok: true })

  expect(segmentsOf(world.root, 's')).toEqual([])
  for (const store of [live, world.open()]) expect(await readAll(store.journal(session, '/w'))).toMatchObject({ names: [], holes: ['segments 1 to 3 are missing'] })
  await positionOf(live.journal(session, '/w'), { entries: [before('again')] })
  expect(segmentsOf(world.root, 's')).toEqual(['s-4.pack'])
  for (const store of [live, world.open()]) expect(await readAll(store.journal(session, '/w'))).toMatchObject({ names: ['again'], holes: ['segments 1 to 3 are missing'], after: [0] })

  await live.close()
  aged(world.root, 's', 100 * DAY_MS)
  await world.open().tidy()
  expect(Object.keys(files(world.root))).toEqual([expect.stringMatching(/^s-4-\d+\.gone$/)])
})

test('records of an earlier run that went are not taken for ones of the first turn of this run', async () => {
  const world = await aStore()
  for (const session of ['earlier', 'now']) await aSessionOf(world, session, 2)
  aged(world.root, 'earlier', 100 * DAY_MS)
  await world.open().tidy()
  const store = world.open()
  for (const session of ['earlier', 'now']) await positionOf(store.journal(sessionId(session), '/w'), { entries: [before('next')] })
  for (const segment of [1, 2]) unlinkSync(join(world.root, 'packs', `now-${segment}.pack`))

  const holesOf = async (session: string) => {
    const read = await store.journal(sessionId(session), '/w').read()
    return read.ok && read.value.holes.map(({ isOfEarlierRuns }) => isOfEarlierRuns)
  }
  expect([await holesOf('earlier'), await holesOf('now')]).toEqual([[true], [false]])
})

test('a segment that is removed while a record is written to it is written again', async () => {
  const world = await aStore()
  const path = join(world.root, 'packs', 's-1.pack')
  let isArmed = false
  const fs: StoreFs = {
    ...nodeFs,
    open: async (...args) => {
      const file = await nodeFs.open(...args)
      const datasync = file.datasync.bind(file)
      file.datasync = async () => {
        await datasync()
        if (isArmed) unlinkSync(path)
        isArmed = false
      }
      return file
    },
  }
  const journal = world.open({ fs }).journal(sessionId('s'), '/w')
  await positionOf(journal, { entries: [before('a')] })
  const content = blob('bytes')
  isArmed = true

  await positionOf(journal, { entries: [before('b', content)], blobs: [content] })

  expect(isArmed).toBe(false)
  const later = world.open().journal(sessionId('s'), '/w')
  expect((await readAll(later)).names).toEqual(['b'])
  expect(await later.readBlob(content.digest)).toEqual(content.bytes)
})

test('a segment that another host writes to again while room is made stays', async () => {
  const world = await aStore()
  await aSessionOf(world, 'old', 1, 400_000)
  aged(world.root, 'old', DAY_MS)
  const path = join(world.root, 'packs', 'old-1.pack')
  let looks = 0
  const fs: StoreFs = {
    ...nodeFs,
    peek: async (file) => {
      // Behind the count of what there is, and before the removal.
      if (file === path && ++looks === 2) utimesSync(path, new Date(), new Date())
      return nodeFs.peek(file)
    },
  }

  const done = await world.open({ fs, limits: limits(MiB) }).journal(sessionId('new'), '/w').append({ entries: [before('n')], blobs: [blob(noise(1, 800_000))] })

  expect(done).toMatchObject({ ok: false, failure: { code: 'store-full' } })
  expect(segmentsOf(world.root, 'old')).toHaveLength(1)
})

test('a file that cannot be removed is left for the next one', async () => {
  const world = await aStore()
  await aSessionOf(world, 'a', 3, 200_000)
  await aSessionOf(world, 'b2', 3, 200_000)
  for (const session of ['a', 'b2']) aged(world.root, session, DAY_MS)
  const fs: StoreFs = { ...nodeFs, unlink: async path => path.includes('/a-') ? Promise.reject(errno('EPERM')) : nodeFs.unlink(path) }

  await positionOf(world.open({ fs, limits: limits(1_400_000) }).journal(sessionId('new'), '/w'), { entries: [before('n')], blobs: [blob(noise(1, 400_000))] })

  expect(segmentsOf(world.root, 'a')).toHaveLength(3)
  expect(segmentsOf(world.root, 'b2').length).toBeLessThan(3)
  expect(bytesIn(world.root)).toBeLessThanOrEqual(1_400_000)
})

test('a held lock keeps the records of its session, the lock of a dead process does not', async () => {
  const world = await aStore()
  for (const session of ['held', 'dead']) await aSessionOf(world, session, 3, 100_000)
  for (const session of ['held', 'dead']) aged(world.root, session, DAY_MS)
  await world.open().lock(sessionId('held'))
  writeFileSync(join(world.root, 'locks', 'dead.lock'), JSON.stringify({ pid: 2 ** 22, started: 'never', host: hostname(), token: 'ffff', atMs: 1 }))

  await positionOf(world.open({ limits: limits(700_000) }).journal(sessionId('new'), '/w'), { entries: [before('n')], blobs: [blob(noise(1, 300_000))] })

  expect(segmentsOf(world.root, 'held')).toHaveLength(3)
  expect(segmentsOf(world.root, 'dead').length).toBeLessThan(3)
})

test('a limit that was lowered holds from the next start, without an append', async () => {
  const world = await aStore()
  await aSessionOf(world, 'old', 8, 100_000)
  aged(world.root, 'old', DAY_MS)

  await world.open({ limits: limits(300_000) }).tidy()

  expect(bytesIn(world.root)).toBeLessThanOrEqual(300_000)
  expect(segmentsOf(world.root, 'old').at(-1)).toBe('old-8.pack')
})

test('near the limit an append looks at the files that may grow, not at every one', async () => {
  const world = await aStore()
  await aSessionOf(world, 'old', 60, 10_000)
  aged(world.root, 'old', DAY_MS)
  let looks = 0
  const fs: StoreFs = { ...nodeFs, peek: async (path) => (looks += 1, nodeFs.peek(path)) }
  const journal = world.open({ fs, limits: limits(MiB) }).journal(sessionId('new'), '/w')
  await positionOf(journal, { entries: [before('first')] })
  looks = 0

  await positionOf(journal, { entries: [before('second')] })

  expect(looks).toBeLessThan(10)
  // What it did not look at is still counted.
  expect((await journal.append({ entries: [before('third')], blobs: [blob(noise(1, 900_000))] })).ok).toBe(true)
  expect(bytesIn(world.root)).toBeLessThanOrEqual(MiB)
})
