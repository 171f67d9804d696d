import { sameState } from '../../src/checkpoint/file-state.ts'
import type { Folder, OpBeginEntry, OpRow, Outcome } from '../../src/checkpoint/journal-entry.ts'
import { absentFoldersOf, observePath } from '../capture/observe.ts'
import { failedFolder, outcomesOf, phasesOf, type RestoreDeps } from './apply.ts'
import { discardTemp } from './atomic-write.ts'
import { errnoOf, nodeFileSystem, type FileSystem } from './file-system.ts'
import { deepestFirst, makeFolders, outermostFirst, parentsOf, removeEmptyFolder } from './folders.ts'
import { limitFor, putState } from './put-state.ts'
import { parentsAreReal } from './safe-path.ts'
import { withSteps } from './steps.ts'

/** Mode of a folder made again when the op died before it could note the real one. */
const UNKNOWN_FOLDER_MODE = 0o755

/**
 * Takes an op's file side back, wherever it stopped, per path: as the op wanted it → as it was; as it was →
 * nothing; anything else is somebody's later work → `kept`, `changed-meanwhile`. Can die and run again at
 * any point: the rescue bytes stay in the store and every step asks the disk first. In the outcomes
 * `restored` means "as it was before the op".
 * `removedFolders` are from op-applied, when it was reached. Folders of `foldersToRemove` existed when the op
 * began, so the missing ones are made again; nobody wrote down their mode before that, it is 0755 then.
 */
export async function takeBackFiles(
  begin: OpBeginEntry,
  deps: RestoreDeps & { readonly removedFolders?: readonly Folder[] | undefined },
): Promise<Outcome[]> {
  const { readBlob, maxBytes } = deps
  const fs = withSteps(deps.fs ?? nodeFileSystem, deps.onStep)
  const modes = new Map(begin.foldersToRemove.map(path => [path, UNKNOWN_FOLDER_MODE]))
  for (const { path, mode } of deps.removedFolders ?? []) modes.set(path, mode)
  const phases = phasesOf(begin.rows)
  const links = new Set(phases.clear.filter(({ was }) => was.kind === 'link').map(({ path }) => path))
  const outcomes: Outcome[] = []
  const bringBack = async (rows: readonly OpRow[]): Promise<void> => {
    for (const row of rows.toReversed()) {
      const { path, temp, was, goal } = row
      const missing = was.kind === 'absent' ? [] : await absentFoldersOf(path, fs)
      const folders = missing.map(folder => ({ path: folder, mode: modes.get(folder) }))
      const moved = await putState({ path, temp, from: goal, to: was, folders }, { readBlob, fs, maxBytes })
      // Nothing was there, and behind the link that was in the way nothing is.
      if (moved.reason === 'behind-link' && was.kind === 'absent' && parentsOf(path).some(folder => links.has(folder))) {
        outcomes.push({ path, action: row.action, result: 'restored' })
        continue
      }
      const kept = moved.reason === 'changed-meanwhile' ? { result: 'kept' as const } : {}
      outcomes.push(...outcomesOf(row, moved).map(outcome => outcome.path === path ? { ...outcome, ...kept } : outcome))
    }
  }
  await bringBack(phases.fill)
  outcomes.push(...await remakeFolders(modes, fs))
  await bringBack([...phases.recreate, ...phases.delete])

  const made = begin.rows.flatMap(row => row.absentFolders)
  for (const path of deepestFirst([...made, ...phases.folders.map(row => row.path)])) {
    const row = phases.folders.find(folder => folder.path === path)
    try {
      await removeEmptyFolder(path, fs)
      if (row !== undefined) outcomes.push(await folderOutcome(row, fs))
    } catch (error) {
      outcomes.push({ ...row && { action: row.action }, ...failedFolder(path, error) })
    }
  }

  await bringBack([...phases.clear, ...phases.write])
  return outcomes
}

/** A folder that came back goes again if nothing is in it by now. */
async function folderOutcome({ path, action }: OpRow, fs: FileSystem): Promise<Outcome> {
  if (!await parentsAreReal(path, fs)) return { path, action, result: 'failed', reason: 'behind-link' }
  const isGone = (await observePath(path, { maxBytes: 0, fs })).state.kind === 'absent'
  return isGone ? { path, action, result: 'restored' } : { path, action, result: 'kept', reason: 'changed-meanwhile' }
}

/**
 * What the disk says of an op that is committed: changes no path, only removes leftover temps. A path that is
 * not as the op wanted it is `failed`: `not-applied` when it is still as it was, else `changed-meanwhile`.
 */
export async function settleFiles(
  begin: OpBeginEntry,
  { fs = nodeFileSystem, maxBytes }: Pick<RestoreDeps, 'fs' | 'maxBytes'>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const made = new Set(begin.rows.flatMap(row => row.absentFolders))
  for (const row of begin.rows) outcomes.push(...await settleRow(row, { maxBytes, fs, isMade: made.has(row.path) }))
  return outcomes
}

/** `isMade`: the op also makes a folder there, for something that comes back. */
async function settleRow(row: OpRow, { maxBytes, fs, isMade }: { maxBytes: number; fs: FileSystem; isMade: boolean }): Promise<Outcome[]> {
  const { path, temp, was, goal } = row
  const leftovers: { path: string; reason: string }[] = []
  try {
    if (!await parentsAreReal(path, fs)) return outcomesOf(row, { result: 'failed', reason: 'behind-link', leftovers })
    await discardTemp(temp, fs)
  } catch (error) {
    const reason = errnoOf(error)
    if (reason === undefined) throw error
    leftovers.push({ path: temp, reason })
  }
  const { state } = await observePath(path, { maxBytes: limitFor([was, goal], maxBytes), fs })
  if (sameState(state, goal) || (isMade && state.kind === 'folder')) return outcomesOf(row, { result: 'restored', leftovers })
  const reason = sameState(state, was) ? 'not-applied' : state.kind === 'unknown' ? state.reason : 'changed-meanwhile'
  return outcomesOf(row, { result: 'failed', reason, leftovers })
}

async function remakeFolders(modes: ReadonlyMap<string, number>, fs: FileSystem): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const path of outermostFirst(modes.keys())) {
    try {
      if (await parentsAreReal(path, fs)) await makeFolders([{ path, mode: modes.get(path) }], [], fs)
    } catch (error) {
      outcomes.push(failedFolder(path, error))
    }
  }
  return outcomes
}
