import * as nodeSync from 'node:fs'
import * as nodePromises from 'node:fs/promises'
import { dirname } from 'node:path'
import { failure, type Failure } from '../../src/protocol/failure.ts'

/**
 * The part of `node:fs/promises` the store uses, with its meanings. It is a parameter so that a test can
 * make one call fail (a full disk, a short write) on an otherwise real folder.
 */
export interface StoreFile {
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>
  write(buffer: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesWritten: number }>
  writev(parts: readonly Uint8Array[], position: number): Promise<{ bytesWritten: number }>
  truncate(length: number): Promise<void>
  datasync(): Promise<void>
  sync(): Promise<void>
  close(): Promise<void>
}
export interface FileFacts { readonly size: number; readonly mtimeMs: number; readonly ino: number }
export interface StoreFs {
  open(path: string, flags: string, mode?: number): Promise<StoreFile>
  /** The first folder that was made, `undefined` when all were there. */
  mkdir(path: string, options: { recursive: true; mode: number }): Promise<string | undefined>
  readdir(path: string): Promise<string[]>
  stat(path: string): Promise<FileFacts>
  /** `stat` without a turn of the event loop, for the one that every append waits for; undefined when nothing is there. */
  peek(path: string): Promise<FileFacts | undefined>
  readFile(path: string, encoding: 'utf8'): Promise<string>
  /** Up to `length` bytes of a file without a turn of the event loop, for small records that are read by the thousand; undefined when nothing is there. */
  readNow?(path: string, position: number, length: number): Buffer | undefined
  rename(from: string, to: string): Promise<void>
  /** Times in seconds. */
  utimes(path: string, atime: number, mtime: number): Promise<void>
  unlink(path: string): Promise<void>
}

/** Each call is looked up when it is made, so that a test can watch the real one. */
export const nodeFs: StoreFs = {
  open: (...args) => nodePromises.open(...args),
  mkdir: (...args) => nodePromises.mkdir(...args),
  readdir: path => nodePromises.readdir(path),
  stat: path => nodePromises.stat(path),
  peek: async path => nodeSync.statSync(path, { throwIfNoEntry: false }),
  readFile: (...args) => nodePromises.readFile(...args),
  readNow: readPart,
  rename: (...args) => nodePromises.rename(...args),
  utimes: (...args) => nodePromises.utimes(...args),
  unlink: path => nodePromises.unlink(path),
}

function readPart(path: string, position: number, length: number): Buffer | undefined {
  let file: number | undefined
  try {
    file = nodeSync.openSync(path, 'r')
    const bytes = Buffer.allocUnsafe(length)
    let done = 0
    while (done < length) {
      const count = nodeSync.readSync(file, bytes, done, length - done, position + done)
      if (count === 0) break
      done += count
    }
    return bytes.subarray(0, done)
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  } finally {
    if (file !== undefined) nodeSync.closeSync(file)
  }
}

/** The errno name of an environment error (`ENOSPC`, `EACCES`, ...); `undefined` for anything else. */
export function errorCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined
}

/** The edge where exceptions end: an environment error is `store-unavailable`, anything else a bug of ours. */
export function asFailure(error: unknown): Failure {
  const detail = error instanceof Error ? error.message : String(error)
  return failure(errorCode(error) === undefined ? 'internal' : 'store-unavailable', { detail })
}

/** The value of `task`, or `instead` when the path is not there. Every other error goes on. */
export async function unlessMissing<T, I>(task: Promise<T>, instead: I): Promise<T | I> {
  try {
    return await task
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return instead
    throw error
  }
}

/** Makes `path` and its missing parents (0700) and syncs the folders that got a new name in them. */
export async function ensureFolder(fs: StoreFs, path: string): Promise<void> {
  const first = await fs.mkdir(path, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(fs, dirname(made))
}

/** Makes the names in a folder durable. Windows has no handle for a folder and keeps names by itself. */
export const syncFolder = (fs: StoreFs, path: string): Promise<void> => syncOpened(fs, path, (folder) => folder.sync())

/** Makes the bytes durable that others wrote to a file. Windows does not sync through a handle that only reads. */
export const syncFile = (fs: StoreFs, path: string): Promise<void> => syncOpened(fs, path, (file) => file.datasync())

async function syncOpened(fs: StoreFs, path: string, sync: (file: StoreFile) => Promise<void>): Promise<void> {
  if (process.platform === 'win32') return
  const file = await fs.open(path, 'r')
  try {
    await sync(file)
  } finally {
    await file.close()
  }
}

/** Writes all of `bytes` at `position`; a short write is continued, a write of nothing is an error. */
export async function writeFully(file: StoreFile, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    if (bytesWritten === 0) throw Object.assign(new Error('EIO: the disk took no bytes, write'), { code: 'EIO' })
    done += bytesWritten
  }
}

/** What one call takes: systems allow 1024 parts. */
const maxParts = 512

/** Like `writeFully` for bytes in parts, without copying them together. */
export async function writeParts(file: StoreFile, parts: readonly Uint8Array[], position: number): Promise<void> {
  let at = position
  let rest = parts.filter((part) => part.length > 0)
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest.slice(0, maxParts), at)
    if (bytesWritten === 0) throw Object.assign(new Error('EIO: the disk took no bytes, write'), { code: 'EIO' })
    at += bytesWritten
    rest = behind(rest, bytesWritten)
  }
}

function behind(parts: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let left = bytes
  let index = 0
  while (index < parts.length && parts[index]!.length <= left) left -= parts[index++]!.length
  return left === 0 ? parts.slice(index) : [parts[index]!.subarray(left), ...parts.slice(index + 1)]
}

/** Up to `length` bytes from `position`; fewer when the file ends before. */
export async function readUpTo(file: StoreFile, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(Math.max(0, length))
  let done = 0
  while (done < bytes.length) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return bytes.subarray(0, done)
}
