import type { Seq } from '../ids.ts'
import { failure, type Failure } from '../protocol/failure.ts'
import { fail, ok, type Result } from '../result.ts'
import { foldSurface, type Replacement, type Surface } from '../surface/origin-span.ts'
import { boundariesOf, cutBefore, type Boundaries } from '../surface/range.ts'
import type { LogEvent } from './log-event.ts'
import { findTurn, indexTurns, type Turn } from './turn-index.ts'

/** A session log seen as turns and as what the model gets to read. */
export interface Conversation {
  readonly events: readonly LogEvent[]
  readonly turns: readonly Turn[]
  readonly surface: Surface
  readonly boundaries: Boundaries
  /** The markers, swallowed ones too, oldest first. */
  readonly markers: readonly Replacement[]
  /** Events that are nodes of the surface now. */
  readonly standing: ReadonlySet<Seq>
}

/** Linear in the log; `events` oldest first. */
export function readConversation(events: readonly LogEvent[]): Conversation {
  const surface = foldSurface(events)
  return {
    events, turns: indexTurns(events), surface,
    boundaries: boundariesOf(surface),
    markers: surface.replacements.filter(replacement => replacement.by === 'marker'),
    standing: new Set(surface.nodes.map(node => node.seq)),
  }
}

export type TurnState = 'available' | 'running' | 'rolled-back' | 'compacted'

/** Whether a turn can be gone back to, and what became of it when not. */
export function turnState(conversation: Conversation, turn: Turn): TurnState {
  if (turn.endSeq === undefined) return 'running'
  const cut = conversation.boundaries.before(turn.startSeq)
  if (cut.kind === 'across') return cut.by === 'marker' ? 'rolled-back' : 'compacted'
  if (cut.kind === 'cut' && cut.onlyMarkers) return 'rolled-back'
  const markers = markersOver(conversation, turn)
  if (markers.length === 0) return 'available'
  // A marker that a compaction swallowed: what the model reads of the turn is the summary's.
  return markers.some(marker => conversation.standing.has(marker.seq)) ? 'rolled-back' : 'compacted'
}

/** The markers that withdrew this turn, swallowed ones too: each took everything from its first shadowed event to itself. */
const markersOver = ({ markers }: Conversation, { startSeq, endSeq = Infinity }: Turn): readonly Replacement[] =>
  markers.filter(({ seq, min }) => startSeq < seq && endSeq >= min)

export interface Target {
  readonly turn: Turn
  /** Turns that leave the conversation, oldest first; those withdrawn before are not among them. For files alone: all turns from it on. */
  readonly withdrawn: readonly Turn[]
  /** Surface nodes the marker shadows, in surface order; empty only for files alone. */
  readonly cut: readonly Seq[]
}

/**
 * The turn numbered `number` as a target for files alone. The conversation stays, so that it does not matter what became
 * of the turn there: files that a rollback kept, or of turns that were compacted, can still go back.
 */
export function judgeFileTarget({ turns }: Conversation, number: number): Result<Target, Failure> {
  const turn = findTurn(turns, number)
  if (turn === undefined) return fail(failure('unknown-turn', { turn: number, last: turns.at(-1)?.number ?? 0 }))
  if (turns.at(-1)?.endSeq === undefined) return fail(failure('turn-running', { turn: turns.at(-1)!.number }))
  return ok({ turn, withdrawn: turns.filter(({ startSeq }) => startSeq >= turn.startSeq), cut: [] })
}

/** The turn numbered `number` as a target, or the reason why not. */
export function judgeTarget(conversation: Conversation, number: number): Result<Target, Failure> {
  const { turns, surface, markers, events } = conversation
  const turn = findTurn(turns, number)
  if (turn === undefined) return fail(failure('unknown-turn', { turn: number, last: turns.at(-1)?.number ?? 0 }))
  if (turns.at(-1)?.endSeq === undefined) return fail(failure('turn-running', { turn: turns.at(-1)!.number }))
  if (hasOpenCompaction(events)) return fail(failure('compaction-open', { turn: number }))
  const cut = cutBefore(surface, turn.startSeq)
  switch (cut.kind) {
    case 'nothing':
      return fail(failure(markersOver(conversation, turn).length > 0 ? 'already-rolled-back' : 'nothing-to-roll-back', { turn: number }))
    case 'across':
      return fail(failure(cut.by === 'marker' ? 'already-rolled-back' : 'compacted', { turn: number }))
    case 'cut': {
      const withdrawn = turns.filter(candidate => candidate.startSeq >= turn.startSeq && markersOver(conversation, candidate).length === 0)
      // Only markers are left from here on: the same rollback a second time.
      const onlyMarkers = cut.nodes.every(seq => markers.some(marker => marker.seq === seq))
      if (withdrawn.length === 0 || onlyMarkers) return fail(failure('already-rolled-back', { turn: number }))
      return ok({ turn, withdrawn, cut: cut.nodes })
    }
  }
}

const COMPACTION_BOUNDS: ReadonlySet<string> = new Set(['compaction/start', 'compaction/end', 'session/end-seed'])

/** A `compaction/start` without its end is the host's lock on the surface; one from before the last `session/end-seed` belongs to a dead process. */
function hasOpenCompaction(events: readonly LogEvent[]): boolean {
  const last = events.findLast(event => COMPACTION_BOUNDS.has(event.type))
  return last?.type === 'compaction/start'
}
