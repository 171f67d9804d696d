import { createHash } from 'node:crypto'
import { isAbsolute, relative } from 'node:path'
import { coverageGaps, isGapOfFiles } from '../../src/checkpoint/coverage.ts'
import type { Gap } from '../../src/checkpoint/gap.ts'
import { unknown } from '../../src/checkpoint/file-state.ts'
import { gitMoves, movesFrom, type MovedHead } from '../../src/checkpoint/git-move.ts'
import type { Scope } from '../../src/checkpoint/journal-entry.ts'
import type { Seq } from '../../src/ids.ts'
import { inSpan, type Ledger } from '../../src/ledger/ledger.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { Preview, PreviewRow, RunningChoice } from '../../src/protocol/requests.ts'
import { isFolderRemoval, pathsInSpan, planRestore, type PlanRow, type RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { judgeFileTarget, judgeTarget, readConversation, type Conversation, type Target } from '../../src/turn/rollback-target.ts'
import type { Turn } from '../../src/turn/turn-index.ts'
import { makeBreath } from '../breath.ts'
import { idOf, readEvents, surfaceGeneration } from '../dsh/session-log.ts'
import { droppable, queuedPrompts, sandboxMode, whyBusy, workBeside } from '../dsh/agents.ts'
import type { ForeignAgent, ForeignSession } from '../dsh/host-types.ts'
import type { RollbackDeps } from './deps.ts'
import { headNow } from './head-now.ts'
import { writesOfOthers } from './other-sessions.ts'
import { lookAtAll } from './paths-now.ts'
import { readRecords, type Records } from './records.ts'

/** A rollback thought through to the end: nothing is left to decide, nothing has been touched. */
export interface Draft {
  readonly session: ForeignSession
  readonly conversation: Conversation
  readonly target: Target
  readonly scope: Scope
  readonly records: Records
  /** Of all paths of the span. */
  readonly plan: RestorePlan
  readonly gaps: readonly Gap[]
  readonly moves: readonly MovedHead[]
  /** Hash of everything the draft rests on, except which conflicts are put back. */
  readonly token: string
}

export interface DraftRequest {
  readonly session: ForeignSession
  /** Undefined for a session without an agent; then nothing can be running. */
  readonly agent: ForeignAgent | undefined
  readonly turn: number
  readonly scope: Scope
  readonly putBack: ReadonlySet<string>
  /** Default `continue`: whoever only looks is told of the work that runs, and not refused. */
  readonly running?: RunningChoice
}

/** Refuses with the reason when the turn cannot be gone back to now. Reads only. */
export async function draftRollback(deps: RollbackDeps, { session, agent, turn, scope, putBack, running = 'continue' }: DraftRequest): Promise<Result<Draft, Failure>> {
  const busy = agent === undefined ? undefined : whyBusy(deps.ctx, agent, running)
  if (busy !== undefined) return fail(busy)
  await deps.captured(session)
  const conversation = readConversation(readEvents(session))
  const judged = scope === 'files' ? judgeFileTarget(conversation, turn) : judgeTarget(conversation, turn)
  if (!judged.ok) return judged
  const target = judged.value
  if (scope !== 'files' && !isOurSurface(conversation, session)) return fail(failure('unsupported-host', { detail: 'surface' }))
  const records = await readRecords(deps, session)
  if (!records.ok) return records
  const { startSeq } = target.turn
  const { ledger } = records.value
  const plan = scope === 'conversation' ? emptyPlan : await planFiles(deps, session, records.value, { startSeq, putBack })
  const gaps = coverageGaps({
    session: idOf(session), turns: conversation.turns, startSeq, ledger, hasHoles: records.value.hasHoleFrom(startSeq),
    gone: plan.rows.filter(({ decision }) => decision.kind === 'skip' && decision.skip === 'object-gone').map(({ path }) => path),
  })
  return ok({
    session, conversation, target, scope, records: records.value, plan, gaps,
    moves: scope === 'conversation' ? [] : await movesOf(deps, session, ledger, startSeq, plan),
    token: tokenOf({ session, target, scope, plan, position: records.value.position }),
  })
}

const emptyPlan: RestorePlan = { rows: [], folders: [] }

/** Looks at every path of the span, here and in the records of other sessions, and decides. */
async function planFiles(
  deps: RollbackDeps, session: ForeignSession, records: Records, { startSeq, putBack }: { readonly startSeq: Seq; readonly putBack: ReadonlySet<string> },
): Promise<RestorePlan> {
  const { ledger } = records
  const paths = pathsInSpan(ledger, startSeq)
  const others = await writesOfOthers(deps, { session, ledger, startSeq, paths })
  const plan = planRestore(ledger, startSeq, {
    current: await lookAtAll(deps, paths), putBack, distrusted: records.distrustedFrom(startSeq), others,
  })
  const rows: PlanRow[] = []
  const breath = makeBreath()
  for (const row of plan.rows) {
    await breath()
    rows.push(await skipIfGone(row, records))
  }
  return { ...plan, rows }
}

/** A row that would need bytes which the store has no more is known not to go back before anybody agrees to it. */
async function skipIfGone(row: PlanRow, { hasBlob }: Records): Promise<PlanRow> {
  const { goal, decision } = row
  if (goal.kind !== 'file' || decision.kind === 'none' || decision.kind === 'skip' || await hasBlob(goal.digest)) return row
  return { ...row, goal: unknown('object-gone'), conflict: undefined, decision: { kind: 'skip', skip: 'object-gone' } }
}

async function movesOf(deps: RollbackDeps, session: ForeignSession, { brackets }: Ledger, startSeq: Seq, { rows }: RestorePlan): Promise<readonly MovedHead[]> {
  const workspace = deps.workspaceOf(session)
  if (workspace === undefined || movesFrom(brackets, startSeq).length === 0) return []
  const hasKept = rows.some(({ decision }) => decision.kind === 'keep' && decision.conflict === 'git-moved')
  return gitMoves({ brackets, startSeq, now: await headNow(workspace, deps.store.layout.indexes), hasKept })
}

/** The host's surface must be the one we folded: a generation that folds differently would make us cut the wrong messages. */
function isOurSurface({ surface }: Conversation, session: ForeignSession): boolean {
  const ours = surface.nodes.map(node => node.seq)
  const theirs = [...session.surface.nodes]
  return ours.length === theirs.length && ours.every((seq, at) => seq === theirs[at])
}

/** Never the session's seq: the command that runs the rollback moves it. */
function tokenOf({ session, target, scope, plan, position }: Pick<Draft, 'session' | 'target' | 'scope' | 'plan'> & { position: number }): string {
  const rows = plan.rows.map(row => [row.path, row.goal, row.current, row.conflict ?? null])
  const basis = [scope, target.turn.startSeq, target.cut, session.surface.nodes, surfaceGeneration(session), position, rows]
  return createHash('sha256').update(JSON.stringify(basis)).digest('hex')
}

/** Session state that a rollback leaves as it is, where this session has any: keys of `untouched.<key>`. */
const stateEvents: readonly (readonly [string, string])[] = [
  ['todo/write', 'todo'], ['goal/change', 'goal'], ['plan/mode', 'plan'], ['permission/preset', 'permission'], ['sandbox/mode', 'permission'],
]

/** What a person is shown of a draft. */
export function previewOf(deps: RollbackDeps, draft: Draft, agent: ForeignAgent | undefined): Preview {
  const { target, plan } = draft
  const workspace = deps.workspaceOf(draft.session)
  const since = draft.conversation.events.filter(event => event.seq >= target.turn.startSeq)
  const untouched = stateEvents.filter(([type]) => since.some(event => event.type === type)).map(([, key]) => key)
  const prompt = target.turn.prompts[0]
  const { startSeq } = target.turn
  const isFiles = draft.scope !== 'conversation'
  const { ledger } = draft.records
  const brackets = ledger.brackets.filter(({ turn }) => isFiles && turn.startSeq >= startSeq)
  const words = new Map(brackets.map(({ call, words: said }) => [call.callId, said]))
  return {
    token: draft.token,
    scope: draft.scope,
    target: { turn: target.turn.number, startSeq: target.turn.startSeq, title: titleOf(target.turn), atMs: target.turn.atMs },
    lastTurn: target.withdrawn.at(-1)!.number,
    turns: target.withdrawn.map(turn => ({ turn: turn.number, title: titleOf(turn) })),
    messages: target.cut.length,
    rows: plan.rows.filter(row => !isFolderRemoval(row)).map(row => ({
      ...previewRow(row, workspace), ...storyOf(row, ledger, target.turn, words),
    })),
    folders: plan.folders.map(folder => shownPath(folder, workspace)),
    gaps: draft.gaps.map(gap => (isGapOfFiles(gap) ? { ...gap, names: gap.names.map(path => shownPath(path, workspace)) } : gap)),
    hasCommands: brackets.length > 0,
    gitMoves: [...draft.moves],
    queued: agent === undefined ? [] : [...queuedPrompts(agent)],
    canDropQueued: agent !== undefined && droppable(agent) !== undefined,
    running: agent === undefined ? [] : [...workBeside(deps.ctx, agent)],
    isReadOnly: agent !== undefined && sandboxMode(deps.ctx, agent) === 'read-only',
    untouched: [...new Set(untouched)],
    prompt: { text: prompt?.text ?? '', images: [...prompt?.images ?? []] },
  }
}

export function previewRow(row: PlanRow, workspace: string | undefined): PreviewRow {
  const { decision } = row
  return {
    path: row.path, shown: shownPath(row.path, workspace), goal: row.goal, current: row.current, turns: [...row.turns], origin: row.origin,
    action: decision.kind,
    ...(row.conflict === undefined ? {} : { conflict: row.conflict }),
    ...(decision.kind === 'keep' ? { putBackAction: decision.putBack } : {}),
    ...(decision.kind === 'skip' ? { skip: decision.skip } : {}),
  }
}

/** Commands named per row. */
const MAX_COMMANDS = 3

/** How the row came about, as far as that is not in the row itself. */
function storyOf({ path, origin }: PlanRow, ledger: Ledger, { startSeq, atMs }: Turn, words: ReadonlyMap<string, string>): Pick<PreviewRow, 'commands' | 'isOutside'> {
  const records = ledger.paths.get(path)
  const commands = origin === 'tool' || records === undefined ? []
    : [...new Set(inSpan(records, startSeq).flatMap(({ callId }) => words.get(callId) ?? []))].slice(0, MAX_COMMANDS)
  const isOutside = ledger.outside.get(path)?.some(seen => seen.atMs >= atMs) === true
  return { ...(commands.length === 0 ? {} : { commands }), ...(isOutside ? { isOutside } : {}) }
}

/** Relative inside the workspace, absolute elsewhere. */
export function shownPath(path: string, workspace: string | undefined): string {
  if (workspace === undefined) return path
  const inside = relative(workspace, path)
  return inside === '' || inside === '..' || inside.startsWith('../') || isAbsolute(inside) ? path : inside
}

/** First line of the first human message, at most 80 characters; empty for a turn that nobody wrote or that holds pictures only. */
export function titleOf(turn: Turn): string {
  const line = turn.prompts.map(prompt => prompt.text.trim().split('\n')[0]!.trim()).find(text => text !== '') ?? ''
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}
