import type { Seq, SessionId } from '../ids.ts'
import { watchKey, type Ledger } from '../ledger/ledger.ts'
import { MAX_GAP_NAMES, type Gap } from './gap.ts'
import type { ToolCall, Turn } from '../turn/turn-index.ts'
import { callLabel, toolKind } from './tool-table.ts'

/**
 * What may have changed in the turns from `startSeq` on without a record. Decided from the session's
 * log, not from what our listeners believe they saw: a call that may write and left no record was not
 * watched, whether the plugin was not there yet or the store was down.
 */
export function coverageGaps(input: {
  readonly session: SessionId
  readonly turns: readonly Turn[]
  readonly startSeq: Seq
  readonly ledger: Ledger
  /** Records of this session are missing or damaged. */
  readonly hasHoles: boolean
}): readonly Gap[] {
  const { session, ledger, startSeq } = input
  const turns = input.turns.filter(turn => turn.startSeq >= startSeq)
  const calls = turns.flatMap(turn => turn.calls).filter(call => call.outcome !== 'not-started')
  const isWatched = (call: ToolCall): boolean => ledger.watched.has(watchKey(session, call.callId))
  const unrecorded = calls.filter(call => ['file', 'container'].includes(toolKind(call.name, call.args))
    && !isWatched(call))
  const bracketed = ledger.brackets.filter(({ turn }) => turn.startSeq >= startSeq).flatMap(({ gaps }) => gaps)
  // A subagent's calls stand in its own log; the journal has them under its session id.
  const delegated = ledger.seen.filter(({ turn, call }) => turn.startSeq >= startSeq && call.sessionId !== session
    && toolKind(call.tool, undefined) === 'command').map(({ call }) => call.tool)
  const late = ledger.late.filter(({ turn }) => turn.startSeq >= startSeq).map(({ call }) => call.tool)
  return [
    gap('no-record', unrecorded.map(call => callLabel(call.name, call.args))),
    gap('command', [...turns.flatMap(uncoveredCommands(session, ledger)), ...delegated]),
    gap('late', late),
    ...mergeGaps(bracketed),
    ...(input.hasHoles ? [gap('store-hole', [''])] : []),
  ].filter(({ count }) => count > 0)
}

/** Labels of a turn's commands that nobody looked around; that one was seen to run is no look. */
export function uncoveredCommands(session: SessionId, ledger: Ledger): (turn: Turn) => readonly string[] {
  const looked = new Set(ledger.brackets.map(({ call }) => watchKey(call.sessionId, call.callId)))
  return turn => turn.calls
    .filter(call => call.outcome !== 'not-started' && toolKind(call.name, call.args) === 'command'
      && !looked.has(watchKey(session, call.callId)))
    .map(call => callLabel(call.name, call.args))
}

/** One gap per reason: counts add up, names are each given once. */
function mergeGaps(gaps: readonly Gap[]): readonly Gap[] {
  return [...new Set(gaps.map(({ reason }) => reason))].map((reason) => {
    const same = gaps.filter(other => other.reason === reason)
    const names = [...new Set(same.flatMap(other => other.names))].slice(0, MAX_GAP_NAMES)
    return { reason, count: same.reduce((sum, other) => sum + other.count, 0), names }
  })
}

const gap = (reason: Gap['reason'], names: readonly string[]): Gap =>
  ({ reason, count: names.length, names: [...new Set(names)].filter(name => name !== '').slice(0, MAX_GAP_NAMES) })
