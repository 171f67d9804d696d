import type { Digest } from '../../src/ids.ts'
import type { SessionJournal } from '../store/session-journal.ts'

/** Bytes wait in memory up to about this size, so that many small files cost one write and one sync. */
const BATCH_BYTES = 8 * 1024 * 1024

/** The store could not take a file's bytes. */
export class StoreFailed extends Error {}

/** Bytes on their way into a session's store. They are durable when `settle` resolves, not before. */
export interface BlobBatch {
  /** True when the bytes are stored or wait in the batch. */
  has(digest: Digest): Promise<boolean>
  keep(digest: Digest, bytes: Uint8Array): Promise<void>
  /** Rejects with `StoreFailed`; what waited is then dropped. */
  settle(): Promise<void>
}

/** One batch serves one look. */
export function makeBlobBatch(journal: Pick<SessionJournal, 'append' | 'hasBlob'>): BlobBatch {
  let waiting = new Map<Digest, Uint8Array>()
  let waitingBytes = 0
  const settle = async (): Promise<void> => {
    const blobs = [...waiting].map(([digest, bytes]) => ({ digest, bytes }))
    waiting = new Map()
    waitingBytes = 0
    if (blobs.length === 0) return
    const stored = await journal.append({ entries: [], blobs })
    if (!stored.ok) throw new StoreFailed(String(stored.failure.facts.detail ?? stored.failure.code))
  }
  return {
    has: async digest => waiting.has(digest) || await journal.hasBlob(digest),
    keep: async (digest, bytes) => {
      waiting.set(digest, bytes)
      waitingBytes += bytes.length
      if (waitingBytes >= BATCH_BYTES) await settle()
    },
    settle,
  }
}
