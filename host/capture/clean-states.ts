import { unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import { digestOf } from '../digest.ts'
import type { IndexEntry } from './git-index-copy.ts'
import type { GitLook } from './git-index.ts'
import { readBlobs } from './git-objects.ts'
import { GitFailure } from './git-run.ts'
import type { GitTree } from './git-tree.ts'
import type { LookDeps } from './look.ts'

/** Marks a mode as git's, for `withModeOf`. */
const GIT_MODE = 0o100000
/** Blobs are held in memory until they are stored: so many bytes, or one, at a time. */
const BATCH_BYTES = 32 * 1024 * 1024

/**
 * States of tracked files that were as the index has them, by absolute path, out of git's own objects; copied into
 * our store at once. `not-saved` where the blob is not the file's bytes or cannot be had.
 */
export async function cleanStates(deps: LookDeps, tree: GitTree, look: GitLook, paths: readonly string[]): Promise<ReadonlyMap<string, FileState>> {
  const states = new Map<string, FileState>()
  const set = (path: string, state: FileState): void => { states.set(`${tree.root}/${path}`, state) }
  const wanted: [string, IndexEntry][] = []
  for (const path of paths) {
    const entry = look.index.get(path)!
    if (entry.mode === '160000') continue
    if (look.converted.has(path)) set(path, unknown('not-saved'))
    else if (entry.size > deps.maxFileBytes) set(path, unknown('too-large'))
    else wanted.push([path, entry])
  }
  for (const batch of batchesOf(wanted)) {
    const blobs = await blobsOf(tree, batch.map(([, { oid }]) => oid))
    for (const [path, entry] of batch) {
      const bytes = blobs.get(entry.oid)
      // Git notes the size of the file: another one tells of a conversion under rules that are gone.
      const isFile = bytes !== undefined && (entry.mode === '120000' || bytes.length === entry.size)
      set(path, isFile ? await blobState(deps, entry.mode, bytes, look.modes.get(path)) : unknown('not-saved'))
    }
  }
  return states
}

function batchesOf(entries: readonly [string, IndexEntry][]): [string, IndexEntry][][] {
  const batches: [string, IndexEntry][][] = []
  let bytes = Infinity
  for (const item of entries) {
    bytes += item[1].size
    if (bytes > BATCH_BYTES) {
      batches.push([])
      bytes = item[1].size
    }
    batches.at(-1)!.push(item)
  }
  return batches
}

/** A repository that is gone or broken now tells nothing: none of its objects can be had. */
async function blobsOf(tree: GitTree, oids: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
  try {
    return await readBlobs(tree, oids)
  } catch (error) {
    if (error instanceof GitFailure) return new Map()
    throw error
  }
}

async function blobState(deps: LookDeps, mode: string, bytes: Buffer, bits: number | undefined): Promise<FileState> {
  if (mode === '120000') return { kind: 'link', target: bytes.toString() }
  const digest = digestOf(bytes)
  await deps.keep(digest, bytes)
  return { kind: 'file', digest, bytes: bytes.length, mode: bits ?? (GIT_MODE | (mode === '100755' ? 0o755 : 0o644)) }
}

/**
 * Where nobody has looked at a tracked file's mode (marked by a `mode` over 0o7777), git tells only whether it is
 * executable: the other bits are taken to be those of the file now.
 */
export function withModeOf(state: FileState, after: FileState): FileState {
  if (state.kind !== 'file' || state.mode <= 0o7777) return state
  const executable = (state.mode & 0o111) !== 0
  if (after.kind !== 'file') return { ...state, mode: (executable ? 0o777 : 0o666) & ~process.umask() }
  const bits = after.mode & ~0o111
  return { ...state, mode: executable ? bits | ((bits & 0o444) >> 2) : bits }
}
