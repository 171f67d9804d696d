import * as v from 'valibot'
import { digest, type Digest } from '../ids.ts'

/** Why a path's state could not be taken. Never read as "the file was absent". */
export const unknownReasons = [
  'too-large', // over `maxFileBytes`; only its size was looked at
  'special', // a device, a socket, a pipe
  'unreadable', // permission or I/O error
  'behind-link', // a parent folder is a symbolic link now, or its real path moved
  'capture-failed', // an error of ours
  'not-saved', // it changed before its bytes were saved: over a budget, or kept in another form by git
  'cut-off', // the process died between the look before a call and the look after it
  'dsh-home', // under the DSH home: never captured
  'record-lost', // earlier records of this path are missing or damaged
  'object-gone', // the record is there, its bytes are not
] as const
export type UnknownReason = (typeof unknownReasons)[number]

/**
 * What a path was at one moment. `mode` holds the permission bits only (`st_mode & 0o7777`); of a folder it is
 * what a new one in its place gets, and no part of what makes two states the same. Neither are `links`, the number
 * of a file's names (hard links) where it has more than one: putting a file back makes it a file of its own.
 */
export type FileState =
  | { readonly kind: 'absent' }
  | { readonly kind: 'file'; readonly digest: Digest; readonly bytes: number; readonly mode: number; readonly links?: number | undefined }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'folder'; readonly mode?: number | undefined }
  | { readonly kind: 'unknown'; readonly reason: UnknownReason }

export const absent: FileState = { kind: 'absent' }
export const unknown = (reason: UnknownReason): FileState => ({ kind: 'unknown', reason })

/** True when both states are known and equal in kind, bytes and mode. An unknown state equals nothing, itself included. */
export function sameState(a: FileState, b: FileState): boolean {
  switch (a.kind) {
    case 'absent':
    case 'folder':
      return a.kind === b.kind
    case 'file':
      return b.kind === 'file' && a.digest === b.digest && a.mode === b.mode
    case 'link':
      return b.kind === 'link' && a.target === b.target
    case 'unknown':
      return false
  }
}

const DigestSchema = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/), v.transform(digest))
const count = v.pipe(v.number(), v.integer(), v.minValue(0))
const Mode = v.pipe(count, v.maxValue(0o7777))

export const FileStateSchema = v.variant('kind', [
  v.object({ kind: v.literal('absent') }),
  v.object({ kind: v.literal('file'), digest: DigestSchema, bytes: count, mode: Mode, links: v.optional(v.pipe(count, v.minValue(2))) }),
  v.object({ kind: v.literal('link'), target: v.string() }),
  v.object({ kind: v.literal('folder'), mode: v.optional(Mode) }),
  v.object({ kind: v.literal('unknown'), reason: v.picklist(unknownReasons) }),
])
