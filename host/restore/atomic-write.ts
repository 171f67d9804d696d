import { dirname } from 'node:path'
import { CREATE_FLAGS, errnoOf, FOLDER_FLAGS, type FileSystem, type OpenFile } from './file-system.ts'

/** New content for a path. `owner`: of the file it replaces. */
export type Content =
  | {
    readonly kind: 'file'
    readonly bytes: Buffer
    readonly mode: number
    readonly owner?: { readonly uid: number; readonly gid: number } | undefined
  }
  | { readonly kind: 'link'; readonly target: string }

/**
 * Puts `content` at `path` in one step. The rename makes it true: before it the path is untouched and
 * only `temp`, a sibling, exists; after it the path is whole. `beforeRename` has the last word: a reason
 * from it stops the write and is returned. On a reason or an error `temp` may be left: `discardTemp`.
 * Extended attributes and ACLs of a replaced file are not carried over.
 */
export async function replace(
  { path, temp, content, beforeRename, renamed }: {
    readonly path: string
    readonly temp: string
    readonly content: Content
    readonly beforeRename: () => Promise<string | undefined>
    /** Makes the new name survive a power cut, or sees to that later. */
    readonly renamed: (folder: string) => Promise<void>
  },
  fs: FileSystem,
): Promise<string | undefined> {
  // Another folder could be another disk, where a rename is a copy.
  if (dirname(temp) !== dirname(path)) throw new Error(`restore: temp ${temp} is no sibling of ${path}`)

  if (content.kind === 'link') await fs.symlink(content.target, temp)
  else await writeTemp(temp, content, fs)
  const reason = await beforeRename()
  if (reason !== undefined) return reason
  await fs.rename(temp, path)
  await renamed(dirname(path))
  return undefined
}

/** Removes what an earlier try left at `temp`: a file or a link, nothing else. */
export async function discardTemp(temp: string, fs: FileSystem): Promise<void> {
  try {
    const stat = await fs.lstat(temp)
    if (stat.isFile() || stat.isSymbolicLink()) await fs.unlink(temp)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error
  }
}

/** Makes names made or removed in `folder` survive a power cut. Some file systems cannot; that is no failure. */
export async function syncFolder(folder: string, fs: FileSystem): Promise<void> {
  const handle = await fs.open(folder, FOLDER_FLAGS)
  try {
    await handle.sync()
  } catch (error) {
    if (errnoOf(error) !== 'EINVAL' && errnoOf(error) !== 'ENOTSUP') throw error
  } finally {
    await handle.close()
  }
}

async function writeTemp(temp: string, content: Content & { kind: 'file' }, fs: FileSystem): Promise<void> {
  // Private until it is complete: the wanted mode may be wider than what the bytes were meant for.
  const file = await fs.open(temp, CREATE_FLAGS, 0o600)
  try {
    let written = 0
    while (written < content.bytes.length) {
      written += await file.write(content.bytes, written, content.bytes.length - written, written)
    }
    // Owner before mode: the system clears set-user-id bits when a file changes hands.
    if (content.owner) await giveTo(content.owner, file)
    await file.chmod(content.mode)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function giveTo(owner: { readonly uid: number; readonly gid: number }, file: OpenFile): Promise<void> {
  const mine = await file.stat()
  if (Number(mine.uid) === owner.uid && Number(mine.gid) === owner.gid) return
  try {
    await file.chown(owner.uid, owner.gid)
  } catch (error) {
    // Only root may give files away; bytes and mode are what we promise.
    if (errnoOf(error) !== 'EPERM') throw error
  }
}
