import type { OpId, SessionId } from '../../src/ids.ts'
import { undoableOp, type Ledger, type StandingOp } from '../../src/ledger/ledger.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { pathsOfUndo, planUndo, type RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { cutBeforeMarker } from '../../src/turn/session-cut.ts'
import { translator } from '../../locales/translate.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import { idOf, readEvents } from '../dsh/session-log.ts'
import { copyTitle } from './copy-title.ts'
import type { RollbackDeps } from './deps.ts'
import { lookAtAll } from './paths-now.ts'
import { finish, type Operation } from './op-end.ts'
import { applyOp } from './operation.ts'
import { parentOf, readRecords } from './records.ts'
import { beginOp, type OpSite } from './rescue.ts'

/** What an undo is about: an op and the session whose journal it is noted in, which a copy shares with its original. */
export interface UndoTarget {
  readonly site: OpSite
  readonly of: StandingOp
}

/** The op named `op`, or the newest there is to undo. */
export async function findUndo(deps: RollbackDeps, session: ForeignSession, op: OpId | undefined): Promise<Result<UndoTarget, Failure>> {
  const records = await readRecords(deps, session)
  if (!records.ok) return records
  const site = { deps, session, records: records.value }
  const { ledger, isOwn } = records.value
  if (op !== undefined) return found(site, ledger.ops.find(other => other.begin.op === rollbackOf(ledger, op) && isUndoable(ledger, other)))
  const own = undoableOp({ ops: ledger.ops.filter(isOwn) })
  if (own !== undefined) return ok({ site, of: own })
  const made = await undoThatMade(deps, session)
  return made.ok && made.value === undefined ? found(site, undoableOp(ledger)) : made as Result<UndoTarget, Failure>
}

/** A retry is undone with its rollback: the one completed the other. */
function rollbackOf({ ops }: Ledger, op: OpId): OpId | undefined {
  const named = ops.find(other => other.begin.op === op)?.begin
  return named?.act === 'retry' ? named.of : op
}

const found = (site: OpSite, of: StandingOp | undefined): Result<UndoTarget, Failure> =>
  of === undefined ? fail(failure('nothing-to-undo')) : ok({ site, of })

/** An undo that could not make its copy can be asked for once more. */
function isUndoable({ ops }: Ledger, { begin, undoneBy }: StandingOp): boolean {
  const undo = undoneBy === undefined ? undefined : ops.find(other => other.begin.op === undoneBy)
  return undoneBy === undefined || (begin.markerId !== undefined && undo?.done.copy === undefined)
}

/** The undo in the original that made this session, while it stands. */
async function undoThatMade(deps: RollbackDeps, session: ForeignSession): Promise<Result<UndoTarget | undefined, Failure>> {
  const parent = await parentOf(deps, session)
  if (parent === undefined) return ok(undefined)
  const records = await readRecords(deps, parent)
  if (!records.ok) return records
  const of = records.value.ledger.ops.find(({ begin, done, undoneBy }) =>
    begin.act === 'undo' && done.copy === idOf(session) && undoneBy === undefined && records.value.isOwn({ begin }))
  return ok(of && { site: { deps, session: parent, records: records.value }, of })
}

/** What putting the files back would do, from how they are now. */
export const planOfUndo = async (deps: RollbackDeps, { of }: UndoTarget): Promise<RestorePlan> =>
  planUndo(of, await lookAtAll(deps, pathsOfUndo(of)), new Set())

/**
 * Reverses an op: the files in place, from its rescue; committed when every step was tried. Then the conversation: of a
 * rollback as a copy of the log up to before it, which leaves this session as it is; of such an undo by naming the
 * original. Without a copy the files are undone all the same and the operation says why.
 */
export async function runUndo({ site, of }: UndoTarget, plan: RestorePlan, signal: AbortSignal): Promise<Result<Operation, Failure>> {
  const op = site.deps.newId() as OpId
  const folderModes = of.removedFolders.flatMap(({ path, mode }) => (mode === undefined ? [] : [{ path, mode }]))
  const begun = await beginOp(site, { plan, op, begin: { act: 'undo', of: of.begin.op, scope: of.begin.scope, folderModes } }, signal)
  if (!begun.ok) return begun
  const entry = begun.value
  const done = await applyOp(site, entry)
  if (!done.ok) return done
  const { outcomes, removedFolders } = done.value
  const reverses = of.begin.act === 'undo' ? 'undo' : 'rollback'
  return ok(await finish(site, {
    begin: entry, outcomes: [...outcomes, ...entry.decided], removedFolders, markerSeq: undefined, reverses,
    ...(reverses === 'undo' ? original(site, of) : await copyBefore(site, of)),
  }))
}

type Conversation = Pick<Operation, 'copy' | 'copyTitle' | 'noCopy'>

const original = ({ session }: OpSite, { done }: StandingOp): Conversation => (done.copy === undefined ? {} : { copy: idOf(session) })

/** The files are undone already, so whatever happens here is an answer. */
async function copyBefore({ deps, session }: OpSite, { begin: { markerId } }: StandingOp): Promise<Conversation> {
  if (markerId === undefined) return {}
  try {
    const cut = cutBeforeMarker(readEvents(session), markerId)
    if (!cut.ok) return { noCopy: failure('no-copy', { detail: cut.failure }) }
    const title = copyTitle(deps, translator(deps.localeOf(idOf(session))), session, { kind: 'undo' })
    const copy = await deps.copies.make({ source: session, cut: cut.value, title })
    return copy.ok ? { copy: copy.value as SessionId, copyTitle: title } : { noCopy: copy.failure }
  } catch (error) {
    deps.health.report('session copy', error)
    return { noCopy: failure('no-copy', { detail: error instanceof Error ? error.message : String(error) }) }
  }
}
