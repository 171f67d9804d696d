import { join } from 'node:path'
import type { Digest, SessionId } from '../../src/ids.ts'
import { decodeBlob, parseBlobHead } from './blob-encoding.ts'
import { emptyView, readSegment, type BlobPlace, type SegmentView } from './segment.ts'
import { errorCode, readUpTo, syncFile, unlessMissing, type FileFacts, type StoreFs } from './store-fs.ts'
import { parseGoneName, parseSegmentName, segmentPath, sessionFileName, type Gone, type StoreLayout } from './store-layout.ts'

/** What is known of the segment files of one session, and where each blob lies. Never the truth: the files are. */
export interface SessionSegments {
  /** In order of their numbers. */
  views(): readonly SegmentView[]
  /** What was noted as removed, with all segments before it. */
  gone(): Gone | undefined
  /** Counts what was learned or forgotten. */
  generation(): number
  /** False before the first `refresh`. */
  isScanned(): boolean
  has(digest: Digest): boolean
  /** Like `has`, and its segment is still there. Throws environment errors. */
  holds(digest: Digest): Promise<boolean>
  /** A segment that this process has just made and writes to. Not read from the file until `endOwn`. */
  addOwn(view: SegmentView): void
  /** Blobs of an own segment from this index on were just stored. */
  addBlobs(view: SegmentView, from: number): void
  /** No more appends to the own segment. What a failed cut may have left behind its last stored record is never read here. */
  endOwn(view: SegmentView): void
  /** Brings the views up to the files. What did not change since the last look is not opened. Throws environment errors. */
  refresh(): Promise<void>
  /** The file is gone, or another one has its name. */
  forget(segment: number): void
  /** The bytes, checked against the digest; `undefined` when they are not stored or damaged. Throws environment errors. */
  read(digest: Digest): Promise<Buffer | undefined>
}

interface Known {
  readonly view: SegmentView
  /** Size, time and inode when it was last read; `own` while we write to it, `sealed` when we have stopped. */
  look: string | undefined
  /** `undefined` until a listing has shown the file. */
  ino: number | undefined
}

/** A delta chain longer than this is a loop. */
const maxDeltaDepth = 64
const settledAfterMs = 2000
/** A record up to this size is read in one go: it takes some tens of microseconds. */
const maxQuickBytes = 256 * 1024
/** Longer than any system leaves written bytes in memory only. */
const unsyncedForMs = 120_000
const own = 'own'
const sealed = 'sealed'

/** Touches no disk before the first call. */
export function makeSessionSegments(fs: StoreFs, layout: StoreLayout, session: SessionId): SessionSegments {
  const name = sessionFileName(session)
  let known: Known[] = []
  const blobs = new Map<Digest, BlobPlace>()
  let generation = 0
  let gone: Gone | undefined
  let scanned = false

  const views = (): readonly SegmentView[] => known.map(({ view }) => view)
  const find = (segment: number): Known | undefined => known.find(({ view }) => view.segment === segment)

  function add(one: Known): void {
    known = [...known, one].sort((a, b) => a.view.segment - b.view.segment)
    generation += 1
  }

  function addBlobs(view: SegmentView, from: number): void {
    generation += 1
    for (let index = from; index < view.blobs.length; index += 1) blobs.set(view.blobs[index]!.digest, view.blobs[index]!.place)
  }

  function forget(segment: number): void {
    const gone = find(segment)
    if (!gone) return
    known = known.filter((one) => one !== gone)
    generation += 1
    for (const { digest } of gone.view.blobs) if (blobs.get(digest)?.segment === segment) blobs.delete(digest)
    const lost = new Set(gone.view.blobs.map(({ digest }) => digest))
    // Damage may have made the same bytes be stored twice.
    for (const { view } of known) for (const { digest, place } of view.blobs) if (lost.has(digest)) blobs.set(digest, place)
  }

  async function refresh(): Promise<void> {
    const found = new Map<number, FileFacts>()
    for (const file of await unlessMissing(fs.readdir(layout.packs), [])) {
      const note = parseGoneName(file)
      if (note?.session === name && note.segment > (gone?.segment ?? 0)) {
        gone = note
        generation += 1
      }
      const parsed = parseSegmentName(file)
      if (parsed?.session !== name) continue
      const facts = await unlessMissing(fs.stat(join(layout.packs, file)), undefined)
      if (facts) found.set(parsed.segment, facts)
    }
    for (const { view, ino } of known) {
      const facts = found.get(view.segment)
      // Removed, cut, or written anew: what is in memory is worth nothing.
      if (!facts || facts.size < view.end.offset || (ino !== undefined && ino !== facts.ino)) forget(view.segment)
    }
    for (const [segment, facts] of [...found].sort(([a], [b]) => a - b)) await readChanged(segment, facts)
    scanned = true
  }

  async function readChanged(segment: number, facts: FileFacts): Promise<void> {
    const look = `${facts.size} ${facts.mtimeMs} ${facts.ino}`
    let one = find(segment)
    if (!one) add(one = { view: emptyView(segment), look: undefined, ino: undefined })
    one.ino = facts.ino
    if (one.look === own || one.look === sealed || one.look === look) return
    generation += 1
    const { view } = one
    const count = view.blobs.length
    view.unreadable = undefined
    try {
      const path = segmentPath(layout, session, segment)
      await readSegment(fs, path, facts.size, session, view)
      // Its last records may have been left to a later sync by a process that is gone; what we vouch for must stay.
      if (Date.now() - facts.mtimeMs < unsyncedForMs) await syncFile(fs, path)
      // A write may be under way in the bytes just read, and end within the same tick of the file's clock.
      if (Date.now() - facts.mtimeMs > settledAfterMs) one.look = look
    } catch (error) {
      // One file that cannot be read costs its records, not the session's store. It is tried again next time.
      view.unreadable = errorCode(error)
      if (view.unreadable === undefined) throw error
    }
    addBlobs(view, count)
  }

  async function read(digest: Digest): Promise<Buffer | undefined> {
    const bytes = await decode(digest, 0)
    if (bytes || !blobs.has(digest)) return bytes
    // The file may have been written anew or removed since it was read: its places are other ones now.
    await refresh()
    const again = await decode(digest, 0)
    const place = blobs.get(digest)
    if (again || !place) return again
    // Not having it is the truth then, and the next append of these bytes stores them again. So it is with a bad base.
    blobs.delete(digest)
    const payload = await payloadAt(place)
    const base = payload && parseBlobHead(place.encoding, payload)?.base
    if (base) await read(base)
    return undefined
  }

  /** Of a chain of deltas only the bytes that were asked for are checked: wrong bytes of a base cannot give right ones. */
  async function decode(digest: Digest, depth: number, place = blobs.get(digest)): Promise<Buffer | undefined> {
    if (!place || depth > maxDeltaDepth) return undefined
    const payload = await payloadAt(place)
    // Bytes that are stored twice: the base of a delta is the one beside it.
    const beside = (base: Digest): BlobPlace | undefined => find(place.segment)?.view.blobs.findLast(blob => blob.digest === base)?.place
    return payload && decodeBlob(place.encoding, payload, base => decode(base, depth + 1, beside(base) ?? blobs.get(base)), depth === 0 ? digest : undefined)
  }

  async function payloadAt(place: BlobPlace): Promise<Buffer | undefined> {
    const path = segmentPath(layout, session, place.segment)
    if (fs.readNow !== undefined && place.length <= maxQuickBytes) return fs.readNow(path, place.offset, place.length)
    const file = await unlessMissing(fs.open(path, 'r'), undefined)
    if (!file) return undefined
    try {
      return await readUpTo(file, place.offset, place.length)
    } finally {
      await file.close()
    }
  }

  async function holds(digest: Digest): Promise<boolean> {
    const place = blobs.get(digest)
    if (!place) return false
    const one = find(place.segment)
    const facts = await fs.peek(segmentPath(layout, session, place.segment))
    if (facts && (one?.ino === undefined || one.ino === facts.ino)) return true
    await refresh()
    return blobs.has(digest)
  }

  return {
    views,
    holds,
    gone: () => gone,
    generation: () => generation,
    isScanned: () => scanned,
    has: (digest) => blobs.has(digest),
    addOwn: (view) => add({ view, look: own, ino: undefined }),
    addBlobs,
    endOwn(view) {
      const one = find(view.segment)
      if (one) one.look = sealed
    },
    refresh,
    forget,
    read,
  }
}
