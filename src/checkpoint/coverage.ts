import type { Seq, SessionId } from '../ids.ts'
import { watchKey, type CallRecord, type Ledger } from '../ledger/ledger.ts'
import { gapReasons, MAX_GAP_NAMES, type Gap } from './gap.ts'
import type { ToolCall, Turn } from '../turn/turn-index.ts'
import { callLabel, toolKind } from './tool-table.ts'

export interface CoverageInput {
  readonly session: SessionId
  readonly turns: readonly Turn[]
  readonly ledger: Ledger
}

/**
 * What may have changed in the turns from `startSeq` on and cannot be vouched for. `hasHoles`: records of
 * these turns are missing or damaged.
 */
export function coverageGaps(input: CoverageInput & {
  readonly startSeq: Seq
  readonly hasHoles: boolean
  /** Paths whose saved bytes are gone. */
  readonly gone?: readonly string[]
}): readonly Gap[] {
  const found = [...gapsByTurn(input)].filter(([startSeq]) => startSeq >= input.startSeq).flatMap(([, gaps]) => gaps)
  const gone = input.gone ?? []
  return mergeGaps([
    ...found, ...(input.hasHoles ? [gap('store-hole', [''])] : []), ...(gone.length === 0 ? [] : [gap('object-gone', gone)]),
  ])
}

/**
 * The gaps of each turn that has any, by its startSeq. Decided from the session's log, not from what our
 * listeners believe they saw: a call that may write and left no record was not watched, whether the plugin
 * was not there yet or the store was down.
 */
export function gapsByTurn({ session, turns, ledger }: CoverageInput): ReadonlyMap<Seq, readonly Gap[]> {
  const found = new Map<Seq, Gap[]>()
  const add = (startSeq: Seq, gaps: readonly Gap[]): void => {
    const some = gaps.filter(({ count }) => count > 0)
    if (some.length > 0) found.set(startSeq, [...found.get(startSeq) ?? [], ...some])
  }
  const isWatched = (call: ToolCall): boolean => ledger.watched.has(watchKey(session, call.callId))
  const uncovered = uncoveredCommands(session, ledger)
  for (const turn of turns) {
    const unrecorded = turn.calls.filter(call => call.outcome !== 'not-started'
      && ['file', 'container'].includes(toolKind(call.name, call.args)) && !isWatched(call))
    add(turn.startSeq, [gap('no-record', unrecorded.map(call => callLabel(call.name, call.args))), gap('command', uncovered(turn))])
  }
  for (const { turn, call, ran } of ledger.seen) {
    // A subagent's calls stand in its own log; the journal has them under its session id.
    const isDelegated = call.sessionId !== session && toolKind(call.tool, undefined) === 'command'
    if (isDelegated && ran !== false) add(turn.startSeq, [gap('command', [call.tool])])
  }
  for (const { turn, call } of ledger.late) add(turn.startSeq, [gap('late', [call.tool])])
  for (const [startSeq, gaps] of recordGaps(ledger)) add(startSeq, gaps)
  const jobs = new Map(ledger.brackets.map(bracket => [watchKey(bracket.call.sessionId, bracket.call.callId), bracket]))
  for (const { turn, gaps } of ledger.brackets) add(turn.startSeq, gaps)
  // What became of a background command is told by the last entry of its bracket.
  for (const { turn, words, job } of jobs.values()) if (job === 'running' || job === 'cut') add(turn.startSeq, [gap('job-running', [words])])
  return new Map([...found].map(([startSeq, gaps]) => [startSeq, mergeGaps(gaps)]))
}

/** Labels of a turn's commands that nobody looked around; that one was seen to run is no look, that it was refused is as good as one. */
export function uncoveredCommands(session: SessionId, ledger: Ledger): (turn: Turn) => readonly string[] {
  const looked = new Set([...ledger.brackets, ...ledger.seen.filter(({ ran }) => ran === false)]
    .map(({ call }) => watchKey(call.sessionId, call.callId)))
  return turn => turn.calls
    .filter(call => call.outcome !== 'not-started' && toolKind(call.name, call.args) === 'command'
      && !looked.has(watchKey(session, call.callId)))
    .map(call => callLabel(call.name, call.args))
}

/** Reasons whose names are paths. */
const ofFiles: ReadonlySet<Gap['reason']> = new Set(['too-large', 'unreadable', 'special', 'not-saved', 'capture-failed', 'object-gone'])
export const isGapOfFiles = ({ reason }: Gap): boolean => ofFiles.has(reason)

/** Reasons that stand in a file's own records. */
const recorded = ['too-large', 'unreadable', 'special', 'not-saved', 'capture-failed'] as const
type Recorded = (typeof recorded)[number]

/** Files whose state before or after a call could not be taken. */
function recordGaps(ledger: Ledger): ReadonlyMap<Seq, readonly Gap[]> {
  const paths = new Map<Seq, Map<Recorded, Set<string>>>()
  for (const { path, records } of ledger.paths.values()) {
    for (const record of records) {
      for (const reason of reasonsOf(record)) {
        const byReason = paths.get(record.turn.startSeq) ?? new Map<Recorded, Set<string>>()
        paths.set(record.turn.startSeq, byReason.set(reason, (byReason.get(reason) ?? new Set()).add(path)))
      }
    }
  }
  return new Map([...paths].map(([startSeq, byReason]) => [startSeq, [...byReason].map(([reason, names]) => gap(reason, [...names]))]))
}

const reasonsOf = ({ before, after }: CallRecord): readonly Recorded[] =>
  recorded.filter(reason => [before, after].some(state => state?.kind === 'unknown' && state.reason === reason))

/** One gap per reason: counts add up, names are each given once. */
function mergeGaps(gaps: readonly Gap[]): readonly Gap[] {
  return gapReasons.filter(reason => gaps.some(other => other.reason === reason)).map((reason) => {
    const same = gaps.filter(other => other.reason === reason)
    const names = [...new Set(same.flatMap(other => other.names))].slice(0, MAX_GAP_NAMES)
    // A file counts once however many turns could not save it.
    const files = new Set(same.flatMap(other => other.names)).size
    const count = same.reduce((sum, other) => sum + other.count, 0)
    return { reason, count: ofFiles.has(reason) && files < MAX_GAP_NAMES ? files : count, names }
  })
}

const gap = (reason: Gap['reason'], names: readonly string[]): Gap =>
  ({ reason, count: names.length, names: [...new Set(names)].filter(name => name !== '').slice(0, MAX_GAP_NAMES) })
