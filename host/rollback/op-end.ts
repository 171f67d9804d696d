import type { Folder, OpBeginEntry, OpDoneEntry, Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { OpId, Seq, SessionId } from '../../src/ids.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import type { Preview } from '../../src/protocol/requests.ts'
import { idOf } from '../dsh/session-log.ts'
import type { RestoreDeps } from '../restore/apply.ts'
import { takeBackFiles } from '../restore/take-back.ts'
import type { OpSite } from './rescue.ts'

/** A recorded operation, as it ended. */
export interface Operation {
  readonly begin: OpBeginEntry
  readonly outcomes: readonly Outcome[]
  readonly removedFolders: readonly Folder[]
  readonly markerSeq: Seq | undefined
  /** Where the conversation goes on: as in the journal. */
  readonly copy?: SessionId
  readonly copyTitle?: string
  /** undo of a conversation: why there is no copy. The files are undone all the same. */
  readonly noCopy?: Failure
  /** undo: of a rollback, or of another undo */
  readonly reverses?: 'rollback' | 'undo'
  /** rollback: what it was planned from */
  readonly around?: Preview
  /** First lines of queued messages that were removed with it. */
  readonly dropped?: readonly string[]
  /** It happened, but its end could not be stored: `settleOperation` before the next op of the session. */
  readonly isOpen?: true
}

/** Puts back what an op that was not committed has changed, and notes it. `removedFolders` as in op-applied, where it was reached. */
export async function takeBack(site: OpSite, entry: OpBeginEntry, removedFolders?: readonly Folder[]): Promise<readonly Outcome[]> {
  const outcomes = await takeBackFiles(entry, { ...restoreDeps(site), removedFolders })
  await end(site, { kind: 'op-taken-back', op: entry.op, outcomes, atMs: site.deps.now() })
  return outcomes
}

/** Notes an op that stands, and tells the host which files are again as its model had seen them. */
export async function finish(site: OpSite, operation: Operation): Promise<Operation> {
  const { deps, session } = site
  const { begin: entry, outcomes, markerSeq, copy } = operation
  const isEnded = await end(site, {
    kind: 'op-done', op: entry.op, outcomes: [...outcomes], ...(markerSeq === undefined ? {} : { markerSeq }), ...(copy === undefined ? {} : { copy }), atMs: deps.now(),
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
export async function end({ deps, session, records }: OpSite, entry: OpDoneEntry | { kind: 'op-taken-back'; op: OpId; outcomes: Outcome[]; atMs: number }): Promise<boolean> {
  const written = await records.journal.append({ entries: [entry] })
  if (!written.ok) {
    deps.health.report('store', written.failure.facts.detail ?? written.failure.code)
    return false
  }
  await deps.store.clearOpenOp(idOf(session), entry.op)
  return true
}

/** What putting files back or taking them back reads from. */
export const restoreDeps = ({ deps, records }: OpSite): RestoreDeps =>
  ({ readBlob: records.readBlob, maxBytes: deps.maxFileBytes })
