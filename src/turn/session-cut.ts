import type { Seq } from '../ids.ts'
import { fail, ok, type Result } from '../result.ts'
import type { LogEvent } from './log-event.ts'

/**
 * Where a session log is cut for a copy: the copy is `events.slice(0, cut)`. DSH takes a cut inside a turn
 * without a word and the copy is broken then, so every cut that leaves this file lies between two turns.
 */
export type CutProblem =
  | 'no-marker' // the log does not hold the rollback
  | 'inside-turn' // a turn is open at that place
  | 'gap' // the events' seqs are not their places in the log

/** The conversation right before the rollback whose marker has this message id: also the command that ran it stays out. */
export function cutBeforeMarker(events: readonly LogEvent[], markerId: string): Result<Seq, CutProblem> {
  const marker = events.find(event => event.type === 'user/message' && record(event.data).id === markerId)
  if (marker === undefined) return fail('no-marker')
  // The marker's price is a claim on the very next event.
  const price = events[marker.seq - 1]?.type === 'compaction/prune' ? marker.seq - 1 : marker.seq
  return betweenTurns(events, Math.min(price, ...commandsUnderWay(events, marker.seq)))
}

/** The conversation up to before the turn that starts at `startSeq`. Its prompt is logged as waiting right before it, and stays out as well. */
export function cutBeforeTurn(events: readonly LogEvent[], startSeq: Seq): Result<Seq, CutProblem> {
  let cut = startSeq
  while (cut > 0 && events[cut - 1]?.type.startsWith('agent/inbox/') === true) cut -= 1
  return betweenTurns(events, cut)
}

function betweenTurns(events: readonly LogEvent[], cut: Seq): Result<Seq, CutProblem> {
  if (cut > events.length || (cut > 0 && events[cut - 1]!.seq !== cut - 1)) return fail('gap')
  const last = events.findLast(event => event.seq < cut && (event.type === 'turn/start' || event.type === 'turn/end'))
  return last?.type === 'turn/start' ? fail('inside-turn') : ok(cut)
}

/** Commands that had not answered at `seq`, since the turn before it: one that is cut off from its answer would seem to run for ever. */
function commandsUnderWay(events: readonly LogEvent[], seq: Seq): readonly Seq[] {
  const open = new Map<unknown, Seq>()
  for (const event of events) {
    if (event.seq >= seq) break
    if (event.type === 'turn/end') open.clear()
    else if (event.type === 'command/run') open.set(record(event.data).commandId, event.seq)
    else if (event.type === 'command/done') open.delete(record(event.data).commandId)
  }
  return [...open.values()]
}

const record = (data: unknown): Readonly<Record<string, unknown>> => (typeof data === 'object' && data !== null ? data as Readonly<Record<string, unknown>> : {})
