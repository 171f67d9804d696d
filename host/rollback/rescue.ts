import { basename, dirname, join } from 'node:path'
import { sameState, type FileState } from '../../src/checkpoint/file-state.ts'
import type { OpBeginEntry, OpRow, Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { OpId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { decidedOutcomes, type FileAction, type PlanRow, type RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { makeBreath } from '../breath.ts'
import { absentFoldersOf, observePath } from '../capture/observe.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import { idOf } from '../dsh/session-log.ts'
import { errnoOf, modeOf, nodeFileSystem } from '../restore/file-system.ts'
import { parentsOf } from '../restore/folders.ts'
import type { RollbackDeps } from './deps.ts'
import type { Records } from './records.ts'

/** Rescue bytes are stored in portions of about this size, so that memory stays bounded. */
const RESCUE_BATCH_BYTES = 8 * 1024 * 1024

/** What every step of an op works on. */
export interface OpSite {
  readonly deps: RollbackDeps
  readonly session: ForeignSession
  readonly records: Records
}

export interface NewOp {
  readonly plan: RestorePlan
  readonly op: OpId
  readonly begin: Pick<OpBeginEntry, 'act' | 'scope'> & Partial<Pick<OpBeginEntry, 'of' | 'target' | 'gaps' | 'markerId' | 'copy' | 'leftOut' | 'folderModes'>>
}

/**
 * Saves every state that will be replaced and writes `op-begin`, which makes the op exist. What cannot be
 * saved, or has nothing to be restored from, becomes a skip here, before anything is written.
 */
export async function beginOp({ deps, session, records }: OpSite, { plan, op, begin }: NewOp, signal: AbortSignal): Promise<Result<OpBeginEntry, Failure>> {
  const rows: OpRow[] = []
  const decided: Outcome[] = [...decidedOutcomes(plan)]
  let batch: { digest: Extract<FileState, { kind: 'file' }>['digest']; bytes: Uint8Array }[] = []
  let batchBytes = 0
  const files = plan.rows.filter(isFileWork)
  const clearing = new Map(files.filter(row => row.decision.kind === 'delete' || (row.decision.kind === 'write' && row.goal.kind === 'folder')).map(row => [row.path, row.goal]))
  const store = async (): Promise<Result<unknown, Failure>> => {
    const blobs = batch
    batch = []
    batchBytes = 0
    return blobs.length === 0 ? ok(undefined) : records.journal.append({ entries: [], blobs })
  }
  const breath = makeBreath()
  for (const [at, row] of files.entries()) {
    await breath()
    if (signal.aborted) return fail(failure('aborted'))
    deps.progress.at(idOf(session), 'saving', at, files.length)
    const { path, goal, current, decision } = row
    if (goal.kind === 'file' && !await records.hasBlob(goal.digest)) {
      decided.push({ path, result: 'skipped', reason: 'object-gone' })
      continue
    }
    // Read, not only looked up: a record may have been damaged since, and these bytes are about to be replaced.
    if (current.kind === 'file' && await records.readBlob(current.digest) === undefined) {
      const found = await observePath(path, { maxBytes: deps.maxFileBytes })
      if (!sameState(found.state, current) || found.bytes === undefined) return fail(failure('stale'))
      batch.push({ digest: current.digest, bytes: found.bytes })
      batchBytes += found.bytes.length
    }
    if (batchBytes >= RESCUE_BATCH_BYTES) {
      const stored = await store()
      if (!stored.ok) return stored
    }
    const absentFolders = decision.kind === 'recreate' ? await foldersFor(path, clearing) : []
    rows.push({ path, action: decision.kind, was: await withModeNow(path, current), goal, temp: tempFor(path, op, rows.length), absentFolders })
  }
  const stored = await store()
  if (!stored.ok) return stored
  if (signal.aborted) return fail(failure('aborted'))
  // From here on a Stop comes too late.
  deps.progress.at(idOf(session), 'writing', 0, rows.length)
  const entry: OpBeginEntry = {
    kind: 'op-begin', op, ...begin, rows, decided, foldersToRemove: await foldersThere(deps, plan.folders), atMs: deps.now(),
  }
  const marked = await deps.store.markOpenOp(idOf(session), op)
  if (!marked.ok) return marked
  const written = await records.journal.append({ entries: [entry] })
  if (!written.ok) return written
  deps.onPhase('op-begin', op)
  return ok(entry)
}

/** Folders to make for a path, outermost first. Where a file or a link goes out of the way, nothing below its place is there. */
async function foldersFor(path: string, clearing: ReadonlyMap<string, FileState>): Promise<string[]> {
  const parents = parentsOf(path)
  const at = parents.findIndex(folder => clearing.has(folder))
  if (at < 0) return absentFoldersOf(path)
  // Where a folder comes in its place, that is a row of its own.
  return parents.slice(clearing.get(parents[at]!)!.kind === 'folder' ? at + 1 : at)
}

/** A folder that goes comes back with the mode it has now: records know only the one it had when a call made it. */
async function withModeNow(path: string, state: FileState): Promise<FileState> {
  if (state.kind !== 'folder') return state
  try {
    const stat = await nodeFileSystem.lstat(path)
    return stat.isDirectory() ? { kind: 'folder', mode: modeOf(stat) } : state
  } catch (error) {
    // It went meanwhile: the step that is to replace it looks again.
    if (errnoOf(error) === undefined) throw error
    return state
  }
}

/** The folders of a plan that are there: taking back makes every folder again that an op was to remove. */
async function foldersThere({ maxFileBytes }: RollbackDeps, folders: readonly string[]): Promise<string[]> {
  const looks = await Promise.all(folders.map(folder => observePath(folder, { maxBytes: maxFileBytes })))
  return folders.filter((_folder, at) => looks[at]!.state.kind === 'folder')
}

const isFileWork = (row: PlanRow): row is PlanRow & { decision: { kind: FileAction } } => ['write', 'recreate', 'delete'].includes(row.decision.kind)

/** A sibling, so that the rename stays on one file system; the op's id tells whose it is. */
const tempFor = (path: string, op: OpId, at: number): string => join(dirname(path), `.${basename(path).slice(0, 60)}.turnback-${op}-${at}.tmp`)
