import { gitMoves, type HeadNow, type MovedHead } from '../../src/checkpoint/git-move.ts'
import { failedPaths, retryableOp, type Ledger, type StandingOp } from '../../src/ledger/ledger.ts'
import type { SessionId } from '../../src/ids.ts'
import type { OpSummary, TurnRow } from '../../src/protocol/requests.ts'
import { gapsByTurn, uncoveredCommands } from '../../src/checkpoint/coverage.ts'
import { changesByTurn } from '../../src/checkpoint/compare.ts'
import type { LogEvent } from '../../src/turn/log-event.ts'
import { readConversation, turnState } from '../../src/turn/rollback-target.ts'
import { titleOf } from './draft.ts'
import type { Operation } from './op-end.ts'
import type { Records } from './records.ts'

/** The session as a list of turns, newest first, and its ops, newest first. `now` is where HEAD is, when that is known. */
export function timelineOf(
  session: SessionId, events: readonly LogEvent[], { ledger, entries }: Pick<Records, 'ledger' | 'entries'>, now: HeadNow | undefined,
): { turns: TurnRow[]; ops: OpSummary[] } {
  const conversation = readConversation(events)
  const files = filesByTurn(ledger)
  const changed = changesByTurn(entries)
  const uncovered = uncoveredCommands(session, ledger)
  const gaps = gapsByTurn({ session, turns: conversation.turns, ledger })
  return {
    turns: conversation.turns.toReversed().map(turn => ({
      turn: turn.number, startSeq: turn.startSeq, title: titleOf(turn), atMs: turn.atMs,
      images: turn.prompts.reduce((sum, prompt) => sum + prompt.images.length, 0),
      state: turnState(conversation, turn),
      files: files.get(turn.startSeq)?.size ?? 0,
      changed: countsOf(changed.get(turn.startSeq)),
      commands: uncovered(turn).length,
      gaps: [...gaps.get(turn.startSeq) ?? []],
    })),
    ops: ledger.ops.toReversed().map((op) => {
      const moves = movesOf(op, ledger, now)
      return { ...summaryOf(op, ledger.ops), ...(moves.length === 0 ? {} : { gitMoves: [...moves] }) }
    }),
  }
}

/** An op as the page is told of it. */
export function summaryOf(op: StandingOp, ops: Ledger['ops']): OpSummary {
  const { begin, done, undoneBy } = op
  const copy = done.copy ?? begin.copy
  const retryable = retryableOp({ ops })?.begin.op === begin.op ? failedPaths(ops, op) : []
  return {
    op: begin.op, act: begin.act, scope: begin.scope, outcomes: [...done.outcomes], undone: undoneBy !== undefined, gaps: [...begin.gaps ?? []], atMs: begin.atMs,
    ...(begin.of === undefined ? {} : { of: begin.of }),
    ...(begin.target === undefined ? {} : { target: begin.target }),
    ...(begin.leftOut === undefined ? {} : { leftOut: begin.leftOut }),
    ...(retryable.length === 0 ? {} : { retryable: [...retryable] }),
    ...(done.markerSeq === undefined ? {} : { markerSeq: done.markerSeq }),
    ...(copy === undefined ? {} : { copy }),
  }
}

/** The same of an op that has just been carried out. */
export function summaryOfRun({ begin, outcomes, markerSeq, copy }: Operation): OpSummary {
  const op: StandingOp = {
    begin, removedFolders: [], undoneBy: undefined,
    done: {
      kind: 'op-done', op: begin.op, outcomes: [...outcomes], atMs: begin.atMs,
      ...(markerSeq === undefined ? {} : { markerSeq }), ...(copy === undefined ? {} : { copy }),
    },
  }
  return summaryOf(op, [op])
}

/** Git as a rollback of files found it. What happened since shows in where HEAD is now. */
function movesOf({ begin, done }: StandingOp, { brackets }: Ledger, now: HeadNow | undefined): readonly MovedHead[] {
  if (begin.act !== 'rollback' || begin.target === undefined || begin.scope === 'conversation') return []
  return gitMoves({
    brackets: brackets.filter(({ atMs }) => atMs <= begin.atMs), startSeq: begin.target.startSeq, now,
    hasKept: done.outcomes.some(({ result, reason }) => result === 'kept' && reason === 'git-moved'),
  })
}

function filesByTurn(ledger: Ledger): ReadonlyMap<number, ReadonlySet<string>> {
  const files = new Map<number, Set<string>>()
  for (const { path, records } of ledger.paths.values()) {
    for (const { turn } of records) files.set(turn.startSeq, (files.get(turn.startSeq) ?? new Set()).add(path))
  }
  return files
}

const countsOf = (paths: ReadonlyMap<string, 'tool' | 'shell'> = new Map()): { tool: number; shell: number } => {
  const tool = [...paths.values()].filter(origin => origin === 'tool').length
  return { tool, shell: paths.size - tool }
}
