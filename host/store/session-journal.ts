import * as v from 'valibot'
import { JournalEntrySchema, type JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest, SessionId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { appendBatch, AppendFailed, createSegment, segmentBytes, syncSegment, type Batch, type SegmentWriter } from './segment-writer.ts'
import type { WriterMark } from './segment.ts'
import { endPosition, joinSegments, type SessionRecords } from './session-records.ts'
import { makeSessionSegments } from './session-segments.ts'
import { asFailure, ensureFolder, errorCode, type StoreFs } from './store-fs.ts'
import type { StoreSpace } from './store-space.ts'
import { segmentPath, type StoreLayout } from './store-layout.ts'

/**
 * Everything stored for one session. Nothing here throws: an environment error is `store-unavailable`, a store
 * that has reached its limit `store-full`, and a later call may succeed again.
 */
export interface SessionJournal {
  readonly session: SessionId
  /**
   * Appends the blobs that are not yet stored and the entries; resolves when they are durable, with the
   * position of the last record. One at a time, in call order; all of a batch or nothing of it.
   * `blobs` is trusted to carry the digests of its bytes, and the bytes must not change until it resolves.
   *
   * `sync: 'later'` resolves when the batch is written: the end of the process loses nothing of it, a power cut
   * may. The sync of the next append covers it, or `flush`, or a moment of quiet. Only for what is no promise
   * yet: the look after a call, whose loss reads as a call that was cut off.
   */
  append(batch: {
    entries: readonly JournalEntry[]
    blobs?: readonly { digest: Digest; bytes: Uint8Array }[]
    sync?: 'now' | 'later'
  }): Promise<Result<{ position: number }, Failure>>
  /** Resolves when all appends so far are durable. A failure tells of any sync that failed since the last call. */
  flush(): Promise<Result<undefined, Failure>>
  /** All entries, oldest first, with the places where records are missing. From memory after the first scan. */
  read(): Promise<Result<SessionRecords, Failure>>
  /** Whether a durable, readable record of the blob is known. False also when the store cannot be read. */
  hasBlob(digest: Digest): Promise<boolean>
  /** The bytes, checked against the digest; `undefined` when not stored or damaged. */
  readBlob(digest: Digest): Promise<Buffer | undefined>
}

export interface JournalOptions {
  readonly fs: StoreFs
  readonly layout: StoreLayout
  readonly session: SessionId
  readonly workspace: string
  /** A segment that has reached this size gets a successor. */
  readonly maxSegmentBytes: number
  readonly space: StoreSpace
  /** How long records written with `sync: 'later'` wait for another append before they are synced, milliseconds. */
  readonly lateSyncMs: number
  readonly writerMark: () => Promise<WriterMark>
}

/** What the store itself does with a journal, beside what its users do. */
export interface KeptJournal extends SessionJournal {
  /** No more appends to the segment that this process writes to, when it has reached `minBytes`; the next append begins another. */
  seal(minBytes: number): Promise<void>
  /** Segments that this process wrote and will not write to again, with the bytes that count in each: behind them may lie what a failed write left. */
  sealed(): ReadonlyMap<number, number>
  close(): Promise<void>
}

/** Tries to find a free segment number while other processes take them. */
const maxNumberTries = 100

/** Touches no disk before the first call. */
export function openJournal(options: JournalOptions): KeptJournal {
  const { fs, layout, session, workspace, maxSegmentBytes, space, lateSyncMs, writerMark } = options
  const segments = makeSessionSegments(fs, layout, session)
  let joined: { readonly records: SessionRecords; readonly generation: number } | undefined
  let writer: SegmentWriter | undefined
  let closed = false
  /** Blobs whose sync failed: they read back now and may be gone after a power cut, so they are stored again when they come again. */
  const doubtful = new Set<Digest>()
  /** A sync that failed where nobody could be told. */
  let untold: Failure | undefined
  let lateSync: NodeJS.Timeout | undefined
  const sealedBytes = new Map<number, number>()
  /** Calls run one after another: the end of the line. Never rejects. */
  let tail: Promise<unknown> = Promise.resolve()

  return { session, append, flush, read, hasBlob, readBlob, seal, sealed: () => sealedBytes, close }

  function append(batch: Parameters<SessionJournal['append']>[0]): Promise<Result<{ position: number }, Failure>> {
    return inLine(async () => {
      if (closed) return fail(failure('store-unavailable', { detail: 'the store is closed' }))
      const entries = v.safeParse(v.array(JournalEntrySchema), batch.entries)
      // An entry that would not read back must not be written: it would be a hole for ever.
      if (!entries.success) return fail(failure('internal', { detail: `store/journal: ${v.summarize(entries.issues)}` }))
      await catchUpToAppend()
      const sync = batch.sync ?? 'now'
      const given = { blobs: batch.blobs ?? [], entries: entries.output }
      const fresh = await withoutStored(given)
      if (fresh.blobs.length > 0 || fresh.entries.length > 0) {
        if (!await storeInRoom(fresh, given, sync)) return fail(storeFull)
        // Another process that made room may have taken the segment right under the write.
        if (!await isOwnThere()) {
          await catchUpToAppend()
          if (!await storeInRoom(await withoutStored(given), given, sync)) return fail(storeFull)
          if (!await isOwnThere()) return fail(failure('store-unavailable', { detail: 'the segment was removed while it was written' }))
        }
      } else if (sync === 'now') await syncWritten()
      if (sync === 'later') syncSoon()
      return ok({ position: endPosition(segments.views()) })
    })
  }

  function flush(): Promise<Result<undefined, Failure>> {
    return inLine(async () => {
      await syncWritten()
      const failed = untold
      untold = undefined
      return failed ? fail(failed) : ok(undefined)
    })
  }

  function read(): Promise<Result<SessionRecords, Failure>> {
    return inLine(async () => {
      await segments.refresh()
      const generation = segments.generation()
      if (joined?.generation !== generation) joined = { records: joinSegments(segments.views(), segments.gone()?.segment), generation }
      return ok(joined.records)
    })
  }

  async function hasBlob(digest: Digest): Promise<boolean> {
    const found = await inLine(async () => {
      if (!segments.isScanned()) await segments.refresh()
      // Who asks lets the bytes be overwritten when they are here, so they must outlive a power cut.
      if (writer?.unsynced?.has(digest)) await syncWritten()
      return ok(await segments.holds(digest) && !doubtful.has(digest))
    })
    return found.ok && found.value
  }

  async function readBlob(digest: Digest): Promise<Buffer | undefined> {
    const found = await inLine(async () => {
      if (!segments.isScanned() || !segments.has(digest)) await segments.refresh()
      return ok(await segments.read(digest))
    })
    return found.ok ? found.value : undefined
  }

  async function seal(minBytes: number): Promise<void> {
    await inLine(async () => {
      if (writer && segmentBytes(writer) >= minBytes) await retire()
      return ok(undefined)
    })
  }

  async function close(): Promise<void> {
    await inLine(async () => {
      closed = true
      await retire()
      return ok(undefined)
    })
  }

  function inLine<T>(work: () => Promise<Result<T, Failure>>): Promise<Result<T, Failure>> {
    const mine = tail.then(work).catch((error: unknown) => fail(asFailure(error)))
    tail = mine
    return mine
  }

  // ---- writing

  /** Stores equal bytes once. A segment that held them may have been removed since it was read, also by another process. */
  async function withoutStored({ blobs, entries }: Batch): Promise<Batch> {
    const fresh = new Map<Digest, Batch['blobs'][number]>()
    for (const blob of blobs) if (doubtful.has(blob.digest) || !await segments.holds(blob.digest)) fresh.set(blob.digest, blob)
    return { blobs: [...fresh.values()], entries }
  }

  /** False when the store's limit leaves no room; nothing is written then. */
  async function storeInRoom(fresh: Batch, given: Batch, sync: 'now' | 'later'): Promise<boolean> {
    const reserved = await space.reserve(bytesOf(fresh), session, writer?.view.segment)
    if (reserved === undefined) return false
    let before: { readonly target: SegmentWriter | undefined; readonly bytes: number } | undefined
    try {
      if (reserved.hasTakenOwn) {
        await segments.refresh()
        const again = await withoutStored(given)
        if (again.blobs.length !== fresh.blobs.length) {
          reserved.settle(0)
          return await storeInRoom(again, given, sync)
        }
      }
      before = { target: writer, bytes: writer === undefined ? 0 : segmentBytes(writer) }
      await store(fresh, sync)
      return true
    } finally {
      if (before !== undefined) reserved.settle(writer === undefined ? bytesOf(fresh) : segmentBytes(writer) - (writer === before.target ? before.bytes : 0))
    }
  }

  async function store(batch: Batch, sync: 'now' | 'later'): Promise<void> {
    const target = (writer ??= await startSegment())
    const known = target.view.blobs.length
    let isBroken = false
    try {
      await appendBatch(fs, layout.packs, target, batch, { sync, broken: () => (isBroken = true) })
    } catch (error) {
      // After a failed sync nobody knows which earlier bytes the disk has; asking again would say they are there.
      const isDoubtful = error instanceof AppendFailed && error.at === 'sync' && target.unsynced !== undefined
      if (isDoubtful) doubt(target)
      if (isBroken || isDoubtful) await retire()
      throw error instanceof AppendFailed ? error.cause : error
    }
    for (const { digest } of batch.blobs) doubtful.delete(digest)
    segments.addBlobs(target.view, known)
  }

  /** Syncs what was written with `later`. When that fails, the segment ends: its last records are in doubt. Throws environment errors. */
  async function syncWritten(): Promise<void> {
    clearTimeout(lateSync)
    lateSync = undefined
    const target = writer
    if (target?.unsynced === undefined) return
    try {
      await syncSegment(fs, layout.packs, target)
    } catch (error) {
      doubt(target)
      await retire()
      throw error
    }
  }

  function doubt(target: SegmentWriter): void {
    for (const digest of target.unsynced ?? []) doubtful.add(digest)
    target.unsynced = undefined
  }

  function syncSoon(): void {
    lateSync ??= setTimeout(() => {
      lateSync = undefined
      void inLine(async () => {
        await syncWritten()
        return ok(undefined)
      }).then((done) => {
        if (!done.ok) untold = done.failure
      })
    }, lateSyncMs).unref()
  }

  async function startSegment(): Promise<SegmentWriter> {
    await ensureFolder(fs, layout.packs)
    for (let tries = 1; ; tries += 1) {
      const views = segments.views()
      const last = views.at(-1)
      // Counts records in doubt too: should a power cut take them, the segment is shorter than its successor says.
      const after = { segment: last?.segment ?? 0, records: last?.end.number ?? 0, position: endPosition(views) }
      // Never a number that was used: the missing ones are how a reader knows that records were removed.
      const gone = segments.gone()
      const segment = Math.max(after.segment, gone?.segment ?? 0) + 1
      const lastWrite = gone && gone.segment > after.segment ? gone.writtenAtMs : last && (await fs.peek(segmentPath(layout, session, last.segment)))?.mtimeMs
      const opensRun = lastWrite !== undefined && lastWrite < processStartMs
      try {
        const made = await createSegment(fs, segmentPath(layout, session, segment), { session, workspace, segment, after, opensRun, writer: await writerMark() })
        segments.addOwn(made.view)
        return made
      } catch (error) {
        if (errorCode(error) !== 'EEXIST' || tries === maxNumberTries) throw error
        await segments.refresh()
      }
    }
  }

  /** No more appends to the own segment; syncs it first. */
  async function retire(): Promise<void> {
    const done = writer
    if (!done) return
    writer = undefined
    clearTimeout(lateSync)
    lateSync = undefined
    segments.endOwn(done.view)
    try {
      if (done.unsynced) await syncSegment(fs, layout.packs, done)
      sealedBytes.set(done.view.segment, segmentBytes(done))
    } catch (error) {
      doubt(done)
      untold = asFailure(error)
    } finally {
      await done.file.close()
    }
  }

  async function isOwnThere(): Promise<boolean> {
    return writer === undefined || (await fs.peek(writer.path))?.size === segmentBytes(writer)
  }

  /**
   * Two looks instead of a listing: own segment untouched, no segment behind it. A process makes a new
   * segment behind the last one, so this notices every other writer, and a store folder that was removed
   * under us (writes to an unlinked file would succeed and be lost).
   */
  async function catchUpToAppend(): Promise<void> {
    if (!segments.isScanned() || !writer) return segments.refresh()
    if (!await isOwnThere() || await fs.peek(segmentPath(layout, session, writer.view.segment + 1))) await segments.refresh()
    // Records stay in the order they were made only when the newest segment is the one that grows.
    if (writer && (segments.views().at(-1) !== writer.view || segmentBytes(writer) >= maxSegmentBytes)) await retire()
  }
}

const processStartMs = performance.timeOrigin

const storeFull = failure('store-full', { detail: 'the store has reached its limit (maxStoreBytes)' })

/** What a batch takes at most, with the beginning of a new segment. */
const bytesOf = ({ blobs, entries }: Batch): number =>
  SEGMENT_BYTES + blobs.reduce((sum, { bytes }) => sum + bytes.length + FRAME_BYTES, 0)
  + entries.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)) + FRAME_BYTES, 0)
const SEGMENT_BYTES = 16 * 1024
const FRAME_BYTES = 128
