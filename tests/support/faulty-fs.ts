import { nodeFileSystem, type FileSystem, type OpenFile } from '../../host/restore/file-system.ts'

/** One call on the file system: `number` counts all calls from 1, `nth` those of this function.
 *  Calls on an open file are named `file.read` and so on, with the path it was opened by. */
export type FsCall = { readonly fn: string; readonly path: string; readonly number: number; readonly nth: number }

export type FsHooks = {
  /** What it throws is the result of the call. */
  readonly before?: (call: FsCall) => void | Promise<void>
  /** Also after a call that failed. */
  readonly after?: (call: FsCall) => void | Promise<void>
  /** Bytes a read or a write moves at most. */
  readonly chunkBytes?: number
  /** False: `sync` does nothing. Keeps tables of hundreds of runs quick. */
  readonly syncs?: boolean
}

/** The end of the process: no error of the system, so nobody may handle it. */
export class Crash extends Error {}

/** An error as the system gives it. */
export const errno = (code: string): Error => Object.assign(new Error(`${code}: injected`), { code })

/** The real file system with something between us and it. */
export function faultyFileSystem(hooks: FsHooks, base: FileSystem = nodeFileSystem): FileSystem {
  const { before, after, chunkBytes = Infinity, syncs = true } = hooks
  let number = 0
  const counts = new Map<string, number>()
  const call = async <T>(fn: string, path: string, run: () => Promise<T>): Promise<T> => {
    const nth = (counts.get(fn) ?? 0) + 1
    counts.set(fn, nth)
    const seen = { fn, path, nth, number: ++number }
    await before?.(seen)
    try {
      return await run()
    } finally {
      await after?.(seen)
    }
  }
  const cut = (length: number): number => Math.min(length, chunkBytes)

  const openFile = (file: OpenFile, path: string): OpenFile => ({
    stat: () => call('file.stat', path, () => file.stat()),
    read: (into, offset, length, position) =>
      call('file.read', path, () => file.read(into, offset, cut(length), position)),
    write: (from, offset, length, position) =>
      call('file.write', path, () => file.write(from, offset, cut(length), position)),
    chmod: mode => call('file.chmod', path, () => file.chmod(mode)),
    chown: (uid, gid) => call('file.chown', path, () => file.chown(uid, gid)),
    sync: () => call('file.sync', path, async () => syncs ? file.sync() : undefined),
    // Closed whatever the hooks throw: a test must not run out of handles.
    close: async () => {
      await file.close()
      await call('file.close', path, async () => undefined)
    },
  })

  return {
    lstat: path => call('lstat', path, () => base.lstat(path)),
    realpath: path => call('realpath', path, () => base.realpath(path)),
    readlink: path => call('readlink', path, () => base.readlink(path)),
    open: async (path, flags, mode) => {
      let file: OpenFile | undefined
      try {
        return openFile(await call('open', path, async () => file = await base.open(path, flags, mode)), path)
      } catch (error) {
        await file?.close()
        throw error
      }
    },
    rename: (from, to) => call('rename', to, () => base.rename(from, to)),
    unlink: path => call('unlink', path, () => base.unlink(path)),
    symlink: (target, path) => call('symlink', path, () => base.symlink(target, path)),
    mkdir: (path, mode) => call('mkdir', path, () => base.mkdir(path, mode)),
    rmdir: path => call('rmdir', path, () => base.rmdir(path)),
  }
}

/** A process that dies at call `number`, right before or right after it: no later call reaches the disk. */
export function dyingFileSystem(number: number, when: 'before' | 'after', more: FsHooks = {}): FileSystem {
  let dead = false
  const die = (call: FsCall, now: 'before' | 'after') => {
    dead ||= call.number === number && when === now
    if (dead) throw new Crash(`died ${when} call ${number}: ${call.fn} ${call.path}`)
  }
  return faultyFileSystem({ ...more, before: call => die(call, 'before'), after: call => die(call, 'after') })
}

/** Every call that `run` makes, in order. */
export async function callsOf(run: (fs: FileSystem) => Promise<unknown>, more: FsHooks = {}): Promise<FsCall[]> {
  const calls: FsCall[] = []
  await run(faultyFileSystem({ ...more, before: call => { calls.push(call) } }))
  return calls
}
