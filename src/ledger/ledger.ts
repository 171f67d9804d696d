import type { FileState } from '../checkpoint/file-state.ts'
import type { CallRef, JournalEntry, OpBeginEntry, OpDoneEntry, Outcome, TurnRef } from '../checkpoint/journal-entry.ts'
import type { OpId, Seq } from '../ids.ts'

/** One call's change of one path. `after` is undefined when the process died before the second look. */
export interface CallRecord {
  readonly id: string
  readonly turn: TurnRef
  readonly callId: string
  readonly tool: string
  readonly before: FileState
  readonly after: FileState | undefined
  readonly absentFolders: readonly string[]
  readonly atMs: number
}

/** What this session is known to have done to one path. A successful restore cancels the records of the withdrawn turns. */
export interface PathLedger {
  readonly path: string
  /** Oldest first; cancelled ones are gone. */
  readonly records: readonly CallRecord[]
}

/** A recorded rollback or undo that stands. */
export interface StandingOp {
  readonly begin: OpBeginEntry
  readonly done: OpDoneEntry
  /** The undo that reversed it. */
  readonly undoneBy: OpId | undefined
}

export interface BookedCall {
  readonly turn: TurnRef
  readonly call: CallRef
}

export interface Ledger {
  readonly paths: ReadonlyMap<string, PathLedger>
  /** Oldest first. */
  readonly ops: readonly StandingOp[]
  /** Begun and neither done nor taken back: the process died, or it is under way. */
  readonly open: readonly OpBeginEntry[]
  /** Every call with a record of any kind, as `<session id> <call id>`: proof that it was watched. */
  readonly watched: ReadonlySet<string>
  /** Calls that announced no write, and calls booked on a turn that had already ended. */
  readonly seen: readonly BookedCall[]
  readonly late: readonly BookedCall[]
}

export const watchKey = (session: string, callId: string): string => `${session} ${callId}`

/** Folds a session's journal, oldest entry first. Unknown ids are ignored: the entry they belong to lies in a hole. */
export function foldLedger(entries: Iterable<JournalEntry>): Ledger {
  const paths = new Map<string, CallRecord[]>()
  const byId = new Map<string, { path: string }>()
  const begun = new Map<OpId, OpBeginEntry>()
  const ops: StandingOp[] = []
  /** What each op cancelled, so that an undo can reinstate it. */
  const cancelled = new Map<OpId, Map<string, readonly CallRecord[]>>()
  const watched = new Set<string>()
  const seen: BookedCall[] = []
  const late: BookedCall[] = []

  for (const entry of entries) {
    switch (entry.kind) {
      case 'before': {
        watched.add(watchKey(entry.call.sessionId, entry.call.callId))
        if (entry.turn.late === true) late.push(entry)
        byId.set(entry.id, { path: entry.path })
        const record: CallRecord = {
          id: entry.id, turn: entry.turn, callId: entry.call.callId, tool: entry.call.tool,
          before: entry.state, after: undefined, absentFolders: entry.absentFolders, atMs: entry.atMs,
        }
        paths.set(entry.path, [...paths.get(entry.path) ?? [], record])
        break
      }
      case 'after': {
        const path = byId.get(entry.of)?.path
        const records = path === undefined ? undefined : paths.get(path)
        if (path === undefined || records === undefined) break
        paths.set(path, records.map(record => (record.id === entry.of ? { ...record, after: entry.state } : record)))
        break
      }
      case 'seen':
        watched.add(watchKey(entry.call.sessionId, entry.call.callId))
        seen.push(entry)
        break
      case 'op-begin':
        begun.set(entry.op, entry)
        break
      case 'op-applied':
        break
      case 'op-taken-back':
        begun.delete(entry.op)
        break
      case 'op-done': {
        const begin = begun.get(entry.op)
        if (begin === undefined) break
        begun.delete(entry.op)
        if (begin.act === 'undo') reinstate(begin, entry.outcomes)
        else cancelled.set(begin.op, cancelWithdrawn(begin, entry.outcomes))
        ops.push({ begin, done: entry, undoneBy: undefined })
        break
      }
    }
  }
  return {
    paths: new Map([...paths].filter(([, records]) => records.length > 0).map(([path, records]) => [path, { path, records }])),
    ops, open: [...begun.values()], watched, seen, late,
  }

  /** Kept, skipped and failed paths keep their records: a later rollback to an earlier turn still has to look at them. */
  function cancelWithdrawn(begin: OpBeginEntry, outcomes: readonly Outcome[]): Map<string, readonly CallRecord[]> {
    const before = new Map<string, readonly CallRecord[]>()
    const from = begin.target?.startSeq ?? Infinity
    for (const { path, result } of outcomes) {
      const records = paths.get(path)
      if (result !== 'restored' || records === undefined) continue
      before.set(path, records)
      paths.set(path, records.filter(record => record.turn.startSeq < from))
    }
    return before
  }

  /** The paths an undo put back carry the same story again as before the op, with what happened since after it. */
  function reinstate(undo: OpBeginEntry, outcomes: readonly Outcome[]): void {
    const at = ops.findLastIndex(op => op.begin.op === undo.of)
    const was = undo.of === undefined ? undefined : cancelled.get(undo.of)
    if (at < 0 || was === undefined) return
    ops[at] = { ...ops[at]!, undoneBy: undo.op }
    for (const { path, result } of outcomes) {
      const records = was.get(path)
      if (result !== 'restored' || records === undefined) continue
      const since = (paths.get(path) ?? []).filter(record => !records.some(old => old.id === record.id))
      paths.set(path, [...records, ...since])
    }
  }
}

/** Records of one path in the span from `startSeq` to now. */
export const inSpan = (ledger: PathLedger, startSeq: Seq): readonly CallRecord[] =>
  ledger.records.filter(record => record.turn.startSeq >= startSeq)
