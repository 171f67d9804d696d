import { dirname } from 'node:path'
import type { Folder, OpBeginEntry, OpRow, Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { Digest } from '../../src/ids.ts'
import { inFlight } from '../in-flight.ts'
import { syncFolder } from './atomic-write.ts'
import { errnoOf, nodeFileSystem, type FileSystem } from './file-system.ts'
import { deepestFirst, parentsOf, removeEmptyFolder } from './folders.ts'
import { putState, type Moved } from './put-state.ts'
import { withSteps, type OnStep } from './steps.ts'

/** What apply and take-back need. `maxBytes`: the capture limit. */
export type RestoreDeps = {
  /** The bytes of a stored state; `undefined` when the store has them no more. */
  readonly readBlob: (digest: Digest) => Promise<Buffer | undefined>
  readonly maxBytes: number
  readonly fs?: FileSystem | undefined
  /** Told before and after every change to the disk; for crash tests. */
  readonly onStep?: OnStep | undefined
  /** Told after each row, with how many are through. */
  readonly onRow?: ((done: number) => void) | undefined
  /** Rows under way at a time; with 1 the order of all calls is fixed. */
  readonly rowsAtATime?: number | undefined
}

/** An op's rows in the order of its steps. Taking back goes through them the other way round. */
export interface Phases {
  /** Files that stand where a folder has to be, for what comes back in it; outermost first. */
  readonly clear: readonly OpRow[]
  readonly write: readonly OpRow[]
  /** Folders that come back, outermost first. */
  readonly folders: readonly OpRow[]
  readonly recreate: readonly OpRow[]
  readonly delete: readonly OpRow[]
  /** Files where a folder is that has to be empty by now. */
  readonly fill: readonly OpRow[]
}

/** A file that can be written comes back before anything is taken away, unless that is in its way. */
export function phasesOf(rows: readonly OpRow[]): Phases {
  const needed = new Set(rows.filter(({ goal }) => goal.kind !== 'absent').flatMap(({ path }) => parentsOf(path)))
  const phase = ({ path, was, goal, action }: OpRow): keyof Phases => {
    if (was.kind === 'folder' && goal.kind !== 'absent') return 'fill'
    if (goal.kind === 'folder') return was.kind === 'absent' ? 'folders' : 'clear'
    return action === 'delete' && needed.has(path) ? 'clear' : action
  }
  const of = (wanted: keyof Phases): OpRow[] => rows.filter(row => phase(row) === wanted)
  const outermostFirst = (some: readonly OpRow[]): OpRow[] => some.toSorted((a, b) => parentsOf(a.path).length - parentsOf(b.path).length)
  return {
    clear: outermostFirst(of('clear')), write: of('write'), folders: outermostFirst(of('folders')), recreate: of('recreate'),
    delete: of('delete'), fill: of('fill'),
  }
}

/** Rows under way at a time: their syncs share the disk's work. */
const ROWS_AT_A_TIME = 12
/** Bytes of files in memory for them; a larger file goes alone. */
const MAX_ROW_BYTES = 16 * 1024 * 1024

/**
 * Carries out the file side of an op: no decisions are left. Each row stands alone: one that fails is named
 * and the rest goes on. The rows' `was` bytes must be in the store before this is called. Files of a phase go
 * several at a time, and the names that changed are synced when the phase is through: nothing is deleted before
 * what was written is durable.
 * The outcomes hold one entry per row, in the order done, and one more for each folder or leftover temp that
 * could not be removed; `begin.decided` is not repeated. Stopping by `signal` throws its reason between
 * two rows; the op is then open and `takeBackFiles` applies.
 */
export async function applyFiles(
  begin: OpBeginEntry,
  deps: RestoreDeps & { readonly signal?: AbortSignal | undefined },
): Promise<{ readonly outcomes: Outcome[]; readonly removedFolders: Folder[] }> {
  const { readBlob, maxBytes, signal, rowsAtATime = ROWS_AT_A_TIME } = deps
  const fs = withSteps(deps.fs ?? nodeFileSystem, deps.onStep)
  const modes = new Map(begin.folderModes?.map(({ path, mode }) => [path, mode]))
  for (const { path, goal } of begin.rows) if (goal.kind === 'folder' && goal.mode !== undefined) modes.set(path, goal.mode)
  const outcomes: Outcome[] = []
  let through = 0
  const put = async (row: OpRow, syncLater?: (folder: string) => void): Promise<Moved> => {
    signal?.throwIfAborted()
    const folders = row.action === 'recreate' ? row.absentFolders.map(path => ({ path, mode: modes.get(path) })) : []
    const { path, temp, was, goal } = row
    const moved = await putState({ path, temp, from: was, to: goal, folders }, { readBlob, fs, maxBytes, syncLater })
    deps.onRow?.(++through)
    return moved
  }
  const oneByOne = async (rows: readonly OpRow[]): Promise<void> => {
    for (const row of rows) outcomes.push(...outcomesOf(row, await put(row)))
  }
  const together = async (rows: readonly OpRow[]): Promise<void> => {
    const folders = new Set<string>()
    const moves = await inFlight(rows, { max: rowsAtATime, maxWeight: MAX_ROW_BYTES, weightOf: bytesOf }, async row => ({ row, moved: await put(row, folder => { folders.add(folder) }) }))
    const unsynced = await syncAll(folders, fs, rowsAtATime)
    for (const { row, moved } of moves) {
      const reason = moved.result === 'restored' ? unsynced.get(dirname(row.path)) : undefined
      outcomes.push(...outcomesOf(row, reason === undefined ? moved : { ...moved, reason }))
    }
  }

  const phases = phasesOf(begin.rows)
  await oneByOne(phases.clear)
  await together(phases.write)
  await oneByOne(phases.folders)
  const { first, rest } = firstInEachFolder(phases.recreate)
  await oneByOne(first)
  await together(rest)
  await together(phases.delete.filter(({ was }) => was.kind !== 'folder'))
  await oneByOne(phases.delete.filter(({ was }) => was.kind === 'folder'))

  signal?.throwIfAborted()
  const removedFolders: Folder[] = []
  for (const path of deepestFirst(begin.foldersToRemove)) {
    try {
      const folder = await removeEmptyFolder(path, fs)
      if (folder) removedFolders.push(folder)
    } catch (error) {
      outcomes.push(failedFolder(path, error))
    }
  }
  await oneByOne(phases.fill)
  return { outcomes, removedFolders }
}

/** The files of a row in memory at one moment: what it becomes, and a look at it. */
const bytesOf = ({ was, goal }: OpRow): number => [was, goal, goal].reduce((sum, state) => sum + (state.kind === 'file' ? state.bytes : 0), 0)

/** Rows that make folders go one by one until each folder has something in it: a row that fails takes empty ones away again. */
function firstInEachFolder(rows: readonly OpRow[]): { readonly first: readonly OpRow[]; readonly rest: readonly OpRow[] } {
  const seen = new Set<string>()
  const isFirst = ({ absentFolders }: OpRow): boolean => {
    const folder = absentFolders.at(-1)
    if (folder === undefined || seen.has(folder)) return false
    seen.add(folder)
    return true
  }
  const first = new Set(rows.filter(isFirst))
  return { first: [...first], rest: rows.filter(row => !first.has(row)) }
}

/** The folders that could not be synced, with the errno. */
async function syncAll(folders: ReadonlySet<string>, fs: FileSystem, rowsAtATime: number): Promise<ReadonlyMap<string, string>> {
  const failed = new Map<string, string>()
  await inFlight([...folders], { max: rowsAtATime, maxWeight: 0, weightOf: () => 0 }, async (folder) => {
    try {
      await syncFolder(folder, fs)
    } catch (error) {
      const reason = errnoOf(error)
      if (reason === undefined) throw error
      failed.set(folder, reason)
    }
  })
  return failed
}

/** The row's outcome, and one for each thing of ours that had to be left beside it. */
export function outcomesOf({ path, action }: OpRow, { result, reason, leftovers }: Moved): Outcome[] {
  return [
    { path, action, result, ...(reason !== undefined && { reason }) },
    ...leftovers.map(left => ({ ...left, result: 'failed' as const })),
  ]
}

/** The outcome for a folder that could not be made or removed; rethrows what is not an error of the system. */
export function failedFolder(path: string, error: unknown): Outcome {
  const reason = errnoOf(error)
  if (reason === undefined) throw error
  return { path, result: 'failed', reason }
}
