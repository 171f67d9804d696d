import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { digest, sessionId } from '../../../../src/ids.ts'
import { scanFrames, scanStart } from '../../../../host/store/frame.ts'
import { nodeFs, type StoreFile, type StoreFs } from '../../../../host/store/store-fs.ts'
import type { TurnbackStore } from '../../../../host/store/store.ts'
import { errno } from './store-faults.ts'
import { aSession, aStore, before, blob, positionOf, readAll, workspace, type Blob } from './store-world.ts'

const MiB = 1024 * 1024

/** Bytes that nothing packs. */
const noise = (seed: number, length: number): Buffer => createHash('shake256', { outputLength: length }).update(String(seed)).digest()
/** Version `number` of a text of about `bytes` bytes: each has one line of its own. */
function version(number: number, bytes: number): Blob {
  const lines = Array.from({ length: Math.ceil(bytes / 48) }, (_, at) => `  const value${at} = compute(${(at * 7919) % 10007}, ${(at * 104729) % 65537})`)
  lines[number % lines.length] = `  // version ${number}`
  return blob(lines.join('\n'))
}

const sizes = (root: string): Record<string, number> =>
  Object.fromEntries(readdirSync(join(root, 'packs')).toSorted().map(file => [file, statSync(join(root, 'packs', file)).size]))
const total = (root: string): number => Object.values(sizes(root)).reduce((sum, bytes) => sum + bytes, 0)
const encodingsIn = (root: string, file: string): string[] =>
  scanFrames(readFileSync(join(root, 'packs', file)), scanStart).frames.flatMap(({ kind, encoding }) => (kind === 'blob' ? [encoding!] : []))

/** Appends versions of `/w/<name>`, one record each. */
async function appendVersions(store: TurnbackStore, name: string, blobs: readonly Blob[], session = aSession): Promise<void> {
  const journal = store.journal(session, workspace)
  for (const content of blobs) await positionOf(journal, { entries: [before(name, content)], blobs: [content] })
}

async function expectBytes(store: TurnbackStore, blobs: readonly Blob[], session = aSession): Promise<void> {
  const journal = store.journal(session, workspace)
  for (const { digest: of, bytes } of blobs) expect((await journal.readBlob(of))?.equals(bytes)).toBe(true)
}

const versions = (count: number, bytes = 100_000, from = 0): Blob[] => Array.from({ length: count }, (_, at) => version(from + at, bytes))

test('versions of a file take a small part of their bytes, and each reads back', async () => {
  const world = await aStore()
  const store = world.open()
  const blobs = versions(40)
  await appendVersions(store, 'f', blobs)
  const read = await readAll(store.journal(aSession, workspace))
  const bytesBefore = total(world.root)

  expect(await store.reencode()).toEqual({ segments: 1, bytesBefore, bytesAfter: total(world.root) })

  expect(total(world.root)).toBeLessThan(bytesBefore * 0.03)
  // A full copy now and then, so that damage to one costs no more than the 32 that rest on it.
  const encodings = encodingsIn(world.root, 'session-1-1.pack')
  expect([encodings.filter(one => one === 'zstd').length, encodings.filter(one => one === 'zstd-delta').length]).toEqual([2, 38])
  for (const one of [store, world.open()]) {
    expect(await readAll(one.journal(aSession, workspace))).toEqual(read)
    await expectBytes(one, blobs)
  }
})

test('whatever was appended, records and bytes are the same afterwards, and appends go on', async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.record({
      name: fc.constantFrom('a', 'b', 'c'), kind: fc.constantFrom('version', 'noise', 'tiny', 'none'), number: fc.nat(9), isPass: fc.boolean(), isOther: fc.boolean(),
    }), { minLength: 4, maxLength: 25 }),
    fc.constantFrom(1, 200_000, 16 * MiB),
    async (appends, maxSegmentBytes) => {
      const world = await aStore()
      const [store, other] = [world.open({ maxSegmentBytes }), world.open({ maxSegmentBytes })]
      const names: string[] = []
      const blobs: Blob[] = []
      for (const [at, { name, kind, number, isPass, isOther }] of appends.entries()) {
        const content = kind === 'none' ? undefined : kind === 'tiny' ? blob(`${name}${number}`) : kind === 'noise' ? blob(noise(number, 80_000)) : version(number, 90_000)
        await positionOf((isOther ? other : store).journal(aSession, workspace), { entries: [before(`${name}${at}`, content)], blobs: content ? [content] : [] })
        names.push(`${name}${at}`)
        if (content) blobs.push(content)
        if (isPass) await store.reencode()
      }
      await store.reencode()
      for (const one of [store, other, world.open()]) {
        expect(await readAll(one.journal(aSession, workspace))).toMatchObject({ names, holes: [] })
        await expectBytes(one, blobs)
      }
    },
  ), { numRuns: 25 })
}, 60_000)

test('bytes that do not pack stay as they are and are not tried again', async () => {
  const world = await aStore()
  let opened = 0
  const store = world.open({ fs: { ...nodeFs, open: async (path, ...args) => (opened += path.endsWith('.tmp') ? 1 : 0, nodeFs.open(path, ...args)) } })
  await appendVersions(store, 'f', Array.from({ length: 20 }, (_, at) => blob(noise(at, 100_000))))
  const asIs = sizes(world.root)

  for (let pass = 0; pass < 3; pass += 1) expect(await store.reencode()).toMatchObject({ segments: 0 })

  expect(sizes(world.root)).toEqual(asIs)
  expect(opened).toBe(1)
})

test('a short segment that is written to goes on; a long one is ended, and the next record begins another', async () => {
  const world = await aStore()
  const store = world.open()
  await appendVersions(store, 'f', versions(3))
  await store.reencode()
  await appendVersions(store, 'f', versions(20, 100_000, 3))
  expect(Object.keys(sizes(world.root))).toEqual(['session-1-1.pack'])

  await store.reencode()
  await appendVersions(store, 'f', versions(1, 100_000, 23))

  expect(Object.keys(sizes(world.root))).toEqual(['session-1-1.pack', 'session-1-2.pack'])
  expect(sizes(world.root)['session-1-1.pack']).toBeLessThan(100_000)
  expect(await readAll(world.open().journal(aSession, workspace))).toMatchObject({ holes: [], position: 50 })
})

test('what was last written when stays known: a smaller segment keeps the time of the old one', async () => {
  const world = await aStore()
  const store = world.open()
  await appendVersions(store, 'f', versions(20))
  const path = join(world.root, 'packs', 'session-1-1.pack')
  utimesSync(path, 1_700_000_000, 1_700_000_000)

  expect(await store.reencode()).toMatchObject({ segments: 1 })

  expect(statSync(path).mtimeMs).toBe(1_700_000_000_000)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('another host on the home reads on, finds the bytes in their new places, and writes behind', async () => {
  const world = await aStore()
  const [store, other] = [world.open(), world.open()]
  const blobs = versions(20)
  await appendVersions(store, 'f', blobs)
  await expectBytes(other, blobs)
  await store.reencode()

  await expectBytes(other, blobs)
  expect(await other.journal(aSession, workspace).hasBlob(blobs[7]!.digest)).toBe(true)
  // Equal bytes are still stored once.
  await appendVersions(other, 'again', [blobs[3]!])
  expect(encodingsIn(world.root, 'session-1-2.pack')).toEqual([])
  expect(await readAll(store.journal(aSession, workspace))).toMatchObject({ holes: [], names: [...blobs.map(() => 'f'), 'again'] })
})

test('a segment that another running process may write to is left alone', async () => {
  const world = await aStore()
  const [store, other] = [world.open(), world.open()]
  await appendVersions(other, 'f', versions(20))
  store.journal(aSession, workspace)
  const asIs = sizes(world.root)

  expect(await store.reencode()).toMatchObject({ segments: 0 })
  expect(sizes(world.root)).toEqual(asIs)

  // It has a successor, and both have been quiet for long.
  await other.reencode()
  const past = Date.now() / 1000 - 3600
  await appendVersions(store, 'g', versions(20, 100_000, 50), sessionId('s2'))
  await store.close()
  const late = world.open({ maxSegmentBytes: 1 })
  await appendVersions(late, 'h', versions(2, 200_000, 90), sessionId('s2'))
  for (const file of Object.keys(sizes(world.root))) utimesSync(join(world.root, 'packs', file), past, past)
  const third = world.open()
  expect(await third.reencode()).toMatchObject({ segments: 2 })
  // The newest one of a process that lives stays.
  expect(encodingsIn(world.root, 's2-3.pack')).toEqual(['raw'])
})

test('what a killed process left is made smaller by the next one', async () => {
  const world = await aStore()
  const child = spawn(process.execPath, ['--no-warnings', join(import.meta.dirname, 'appender.ts'), world.root, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    if (out.split('\n').length > 60) child.kill('SIGKILL')
  })
  await once(child, 'close')
  const names = Array.from({ length: Number(out.trim().split('\n').at(-1)) }, (_, at) => `f${at}`)
  const before = await readAll(world.open().journal(aSession, workspace))
  const store = world.open()

  expect(await store.reencode()).toMatchObject({ segments: 1 })

  expect(await readAll(store.journal(aSession, workspace))).toEqual(before)
  await expectBytes(store, names.map(name => blob(name.repeat(5_000))))
})

test.each([
  ['flipped bytes', (file: string, size: number) => writeAt(file, size >> 1, noise(1, 40))],
  ['a torn tail', (file: string) => appendFileSync(file, noise(2, 100))],
])('a segment with %s stays as it is', async (_, damage) => {
  const world = await aStore()
  const first = world.open()
  await appendVersions(first, 'f', versions(20))
  const path = join(world.root, 'packs', 'session-1-1.pack')
  damage(path, statSync(path).size)
  const asIs = readFileSync(path)

  expect(await first.reencode()).toMatchObject({ segments: 0 })

  expect(readFileSync(path).equals(asIs)).toBe(true)
  expect(Object.keys(sizes(world.root))).toEqual(['session-1-1.pack'])
})

function writeAt(file: string, offset: number, bytes: Buffer): void {
  const all = readFileSync(file)
  bytes.copy(all, offset)
  writeFileSync(file, all)
}

test('damage to a full copy costs the versions that rest on it, and they are stored again when they come again', async () => {
  const world = await aStore()
  const store = world.open()
  const blobs = versions(20)
  await appendVersions(store, 'f', blobs)
  await store.reencode()
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const base = scanFrames(readFileSync(path), scanStart).frames.find(({ encoding }) => encoding === 'zstd')!
  writeAt(path, base.offset + 100, noise(1, 40))

  const later = world.open()
  const journal = later.journal(aSession, workspace)
  for (const { digest: of } of blobs) expect(await journal.readBlob(of)).toBeUndefined()
  await appendVersions(later, 'f', blobs)
  await expectBytes(world.open(), blobs)
})

test('a process that dies at any step of a pass leaves every record and every byte', async () => {
  const steps = await passWithDeathAt(Infinity)
  expect(steps).toBeGreaterThan(15)
  for (let step = 1; step <= steps; step += 1) await passWithDeathAt(step)
}, 120_000)

/** The steps of a pass over two segments. From step `death` on nothing of it reaches the disk. */
async function passWithDeathAt(death: number): Promise<number> {
  const world = await aStore()
  const blobs = versions(21, 60_000)
  const first = world.open({ maxSegmentBytes: 400_000 })
  await appendVersions(first, 'f', blobs)
  let steps = 0
  let isCounting = false
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isCounting && ++steps >= death) throw errno('EIO')
    return work()
  }
  const wrap = (file: StoreFile): StoreFile => ({
    read: (...args) => file.read(...args),
    write: (...args) => step(() => file.write(...args)),
    writev: (parts, position) => step(async () => {
      // A write that dies may have done half of it.
      if (steps + 1 === death) await file.writev(parts.slice(0, parts.length >> 1), position)
      return file.writev(parts, position)
    }),
    truncate: length => step(() => file.truncate(length)),
    datasync: () => step(() => file.datasync()),
    sync: () => step(() => file.sync()),
    close: () => file.close(),
  })
  const fs: StoreFs = {
    ...nodeFs,
    open: (path, flags, mode) => step(async () => wrap(await nodeFs.open(path, flags, mode))),
    utimes: (...args) => step(() => nodeFs.utimes(...args)),
    rename: (...args) => step(() => nodeFs.rename(...args)),
    unlink: path => step(() => nodeFs.unlink(path)),
  }
  await first.close()
  const store = world.open({ fs, maxSegmentBytes: 400_000 })
  // Its own segments, so that they are at rest at once.
  await appendVersions(store, 'f', versions(14, 60_000, 21))
  isCounting = true
  await store.reencode()
  isCounting = false

  const all = [...blobs, ...versions(14, 60_000, 21)]
  for (const one of [store, world.open()]) {
    expect(await readAll(one.journal(aSession, workspace))).toMatchObject({ names: all.map(() => 'f'), holes: [] })
    await expectBytes(one, all)
  }
  // The next pass of anybody clears up. A lock of a dead process would be taken over; this one's names us, who live.
  await store.close()
  rmSync(join(world.root, 're-encode.lock'), { force: true })
  const next = world.open()
  await appendVersions(next, 'g', versions(1, 60_000, 60))
  await next.reencode()
  expect(Object.keys(sizes(world.root)).filter(file => file.endsWith('.tmp'))).toEqual([])
  return steps
}

test('the limit of the store holds also for the file that is to take the place of another', async () => {
  const world = await aStore()
  const limit = 2 * MiB
  const store = world.open({ limits: () => ({ maxBytes: limit, maxDays: 90 }), maxSegmentBytes: 500_000 })
  await appendVersions(store, 'f', versions(15))
  let most = 0
  const watch = setInterval(() => { most = Math.max(most, total(world.root)) }, 1)
  const done = await store.reencode()
  clearInterval(watch)

  expect(done.segments).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(limit)
  expect(await store.usage()).toMatchObject({ value: { bytes: total(world.root) } })

  // With no room for a second file nothing is done, and nothing is removed for it.
  const full = world.open({ limits: () => ({ maxBytes: total(world.root) + 100_000, maxDays: 90 }), maxSegmentBytes: 500_000 })
  await appendVersions(store, 'g', versions(8, 100_000, 40))
  const asIs = sizes(world.root)
  expect(await full.reencode()).toMatchObject({ segments: 0 })
  expect(sizes(world.root)).toEqual(asIs)
})

test('a segment that is removed while it is made smaller does not come back', async () => {
  const world = await aStore()
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const store = world.open({
    fs: {
      ...nodeFs,
      utimes: async (...args) => {
        await nodeFs.utimes(...args)
        await nodeFs.unlink(path)
      },
    },
  })
  await appendVersions(store, 'f', versions(20))

  expect(await store.reencode()).toMatchObject({ segments: 0 })
  expect(sizes(world.root)).toEqual({})
})

test('only one process at a time goes through the segments', async () => {
  const world = await aStore()
  const other = world.open({ maxSegmentBytes: 300_000 })
  let beside: Promise<{ segments: number }> | undefined
  const fs: StoreFs = {
    ...nodeFs,
    open: async (path, ...args) => {
      if (path.endsWith('.tmp')) await (beside ??= other.reencode())
      return nodeFs.open(path, ...args)
    },
  }
  const store = world.open({ fs, maxSegmentBytes: 300_000 })
  await appendVersions(store, 'f', versions(10))
  await appendVersions(other, 'g', versions(10, 100_000, 50), sessionId('s2'))

  expect((await store.reencode()).segments).toBeGreaterThan(0)

  expect(await beside).toMatchObject({ segments: 0 })
  expect((await other.reencode()).segments).toBeGreaterThan(0)
  expect(readdirSync(world.root)).not.toContain('re-encode.lock')
})

test('in a quiet moment it is done without being asked, and a record that comes stops it', async () => {
  const world = await aStore()
  const store = world.open({ quietMs: 50, maxSegmentBytes: 300_000 })
  const journal = store.journal(aSession, workspace)
  await appendVersions(store, 'f', versions(12))
  const isSmall = async (): Promise<void> => {
    while (Object.values(sizes(world.root)).filter(bytes => bytes > 50_000).length > 1) await new Promise(resolve => setTimeout(resolve, 20))
  }
  // All but the one that is written to and still short.
  await isSmall()
  await positionOf(journal, { entries: [before('more')] })
  expect(await readAll(journal)).toMatchObject({ holes: [] })
  await store.close()

  // After `close` nothing runs any more.
  const closed = world.open({ quietMs: 20 })
  await closed.close()
  const asIs = sizes(world.root)
  await new Promise(resolve => setTimeout(resolve, 100))
  expect(sizes(world.root)).toEqual(asIs)
})

test('a delta finds the base beside it, also when the same bytes are stored twice', async () => {
  const world = await aStore()
  const store = world.open({ maxSegmentBytes: 900_000 })
  const blobs = versions(9)
  await appendVersions(store, 'f', blobs)
  // Damage makes another process store them again, in the other order, so that base and delta change places.
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const whole = readFileSync(path)
  writeAt(path, 200, noise(1, whole.length - 400))
  const second = world.open()
  await appendVersions(second, 'f', blobs.toReversed())
  await appendVersions(second, 'g', versions(4, 100_000, 30))
  writeFileSync(path, whole)
  for (const one of [store, second]) await one.reencode()

  await expectBytes(world.open(), [...blobs, ...versions(4, 100_000, 30)])
  expect(await world.open().journal(aSession, workspace).readBlob(digest('0'.repeat(64)))).toBeUndefined()
})
