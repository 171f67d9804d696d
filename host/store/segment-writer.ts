import { randomBytes } from 'node:crypto'
import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest } from '../../src/ids.ts'
import { rawBlob } from './blob-encoding.ts'
import { encodeFrames, type FrameDraft } from './frame.ts'
import { emptyView, formatVersion, type SegmentHeader, type SegmentView } from './segment.ts'
import { syncFolder, writeParts, type StoreFile, type StoreFs } from './store-fs.ts'

/** The segment this process writes to. `view` is kept equal to what a scan of the file would give. */
export interface SegmentWriter {
  readonly file: StoreFile
  readonly path: string
  readonly nonce: Buffer
  readonly header: SegmentHeader
  readonly view: SegmentView
  /** The folder does not durably name the file yet. */
  nameIsNew: boolean
  /** Blobs of records that are written and not yet synced; `undefined` when every record is durable. */
  unsynced: Set<Digest> | undefined
}

/** Makes the file, empty. Fails with EEXIST when another process took the number. */
export async function createSegment(fs: StoreFs, path: string, header: SegmentHeader): Promise<SegmentWriter> {
  const file = await fs.open(path, 'wx', 0o600)
  return { file, path, nonce: randomBytes(8), header, view: emptyView(header.segment), nameIsNew: true, unsynced: undefined }
}

export interface Batch {
  readonly blobs: readonly { readonly digest: Digest; readonly bytes: Uint8Array }[]
  /** Valid by JournalEntrySchema. */
  readonly entries: readonly JournalEntry[]
}

/** Why an append did not happen. `sync`: it was the sync that failed, so records written before it may be lost too. */
export class AppendFailed extends Error {
  readonly at: 'write' | 'sync'
  constructor(at: 'write' | 'sync', cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.at = at
  }
}

/**
 * Appends a batch: one write of all its frames and, unless `sync` is `later`, one sync, which covers all that
 * was written before too. The journal entry is what makes a blob matter, so blobs stand before entries: a
 * write that is cut off leaves blobs nobody names, never names without blobs. The batch counts as stored when
 * this resolves; until then `view` does not know of it.
 *
 * Throws `AppendFailed` around environment errors. The file then ends at its last stored record again; when
 * even that cannot be done, `broken` is called and nothing may be appended to this segment any more.
 */
export async function appendBatch(
  fs: StoreFs,
  folder: string,
  writer: SegmentWriter,
  batch: Batch,
  { sync, broken }: { readonly sync: 'now' | 'later'; broken(): void },
): Promise<void> {
  const { offset, number } = writer.view.end
  const drafts: FrameDraft[] = [
    ...(number === 0 ? [{ kind: 'header', payload: [toJson({ format: formatVersion, ...writer.header })] } as const] : []),
    ...batch.blobs.map(({ digest, bytes }) => ({ kind: 'blob', payload: rawBlob(digest, bytes) } as const)),
    ...batch.entries.map((entry) => ({ kind: 'journal', payload: [toJson(entry)] } as const)),
  ]
  const { parts, bytes, places } = encodeFrames(writer.nonce, number, offset, drafts)
  let at: AppendFailed['at'] = 'write'
  try {
    await writeParts(writer.file, parts, offset)
    at = 'sync'
    if (sync === 'now') await syncSegment(fs, folder, writer)
  } catch (error) {
    await cutBack(writer, offset, broken)
    throw new AppendFailed(at, error)
  }
  if (sync === 'later') for (const { digest } of batch.blobs) (writer.unsynced ??= new Set()).add(digest)
  if (sync === 'later') writer.unsynced ??= new Set()
  // The same as a scan of the bytes would add; these were just made, so they are not parsed again.
  const { view } = writer
  const first = number === 0 ? 1 : 0
  if (first > 0) view.header = writer.header
  batch.blobs.forEach(({ digest }, index) => {
    view.blobs.push({ digest, place: { segment: view.segment, number: number + first + index, encoding: 'raw', ...places[first + index]! } })
  })
  const behind = number + first + batch.blobs.length
  batch.entries.forEach((entry, index) => void view.entries.push({ number: behind + index, entry }))
  view.end = { offset: offset + bytes, number: number + drafts.length, nonce: writer.nonce }
}

/** Makes all that was written durable. Throws environment errors; `unsynced` then still names what is in doubt. */
export async function syncSegment(fs: StoreFs, folder: string, writer: SegmentWriter): Promise<void> {
  await writer.file.datasync()
  if (writer.nameIsNew) await syncFolder(fs, folder)
  writer.nameIsNew = false
  writer.unsynced = undefined
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
