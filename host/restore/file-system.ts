import * as nodeSync from 'node:fs'
import { constants, type BigIntStats } from 'node:fs'
import * as node from 'node:fs/promises'

/**
 * The few file calls Turnback makes on paths it does not own. A port, so that a test can make any
 * single call fail or change the disk between two of them; everything else uses `nodeFileSystem`.
 * Stats are bigint: a fingerprint needs nanoseconds.
 */
export type FileSystem = {
  lstat(path: string): Promise<BigIntStats>
  realpath(path: string): Promise<string>
  /** The raw bytes of a link's target. */
  readlink(path: string): Promise<Buffer>
  open(path: string, flags: number, mode?: number): Promise<OpenFile>
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  symlink(target: string, path: string): Promise<void>
  mkdir(path: string, mode: number): Promise<void>
  rmdir(path: string): Promise<void>
  /** The disk itself, with or without steps being told: looks at small files may use calls that are not in the port. */
  readonly isDisk?: true
}

export type OpenFile = {
  stat(): Promise<BigIntStats>
  /** Bytes read; 0 at the end. May read less than asked for. */
  read(into: Buffer, offset: number, length: number, position: number): Promise<number>
  /** Bytes written; may be less than asked for. */
  write(from: Buffer, offset: number, length: number, position: number): Promise<number>
  chmod(mode: number): Promise<void>
  chown(uid: number, gid: number): Promise<void>
  sync(): Promise<void>
  close(): Promise<void>
}

/** Looks take microseconds and are made without a turn of the event loop; who makes many of them gives way now and then. */
export const nodeFileSystem: FileSystem = {
  isDisk: true,
  lstat: async path => nodeSync.lstatSync(path, { bigint: true }),
  realpath: async path => nodeSync.realpathSync.native(path),
  readlink: path => node.readlink(path, { encoding: 'buffer' }),
  open: async (path, flags, mode) => openFile(await node.open(path, flags, mode)),
  rename: (from, to) => node.rename(from, to),
  unlink: path => node.unlink(path),
  symlink: (target, path) => node.symlink(target, path),
  mkdir: async (path, mode) => { await node.mkdir(path, { mode }) },
  rmdir: path => node.rmdir(path),
}

const openFile = (handle: node.FileHandle): OpenFile => ({
  stat: () => handle.stat({ bigint: true }),
  read: async (into, offset, length, position) => (await handle.read(into, offset, length, position)).bytesRead,
  write: async (from, offset, length, position) => (await handle.write(from, offset, length, position)).bytesWritten,
  chmod: mode => handle.chmod(mode),
  chown: (uid, gid) => handle.chown(uid, gid),
  sync: () => handle.sync(),
  close: () => handle.close(),
})

/** Never through a link at the last name; never waits for the other end of a pipe. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
/** A new file or an error; a link at that name is an error too. */
export const CREATE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
export const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** `ENOSPC` and the like for an error of the system or of Node's argument checks; `undefined` for a bug of ours. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Permission bits, as `FileState.mode` and `Folder.mode` hold them. */
export const modeOf = (stat: BigIntStats): number => Number(stat.mode & 0o7777n)
