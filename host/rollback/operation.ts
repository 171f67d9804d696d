import { dirname, basename, join } from 'node:path'
import { sameState, type FileState } from '../../src/checkpoint/file-state.ts'
import type { Folder, OpBeginEntry, OpDoneEntry, OpRow, Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { OpId, Seq } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { Preview } from '../../src/protocol/requests.ts'
import { decidedOutcomes, type FileAction, type PlanRow, type RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { markerId, markerTexts, type MarkerText } from '../../src/surface/marker.ts'
import { absentFoldersOf, observePath } from '../capture/observe.ts'
import { appendMarker, flush, idOf, priceOf } from '../dsh/session-log.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import { applyFiles, type RestoreDeps } from '../restore/apply.ts'
import { takeBackFiles } from '../restore/take-back.ts'
import type { RollbackDeps } from './deps.ts'
import type { Draft } from './draft.ts'
import type { Records } from './records.ts'

/** Rescue bytes are stored in portions of about this size, so that memory stays bounded. */
const RESCUE_BATCH_BYTES = 8 * 1024 * 1024

/** A recorded operation, as it ended. */
export interface Operation {
  readonly begin: OpBeginEntry
  readonly outcomes: readonly Outcome[]
  readonly removedFolders: readonly Folder[]
  readonly markerSeq: Seq | undefined
  /** rollback: what it was planned from */
  readonly around?: Preview
  /** It happened, but its end could not be stored: `settleOperation` before the next op of the session. */
  readonly isOpen?: true
}

interface Work {
  readonly session: ForeignSession
  readonly records: Records
  readonly plan: RestorePlan
  readonly begin: Pick<OpBeginEntry, 'act' | 'scope'> & Partial<Pick<OpBeginEntry, 'of' | 'target' | 'gaps' | 'markerId' | 'folderModes'>>
  readonly op: OpId
}

/**
 * Carries out a draft. To be called in maintenance, with the session's lock held. What makes it true is the
 * marker in the durable log: before it a crash is taken back at the next start, after it finished.
 */
export async function runRollback(deps: RollbackDeps, draft: Draft, signal: AbortSignal): Promise<Result<Operation, Failure>> {
  const { session, target, records, plan, scope } = draft
  const op = deps.newId() as OpId
  const { startSeq, number } = target.turn
  const id = markerId({ startSeq, turn: number, op })
  const begun = await begin(deps, {
    session, records, plan, op,
    begin: {
      act: 'rollback', scope, target: { startSeq, number, withdrawn: target.withdrawn.map(turn => turn.number) }, gaps: [...draft.gaps],
      ...(scope === 'files' ? {} : { markerId: id }),
    },
  }, signal)
  if (!begun.ok) return begun
  const { entry } = begun.value
  const applied = await apply(deps, session, records, entry)
  if (!applied.ok) return applied
  const outcomes = [...applied.value.outcomes, ...entry.decided]
  const operation = { begin: entry, outcomes, removedFolders: applied.value.removedFolders }
  let markerSeq: Seq | undefined
  if (scope !== 'files') {
    try {
      // A meter that fails costs the host's token count its exactness, and nobody the rollback.
      const tokens = deps.health.contain('token meter', priceOf)(deps.ctx.get('tokenMeter'), session, target.cut)
      markerSeq = appendMarker(session, { messageId: id, text: markerTexts[textFor(draft, outcomes)], nodes: target.cut, tokens })
    } catch (error) {
      // The host refused the cut, so the files go back as well: both or neither.
      deps.health.report('marker', error)
      await takeBack(deps, session, records, entry, applied.value.removedFolders)
      return fail(failure('unsupported-host', { detail: error instanceof Error ? error.message : String(error) }))
    }
    deps.onPhase('marker', op)
    try {
      // A false answer means that nothing durable is mounted; then there is no log to be out of step with.
      await flush(deps.sessions, session)
    } catch (error) {
      // Everything is done but not known to be on disk: without the marker in the log the next start takes the files back.
      deps.health.report('flush', error)
      return ok({ ...operation, markerSeq, isOpen: true })
    }
    deps.onPhase('flushed', op)
  }
  return ok(await finish(deps, session, records, { ...operation, markerSeq }))
}

/** Tries once more to end an op that is `isOpen`; a failure leaves it so. */
export async function settleOperation(deps: RollbackDeps, session: ForeignSession, records: Records, operation: Operation): Promise<Result<undefined, Failure>> {
  try {
    await flush(deps.sessions, session)
  } catch (error) {
    return fail(failure('store-unavailable', { detail: error instanceof Error ? error.message : String(error) }))
  }
  const { isOpen } = await finish(deps, session, records, operation)
  if (isOpen === true) return fail(failure('store-unavailable', { detail: 'the last rollback could not be noted down' }))
  deps.health.clear('flush')
  return ok(undefined)
}

/** Puts files back from an op's rescue. Files only; committed when every step was tried. */
export async function runUndo(deps: RollbackDeps, work: Omit<Work, 'op' | 'begin'> & { readonly of: OpId }, signal: AbortSignal): Promise<Result<Operation, Failure>> {
  const op = deps.newId() as OpId
  const undone = work.records.entries.findLast(entry => entry.kind === 'op-applied' && entry.op === work.of)
  const folderModes = undone?.kind === 'op-applied' ? undone.removedFolders : []
  const begun = await begin(deps, { ...work, op, begin: { act: 'undo', of: work.of, scope: 'files', folderModes: [...folderModes] } }, signal)
  if (!begun.ok) return begun
  const { entry } = begun.value
  const applied = await apply(deps, work.session, work.records, entry)
  if (!applied.ok) return applied
  const { outcomes, removedFolders } = applied.value
  return ok(await finish(deps, work.session, work.records, { begin: entry, outcomes: [...outcomes, ...entry.decided], removedFolders, markerSeq: undefined }))
}

/**
 * Saves every state that will be replaced and writes `op-begin`, which makes the op exist. What cannot be
 * saved, or has nothing to be restored from, becomes a skip here, before anything is written.
 */
async function begin(deps: RollbackDeps, work: Work, signal: AbortSignal): Promise<Result<{ entry: OpBeginEntry }, Failure>> {
  const { session, records, plan, op } = work
  const rows: OpRow[] = []
  const decided: Outcome[] = [...decidedOutcomes(plan)]
  let batch: { digest: Extract<FileState, { kind: 'file' }>['digest']; bytes: Uint8Array }[] = []
  let batchBytes = 0
  const store = async (): Promise<Result<unknown, Failure>> => {
    const blobs = batch
    batch = []
    batchBytes = 0
    return blobs.length === 0 ? ok(undefined) : records.journal.append({ entries: [], blobs })
  }
  for (const row of plan.rows.filter(isFileWork)) {
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
    const absentFolders = decision.kind === 'recreate' ? await absentFoldersOf(path) : []
    rows.push({ path, action: decision.kind, was: current, goal, temp: tempFor(path, op, rows.length), absentFolders })
  }
  const stored = await store()
  if (!stored.ok) return stored
  if (signal.aborted) return fail(failure('aborted'))
  const entry: OpBeginEntry = {
    kind: 'op-begin', op, ...work.begin, rows, decided, foldersToRemove: await foldersThere(deps, plan.folders), atMs: deps.now(),
  }
  const marked = await deps.store.markOpenOp(idOf(session), op)
  if (!marked.ok) return marked
  const written = await records.journal.append({ entries: [entry] })
  if (!written.ok) return written
  deps.onPhase('op-begin', op)
  return ok({ entry })
}

/** The folders of a plan that are there: taking back makes every folder again that an op was to remove. */
async function foldersThere({ maxFileBytes }: RollbackDeps, folders: readonly string[]): Promise<string[]> {
  const looks = await Promise.all(folders.map(folder => observePath(folder, { maxBytes: maxFileBytes })))
  return folders.filter((_folder, at) => looks[at]!.state.kind === 'folder')
}

interface Applied {
  readonly outcomes: readonly Outcome[]
  readonly removedFolders: readonly Folder[]
}

/** From here on the op is only ended by `op-done` or `op-taken-back`; a Stop by the user comes too late. */
async function apply(deps: RollbackDeps, session: ForeignSession, records: Records, entry: OpBeginEntry): Promise<Result<Applied, Failure>> {
  try {
    const applied = await applyFiles(entry, {
      ...restoreDeps(deps, records),
      onStep: () => { deps.onPhase('file', entry.op) },
    })
    const noted = await records.journal.append({ entries: [{ kind: 'op-applied', op: entry.op, ...applied, atMs: deps.now() }] })
    if (!noted.ok) {
      deps.health.report('store', noted.failure.facts.detail ?? noted.failure.code)
      // Without a marker the note is what makes the op true: the next start would take it back behind the user's back.
      // With one, recovery looks at the disk instead.
      if (entry.markerId === undefined) {
        await takeBack(deps, session, records, entry, applied.removedFolders)
        return noted
      }
    }
    deps.onPhase('op-applied', entry.op)
    return ok(applied)
  } catch (error) {
    deps.health.report('apply', error)
    await takeBack(deps, session, records, entry)
    return fail(failure('internal', { detail: error instanceof Error ? error.message : String(error) }))
  }
}

export const restoreDeps = (deps: RollbackDeps, records: Records): RestoreDeps =>
  ({ readBlob: records.readBlob, maxBytes: deps.maxFileBytes })

/** Puts back what an op that was not committed has changed, and notes it. `removedFolders` as in op-applied, where it was reached. */
export async function takeBack(
  deps: RollbackDeps, session: ForeignSession, records: Records, entry: OpBeginEntry, removedFolders?: readonly Folder[],
): Promise<readonly Outcome[]> {
  const outcomes = await takeBackFiles(entry, { ...restoreDeps(deps, records), removedFolders })
  await end(deps, session, records, { kind: 'op-taken-back', op: entry.op, outcomes, atMs: deps.now() })
  return outcomes
}

async function finish(deps: RollbackDeps, session: ForeignSession, records: Records, operation: Operation): Promise<Operation> {
  const { begin: entry, outcomes, markerSeq } = operation
  const isEnded = await end(deps, session, records, {
    kind: 'op-done', op: entry.op, outcomes: [...outcomes], ...(markerSeq === undefined ? {} : { markerSeq }), atMs: deps.now(),
  })
  deps.onPhase('op-done', entry.op)
  // The op stands, so neither our fault nor that of another listener may turn its answer into an error.
  const announce = deps.health.contain('fs/observed', deps.observations.announce)
  for (const { path, result } of outcomes) {
    const row = entry.rows.find(candidate => candidate.path === path)
    if (result !== 'restored' || row === undefined) continue
    await announce(session, path, entry.target?.startSeq ?? 0, row.goal.kind === 'absent' ? 'absent' : 'present')
  }
  const { isOpen: _wasOpen, ...ended } = operation
  return isEnded ? ended : { ...ended, isOpen: true }
}

/** True when the end is durable. The flag goes only after the entry is durable: a flag too many is looked at in vain, one too few hides an open op. */
export async function end(deps: RollbackDeps, session: ForeignSession, records: Records, entry: OpDoneEntry | { kind: 'op-taken-back'; op: OpId; outcomes: Outcome[]; atMs: number }): Promise<boolean> {
  const written = await records.journal.append({ entries: [entry] })
  if (!written.ok) {
    deps.health.report('store', written.failure.facts.detail ?? written.failure.code)
    return false
  }
  await deps.store.clearOpenOp(idOf(session), entry.op)
  return true
}

const isFileWork = (row: PlanRow): row is PlanRow & { decision: { kind: FileAction } } => ['write', 'recreate', 'delete'].includes(row.decision.kind)

/** A sibling, so that the rename stays on one file system; the op's id tells whose it is. */
const tempFor = (path: string, op: OpId, at: number): string => join(dirname(path), `.${basename(path).slice(0, 60)}.turnback-${op}-${at}.tmp`)

/** What the model is told of the files is no more than we can vouch for: a gap may hide a changed file. */
function textFor({ scope, gaps }: Draft, outcomes: readonly Outcome[]): MarkerText {
  if (scope === 'conversation') return 'conversation-only'
  return gaps.length === 0 && outcomes.every(outcome => outcome.result === 'restored') ? 'all-files' : 'some-files'
}
