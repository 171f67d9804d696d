import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest, Seq, SessionId } from '../../src/ids.ts'
import { foldLedger, type Ledger } from '../../src/ledger/ledger.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import { ok, type Result } from '../../src/result.ts'
import { idOf, inheritedLength } from '../dsh/session-log.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import type { RollbackDeps } from './deps.ts'

/** All that is recorded of a session, a fork's inherited part included. */
export interface Records {
  readonly journal: SessionJournal
  readonly entries: readonly JournalEntry[]
  readonly ledger: Ledger
  /** Overall position of the newest own record; moves with every one. */
  readonly position: number
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

export async function readRecords(deps: RollbackDeps, session: ForeignSession): Promise<Result<Records, Failure>> {
  const journal = deps.journalOf(session)
  const own = await journal.read()
  if (!own.ok) return own
  const parent = await inherited(deps, session)
  if (!parent.ok) return parent
  const entries = [...parent.value.entries, ...own.value.entries.map(({ entry }) => entry)]
  const journals = [journal, ...parent.value.journals]
  const holes = own.value.holes.map(hole => holeSpan(own.value.entries, hole.afterPosition))
  const reaching = (startSeq: Seq): readonly HoleSpan[] => holes.filter(hole => hole.newestTurn >= startSeq)
  return ok({
    journal, entries,
    ledger: foldLedger(entries),
    position: own.value.position,
    hasHoleFrom: startSeq => reaching(startSeq).length > 0,
    distrustedFrom: (startSeq) => {
      const from = Math.min(...reaching(startSeq).map(hole => hole.afterPosition))
      const later = own.value.entries.filter(({ position, entry }) => position > from && entry.kind === 'before')
      return new Set(later.map(({ entry }) => (entry as { id: string }).id))
    },
    hasBlob: async digest => await firstOf(journals, async one => (await one.hasBlob(digest) ? true : undefined)) ?? false,
    readBlob: digest => firstOf(journals, one => one.readBlob(digest)),
  })
}

interface HoleSpan {
  readonly afterPosition: number
  /** The newest turn a lost record can belong to: that of the next record, or any. */
  readonly newestTurn: Seq
}

function holeSpan(entries: readonly Placed[], afterPosition: number): HoleSpan {
  const next = entries.find(({ position, entry }) => position > afterPosition && (entry.kind === 'before' || entry.kind === 'seen'))?.entry
  return { afterPosition, newestTurn: next?.kind === 'before' || next?.kind === 'seen' ? next.turn.startSeq : Infinity }
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
  readonly journals: readonly SessionJournal[]
}

/** A fork's log begins with its parent's events under the same seqs, so the parent's records below that length are its own too. */
async function inherited(deps: RollbackDeps, session: ForeignSession): Promise<Result<Inherited, Failure>> {
  const { parentSession, origin } = session.header
  const length = inheritedLength(session)
  const parent = parentSession === undefined || origin === 'subagent' || length === 0 ? undefined : deps.sessions.get(parentSession)
  const header = parent ?? (length > 0 && origin !== 'subagent' && parentSession !== undefined ? coldParent(session, parentSession) : undefined)
  if (header === undefined) return ok({ entries: [], journals: [] })
  const journal = deps.journalOf(header)
  const read = await journal.read()
  if (!read.ok) return read
  const above = await inherited(deps, header)
  if (!above.ok) return above
  return ok({
    entries: [...above.value.entries, ...belowSeed(read.value.entries.map(({ entry }) => entry), length)]
      .map(entry => asOwn(entry, idOf(header), idOf(session))),
    journals: [journal, ...above.value.journals],
  })
}

/** A fork's log holds its parent's calls as its own, so their records are named as its own too; a subagent's stay the subagent's. */
function asOwn(entry: JournalEntry, parent: SessionId, child: SessionId): JournalEntry {
  const isCall = entry.kind === 'before' || entry.kind === 'seen'
  return isCall && entry.call.sessionId === parent ? { ...entry, call: { ...entry.call, sessionId: child } } : entry
}

/** The parent need not be open: its id and our shared folder are enough to find its records, though not its own parent's. */
const coldParent = (child: ForeignSession, id: string): ForeignSession =>
  ({ ...child, id, header: { version: child.header.version, id, ...(child.header.cwd === undefined ? {} : { cwd: child.header.cwd }) } })

function belowSeed(entries: readonly JournalEntry[], length: Seq): readonly JournalEntry[] {
  const calls = new Set<string>()
  const ops = new Set<string>()
  for (const entry of entries) {
    if (entry.kind === 'before' && entry.turn.startSeq < length) calls.add(entry.id)
    if (entry.kind === 'op-done' && entry.markerSeq !== undefined && entry.markerSeq < length) ops.add(entry.op)
  }
  return entries.filter((entry) => {
    switch (entry.kind) {
      case 'before': return calls.has(entry.id)
      case 'after': return calls.has(entry.of)
      case 'seen': return entry.turn.startSeq < length
      default: return ops.has(entry.op)
    }
  })
}
