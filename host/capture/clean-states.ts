import { join } from 'node:path'
import { unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import { digestOf } from '../digest.ts'
import { convertedPaths } from './conversions.ts'
import type { GitLook } from './git-index.ts'
import { readBlobs } from './git-objects.ts'
import { GitFailure } from './git-run.ts'
import type { GitTree } from './git-tree.ts'
import type { LookDeps } from './look.ts'

/** Marks a mode as git's, for `withModeOf`. */
const GIT_MODE = 0o100000

/** States of tracked files that were as the index has them, out of git's own objects; copied into our store at once. */
export async function cleanStates(deps: LookDeps, tree: GitTree, look: GitLook, paths: readonly string[]): Promise<ReadonlyMap<string, FileState>> {
  const states = new Map<string, FileState>()
  const files = paths.filter(path => look.index.get(path)!.mode !== '160000')
  if (files.length === 0) return states
  const { converted, blobs } = await objectsOf(tree, look, files)
  for (const path of files) {
    const { mode, oid } = look.index.get(path)!
    const bytes = converted.has(path) ? undefined : blobs.get(oid)
    states.set(join(tree.root, path), bytes === undefined ? unknown('not-saved') : await blobState(deps, mode, bytes))
  }
  return states
}

/** A repository that is gone or broken now tells nothing: none of its objects can be had. */
async function objectsOf(tree: GitTree, look: GitLook, files: readonly string[]) {
  try {
    const converted = await convertedPaths(tree, look, files)
    return { converted, blobs: await readBlobs(tree, files.filter(path => !converted.has(path)).map(path => look.index.get(path)!.oid)) }
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    return { converted: new Set(files), blobs: new Map<string, Buffer>() }
  }
}

async function blobState(deps: LookDeps, mode: string, bytes: Buffer): Promise<FileState> {
  if (mode === '120000') return { kind: 'link', target: bytes.toString() }
  if (bytes.length > deps.maxFileBytes) return unknown('too-large')
  const digest = digestOf(bytes)
  await deps.keep(digest, bytes)
  return { kind: 'file', digest, bytes: bytes.length, mode: GIT_MODE | (mode === '100755' ? 0o755 : 0o644) }
}

/** Git keeps only whether a file is executable: the other bits of a state from a blob (`mode` over 0o7777) are those of the file now. */
export function withModeOf(state: FileState, after: FileState): FileState {
  if (state.kind !== 'file' || state.mode <= 0o7777) return state
  const executable = (state.mode & 0o111) !== 0
  if (after.kind !== 'file') return { ...state, mode: (executable ? 0o777 : 0o666) & ~process.umask() }
  const bits = after.mode & ~0o111
  return { ...state, mode: executable ? bits | ((bits & 0o444) >> 2) : bits }
}
