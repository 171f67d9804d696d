import { dirname } from 'node:path'
import { unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import { makeBreath } from '../breath.ts'
import type { StateCache } from '../capture/fingerprint.ts'
import { observePath, type Observation } from '../capture/observe.ts'
import { errnoOf } from '../restore/file-system.ts'
import { isRealFolder } from '../restore/safe-path.ts'

/**
 * The state of each path now, for a plan: whoever writes looks again. A path behind a link that was not there at
 * capture is not looked through. A file whose fingerprint is that of an earlier look is not read again.
 */
export async function lookAtAll({ states, maxFileBytes }: { readonly states: StateCache; readonly maxFileBytes: number }, paths: readonly string[]): Promise<ReadonlyMap<string, FileState>> {
  const found = new Map<string, FileState>()
  const folders = new Map<string, FileState | undefined>()
  const breath = makeBreath()
  for (const path of paths) {
    await breath()
    const folder = dirname(path)
    if (!folders.has(folder)) folders.set(folder, await whyClosed(folder))
    found.set(path, folders.get(folder) ?? await states.stateOf(path, { maxBytes: maxFileBytes, keep: () => {} }))
  }
  return found
}

/** The same for one path, read anew, with a file's bytes. */
export async function lookAt(path: string, maxBytes: number): Promise<Observation> {
  const closed = await whyClosed(dirname(path))
  return closed === undefined ? observePath(path, { maxBytes }) : { state: closed }
}

/** What is told of everything in a folder that is not looked into. */
async function whyClosed(folder: string): Promise<FileState | undefined> {
  try {
    return await isRealFolder(folder) ? undefined : unknown('behind-link')
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    // A folder that lets nobody in, a drive that went away: its paths are skipped, and the others go back.
    return unknown('unreadable')
  }
}
