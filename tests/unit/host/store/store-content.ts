import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { sessionId, type Digest } from '../../../../src/ids.ts'
import { encodeFrames, type Encoding, type FrameKind } from '../../../../host/store/frame.ts'
import { digestOf } from '../../../../host/digest.ts'

export const aSession = sessionId('session-1')
export const workspace = '/w'

/** The look at `/w/<name>` before a call of turn 1. */
export const before = (name: string, content?: Blob): JournalEntry => ({
  kind: 'before',
  id: `b-${name}`,
  turn: { startSeq: 3, number: 1 },
  call: { callId: 'c1', tool: 'write', sessionId: aSession },
  origin: 'tool',
  path: `/w/${name}`,
  state: content ? { kind: 'file', digest: content.digest, bytes: content.bytes.length, mode: 0o644 } : { kind: 'absent' },
  absentFolders: [],
  atMs: 1_700_000_000_000,
})

export interface Blob { readonly digest: Digest; readonly bytes: Buffer }
export const blob = (content: string | Uint8Array): Blob => {
  const bytes = Buffer.from(content as string)
  return { digest: digestOf(bytes), bytes }
}

/** One frame as it stands in a segment's file. */
export const frameOf = (nonce: Buffer, number: number, kind: FrameKind, encoding: Encoding, payload: readonly Uint8Array[]): Buffer =>
  Buffer.concat(encodeFrames(nonce, number, 0, [{ kind, encoding, payload }]).parts)
