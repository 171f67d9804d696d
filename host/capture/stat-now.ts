import { lstatSync, type BigIntStats } from 'node:fs'
import { errnoOf } from '../restore/file-system.ts'

/** One lstat without a turn of the event loop. Undefined for an absent path and for one that cannot be looked at. */
export function lookNow(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

/** Two equal ones mean an untouched file. Empty for a file that is not there. */
export function versionOf(file: string): string {
  const stat = lookNow(file)
  return stat === undefined ? '' : [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ')
}
