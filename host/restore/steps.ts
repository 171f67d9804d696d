import { constants } from 'node:fs'
import type { FileSystem, OpenFile } from './file-system.ts'

/** One change to the disk, told right before and right after it. Numbers run from 1 over one call. */
export type Step = {
  readonly number: number
  readonly when: 'before' | 'after'
  readonly act: 'create' | 'write' | 'chmod' | 'chown' | 'symlink' | 'rename' | 'unlink' | 'mkdir' | 'rmdir'
  readonly path: string
}
/** What it throws stops the work on the spot, without clean-up, as the end of the process would. */
export type OnStep = (step: Step) => void | Promise<void>

/** The same file system, telling `onStep` of every change; as it is without one. */
export function withSteps(fs: FileSystem, onStep: OnStep | undefined): FileSystem {
  if (!onStep) return fs
  let count = 0
  const told = async <T>(act: Step['act'], path: string, change: () => Promise<T>): Promise<T> => {
    const number = ++count
    await onStep({ number, when: 'before', act, path })
    const result = await change()
    await onStep({ number, when: 'after', act, path })
    return result
  }
  const toldFile = (file: OpenFile, path: string): OpenFile => ({
    ...file,
    write: (...args) => told('write', path, () => file.write(...args)),
    chmod: mode => told('chmod', path, () => file.chmod(mode)),
    chown: (uid, gid) => told('chown', path, () => file.chown(uid, gid)),
  })

  return {
    ...fs,
    open: async (path, flags, mode) => {
      if ((flags & constants.O_CREAT) === 0) return toldFile(await fs.open(path, flags, mode), path)
      let file: OpenFile | undefined
      try {
        return toldFile(await told('create', path, async () => file = await fs.open(path, flags, mode)), path)
      } catch (error) {
        await file?.close()
        throw error
      }
    },
    rename: (from, to) => told('rename', to, () => fs.rename(from, to)),
    unlink: path => told('unlink', path, () => fs.unlink(path)),
    symlink: (target, path) => told('symlink', path, () => fs.symlink(target, path)),
    mkdir: (path, mode) => told('mkdir', path, () => fs.mkdir(path, mode)),
    rmdir: path => told('rmdir', path, () => fs.rmdir(path)),
  }
}
