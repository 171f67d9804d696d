import { dirname, resolve } from 'node:path'
import { errnoOf, nodeFileSystem, type FileSystem } from './file-system.ts'

/**
 * True when writing to `path` writes where it did at capture: no parent folder is a link now.
 *
 * Rule: a captured path is stored as the real path of its parent folder plus its name. So the nearest
 * parent that exists must be its own real path, to the letter. Whatever link was on the way at capture
 * is already resolved in the stored path; any link found now was put there since. A link at the last
 * name is no matter of this check: it is never followed, only looked at, renamed over or unlinked.
 * A system error is thrown.
 */
export async function parentsAreReal(path: string, fs: FileSystem = nodeFileSystem): Promise<boolean> {
  if (resolve(path) !== path || path === dirname(path)) return false
  return isRealFolder(dirname(path), fs)
}

/** The same for anything in `folder`: it, or its nearest parent that exists, is no link and behind none. */
export async function isRealFolder(folder: string, fs: FileSystem = nodeFileSystem): Promise<boolean> {
  const parent = await nearestExisting(folder, fs)
  try {
    return await fs.realpath(parent) === parent
  } catch (error) {
    // The parent is a link to nowhere or to itself.
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ELOOP') return false
    throw error
  }
}

async function nearestExisting(folder: string, fs: FileSystem): Promise<string> {
  if (folder === dirname(folder)) return folder
  try {
    await fs.lstat(folder)
    return folder
  } catch (error) {
    // Behind a link to itself there is nothing; the link above is what the check then finds.
    if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) throw error
  }
  return nearestExisting(dirname(folder), fs)
}
