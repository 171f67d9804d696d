import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeWatchList } from '../../../../host/capture/watch-list.ts'
import { digestOf } from '../../../../host/digest.ts'
import type { ForeignSession } from '../../../../host/dsh/host-types.ts'
import type { SessionJournal } from '../../../../host/store/session-journal.ts'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { sessionId } from '../../../../src/ids.ts'
import { failure } from '../../../../src/protocol/failure.ts'
import { fail, ok } from '../../../../src/result.ts'

const root = { id: 'root', header: { version: 0, id: 'root' }, surface: { nodes: [] }, append: () => ({ seq: 0 }) } satisfies ForeignSession

/** A watch list over `count` files that the session left as they are, and what it noted of them. */
function aScene(count: number) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-watch-')))
  onTestFinished(() => { rmSync(folder, { recursive: true }) })
  const call = { callId: 'c', tool: 'bash', sessionId: sessionId('root') }
  const paths = Array.from({ length: count }, (_, at) => join(folder, `${at}.txt`))
  const entries: JournalEntry[] = paths.map((path, at) => {
    writeFileSync(path, `${at}`, { mode: 0o644 })
    const after = { kind: 'file' as const, digest: digestOf(Buffer.from(`${at}`)), bytes: `${at}`.length, mode: 0o644 }
    return { kind: 'change', id: `i${at}`, turn: { startSeq: 0, number: 1 }, call, origin: 'shell', path, before: { kind: 'absent' }, after, absentFolders: [], atMs: 0 }
  })
  const noted: JournalEntry[] = []
  const reports: string[] = []
  const world = { activity: 0, isFull: false, onAppend: () => {} }
  const journal: SessionJournal = {
    session: sessionId('root'),
    append: async (batch) => {
      world.onAppend()
      if (world.isFull) return fail(failure('store-unavailable'))
      noted.push(...batch.entries)
      entries.push(...batch.entries)
      return ok({ position: entries.length })
    },
    flush: async () => ok(undefined),
    read: async () => ok({ entries: entries.map((entry, at) => ({ position: at + 1, entry })), holes: [], position: entries.length }),
    hasBlob: async () => false, readBlob: async () => undefined,
  }
  const watch = makeWatchList({
    health: { report: contract => { reports.push(contract) }, clear: () => {}, problems: () => [], contain: (_contract, listener) => listener },
    maxFileBytes: 1024, dshHome: join(folder, 'home'), journalOf: () => journal, activity: () => world.activity, isShared: () => false, now: () => 0,
  })
  const outside = () => noted.map(entry => (entry.kind === 'outside' ? entry.path.slice(folder.length + 1) : entry.kind))
  return { folder, paths, watch, world, outside, reports, entries }
}

test('a check without time looks at nothing, and one with time at all of them', async () => {
  const { paths, watch, outside } = aScene(100)
  for (const path of paths) writeFileSync(path, 'other')

  await watch.check(root, 0)
  expect(outside()).toEqual([])
  await watch.check(root, 60_000)
  expect(outside()).toHaveLength(100)
})

test('nothing is noted while a call that may write is under way', async () => {
  const { paths, watch, world, outside } = aScene(1)
  writeFileSync(paths[0]!, 'other')
  world.activity = Infinity

  await watch.check(root, 60_000)

  expect(outside()).toEqual([])
})

test('a call that begins in the middle of a check ends it; the next check has the rest', async () => {
  const { paths, watch, world, outside } = aScene(10)
  for (const path of paths) writeFileSync(path, 'other')
  world.onAppend = () => { world.activity += 1 }

  await watch.check(root, 60_000)
  expect(outside()).toEqual(['0.txt'])
  world.onAppend = () => {}
  await watch.check(root, 60_000)
  expect(outside().sort()).toEqual(Array.from({ length: 10 }, (_, at) => `${at}.txt`))
})

test('a store that is full is told, ends the check, and loses nothing but this time', async () => {
  const { paths, watch, world, outside, reports } = aScene(3)
  for (const path of paths) writeFileSync(path, 'other')
  world.isFull = true
  await watch.check(root, 60_000)
  expect([outside(), reports]).toEqual([[], ['store']])

  world.isFull = false
  await watch.check(root, 60_000)

  expect(outside()).toHaveLength(3)
  expect(readFileSync(paths[0]!, 'utf8')).toBe('other')
})

test('two checks at once note a state once', async () => {
  const { paths, watch, outside } = aScene(1)
  writeFileSync(paths[0]!, 'other')

  await Promise.all([watch.check(root, 60_000), watch.check(root, 60_000)])

  expect(outside()).toEqual(['0.txt'])
})

test('once stopped it notes nothing more', async () => {
  const { paths, watch, outside } = aScene(1)
  writeFileSync(paths[0]!, 'other')
  watch.stop()

  await watch.check(root, 60_000)

  expect(outside()).toEqual([])
})

test('files under the DSH home are not looked at', async () => {
  const { folder, entries, watch, outside } = aScene(1)
  const [first] = entries
  if (first?.kind !== 'change') throw new Error('a change')
  entries.push({ ...first, id: 'home', path: join(folder, 'home/settings.yaml'), after: { kind: 'unknown', reason: 'dsh-home' } })

  await watch.check(root, 60_000)

  expect(outside()).toEqual([])
})
