import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { opId, sessionId } from '../../../../src/ids.ts'
import { openStore } from '../../../../host/store/store.ts'
import { before, blob } from './store-content.ts'
import { aStore } from './store-world.ts'

const MiB = 1024 * 1024

const packs = (root: string): readonly { readonly file: string; readonly bytes: number }[] =>
  !existsSync(join(root, 'packs')) ? [] : readdirSync(join(root, 'packs')).map(file => ({ file, bytes: statSync(join(root, 'packs', file)).size }))
const bytesIn = (root: string): number => packs(root).reduce((sum, { bytes }) => sum + bytes, 0)
const limited = (root: string, maxBytes: number) => openStore({ root, limits: () => ({ maxBytes, maxDays: 90 }) })
/** Bytes that nothing packs. */
const noise = (seed: number, length: number): Uint8Array => createHash('shake256', { outputLength: length }).update(String(seed)).digest()

test('whatever is appended, the limit is never passed, what is there reads back exactly, and a refusal changes nothing', async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.record({ session: fc.integer({ min: 0, max: 3 }), length: fc.integer({ min: 1, max: 400_000 }) }), { minLength: 5, maxLength: 40 }),
    async (appends) => {
      const root = (await aStore()).root
      const store = limited(root, MiB)
      for (const [at, { session, length }] of appends.entries()) {
        const journal = store.journal(sessionId(`s${session}`), '/w')
        const content = blob(noise(at, length))
        const sizes = packs(root)
        const done = await journal.append({ entries: [before(`r${at}`)], blobs: [content] })
        expect(bytesIn(root)).toBeLessThanOrEqual(MiB)
        if (done.ok) expect(await journal.readBlob(content.digest)).toEqual(Buffer.from(content.bytes))
        else {
          expect(done.failure.code).toBe('store-full')
          expect(packs(root).every(({ file, bytes }) => sizes.some(old => old.file === file && old.bytes === bytes))).toBe(true)
        }
      }
      await store.close()
    },
  ), { numRuns: 25 })
}, 60_000)

test('two hosts on one home see what the other one wrote', async () => {
  const root = (await aStore()).root
  const [one, other] = [limited(root, 10 * MiB), limited(root, 10 * MiB)]
  for (let at = 0; at < 40; at += 1) {
    const store = at % 2 === 0 ? one : other
    const done = await store.journal(sessionId(at % 2 === 0 ? 'a' : 'b'), '/w').append({ entries: [before(`r${at}`)], blobs: [blob(noise(at, 300_000))] })
    expect(done.ok).toBe(true)
    expect(bytesIn(root)).toBeLessThanOrEqual(10 * MiB)
  }
  await one.close()
  await other.close()
})

test('field 66: two hundred versions of a 1 MB file stay below the limit, equal ones are stored once, and the newest are there', async () => {
  const root = (await aStore()).root
  const store = limited(root, 32 * MiB)
  const journal = store.journal(sessionId('s'), '/w')
  const versions = Array.from({ length: 200 }, (_, at) => blob(noise(at, MiB)))
  for (const [at, version] of versions.entries()) {
    expect(await journal.append({ entries: [before(`r${at}`)], blobs: [version] })).toMatchObject({ ok: true })
    const bytes = bytesIn(root)
    expect(bytes).toBeLessThanOrEqual(32 * MiB)
    await journal.append({ entries: [], blobs: [version] })
    expect(bytesIn(root)).toBe(bytes)
  }

  expect(await journal.readBlob(versions[199]!.digest)).toEqual(Buffer.from(versions[199]!.bytes))
  expect(await journal.readBlob(versions[0]!.digest)).toBeUndefined()
  const records = await journal.read()
  expect(records.ok && records.value.holes.length).toBeGreaterThan(0)
  await store.close()
}, 60_000)

test('bytes that went with an old segment are stored again when they come again', async () => {
  const root = (await aStore()).root
  const store = openStore({ root, maxSegmentBytes: 1, limits: () => ({ maxBytes: 64 * MiB, maxDays: 90 }) })
  const journal = store.journal(sessionId('s'), '/w')
  const content = blob('same')
  await journal.append({ entries: [before('r1')], blobs: [content] })
  await journal.append({ entries: [before('r2')] })
  // Another process made room.
  unlinkSync(join(root, 'packs', 's-1.pack'))

  await journal.append({ entries: [before('r3')], blobs: [content] })

  expect(await journal.hasBlob(content.digest)).toBe(true)
  expect(await journal.readBlob(content.digest)).toEqual(Buffer.from('same'))
  await store.close()
})

test('the least recently used session makes room first, one with an op that has not ended never', async () => {
  const root = (await aStore()).root
  const roomy = openStore({ root, maxSegmentBytes: 1 })
  for (const [name, daysAgo] of [['open', 3], ['old', 2], ['young', 1]] as const) {
    const journal = roomy.journal(sessionId(name), '/w')
    for (let at = 0; at < 3; at += 1) await journal.append({ entries: [before(`${name}${at}`)], blobs: [blob(noise(at + daysAgo * 10, 200_000))] })
    if (name === 'open') await roomy.markOpenOp(sessionId(name), opId('op00000001'))
  }
  await roomy.close()
  for (const { file } of packs(root)) {
    const atSec = Date.now() / 1000 - (file.startsWith('open') ? 3 : file.startsWith('old') ? 2 : 1) * 86_400
    utimesSync(join(root, 'packs', file), atSec, atSec)
  }

  const store = limited(root, bytesIn(root) + 100_000)
  await store.journal(sessionId('new'), '/w').append({ entries: [before('n')], blobs: [blob(noise(99, 500_000))] })
  await store.close()

  const left = packs(root).map(({ file }) => file.replace(/-\d+\.pack$/, ''))
  expect(left.filter(name => name === 'open')).toHaveLength(3)
  expect(left.filter(name => name === 'young')).toHaveLength(3)
  expect(left.filter(name => name === 'old').length).toBeLessThan(3)
})

test('sessions over the age limit go, those in use and those with an op that has not ended stay', async () => {
  const root = (await aStore()).root
  const first = openStore({ root })
  for (const name of ['aged', 'used', 'open', 'fresh']) await first.journal(sessionId(name), '/w').append({ entries: [before(name)] })
  await first.markOpenOp(sessionId('open'), opId('op00000001'))
  await first.close()
  for (const { file } of packs(root)) if (!file.startsWith('fresh')) utimesSync(join(root, 'packs', file), 1, 1)

  const store = openStore({ root })
  await store.journal(sessionId('used'), '/w').read()
  expect(await store.tidy()).toMatchObject({ ok: true })

  expect((await store.sessions()).toSorted()).toEqual(['fresh', 'open', 'used'])
  await store.close()
})

test('files that are no segments count as well and are left alone', async () => {
  const root = (await aStore()).root
  mkdirSync(join(root, 'packs'), { recursive: true })
  writeFileSync(join(root, 'packs', 'foreign.tmp'), Buffer.alloc(MiB))
  const store = limited(root, MiB + 1000)

  expect(await store.journal(sessionId('s'), '/w').append({ entries: [before('r')] })).toMatchObject({ ok: false, failure: { code: 'store-full' } })
  expect(packs(root)).toEqual([{ file: 'foreign.tmp', bytes: MiB }])
  expect(await store.usage()).toMatchObject({ ok: true, value: { bytes: MiB } })
  await store.close()
})
