import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { OpId } from '../../src/ids.ts'
import type { SessionJournal } from '../store/session-journal.ts'

/**
 * Writes that have a record of their own, of any session: by file tools, and by our rollbacks and undos. A look
 * around a command leaves these paths to that record.
 */
export interface KnownWrites {
  /** A write of `path` may happen from now until its `end`. */
  begin(path: string): void
  end(path: string): void
  /** True when one was under way at `sinceMs` (Unix) or began after it. */
  isWritten(path: string, sinceMs: number): boolean
  /** The journal again; the paths of every op noted in it are known as written while the op is under way. */
  ofOps(journal: SessionJournal): SessionJournal
}

/** Ended writes that are remembered; far more than one look can be old. */
const MAX_ENDED = 100_000

export function makeKnownWrites(now: () => number): KnownWrites {
  const underWay = new Map<string, number>()
  /** When a write of the path ended last, the longest ago first. */
  const ended = new Map<string, number>()
  const ops = new Map<OpId, readonly string[]>()
  const wrapped = new WeakMap<SessionJournal, SessionJournal>()

  const begin = (path: string): void => { underWay.set(path, (underWay.get(path) ?? 0) + 1) }
  const end = (path: string): void => {
    const left = (underWay.get(path) ?? 1) - 1
    if (left > 0) underWay.set(path, left)
    else underWay.delete(path)
    ended.delete(path)
    ended.set(path, now())
    if (ended.size > MAX_ENDED) ended.delete(ended.keys().next().value!)
  }
  const endOp = (op: OpId): void => {
    ops.get(op)?.forEach(end)
    ops.delete(op)
  }

  const ofOps = (journal: SessionJournal): SessionJournal => {
    const known = wrapped.get(journal)
    if (known !== undefined) return known
    const watching: SessionJournal = {
      ...journal,
      append: async (batch) => {
        for (const entry of batch.entries) {
          if (entry.kind !== 'op-begin' || ops.has(entry.op)) continue
          ops.set(entry.op, entry.rows.map(({ path }) => path))
          ops.get(entry.op)!.forEach(begin)
        }
        const stored = await journal.append(batch)
        for (const entry of batch.entries) if (isEndOf(entry) || (entry.kind === 'op-begin' && !stored.ok)) endOp(entry.op)
        return stored
      },
    }
    wrapped.set(journal, watching)
    return watching
  }

  return {
    begin, end, ofOps,
    isWritten: (path, sinceMs) => underWay.has(path) || (ended.get(path) ?? -Infinity) >= sinceMs,
  }
}

/** An op that could not be noted as done has written all it will by now. */
const isEndOf = (entry: JournalEntry): entry is Extract<JournalEntry, { kind: 'op-done' | 'op-taken-back' }> =>
  entry.kind === 'op-done' || entry.kind === 'op-taken-back'
