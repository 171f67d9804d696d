import type { Seq } from '../ids.ts'
import { failure, type Failure } from '../protocol/failure.ts'
import { fail, ok, type Result } from '../result.ts'
import { foldSurface, type Replacement, type Surface } from '../surface/origin-span.ts'
import { cutBefore } from '../surface/range.ts'
import type { LogEvent } from './log-event.ts'
import { findTurn, indexTurns, type Turn } from './turn-index.ts'

/** A session log seen as turns and as what the model gets to read. */
export interface Conversation {
  readonly events: readonly LogEvent[]
  readonly turns: readonly Turn[]
  readonly surface: Surface
}

export const readConversation = (events: readonly LogEvent[]): Conversation =>
  ({ events, turns: indexTurns(events), surface: foldSurface(events) })

export type TurnState = 'available' | 'running' | 'rolled-back' | 'compacted'

/** Whether a turn can be gone back to, and what became of it when not. */
export function turnState({ surface }: Conversation, turn: Turn): TurnState {
  if (turn.endSeq === undefined) return 'running'
  const cut = cutBefore(surface, turn.startSeq)
  if (cut.kind === 'across') return cut.by === 'marker' ? 'rolled-back' : 'compacted'
  if (cut.kind === 'cut' && onlyMarkers(surface, cut.nodes)) return 'rolled-back'
  const markers = markersOver(surface, turn)
  if (markers.length === 0) return 'available'
  // A marker that a compaction swallowed: what the model reads of the turn is the summary's.
  return markers.some(marker => surface.nodes.some(node => node.seq === marker.seq)) ? 'rolled-back' : 'compacted'
}

/** The markers that withdrew this turn, swallowed ones too: each took everything from its first shadowed event to itself. */
const markersOver = ({ replacements }: Surface, { startSeq, endSeq = Infinity }: Turn): readonly Replacement[] =>
  replacements.filter(({ by, seq, min }) => by === 'marker' && startSeq < seq && endSeq >= min)

function onlyMarkers(surface: Surface, cut: readonly Seq[]): boolean {
  const markers = new Set(surface.nodes.filter(node => node.by === 'marker').map(node => node.seq))
  return cut.every(seq => markers.has(seq))
}

export interface Target {
  readonly turn: Turn
  /** Turns that leave the conversation, oldest first; those withdrawn before are not among them. */
  readonly withdrawn: readonly Turn[]
  /** Surface nodes the marker shadows, in surface order; never empty. */
  readonly cut: readonly Seq[]
}

/** The turn numbered `number` as a target, or the reason why not. */
export function judgeTarget(conversation: Conversation, number: number): Result<Target, Failure> {
  const { turns, surface, events } = conversation
  const turn = findTurn(turns, number)
  if (turn === undefined) return fail(failure('unknown-turn', { turn: number, last: turns.at(-1)?.number ?? 0 }))
  if (turns.at(-1)?.endSeq === undefined) return fail(failure('turn-running', { turn: turns.at(-1)!.number }))
  if (hasOpenCompaction(events)) return fail(failure('compaction-open', { turn: number }))
  const cut = cutBefore(surface, turn.startSeq)
  switch (cut.kind) {
    case 'nothing':
      return fail(failure(markersOver(surface, turn).length > 0 ? 'already-rolled-back' : 'nothing-to-roll-back', { turn: number }))
    case 'across':
      return fail(failure(cut.by === 'marker' ? 'already-rolled-back' : 'compacted', { turn: number }))
    case 'cut': {
      const withdrawn = turns.filter(candidate => candidate.startSeq >= turn.startSeq && markersOver(surface, candidate).length === 0)
      // Only markers are left from here on: the same rollback a second time.
      if (withdrawn.length === 0 || onlyMarkers(surface, cut.nodes)) return fail(failure('already-rolled-back', { turn: number }))
      return ok({ turn, withdrawn, cut: cut.nodes })
    }
  }
}

/** A `compaction/start` without its end is the host's lock on the surface; one from before the last `session/end-seed` belongs to a dead process. */
function hasOpenCompaction(events: readonly LogEvent[]): boolean {
  const last = events.findLast(event => ['compaction/start', 'compaction/end', 'session/end-seed'].includes(event.type))
  return last?.type === 'compaction/start'
}
