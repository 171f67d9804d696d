import { sameState, type FileState } from '../checkpoint/file-state.ts'
import type { BracketEntry, CallRef, ChangeEntry, Folder, JournalEntry, OpBeginEntry, OpDoneEntry, Outcome, OutsideEntry, TurnRef } from '../checkpoint/journal-entry.ts'
import type { OpId, Seq } from '../ids.ts'

/** One call's change of one path. `after` is undefined when the process died before the second look. */
export interface CallRecord {
  readonly id: string
  /** Its place among all records of the session; counts over all paths. */
  readonly number: number
  readonly turn: TurnRef
  readonly callId: string
  readonly tool: string
  readonly before: FileState
  readonly after: FileState | undefined
  readonly absentFolders: readonly string[]
  /** `tool`: the call named the path. `shell`: it changed while a command ran. */
  readonly origin: 'tool' | 'shell'
  /** Why the change may be somebody else's. */
  readonly doubt: ChangeEntry['doubt']
  readonly atMs: number
}

/** What this session is known to have done to one path. A successful restore cancels the records of the withdrawn turns. */
export interface PathLedger {
  readonly path: string
  /** Oldest first; cancelled ones are gone. */
  readonly records: readonly CallRecord[]
}

/** A recorded rollback, undo or retry. A retry is here by itself, and its rollback has the outcomes it came to. */
export interface StandingOp {
  readonly begin: OpBeginEntry
  /** Of a rollback that was tried again: with the outcome of the last try for each path. */
  readonly done: OpDoneEntry
  /** Folders that it took away. Without a mode where the process died before it could note the real one. */
  readonly removedFolders: readonly (Pick<Folder, 'path'> & Partial<Pick<Folder, 'mode'>>)[]
  /** The undo that reversed it; of a retry, the one that reversed its rollback. */
  readonly undoneBy: OpId | undefined
}

export interface BookedCall {
  readonly turn: TurnRef
  readonly call: CallRef
  /** False for a call that was refused before its body. */
  readonly ran?: false | undefined
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
  /** Commands that were looked at, oldest first; one that went on in the background may have several. */
  readonly brackets: readonly BracketEntry[]
  /** States of our paths that no call of ours left, oldest first: somebody else's, never booked on a turn. */
  readonly outside: ReadonlyMap<string, readonly OutsideEntry[]>
}

/** Names a call over all sessions: call ids repeat in forks. */
export const watchKey = (session: string, callId: string): string => `${session} ${callId}`

/** The story of each path an op put back, as it was before the op, so that an undo can reinstate it. */
interface Snapshot {
  readonly op: OpBeginEntry
  /** Records with a lower number were there before the op began. */
  readonly nextNumber: number
  readonly stories: Map<string, readonly string[]>
}

/** Folds a session's journal, oldest entry first. Unknown ids are ignored: the entry they belong to lies in a hole. */
export function foldLedger(entries: Iterable<JournalEntry>): Ledger {
  /** Every record, cancelled ones too; its number is its place in the journal. */
  const records = new Map<string, CallRecord & { readonly path: string }>()
  /** Record ids per path, oldest first, without the cancelled ones. */
  const stories = new Map<string, string[]>()
  const begun = new Map<OpId, OpBeginEntry>()
  /** How many records there were when an op began: its end may be noted after later turns, which it did not withdraw. */
  const recordsAtBegin = new Map<OpId, number>()
  const removedBy = new Map<OpId, readonly Folder[]>()
  const finished: FinishedOp[] = []
  const snapshots = new Map<OpId, Snapshot>()
  const watched = new Set<string>()
  const seen: BookedCall[] = []
  const late: BookedCall[] = []
  const brackets: BracketEntry[] = []
  const outside = new Map<string, OutsideEntry[]>()

  for (const entry of entries) {
    switch (entry.kind) {
      case 'before':
        watched.add(watchKey(entry.call.sessionId, entry.call.callId))
        if (records.has(entry.id)) break
        if (entry.turn.late === true) late.push(entry)
        records.set(entry.id, {
          id: entry.id, path: entry.path, turn: entry.turn, callId: entry.call.callId, tool: entry.call.tool, number: records.size,
          before: entry.state, after: undefined, absentFolders: entry.absentFolders, origin: 'tool', doubt: undefined, atMs: entry.atMs,
        })
        addTo(entry.path, entry.id)
        break
      case 'after': {
        const record = records.get(entry.of)
        if (record === undefined) break
        records.set(entry.of, { ...record, after: entry.state })
        // A refused write is none of the path's story: whatever becomes of the path is not the session's doing.
        if (sameState(record.before, entry.state)) drop(record.path, entry.of)
        break
      }
      case 'change':
        if (records.has(entry.id)) break
        records.set(entry.id, {
          id: entry.id, path: entry.path, turn: entry.turn, callId: entry.call.callId, tool: entry.call.tool, number: records.size,
          before: entry.before, after: entry.after, absentFolders: entry.absentFolders, origin: 'shell', doubt: entry.doubt, atMs: entry.atMs,
        })
        addTo(entry.path, entry.id)
        break
      case 'bracket':
        watched.add(watchKey(entry.call.sessionId, entry.call.callId))
        if (entry.turn.late === true) late.push(entry)
        brackets.push(entry)
        break
      case 'outside':
        outside.set(entry.path, [...outside.get(entry.path) ?? [], entry])
        break
      case 'seen':
        watched.add(watchKey(entry.call.sessionId, entry.call.callId))
        seen.push(entry)
        break
      case 'op-begin':
        begun.set(entry.op, entry)
        recordsAtBegin.set(entry.op, records.size)
        break
      case 'op-applied':
        removedBy.set(entry.op, entry.removedFolders)
        break
      case 'op-taken-back':
        begun.delete(entry.op)
        break
      case 'op-done': {
        const begin = begun.get(entry.op)
        if (begin === undefined) break
        begun.delete(entry.op)
        finished.push({ begin, done: entry, removedFolders: removedBy.get(entry.op) ?? begin.foldersToRemove.map(path => ({ path })) })
        settle(begin, entry.outcomes)
        break
      }
    }
  }
  const paths = [...stories].filter(([, ids]) => ids.length > 0)
    .map(([path, ids]): [string, PathLedger] => [path, { path, records: ids.map(id => records.get(id)!) }])
  return { paths: new Map(paths), ops: standing(finished), open: [...begun.values()], watched, seen, late, brackets, outside }

  /** In place, because a file may have thousands of records; nobody else holds a story of this map. */
  function addTo(path: string, id: string): void {
    const story = stories.get(path)
    if (story === undefined) stories.set(path, [id])
    else story.push(id)
  }

  function drop(path: string, id: string): void {
    stories.set(path, stories.get(path)!.filter(other => other !== id))
  }

  /** Kept, skipped and failed paths keep their records: a later rollback to an earlier turn still has to look at them. */
  function settle(begin: OpBeginEntry, outcomes: readonly Outcome[]): void {
    const nextNumber = recordsAtBegin.get(begin.op)!
    const snapshot: Snapshot = { op: begin, nextNumber, stories: new Map() }
    snapshots.set(begin.op, snapshot)
    const restored = outcomes.filter(({ result }) => result === 'restored').map(({ path }) => path)
    const undone = begin.of === undefined ? undefined : snapshots.get(begin.of)
    const from = begin.target?.startSeq ?? Infinity
    const isEarlier = (id: string) => records.get(id)!.number < nextNumber
    const isKept = (id: string) => records.get(id)!.turn.startSeq < from || !isEarlier(id)
    for (const path of new Set(begin.act === 'undo' ? [...restored, ...pathsWithoutRow(undone)] : restored)) {
      const story = stories.get(path) ?? []
      const next = begin.act === 'undo' ? reinstated(path, story, undone) : story.filter(isKept)
      if (next === undefined) continue
      snapshot.stories.set(path, story.filter(isEarlier))
      // What a retry put back belongs to its rollback: one undo reinstates all of it.
      if (begin.act === 'retry') snapshots.get(begin.of!)?.stories.set(path, story.filter(isEarlier))
      stories.set(path, next)
    }
  }

  /** A path that an undo put back carries the same story again as before the op, with what happened since after it. */
  function reinstated(path: string, story: readonly string[], undone: Snapshot | undefined): string[] | undefined {
    const old = undone?.stories.get(path)
    return undone && old && [...new Set([...old, ...story.filter(id => records.get(id)!.number >= undone.nextNumber)])]
  }
}

/**
 * Paths that were already as the op wanted them: nothing was written and an undo has nothing to put back, but
 * their records were cancelled.
 */
function pathsWithoutRow(snapshot: Snapshot | undefined): readonly string[] {
  const written = new Set(snapshot?.op.rows.map(row => row.path))
  return [...snapshot?.stories.keys() ?? []].filter(path => !written.has(path))
}

type FinishedOp = Omit<StandingOp, 'undoneBy'>

/** An op is undone by the newest undo of it that is not undone itself; so the newest op decides first. */
function standing(finished: readonly FinishedOp[]): readonly StandingOp[] {
  const ops = withRetries(finished)
  const undoneBy = new Map<OpId, OpId>()
  for (const { begin, done } of ops.toReversed()) {
    if (begin.act !== 'undo' || begin.of === undefined || undoneBy.has(begin.op) || undoneBy.has(begin.of)) continue
    // One that left a file behind because of an error can be tried again.
    if (begin.rows.some(row => done.outcomes.some(({ path, result }) => path === row.path && result === 'failed'))) continue
    undoneBy.set(begin.of, begin.op)
  }
  return ops.map(op => ({ ...op, undoneBy: undoneBy.get(op.begin.act === 'retry' ? op.begin.of! : op.begin.op) }))
}

/**
 * A retry completes its rollback, so that there is one thing to undo and one to look at: the rollback's outcomes are
 * those of the last try, and the folders it took away are those of all tries. Its rows are still what it replaced,
 * because a retry only writes over the very state that the rollback left.
 */
function withRetries(ops: readonly FinishedOp[]): readonly FinishedOp[] {
  return ops.map((op) => {
    const retries = ops.filter(({ begin }) => begin.act === 'retry' && begin.of === op.begin.op)
    if (op.begin.act !== 'rollback' || retries.length === 0) return op
    const outcomes = new Map([op, ...retries].flatMap(({ done }) => done.outcomes.map(outcome => [outcome.path, outcome])))
    const folders = new Map([op, ...retries].flatMap(({ removedFolders }) => removedFolders.map(folder => [folder.path, folder])))
    const gone = [...outcomes.values()].filter(({ path, result }) => result !== 'failed' || !folders.has(path))
    return { ...op, done: { ...op.done, outcomes: gone }, removedFolders: [...folders.values()] }
  })
}

/** The rollback that an undo takes, retries included: the newest that changed a file, a folder or the conversation and is not undone. */
export const undoableOp = ({ ops }: Pick<Ledger, 'ops'>): StandingOp | undefined => ops.findLast(({ begin, done, removedFolders, undoneBy }) =>
  begin.act === 'rollback' && undoneBy === undefined
  && (begin.markerId !== undefined || removedFolders.length > 0 || begin.rows.some(row => done.outcomes.some(({ path, result }) => path === row.path && result === 'restored'))))

/** The newest rollback that is not undone and has something left that failed. */
export const retryableOp = ({ ops }: Pick<Ledger, 'ops'>): StandingOp | undefined =>
  ops.findLast(op => op.begin.act === 'rollback' && op.undoneBy === undefined && failedPaths(ops, op).length > 0)

/**
 * Files and folders of a rollback that an error left as they were, after all tries. A path that a later op put back
 * or undid is that op's affair.
 */
export function failedPaths(ops: readonly StandingOp[], { begin, done }: StandingOp): readonly string[] {
  const planned = new Set([...begin.rows.map(({ path }) => path), ...begin.foldersToRemove])
  const later = ops.slice(ops.findIndex(op => op.begin.op === begin.op) + 1).filter(op => op.begin.of !== begin.op)
  const settled = new Set(later.flatMap(op => op.done.outcomes.filter(({ result }) => result === 'restored').map(({ path }) => path)))
  return [...new Set(done.outcomes.filter(({ path, result }) => result === 'failed' && planned.has(path) && !settled.has(path)).map(({ path }) => path))]
}

/** Records of one path in the span from `startSeq` to now. */
export const inSpan = (ledger: PathLedger, startSeq: Seq): readonly CallRecord[] =>
  ledger.records.filter(record => record.turn.startSeq >= startSeq)
