import { randomBytes } from 'node:crypto'
import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest } from '../../src/ids.ts'
import { rawBlob } from './blob-encoding.ts'
import { encodeFrame, scanFrames, type Frame } from './frame.ts'
import { addFrame, emptyView, formatVersion, type SegmentHeader, type SegmentView } from './segment.ts'
import { syncFolder, writeFully, type StoreFile, type StoreFs } from './store-fs.ts'

/** The segment this process writes to. `view` is kept equal to what a scan of the file would give. */
export interface SegmentWriter {
  readonly file: StoreFile
  readonly path: string
  readonly nonce: Buffer
  readonly header: SegmentHeader
  readonly view: SegmentView
  /** The folder does not durably name the file yet. */
  nameIsNew: boolean
}

/** Makes the file, empty. Fails with EEXIST when another process took the number. */
export async function createSegment(fs: StoreFs, path: string, header: SegmentHeader): Promise<SegmentWriter> {
  const file = await fs.open(path, 'wx', 0o600)
  return { file, path, nonce: randomBytes(8), header, view: emptyView(header.segment), nameIsNew: true }
}

export interface Batch {
  readonly blobs: readonly { readonly digest: Digest; readonly bytes: Uint8Array }[]
  /** Valid by JournalEntrySchema. */
  readonly entries: readonly JournalEntry[]
}

/**
 * Appends a batch: one write of all its frames, one sync. The journal entry is what makes a blob matter,
 * so blobs stand before entries: a write that is cut off leaves blobs nobody names, never names without blobs.
 * The batch counts as stored when the sync has returned; until then `view` does not know of it.
 *
 * Throws environment errors. The file then ends at its last stored record again; when even that cannot be
 * done, `broken` is called and nothing may be appended to this segment any more.
 */
export async function appendBatch(
  fs: StoreFs,
  folder: string,
  writer: SegmentWriter,
  batch: Batch,
  broken: () => void,
): Promise<void> {
  const { offset, number } = writer.view.end
  const frames: Buffer[] = []
  const add = (kind: NonNullable<Frame['kind']>, payload: readonly Uint8Array[]): void => {
    frames.push(encodeFrame(writer.nonce, number + frames.length, kind, 'raw', payload))
  }
  if (number === 0) add('header', [toJson({ format: formatVersion, ...writer.header })])
  for (const blob of batch.blobs) add('blob', rawBlob(blob.digest, blob.bytes))
  for (const entry of batch.entries) add('journal', [toJson(entry)])
  const bytes = Buffer.concat(frames)
  try {
    await writeFully(writer.file, bytes, offset)
    await writer.file.datasync()
    if (writer.nameIsNew) await syncFolder(fs, folder)
    writer.nameIsNew = false
  } catch (error) {
    await cutBack(writer, offset, broken)
    throw error
  }
  const scan = scanFrames(bytes, { ...writer.view.end, nonce: writer.nonce })
  for (const frame of scan.frames) addFrame(writer.view, frame, writer.header.session)
  writer.view.end = scan.end
}

async function cutBack(writer: SegmentWriter, length: number, broken: () => void): Promise<void> {
  try {
    await writer.file.truncate(length) // made durable by the sync of the next append
  } catch {
    broken() // whatever stopped the cut: bytes of the failed write may stand there, whole frames among them
  }
}

const toJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value), 'utf8')

/** Size of a segment behind its last stored record. */
export const segmentBytes = (writer: SegmentWriter): number => writer.view.end.offset
