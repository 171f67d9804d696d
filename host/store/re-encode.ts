import * as v from 'valibot'
import { JournalEntrySchema } from '../../src/checkpoint/journal-entry.ts'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import type { Digest } from '../../src/ids.ts'
import { decodeBlob, parseBlobHead, zstdBlob, zstdSupport } from './blob-encoding.ts'
import { encodeFrames, frameHeaderBytes, readFrameHead, type Encoding, type FrameDraft, type FrameHead } from './frame.ts'
import { readUpTo, writeParts, type StoreFile, type StoreFs } from './store-fs.ts'

/**
 * One segment, written again in fewer bytes: blobs become `zstd`, and later versions of a path `zstd-delta` against
 * an earlier one of the same segment. All else stays: nonce, numbers and kinds of the frames, and every journal
 * entry byte by byte. A base always lies in the same segment and is never a delta itself: a segment can be removed
 * without hurting another, and a read decodes two blobs at most.
 */

/** Blobs below this stay as they are. */
const MIN_BLOB_BYTES = 256
/** So many versions rest on one full copy. Damage to it costs no more than these. */
const MAX_DELTAS = 32
/** A delta has to be so much smaller than the bytes to be worth its base. */
const GOOD_DELTA = 0.1
/** What is not made smaller than this is not worth the write. */
const WORTH = 0.9
const WRITE_BYTES = 1024 * 1024

/** A frame of the segment as it is. */
interface Piece {
  readonly head: FrameHead
  readonly encoding: Encoding
  /** Of the payload, in the file. */
  readonly offset: number
  readonly digest: Digest | undefined
}

interface Plan {
  readonly pieces: readonly Piece[]
  /** One path a blob is known as; blobs that no entry of this segment names have none. */
  readonly pathOf: ReadonlyMap<Digest, string>
  /** Digests stored more than once: neither a delta nor a base, so that no base ever rests on its own delta. */
  readonly repeated: ReadonlySet<Digest>
}

/** Somebody has better things to do. */
export class Unwanted extends Error {}

/**
 * Writes the segment at `path` (`size` bytes, nobody may be writing to it) to `temp` and reads all of it back. The
 * size of `temp`, which is durable then; undefined when the segment is to stay as it is: it has been through this, it
 * is damaged somewhere, or it would not shrink by a tenth. `temp` may be left behind then. Throws environment errors, and
 * `Unwanted` as soon as `isWanted` says no.
 */
export async function reencodeSegment(
  fs: StoreFs, { path, size, temp }: { readonly path: string; readonly size: number; readonly temp: string }, isWanted: () => boolean,
): Promise<number | undefined> {
  if (zstdSupport() === 'none') return undefined
  return withFile(fs, path, 'r', async (source) => {
    const plan = await readPlan(source, size)
    if (plan === undefined) return undefined
    const bytes = await withFile(fs, temp, 'wx', target => write(source, target, plan, { size, isWanted }))
    if (bytes === undefined) return undefined
    return await withFile(fs, temp, 'r', target => isSame(source, plan, target, bytes)) ? bytes : undefined
  })
}

async function withFile<T>(fs: StoreFs, path: string, flags: string, work: (file: StoreFile) => Promise<T>): Promise<T> {
  const file = await fs.open(path, flags, 0o600)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

/** The frames up to `size`; undefined when they are not one whole frame behind the other with no number left out. */
async function listPieces(file: StoreFile, size: number): Promise<readonly Piece[] | undefined> {
  const pieces: Piece[] = []
  let nonce: Buffer | undefined
  for (let at = 0; at < size;) {
    // With the digest of a blob behind it.
    const bytes = await readUpTo(file, at, frameHeaderBytes + 32)
    const head = readFrameHead(bytes.subarray(0, frameHeaderBytes))
    if (head === undefined || head.number !== pieces.length || head.kind === undefined || head.encoding === undefined) return undefined
    nonce ??= head.nonce
    if (!nonce.equals(head.nonce) || at + frameHeaderBytes + head.length > size) return undefined
    const digest = head.kind === 'blob' ? parseBlobHead('raw', bytes.subarray(frameHeaderBytes))?.digest : undefined
    pieces.push({ head, encoding: head.encoding, offset: at + frameHeaderBytes, digest })
    at += frameHeaderBytes + head.length
  }
  return pieces
}

async function readPlan(file: StoreFile, size: number): Promise<Plan | undefined> {
  const pieces = await listPieces(file, size)
  if (pieces === undefined || pieces[0]?.head.kind !== 'header' || pieces.some(({ encoding }) => encoding !== 'raw')) return undefined
  const pathOf = new Map<Digest, string>()
  const pathOfCall = new Map<string, string>()
  const note = (path: string | undefined, ...states: readonly FileState[]): void => {
    for (const state of states) if (path !== undefined && state.kind === 'file' && !pathOf.has(state.digest)) pathOf.set(state.digest, path)
  }
  for (const piece of pieces) {
    if (piece.head.kind !== 'journal') continue
    const payload = await payloadOf(file, piece)
    const parsed = v.safeParse(JournalEntrySchema, payload && jsonOf(payload))
    if (!parsed.success) return undefined
    const entry = parsed.output
    switch (entry.kind) {
      case 'before':
        pathOfCall.set(entry.id, entry.path)
        note(entry.path, entry.state)
        break
      case 'after':
        note(pathOfCall.get(entry.of), entry.state)
        break
      case 'change':
        note(entry.path, entry.before, entry.after)
        break
      case 'outside':
        note(entry.path, entry.state)
        break
      case 'op-begin':
        for (const { path, was, goal } of entry.rows) note(path, was, goal)
        break
      default:
    }
  }
  const seen = new Set<Digest>()
  const repeated = new Set<Digest>()
  for (const { digest } of pieces) if (digest !== undefined && seen.size === seen.add(digest).size) repeated.add(digest)
  return { pieces, pathOf, repeated }
}

/** Undefined when the frame is damaged. */
async function payloadOf(file: StoreFile, { head, offset }: Piece): Promise<Buffer | undefined> {
  const payload = await readUpTo(file, offset, head.length)
  return head.isWhole(payload) ? payload : undefined
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** Durable when it resolves. Undefined as soon as it is sure not to be worth it, or a frame is damaged. */
async function write(
  source: StoreFile, target: StoreFile, plan: Plan, { size, isWanted }: { readonly size: number; readonly isWanted: () => boolean },
): Promise<number | undefined> {
  const encode = makeEncoder(source, plan)
  let bytes = 0
  let parts: Uint8Array[] = []
  let waiting = 0
  const flush = async (): Promise<void> => {
    await writeParts(target, parts, bytes - waiting)
    parts = []
    waiting = 0
  }
  for (const piece of plan.pieces) {
    if (!isWanted()) throw new Unwanted()
    const draft = await encode(piece)
    if (draft === undefined) return undefined
    const frame = encodeFrames(piece.head.nonce, piece.head.number, bytes, [draft])
    parts.push(...frame.parts)
    bytes += frame.bytes
    waiting += frame.bytes
    if (bytes > size * WORTH) return undefined
    if (waiting >= WRITE_BYTES) await flush()
  }
  await flush()
  await target.datasync()
  return bytes
}

/** The frame that stands for a piece; undefined when the piece is damaged. */
function makeEncoder(source: StoreFile, { pieces, pathOf, repeated }: Plan) {
  const places = new Map(pieces.flatMap(piece => (piece.digest === undefined ? [] : [[piece.digest, piece] as const])))
  /** The newest full copy of each path. */
  const bases = new Map<string, { readonly digest: Digest; deltas: number }>()

  const bytesOf = async (digest: Digest): Promise<Buffer | undefined> => (await payloadOf(source, places.get(digest)!))?.subarray(32)

  return async (piece: Piece): Promise<FrameDraft | undefined> => {
    const payload = await payloadOf(source, piece)
    const { head: { kind }, digest } = piece
    if (payload === undefined || kind === undefined) return undefined
    if (digest === undefined || payload.length < MIN_BLOB_BYTES) return { kind, payload: [payload] }
    const bytes = payload.subarray(32)
    const path = repeated.has(digest) ? undefined : pathOf.get(digest)
    const base = path === undefined ? undefined : bases.get(path)
    if (base !== undefined && base.deltas < MAX_DELTAS && zstdSupport() === 'dictionary') {
      const baseBytes = await bytesOf(base.digest)
      const delta = baseBytes && await zstdBlob(digest, bytes, { digest: base.digest, bytes: baseBytes })
      if (delta !== undefined && lengthOf(delta) <= payload.length * GOOD_DELTA) {
        base.deltas += 1
        return { kind, encoding: 'zstd-delta', payload: delta }
      }
    }
    if (path !== undefined) bases.set(path, { digest, deltas: 0 })
    const packed = await zstdBlob(digest, bytes)
    return lengthOf(packed) < payload.length * WORTH ? { kind, encoding: 'zstd', payload: packed } : { kind, payload: [payload] }
  }
}

const lengthOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, { length }) => sum + length, 0)

/** What was written, read back: the same frames, and every blob gives the bytes it is named after. */
async function isSame(source: StoreFile, plan: Plan, target: StoreFile, size: number): Promise<boolean> {
  const pieces = await listPieces(target, size)
  if (pieces?.length !== plan.pieces.length) return false
  const places = new Map(pieces.flatMap(piece => (piece.digest === undefined ? [] : [[piece.digest, piece] as const])))
  const decode = async (piece: Piece, of: Digest | undefined): Promise<Buffer | undefined> => {
    const payload = await payloadOf(target, piece)
    return payload && decodeBlob(piece.encoding, payload, async (base) => {
      const place = places.get(base)
      return place === undefined || place.encoding === 'zstd-delta' ? undefined : decode(place, undefined)
    }, of)
  }
  for (const [at, piece] of pieces.entries()) {
    const old = plan.pieces[at]!
    if (piece.head.kind !== old.head.kind || piece.digest !== old.digest) return false
    if (piece.digest === undefined) {
      const [was, is] = [await payloadOf(source, old), await payloadOf(target, piece)]
      if (was === undefined || is === undefined || !was.equals(is)) return false
    } else if (await decode(piece, piece.digest) === undefined) return false
  }
  return true
}
