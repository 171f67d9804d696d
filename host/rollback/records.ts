import type { JournalEntry, OpBeginEntry, OpDoneEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest, Seq, SessionId } from '../../src/ids.ts'
import { foldLedger, type Ledger } from '../../src/ledger/ledger.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import { ok, type Result } from '../../src/result.ts'
import { idOf, inheritedLength } from '../dsh/session-log.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import type { SessionRecords } from '../store/session-records.ts'
import type { RollbackDeps } from './deps.ts'

/** All that is recorded of a session, a fork's inherited part included. */
export interface Records {
  readonly journal: SessionJournal
  readonly entries: readonly JournalEntry[]
  readonly ledger: Ledger
  /** Overall position of the newest own record; moves with every one. */
  readonly position: number
  /** False for an op that a fork has from its parent. */
  isOwn(op: { readonly begin: Pick<OpBeginEntry, 'op'> }): boolean
  /** True when records of the span from `startSeq` on may be missing. */
  hasHoleFrom(startSeq: Seq): boolean
  /** Ids of `before` records with a hole somewhere before them that reaches into the span. */
  distrustedFrom(startSeq: Seq): ReadonlySet<string>
  hasBlob(digest: Digest): Promise<boolean>
  readBlob(digest: Digest): Promise<Buffer | undefined>
}

interface Placed {
  readonly position: number
  readonly entry: JournalEntry
}

/** Fails when the store cannot be read; what is damaged in it is a hole, not a failure. */
export async function readRecords(deps: RollbackDeps, session: ForeignSession): Promise<Result<Records, Failure>> {
  const journal = deps.journalOf(session)
  const own = await journal.read()
  if (!own.ok) return own
  const parent = await inherited(deps, session)
  if (!parent.ok) return parent
  const entries = [...parent.value.entries, ...own.value.entries.map(({ entry }) => entry)]
  const journals = [journal, ...parent.value.journals]
  const sources = [...parent.value.sources, { placed: own.value.entries, holes: holeSpans(own.value) }]
  const parentOps = new Set(parent.value.entries.flatMap(entry => (entry.kind === 'op-begin' ? [entry.op] : [])))
  return ok({
    journal, entries,
    isOwn: ({ begin }) => !parentOps.has(begin.op),
    ledger: foldLedger(entries),
    position: own.value.position,
    hasHoleFrom: startSeq => sources.some(({ holes }) => holes.some(hole => hole.newestTurn >= startSeq)),
    distrustedFrom: startSeq => new Set(sources.flatMap(source => distrusted(source, startSeq))),
    hasBlob: async digest => await firstOf(journals, async one => (await one.hasBlob(digest) ? true : undefined)) ?? false,
    readBlob: digest => firstOf(journals, one => one.readBlob(digest)),
  })
}

interface HoleSpan {
  readonly afterPosition: number
  /** The oldest turn a lost record can belong to: that of the last record before it, or any. */
  readonly oldestTurn: Seq
  /** The newest turn a lost record can belong to: that of the next record, or any. */
  readonly newestTurn: Seq
}

/** One journal's records and where some are missing. */
interface Source {
  readonly placed: readonly Placed[]
  readonly holes: readonly HoleSpan[]
}

function holeSpans({ entries, holes }: SessionRecords): readonly HoleSpan[] {
  const booked = entries.flatMap(({ position, entry }) =>
    ('turn' in entry ? [{ position, turn: entry.turn.startSeq, isLate: entry.turn.late === true }] : []))
  return holes.map(({ afterPosition, isOfEarlierRuns }) => {
    const next = booked.find(({ position }) => position > afterPosition)
    return {
      afterPosition,
      oldestTurn: booked.findLast(({ position }) => position <= afterPosition)?.turn ?? 0,
      // What was booked late stands for a turn that may have begun before the process did.
      newestTurn: next === undefined ? Infinity : isOfEarlierRuns && !next.isLate ? next.turn - 1 : next.turn,
    }
  })
}

function distrusted({ placed, holes }: Source, startSeq: Seq): readonly string[] {
  const from = Math.min(...holes.filter(hole => hole.newestTurn >= startSeq).map(hole => hole.afterPosition))
  return placed.flatMap(({ position, entry }) => (position > from && (entry.kind === 'before' || entry.kind === 'change') ? [entry.id] : []))
}

async function firstOf<T>(journals: readonly SessionJournal[], ask: (journal: SessionJournal) => Promise<T | undefined>): Promise<T | undefined> {
  for (const journal of journals) {
    const answer = await ask(journal)
    if (answer !== undefined) return answer
  }
  return undefined
}

interface Inherited {
  readonly entries: readonly JournalEntry[]
  readonly sources: readonly Source[]
  readonly journals: readonly SessionJournal[]
}

/** A fork's log begins with its parent's events under the same seqs, so the parent's records below that length are its own too. */
async function inherited(deps: RollbackDeps, session: ForeignSession): Promise<Result<Inherited, Failure>> {
  const length = inheritedLength(session)
  const parent = await parentOf(deps, session)
  if (parent === undefined) return ok({ entries: [], sources: [], journals: [] })
  const journal = deps.journalOf(parent)
  const read = await journal.read()
  if (!read.ok) return read
  const above = await inherited(deps, parent)
  if (!above.ok) return above
  const all = [...above.value.entries, ...read.value.entries.map(({ entry }) => entry)]
  const sources = [...above.value.sources, { placed: read.value.entries, holes: holeSpans(read.value) }]
  return ok({
    entries: belowSeed(all, length, session.header.createdAt).map(entry => asOwn(entry, idOf(parent), idOf(session))),
    sources: sources.map(({ placed, holes }) => ({ placed, holes: holes.filter(hole => hole.oldestTurn < length) })),
    journals: [journal, ...above.value.journals],
  })
}

/** A fork's log holds its parent's calls as its own, so their records are named as its own too; a subagent's stay the subagent's. */
function asOwn(entry: JournalEntry, parent: SessionId, child: SessionId): JournalEntry {
  return 'call' in entry && entry.call.sessionId === parent ? { ...entry, call: { ...entry.call, sessionId: child } } : entry
}

/**
 * The session that a fork begins with events of; undefined for one that is no fork. It need not be live: then nothing
 * but its id and header may be asked. Where the host does not know it, its id and the shared folder find its records still.
 */
export async function parentOf({ sessions, headerOf }: Pick<RollbackDeps, 'sessions' | 'headerOf'>, child: ForeignSession): Promise<ForeignSession | undefined> {
  const { parentSession: id, origin, version, cwd } = child.header
  if (id === undefined || origin === 'subagent' || inheritedLength(child) === 0) return undefined
  return sessions.get(id) ?? {
    id, header: await headerOf(id) ?? { version, id, ...(cwd === undefined ? {} : { cwd }) }, surface: { nodes: [] },
    append: () => { throw new Error(`records: the session ${id} is not live`) },
  }
}

/** An op with a marker is the fork's too when its log holds the marker; one without, when it was done before the fork was made. */
function belowSeed(entries: readonly JournalEntry[], length: Seq, madeAtMs: number | undefined): readonly JournalEntry[] {
  const calls = new Set<string>()
  const begun = new Map<string, OpBeginEntry>()
  const ops = new Set<string>()
  for (const entry of entries) {
    if (entry.kind === 'before' && entry.turn.startSeq < length) calls.add(entry.id)
    if (entry.kind === 'op-begin') begun.set(entry.op, entry)
    if (entry.kind === 'op-done' && isInherited(begun.get(entry.op), entry)) ops.add(entry.op)
  }

  function isInherited(begin: OpBeginEntry | undefined, { markerSeq, atMs }: OpDoneEntry): boolean {
    if (markerSeq !== undefined) return markerSeq < length
    if (begin === undefined || madeAtMs === undefined || atMs > madeAtMs) return false
    return begin.of === undefined ? begin.target !== undefined && begin.target.startSeq < length : ops.has(begin.of)
  }

  return entries.filter((entry) => {
    switch (entry.kind) {
      case 'before': return calls.has(entry.id)
      case 'after': return calls.has(entry.of)
      case 'change':
      case 'bracket':
      case 'seen': return entry.turn.startSeq < length
      // Tells of the path at a moment, whoever's turn it was.
      case 'outside': return madeAtMs !== undefined && entry.atMs <= madeAtMs
      default: return ops.has(entry.op)
    }
  })
}
