import { join } from 'node:path'
import * as v from 'valibot'
import { JournalEntrySchema, type JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest, SessionId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { decodeBlob } from './blob-encoding.ts'
import { emptyView, readSegment, type BlobPlace, type SegmentView } from './segment.ts'
import { appendBatch, createSegment, segmentBytes, type Batch, type SegmentWriter } from './segment-writer.ts'
import { endPosition, joinSegments, type SessionRecords } from './session-records.ts'
import { asFailure, ensureFolder, errorCode, readUpTo, unlessMissing, type FileFacts, type StoreFs } from './store-fs.ts'
import { parseSegmentName, segmentPath, sessionFileName, type StoreLayout } from './store-layout.ts'

/**
 * Everything stored for one session. Nothing here throws: an environment error is `store-unavailable`,
 * and a later call may succeed again.
 */
export interface SessionJournal {
  readonly session: SessionId
  /**
   * Appends the blobs that are not yet stored and the entries; resolves when they are durable, with the
   * position of the last record. One at a time, in call order; all of a batch or nothing of it.
   * `blobs` is trusted to carry the digests of its bytes, and the bytes must not change until it resolves.
   */
  append(batch: {
    entries: readonly JournalEntry[]
    blobs?: readonly { digest: Digest; bytes: Uint8Array }[]
  }): Promise<Result<{ position: number }, Failure>>
  /** All entries, oldest first, with the places where records are missing. From memory after the first scan. */
  read(): Promise<Result<SessionRecords, Failure>>
  /** Whether a readable record of the blob is known. False also when the store cannot be read. */
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
}

/** A delta chain longer than this is a loop. */
const maxDeltaDepth = 64
/** Tries to find a free segment number while other processes take them. */
const maxNumberTries = 100

/** Touches no disk before the first call. */
export function openJournal(options: JournalOptions): SessionJournal & { close(): Promise<void> } {
  const { fs, layout, session, workspace, maxSegmentBytes } = options
  const name = sessionFileName(session)
  /** Segments in order of number, and how each file looked when it was read. */
  let views: SegmentView[] = []
  const looks = new Map<number, string>()
  let blobs = new Map<Digest, BlobPlace>()
  let joined: SessionRecords | undefined
  let scanned = false
  let writer: SegmentWriter | undefined
  let closed = false
  /** Calls run one after another: the end of the line. Never rejects. */
  let tail: Promise<unknown> = Promise.resolve()

  return { session, append, read, hasBlob, readBlob, close }

  function append(batch: Parameters<SessionJournal['append']>[0]): Promise<Result<{ position: number }, Failure>> {
    return inLine(async () => {
      if (closed) return fail(failure('store-unavailable', { detail: 'the store is closed' }))
      const entries = v.safeParse(v.array(JournalEntrySchema), batch.entries)
      // An entry that would not read back must not be written: it would be a hole for ever.
      if (!entries.success) return fail(failure('internal', { detail: `store/journal: ${v.summarize(entries.issues)}` }))
      await catchUpToAppend()
      const unknown = (batch.blobs ?? []).filter((blob) => !blobs.has(blob.digest))
      const fresh = new Map(unknown.map((blob) => [blob.digest, blob]))
      if (fresh.size > 0 || entries.output.length > 0) await store({ blobs: [...fresh.values()], entries: entries.output })
      return ok({ position: endPosition(views) })
    })
  }

  function read(): Promise<Result<SessionRecords, Failure>> {
    return inLine(async () => {
      await refresh()
      return ok((joined ??= joinSegments(views)))
    })
  }

  async function hasBlob(digest: Digest): Promise<boolean> {
    const found = await inLine(async () => {
      if (!scanned) await refresh()
      return ok(blobs.has(digest))
    })
    return found.ok && found.value
  }

  async function readBlob(digest: Digest): Promise<Buffer | undefined> {
    const found = await inLine(async () => {
      if (!scanned || !blobs.has(digest)) await refresh()
      return ok(await readStored(digest, 0))
    })
    return found.ok ? found.value : undefined
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

  async function store(batch: Batch): Promise<void> {
    if (writer && segmentBytes(writer) >= maxSegmentBytes) await retire()
    const target = (writer ??= await startSegment())
    const known = target.view.blobs.length
    let broken = false
    try {
      await appendBatch(fs, layout.packs, target, batch, () => (broken = true))
    } finally {
      if (broken) await retire()
    }
    joined = undefined
    for (const { digest, place } of target.view.blobs.slice(known)) blobs.set(digest, place)
  }

  async function startSegment(): Promise<SegmentWriter> {
    await ensureFolder(fs, layout.packs)
    for (let tries = 1; ; tries += 1) {
      const last = views.at(-1)
      const after = { segment: last?.segment ?? 0, records: last?.end.number ?? 0, position: endPosition(views) }
      const segment = after.segment + 1
      try {
        const made = await createSegment(fs, segmentPath(layout, session, segment), { session, workspace, segment, after })
        views.push(made.view)
        joined = undefined
        return made
      } catch (error) {
        if (errorCode(error) !== 'EEXIST' || tries === maxNumberTries) throw error
        await refresh()
      }
    }
  }

  /** No more appends to the own segment. What a failed cut may have left behind its last stored record is never read here. */
  async function retire(): Promise<void> {
    const done = writer
    writer = undefined
    if (!done) return
    looks.set(done.view.segment, sealed)
    await done.file.close()
  }

  // ---- reading

  /**
   * Two looks instead of a listing: own segment untouched, no segment behind it. A process makes a new
   * segment behind the last one, so this notices every other writer, and a store folder that was removed
   * under us (writes to an unlinked file would succeed and be lost).
   */
  async function catchUpToAppend(): Promise<void> {
    if (!scanned || !writer) return refresh()
    const own = await unlessMissing(fs.stat(writer.path), undefined)
    const next = await unlessMissing(fs.stat(segmentPath(layout, session, writer.view.segment + 1)), undefined)
    if (own?.size !== segmentBytes(writer) || next) await refresh()
    // Records stay in the order they were made only when the newest segment is the one that grows.
    if (writer && views.at(-1) !== writer.view) await retire()
  }

  /** Brings the views up to the files. What did not change since the last look is not opened. */
  async function refresh(): Promise<void> {
    const found = new Map<number, FileFacts>()
    for (const file of await unlessMissing(fs.readdir(layout.packs), [])) {
      const parsed = parseSegmentName(file)
      if (parsed?.session !== name) continue
      const facts = await unlessMissing(fs.stat(join(layout.packs, file)), undefined)
      if (facts) found.set(parsed.segment, facts)
    }
    if (views.some((view) => (found.get(view.segment)?.size ?? -1) < view.end.offset)) await forget()
    for (const [segment, facts] of [...found].sort(([a], [b]) => a - b)) await readChanged(segment, facts)
    scanned = true
  }

  async function readChanged(segment: number, facts: FileFacts): Promise<void> {
    const look = `${facts.size} ${facts.mtimeMs} ${facts.ino}`
    if (segment === writer?.view.segment || looks.get(segment) === sealed || looks.get(segment) === look) return
    let view = views.find((known) => known.segment === segment)
    if (!view) {
      view = emptyView(segment)
      views = [...views, view].sort((a, b) => a.segment - b.segment)
    }
    joined = undefined
    const known = view.blobs.length
    view.unreadable = undefined
    try {
      await readSegment(fs, segmentPath(layout, session, segment), facts.size, session, view)
      // A write may be under way in the bytes just read, and end within the same tick of the file's clock.
      if (Date.now() - facts.mtimeMs > settledAfterMs) looks.set(segment, look)
    } catch (error) {
      // One file that cannot be read costs its records, not the session's store. It is tried again next time.
      view.unreadable = errorCode(error)
      if (view.unreadable === undefined) throw error
    }
    for (const { digest, place } of view.blobs.slice(known)) blobs.set(digest, place)
  }

  /** Files we had read got shorter or went away: what is in memory is worth nothing. */
  async function forget(): Promise<void> {
    await retire()
    views = []
    looks.clear()
    blobs = new Map()
    joined = undefined
  }

  async function readStored(digest: Digest, depth: number): Promise<Buffer | undefined> {
    const place = blobs.get(digest)
    if (!place || depth > maxDeltaDepth) return undefined
    const payload = await payloadAt(place)
    const bytes = payload && (await decodeBlob(place.encoding, payload, (base) => readStored(base, depth + 1)))
    // Not having it is the truth then, and the next append of these bytes stores them again.
    if (!bytes) blobs.delete(digest)
    return bytes
  }

  async function payloadAt(place: BlobPlace): Promise<Buffer | undefined> {
    const file = await unlessMissing(fs.open(segmentPath(layout, session, place.segment), 'r'), undefined)
    if (!file) return undefined
    try {
      return await readUpTo(file, place.offset, place.length)
    } finally {
      await file.close()
    }
  }
}

/** Look of a segment this process has stopped writing to. */
const sealed = 'sealed'
const settledAfterMs = 2000
