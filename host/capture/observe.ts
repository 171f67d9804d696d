import { isUtf8 } from 'node:buffer'
import { closeSync, fstatSync, openSync, readSync, type BigIntStats } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { absent, unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import type { Digest } from '../../src/ids.ts'
import { digestOf } from '../digest.ts'
import { errnoOf, modeOf, nodeFileSystem, READ_FLAGS, type FileSystem } from '../restore/file-system.ts'

/** `bytes` are there exactly when `state` is a file: the bytes its digest was taken of. */
export type Observation = { readonly state: FileState; readonly bytes?: Buffer }

const ATTEMPTS = 3
const PAUSE_MS = 5
/** Errors of a second call on a path that existed a moment ago: it was replaced in between. */
const REPLACED = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL', 'ENXIO'])

/** What `path` is now. Never follows a link at the last name, never blocks on a pipe, never throws for an
 *  error of the system: such a path is unknown, and only a clear answer of the system makes it absent. */
export async function observePath(
  path: string,
  { maxBytes, fs = nodeFileSystem }: { readonly maxBytes: number; readonly fs?: FileSystem | undefined },
): Promise<Observation> {
  const quick = fs.isDisk === true ? observeQuickly(path, maxBytes) : undefined
  if (quick !== undefined) return quick
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (attempt > 0) await wait(PAUSE_MS)
      const seen = await look(path, maxBytes, fs)
      if (seen !== 'moved') return seen
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
  return { state: unknown('unreadable') }
}

export interface QuickObservation {
  readonly state: Extract<FileState, { kind: 'file' }>
  readonly bytes: Buffer
  readonly stat: BigIntStats
}

/** Up to this size a file is read without giving way to others: it takes some tens to hundreds of microseconds. */
const QUICK_BYTES = 256 * 1024

/**
 * What `observePath` tells of a small file, in five system calls and no turn of the event loop; with the stat it was
 * read under. Undefined for all that is not a file at rest of at most `maxBytes`: ask `observePath`. Where the bytes
 * are those of `last`, its digest is taken for them.
 */
export function observeQuickly(path: string, maxBytes: number, last?: { readonly bytes: Buffer; readonly digest: Digest }): QuickObservation | undefined {
  let file: number | undefined
  try {
    file = openSync(path, READ_FLAGS)
    const stat = fstatSync(file, { bigint: true })
    const size = Number(stat.size)
    if (!stat.isFile() || size > Math.min(maxBytes, QUICK_BYTES)) return undefined
    const buffer = Buffer.allocUnsafe(size + 1)
    if (readSync(file, buffer, 0, size + 1, 0) !== size || !sameMoment(stat, fstatSync(file, { bigint: true }))) return undefined
    const bytes = buffer.subarray(0, size)
    return { stat, bytes, state: fileState(bytes, stat, last?.bytes.equals(bytes) === true ? last.digest : undefined) }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Parents of `path` that do not exist, outermost first. One that cannot be looked at counts as existing:
 *  what is listed here may be removed by a rollback. */
export async function absentFoldersOf(path: string, fs: FileSystem = nodeFileSystem): Promise<string[]> {
  const folders: string[] = []
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      await fs.lstat(folder)
      break
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      if (!saysAbsent(error)) break
    }
    folders.unshift(folder)
  }
  return folders
}

async function look(path: string, maxBytes: number, fs: FileSystem): Promise<Observation | 'moved'> {
  let stat: BigIntStats
  try {
    stat = await fs.lstat(path)
  } catch (error) {
    if (saysAbsent(error)) return { state: absent }
    throw error
  }

  if (stat.isDirectory()) return { state: { kind: 'folder' } }
  if (!stat.isFile() && !stat.isSymbolicLink()) return { state: unknown('special') }
  if (stat.isFile() && stat.size > BigInt(maxBytes)) return { state: unknown('too-large') }
  try {
    return stat.isFile() ? await readFile(path, stat, fs) : await readLink(path, fs)
  } catch (error) {
    if (REPLACED.has(errnoOf(error) ?? '')) return 'moved'
    throw error
  }
}

async function readLink(path: string, fs: FileSystem): Promise<Observation> {
  const target = await fs.readlink(path)
  // A target that is not text could not be put back from a string.
  return { state: isUtf8(target) ? { kind: 'link', target: target.toString() } : unknown('unreadable') }
}

async function readFile(path: string, seen: BigIntStats, fs: FileSystem): Promise<Observation | 'moved'> {
  const file = await fs.open(path, READ_FLAGS)
  try {
    if (!sameMoment(seen, await file.stat())) return 'moved'
    const size = Number(seen.size)
    // One byte more than expected: shows a file that grew.
    const buffer = Buffer.alloc(size + 1)
    let filled = 0
    while (filled < buffer.length) {
      const count = await file.read(buffer, filled, buffer.length - filled, filled)
      if (count === 0) break
      filled += count
    }
    // Bytes of two moments would be a state the file never had.
    if (filled !== size || !sameMoment(seen, await file.stat())) return 'moved'
    const bytes = buffer.subarray(0, size)
    return { state: fileState(bytes, seen), bytes }
  } finally {
    await file.close()
  }
}

const fileState = (bytes: Buffer, stat: BigIntStats, digest = digestOf(bytes)): Extract<FileState, { kind: 'file' }> => ({
  kind: 'file', digest, bytes: bytes.length, mode: modeOf(stat), ...(stat.nlink > 1n ? { links: Number(stat.nlink) } : {}),
})

function sameMoment(a: BigIntStats, b: BigIntStats): boolean {
  return a.dev === b.dev && a.ino === b.ino && a.mode === b.mode && a.size === b.size
    && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs
}

/** ENOTDIR: a parent is a file, so nothing can be below it. */
function saysAbsent(error: unknown): boolean {
  const code = errnoOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
