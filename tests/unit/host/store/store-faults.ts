import { nodeFs, type StoreFile, type StoreFs } from '../../../../host/store/store-fs.ts'

export const errno = (code: string): Error => Object.assign(new Error(`${code}: injected`), { code })

/** Calls that can be made to fail: those of a file are named `file.*`. `write` may also be cut short. */
export type FaultPoint = 'open' | 'mkdir' | 'readdir' | 'file.write' | 'file.datasync' | 'file.sync' | 'file.truncate' | 'file.read'

/** The real file system, of which single calls fail: `faults.set('file.write', 'ENOSPC')`. */
export function faultyFs(): { fs: StoreFs; faults: Map<FaultPoint, string>; bytesPerWrite: { limit: number } } {
  const faults = new Map<FaultPoint, string>()
  const bytesPerWrite = { limit: Infinity }
  const check = (point: FaultPoint): void => {
    const code = faults.get(point)
    if (code) throw errno(code)
  }
  const wrap = (file: StoreFile): StoreFile => ({
    read: async (...args) => (check('file.read'), file.read(...args)),
    async write(buffer, offset, length, position) {
      // A full disk takes what still fits first: half of the bytes lie there when the error comes.
      if (faults.has('file.write')) await file.write(buffer, offset, Math.floor(length / 2), position)
      check('file.write')
      return file.write(buffer, offset, Math.min(length, bytesPerWrite.limit), position)
    },
    async writev(parts, position) {
      const bytes = Buffer.concat(parts)
      if (faults.has('file.write')) await file.write(bytes, 0, Math.floor(bytes.length / 2), position)
      check('file.write')
      return file.write(bytes, 0, Math.min(bytes.length, bytesPerWrite.limit), position)
    },
    truncate: async (length) => (check('file.truncate'), file.truncate(length)),
    datasync: async () => (check('file.datasync'), file.datasync()),
    sync: async () => (check('file.sync'), file.sync()),
    close: () => file.close(),
  })
  const fs: StoreFs = {
    ...nodeFs,
    open: async (path, flags, mode) => (flags === 'r' || check('open'), wrap(await nodeFs.open(path, flags, mode))),
    mkdir: async (path, options) => (check('mkdir'), nodeFs.mkdir(path, options)),
    readdir: async (path) => (check('readdir'), nodeFs.readdir(path)),
    stat: (path) => nodeFs.stat(path),
    readFile: (path, encoding) => nodeFs.readFile(path, encoding),
    rename: (from, to) => nodeFs.rename(from, to),
    unlink: (path) => nodeFs.unlink(path),
  }
  return { fs, faults, bytesPerWrite }
}
