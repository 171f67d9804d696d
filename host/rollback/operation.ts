import type { Folder, OpBeginEntry, Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { OpId, Seq, SessionId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { StandingOp } from '../../src/ledger/ledger.ts'
import type { RestorePlan } from '../../src/restore/plan.ts'
import type { Selected } from '../../src/restore/selection.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { markerId, markerTexts, type MarkerText } from '../../src/surface/marker.ts'
import { appendMarker, flush, idOf, priceOf } from '../dsh/session-log.ts'
import { applyFiles } from '../restore/apply.ts'
import type { RollbackDeps } from './deps.ts'
import type { Draft } from './draft.ts'
import { finish, restoreDeps, takeBack, type Operation } from './op-end.ts'
import { beginOp, type OpSite } from './rescue.ts'

/**
 * Carries out a draft for the paths that were selected. To be called in maintenance, with the session's lock held. What makes it true is the
 * marker in the durable log: before it a crash is taken back at the next start, after it finished.
 * `copy`: the session of a branch, whose draft is of the files alone.
 */
export async function runRollback(deps: RollbackDeps, draft: Draft, { plan, leftOut }: Selected, signal: AbortSignal, copy?: SessionId): Promise<Result<Operation, Failure>> {
  const { session, target, records, scope } = draft
  const op = deps.newId() as OpId
  const { startSeq, number } = target.turn
  const id = markerId({ startSeq, turn: number, op })
  const site = { deps, session, records }
  const begun = await beginOp(site, {
    plan, op,
    begin: {
      act: 'rollback', scope, target: { startSeq, number, withdrawn: target.withdrawn.map(turn => turn.number) }, gaps: [...draft.gaps],
      ...(scope === 'files' ? {} : { markerId: id }),
      ...(copy === undefined ? {} : { copy }), ...(leftOut === 0 ? {} : { leftOut }),
    },
  }, signal)
  if (!begun.ok) return begun
  const entry = begun.value
  const applied = await applyOp(site, entry)
  if (!applied.ok) return applied
  const outcomes = [...applied.value.outcomes, ...entry.decided]
  const operation = { begin: entry, outcomes, removedFolders: applied.value.removedFolders, ...(copy === undefined ? {} : { copy }) }
  let markerSeq: Seq | undefined
  if (scope !== 'files') {
    try {
      // A meter that fails costs the host's token count its exactness, and nobody the rollback.
      const tokens = deps.health.contain('token meter', priceOf)(deps.ctx.get('tokenMeter'), session, target.cut)
      markerSeq = appendMarker(session, { messageId: id, text: markerTexts[textFor(draft, { outcomes, leftOut })], nodes: target.cut, tokens })
    } catch (error) {
      // The host refused the cut, so the files go back as well: both or neither.
      deps.health.report('marker', error)
      await takeBack(site, entry, applied.value.removedFolders)
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
  return ok(await finish(site, { ...operation, markerSeq }))
}

/** Tries once more to end an op that is `isOpen`; a failure leaves it so. */
export async function settleOperation(site: OpSite, operation: Operation): Promise<Result<undefined, Failure>> {
  const { deps, session } = site
  try {
    await flush(deps.sessions, session)
  } catch (error) {
    return fail(failure('store-unavailable', { detail: error instanceof Error ? error.message : String(error) }))
  }
  const { isOpen } = await finish(site, operation)
  if (isOpen === true) return fail(failure('store-unavailable', { detail: 'the last rollback could not be noted down' }))
  deps.health.clear('flush')
  return ok(undefined)
}

/** Tries again what a rollback could not put back: an op on files alone, committed when every step was tried. */
export async function runRetry(site: OpSite, { plan, again }: { readonly plan: RestorePlan; readonly again: StandingOp }, signal: AbortSignal): Promise<Result<Operation, Failure>> {
  const { op: of, target } = again.begin
  const begun = await beginOp(site, {
    plan, op: site.deps.newId() as OpId, begin: { act: 'retry', of, scope: 'files', ...(target === undefined ? {} : { target }) },
  }, signal)
  if (!begun.ok) return begun
  const entry = begun.value
  const applied = await applyOp(site, entry)
  if (!applied.ok) return applied
  const { outcomes, removedFolders } = applied.value
  return ok(await finish(site, { begin: entry, outcomes: [...outcomes, ...entry.decided], removedFolders, markerSeq: undefined }))
}

export interface Applied {
  readonly outcomes: readonly Outcome[]
  readonly removedFolders: readonly Folder[]
}

/** From here on the op is only ended by `op-done` or `op-taken-back`; a Stop by the user comes too late. */
export async function applyOp(site: OpSite, entry: OpBeginEntry): Promise<Result<Applied, Failure>> {
  const { deps, records } = site
  try {
    const applied = await applyFiles(entry, {
      ...restoreDeps(site),
      onStep: () => { deps.onPhase('file', entry.op) },
      onRow: (done) => { deps.progress.at(idOf(site.session), 'writing', done, entry.rows.length) },
    })
    const noted = await records.journal.append({ entries: [{ kind: 'op-applied', op: entry.op, ...applied, atMs: deps.now() }] })
    if (!noted.ok) {
      deps.health.report('store', noted.failure.facts.detail ?? noted.failure.code)
      // Without a marker the note is what makes the op true: the next start would take it back behind the user's back.
      // With one, recovery looks at the disk instead.
      if (entry.markerId === undefined) {
        await takeBack(site, entry, applied.removedFolders)
        return noted
      }
    }
    deps.onPhase('op-applied', entry.op)
    return ok(applied)
  } catch (error) {
    deps.health.report('apply', error)
    await takeBack(site, entry)
    return fail(failure('internal', { detail: error instanceof Error ? error.message : String(error) }))
  }
}

/** What the model is told of the files is no more than we can vouch for: a gap may hide a changed file. */
function textFor({ scope, gaps }: Draft, { outcomes, leftOut }: { readonly outcomes: readonly Outcome[]; readonly leftOut: number }): MarkerText {
  if (scope === 'conversation') return 'conversation-only'
  return gaps.length === 0 && leftOut === 0 && outcomes.every(outcome => outcome.result === 'restored') ? 'all-files' : 'some-files'
}
