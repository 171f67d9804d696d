import * as v from 'valibot'
import { JournalEntrySchema, type JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { sessionId, type Digest, type SessionId } from '../../src/ids.ts'
import { parseBlobHead } from './blob-encoding.ts'
import { scanFrames, scanStart, type Encoding, type Frame, type ScanPoint } from './frame.ts'
import { ProcessMarkSchema } from './process-mark.ts'
import { errorCode, readUpTo, type StoreFs } from './store-fs.ts'

/**
 * A segment: one append-only file `packs/<session>-<n>.pack`. Only the process that made a segment writes
 * to it, and only behind its last whole record, so no reader ever has to repair a file.
 */
export const formatVersion = 1
const count = v.pipe(v.number(), v.integer(), v.minValue(0))

/** Who writes to a segment: a process, and in it a store. */
const WriterMarkSchema = v.object({ ...ProcessMarkSchema.entries, store: v.string() })
export type WriterMark = v.InferOutput<typeof WriterMarkSchema>

const HeaderSchema = v.object({
  format: v.literal(formatVersion),
  session: v.string(),
  /** real path of the session's workspace */
  workspace: v.string(),
  segment: count,
  /** What was there when this segment was made: number and records of the one before, and the position at its end. */
  after: v.object({ segment: count, records: count, position: count }),
  opensRun: v.optional(v.boolean(), false),
  writer: v.optional(WriterMarkSchema),
})
/** Record 0. `after` is how a lost tail, or a lost file, in front of this segment is noticed. */
export interface SegmentHeader {
  readonly session: SessionId
  readonly workspace: string
  readonly segment: number
  readonly after: { readonly segment: number; readonly records: number; readonly position: number }
  /** All that came before was written before this process began. No turn goes on from one process to the next. */
  readonly opensRun: boolean
  /** Nobody else writes to it, and nobody at all once this one has ended. */
  readonly writer?: WriterMark | undefined
}

/** Where a blob's payload lies. */
export interface BlobPlace {
  readonly segment: number
  readonly number: number
  readonly encoding: Encoding
  readonly offset: number
  readonly length: number
}

/** What is known of one segment. `end.number` is its count of records, lost ones included. */
export interface SegmentView {
  readonly segment: number
  header: SegmentHeader | undefined
  end: ScanPoint
  readonly entries: { readonly number: number; readonly entry: JournalEntry }[]
  readonly blobs: { readonly digest: Digest; readonly place: BlobPlace }[]
  /** Places where records are missing: behind so many records of this segment. */
  readonly holes: { readonly afterRecords: number; readonly detail: string }[]
  /** Whole frames that mean nothing here, because the header is of another format or another session. */
  foreign: boolean
  /** Why the file could not be read to its end the last time. */
  unreadable: string | undefined
}

export const emptyView = (segment: number): SegmentView =>
  ({ segment, header: undefined, end: scanStart, entries: [], blobs: [], holes: [], foreign: false, unreadable: undefined })

/** Reads what lies behind `view.end` into `view`; the frames are returned for those who want to see each. */
export async function readSegment(
  fs: StoreFs,
  path: string,
  size: number,
  session: SessionId,
  view: SegmentView,
): Promise<readonly Frame[]> {
  const file = await fs.open(path, 'r')
  try {
    const from = view.end
    const scan = scanFrames(await readUpTo(file, from.offset, size - from.offset), from)
    for (const gap of scan.lost) {
      const detail = `records ${gap.from} to ${gap.to - 1} of segment ${view.segment} are damaged or missing`
      view.holes.push({ afterRecords: gap.from, detail })
    }
    for (const frame of scan.frames) addFrame(view, frame, session)
    view.end = scan.end
    return scan.frames
  } finally {
    await file.close()
  }
}

/** Longest header that is looked for: two paths and some numbers. */
const maxHeaderBytes = 64 * 1024

/** Record 0 alone; `undefined` when it does not read, or the file cannot be opened. */
export async function readSegmentHeader(fs: StoreFs, path: string): Promise<SegmentHeader | undefined> {
  const start = await unlessRefused(readStart(fs, path))
  const first = start && scanFrames(start, scanStart).frames[0]
  const parsed = v.safeParse(HeaderSchema, first?.kind === 'header' ? parseJson(first.payload) : undefined)
  return parsed.success ? { ...parsed.output, session: sessionId(parsed.output.session) } : undefined
}

async function readStart(fs: StoreFs, path: string): Promise<Buffer> {
  const file = await fs.open(path, 'r')
  try {
    return await readUpTo(file, 0, maxHeaderBytes)
  } finally {
    await file.close()
  }
}

async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}

/** Takes a whole frame into `view`; one that does not read becomes a hole. */
export function addFrame(view: SegmentView, frame: Frame, session: SessionId): void {
  if (view.foreign) return
  const read = frame.encoding !== undefined && readers[frame.kind ?? 'unknown'](view, frame, frame.encoding, session)
  if (read) return
  view.holes.push({ afterRecords: frame.number, detail: `record ${frame.number} of segment ${view.segment} does not read` })
}

const readers: Record<
  NonNullable<Frame['kind']> | 'unknown',
  (view: SegmentView, frame: Frame, encoding: Encoding, session: SessionId) => boolean
> = {
  header(view, frame, _encoding, session) {
    const parsed = v.safeParse(HeaderSchema, parseJson(frame.payload))
    view.foreign = !parsed.success || parsed.output.session !== session || frame.number !== 0
    if (parsed.success && !view.foreign) view.header = { ...parsed.output, session }
    return !view.foreign
  },
  blob(view, frame, encoding) {
    const head = parseBlobHead(encoding, frame.payload)
    if (!head) return false
    const { number, offset, payload } = frame
    const place = { segment: view.segment, number, encoding, offset, length: payload.length }
    view.blobs.push({ digest: head.digest, place })
    return true
  },
  journal(view, frame, encoding) {
    const parsed = v.safeParse(JournalEntrySchema, encoding === 'raw' ? parseJson(frame.payload) : undefined)
    if (parsed.success) view.entries.push({ number: frame.number, entry: parsed.output })
    return parsed.success
  },
  unknown: () => false,
}

/** `undefined` for what is not JSON; no schema of ours takes that. */
function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
