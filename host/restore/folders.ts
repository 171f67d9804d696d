import { dirname } from 'node:path'
import type { Folder } from '../../src/checkpoint/journal-entry.ts'
import { syncFolder } from './atomic-write.ts'
import { errnoOf, FOLDER_FLAGS, modeOf, type FileSystem } from './file-system.ts'
import { parentsAreReal } from './safe-path.ts'

/** A folder to make; without a mode it gets what the process gives new folders. */
export type FolderToMake = { readonly path: string; readonly mode?: number | undefined }

/** Makes each folder that is missing, in the order given; the ones made are added to `made` one by one,
 *  so that a caller knows them also after an error. Something else at that path is an `EEXIST`. */
export async function makeFolders(folders: readonly FolderToMake[], made: string[], fs: FileSystem): Promise<void> {
  for (const { path, mode } of folders) {
    try {
      await fs.mkdir(path, mode ?? 0o777)
    } catch (error) {
      if (errnoOf(error) === 'EEXIST' && (await fs.lstat(path)).isDirectory()) continue
      throw error
    }
    made.push(path)
    // The process' umask has taken bits away.
    if (mode !== undefined) await setFolderMode(path, mode, fs)
    await syncFolder(dirname(path), fs)
  }
}

/** Removes `path` if it is a real, empty folder, and says what it was; `undefined` when it is left. */
export async function removeEmptyFolder(path: string, fs: FileSystem): Promise<Folder | undefined> {
  let folder: Folder
  try {
    if (!await parentsAreReal(path, fs)) return undefined
    const stat = await fs.lstat(path)
    if (!stat.isDirectory()) return undefined
    folder = { path, mode: modeOf(stat) }
    await fs.rmdir(path)
  } catch (error) {
    if (NOT_OURS_TO_REMOVE.has(errnoOf(error) ?? '')) return undefined
    throw error
  }
  try {
    await syncFolder(dirname(path), fs)
  } catch (error) {
    // It is gone and has to be reported so; an empty folder that a power cut brings back harms nobody.
    if (errnoOf(error) === undefined) throw error
  }
  return folder
}

/** Each path once, parents before what is in them; the order in which folders are made. */
export const outermostFirst = (paths: Iterable<string>): string[] =>
  [...new Set(paths)].sort((a, b) => depth(a) - depth(b))
/** The order in which folders are removed. */
export const deepestFirst = (paths: Iterable<string>): string[] => outermostFirst(paths).reverse()

/** The folders above `path`, outermost first, without the root. */
export const parentsOf = (path: string): string[] =>
  [...path.matchAll(/\//g)].slice(1).map(({ index }) => path.slice(0, index))

/** Not empty (two spellings), already gone, or not a folder any more. */
const NOT_OURS_TO_REMOVE = new Set(['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR'])

const depth = (path: string): number => path.split('/').length

async function setFolderMode(path: string, mode: number, fs: FileSystem): Promise<void> {
  const handle = await fs.open(path, FOLDER_FLAGS)
  try {
    await handle.chmod(mode)
  } finally {
    await handle.close()
  }
}
