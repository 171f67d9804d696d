import { randomUUID } from 'node:crypto'
import type { Scope } from '../../src/checkpoint/journal-entry.ts'
import { planId, type OpId, type PlanId, type SessionId } from '../../src/ids.ts'
import type { StandingOp } from '../../src/ledger/ledger.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { OpSummary, Preview, QueuedChoice, ReplyOf, RequestOf, RunningChoice, TurnRow } from '../../src/protocol/requests.ts'
import { changedRows } from '../../src/restore/changed-rows.ts'
import type { RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { dropQueued, droppable, inMaintenance, queuedPrompts, sandboxMode, whyBusy } from '../dsh/agents.ts'
import type { ForeignAgent, ForeignSession } from '../dsh/host-types.ts'
import { idOf, readEvents } from '../dsh/session-log.ts'
import { runBranch } from './branch.ts'
import type { RollbackDeps } from './deps.ts'
import { draftRollback, previewOf, previewRow, type Draft } from './draft.ts'
import { draftRetry } from './draft-retry.ts'
import { headNow } from './head-now.ts'
import type { Operation } from './op-end.ts'
import { runRetry, runRollback, settleOperation } from './operation.ts'
import { makePlanBook } from './plan-book.ts'
import { readRecords } from './records.ts'
import { settleOpenOps } from './recovery.ts'
import { selectRows, type Selection } from './select-rows.ts'
import { summaryOf, summaryOfRun, timelineOf } from './timeline.ts'
import { findUndo, planOfUndo, runUndo } from './undo.ts'

const noPaths: ReadonlySet<string> = new Set()

/** A rollback with everything chosen. */
export interface RollbackRequest {
  readonly turn: number
  readonly scope: Scope
  /** The conversation goes on in a copy; `scope` is the files then. */
  readonly branch: boolean
  /** What the person agreed to; undefined for the defaults as the world is now. */
  readonly token: string | undefined
  /** The preview that the token is of, to say what is different when it is stale. */
  readonly seen?: Pick<Preview, 'rows'>
  readonly putBack: ReadonlySet<string>
  /** Undefined for all paths. */
  readonly only: Selection | undefined
  readonly running: RunningChoice
  /** Ids of queued messages that go: those that were there when the person chose so, and none that came later. */
  readonly dropping: readonly string[]
}

/** What a typed rollback may choose. */
export type TypedRollback = Pick<RollbackRequest, 'turn'> & Partial<Pick<RollbackRequest, 'scope' | 'branch' | 'running'>> & {
  readonly only?: readonly string[] | undefined
  readonly queued?: QueuedChoice
}

/** A refusal; because the world moved, with the fresh preview and the paths of its rows that are different now. */
export type Refusal = { readonly failure: Failure; readonly preview?: Preview; readonly changed?: ReadonlySet<string> }

/** What the command and the channel ask for. Every member is safe to call at any time and answers expected trouble as a value. */
export interface RollbackService {
  timeline(id: SessionId): Promise<Result<{ turns: TurnRow[]; ops: OpSummary[] }, Failure>>
  preview(id: SessionId, turn: number, scope: Scope): Promise<Result<Preview, Failure>>
  /** Keeps a plan for `token`; the fresh preview comes back when the world is not the one of the token. */
  plan(id: SessionId, request: Omit<RequestOf<'plan'>, 'sessionId'>): Promise<Result<ReplyOf<'plan'>, Failure>>
  /** Keeps a plan for the paths that a rollback could not put back. */
  planRetry(id: SessionId, running: RunningChoice): Promise<Result<ReplyOf<'retry'>, Failure>>
  executePlan(agent: ForeignAgent, id: PlanId): Promise<Result<Operation, Refusal>>
  /** The safe defaults: conflicts are kept. */
  rollback(agent: ForeignAgent, typed: TypedRollback): Promise<Result<Operation, Refusal>>
  /** Tries again, as an op of its own, what the newest rollback could not put back. */
  retry(agent: ForeignAgent, running: RunningChoice): Promise<Result<Operation, Refusal>>
  /** Of `op`, or of the newest op there is to undo. */
  undo(agent: ForeignAgent, op: OpId | undefined, running: RunningChoice): Promise<Result<Operation, Refusal>>
  /** A run of our command begins: whatever the one before it did is no answer to a question for the last. */
  begins(id: SessionId): void
  outcome(id: SessionId, ask: { planId?: PlanId | undefined; op?: OpId | undefined }): Promise<Result<{ op?: OpSummary }, Failure>>
}

/** One for the life of the plugin: it remembers plans and ops whose end is not stored. */
export function makeRollbackService(deps: RollbackDeps): RollbackService {
  const book = makePlanBook(deps.now)
  /** Ops of this run that happened and whose end is not stored. */
  const unsettled = new Map<SessionId, Operation>()
  /** What the last command of a session carried out. */
  const last = new Map<SessionId, Operation>()

  const sessionOf = (id: SessionId): Result<ForeignSession, Failure> => {
    const session = deps.sessions.get(id) ?? deps.agents.get(id)?.session
    return session === undefined ? fail(failure('unknown-session')) : ok(session)
  }

  const draft = async (id: SessionId, asked: { turn: number; scope: Scope; running?: RunningChoice }): Promise<Result<Draft, Failure>> => {
    const session = sessionOf(id)
    return session.ok ? draftRollback(deps, { ...asked, putBack: noPaths, session: session.value, agent: deps.agents.get(id) }) : session
  }

  /** Until the last op has ended, the records do not say what it did. */
  const settleLast = async (session: ForeignSession): Promise<Result<undefined, Failure>> => {
    const last = unsettled.get(idOf(session))
    if (last === undefined) return ok(undefined)
    const records = await readRecords(deps, session)
    if (!records.ok) return records
    const settled = await settleOperation({ deps, session, records: records.value }, last)
    if (settled.ok) unsettled.delete(idOf(session))
    return settled
  }

  const settleEarlier = (session: ForeignSession): Promise<Result<undefined, Failure>> => settleOpenOps(deps, session)

  /** Our writes do not go through the host's sandbox, so its mode is asked here. */
  const mayNotWrite = (agent: ForeignAgent, plan: RestorePlan): boolean =>
    plan.rows.some(row => ['write', 'recreate', 'delete'].includes(row.decision.kind)) && sandboxMode(deps.ctx, agent) === 'read-only'

  /** One op at a time: over all hosts by the lock, against turns by maintenance. */
  const exclusively = async (
    agent: ForeignAgent, running: RunningChoice, run: (signal: AbortSignal) => Promise<Result<Operation, Refusal>>,
  ): Promise<Result<Operation, Refusal>> => {
    const busy = whyBusy(deps.ctx, agent, running)
    if (busy !== undefined) return fail({ failure: busy })
    return locked(agent.session, async () => {
      const settledFirst = async (signal: AbortSignal): Promise<Result<Operation, Refusal>> => {
        for (const settle of [settleLast, settleEarlier]) {
          const settled = await settle(agent.session)
          if (!settled.ok) return fail({ failure: settled.failure })
        }
        const { signal: stopped, end } = deps.progress.begin(idOf(agent.session))
        const done = await run(AbortSignal.any([signal, stopped])).finally(end)
        if (done.ok && done.value.isOpen === true) unsettled.set(idOf(agent.session), done.value)
        if (done.ok) last.set(idOf(agent.session), done.value)
        return done
      }
      return inMaintenance(agent, settledFirst) ?? fail({ failure: failure('turn-running') })
    })
  }

  const locked = async (session: ForeignSession, run: () => Promise<Result<Operation, Refusal>> | Result<Operation, Refusal>): Promise<Result<Operation, Refusal>> => {
    const lock = await deps.store.lock(idOf(session))
    if (!lock.ok) return fail({ failure: lock.failure })
    try {
      return await run()
    } finally {
      await lock.value()
    }
  }

  /** An undo that was asked for in a copy and is noted in its original, which need not be live. */
  const alsoIn = (original: ForeignSession, running: RunningChoice, run: () => Promise<Result<Operation, Refusal>>): Promise<Result<Operation, Refusal>> => {
    const agent = deps.agents.get(idOf(original))
    return agent === undefined ? locked(original, run) : exclusively(agent, running, run)
  }

  /** Everything is looked at again under the lock. */
  const execute = (agent: ForeignAgent, request: RollbackRequest) =>
    exclusively(agent, request.running, async (signal) => {
      const { session } = agent
      const { turn, scope, branch, putBack, running, token, seen } = request
      const drafted = await draftRollback(deps, { session, agent, turn, scope, putBack, running })
      if (!drafted.ok) return fail({ failure: drafted.failure })
      const around = previewOf(deps, drafted.value, agent)
      if (token !== undefined && token !== drafted.value.token) {
        // As the person saw it: with the defaults, whatever was chosen.
        const fresh = await draftRollback(deps, { session, agent, turn, scope, putBack: noPaths })
        const preview = fresh.ok ? previewOf(deps, fresh.value, agent) : around
        return fail({ failure: failure('stale'), preview, ...(seen === undefined ? {} : { changed: changedRows(seen, preview) }) })
      }
      const selected = selectRows(drafted.value, request.only, deps.workspaceOf(session))
      if (!selected.ok) return fail({ failure: selected.failure })
      if (mayNotWrite(agent, selected.value.plan)) return fail({ failure: scope === 'both' ? failure('files-read-only', { turn }) : failure('read-only') })
      const done = await (branch ? runBranch : runRollback)(deps, drafted.value, selected.value, signal)
      if (!done.ok) return fail({ failure: done.failure })
      // Not before: a rollback that is refused must cost nobody a message. No turn begins in between.
      const dropped = deps.health.contain('queue', dropQueued)(agent, request.dropping) ?? []
      return ok({ ...done.value, dropped, around: { ...around, queued: [...queuedPrompts(agent)] } })
    })

  const retry = (agent: ForeignAgent, running: RunningChoice, of?: OpId) => exclusively(agent, running, async (signal) => {
    const { session } = agent
    const records = await readRecords(deps, session)
    if (!records.ok) return fail({ failure: records.failure })
    const drafted = await draftRetry(deps, records.value, of)
    if (!drafted.ok) return fail({ failure: drafted.failure })
    if (mayNotWrite(agent, drafted.value.plan)) return fail({ failure: failure('read-only') })
    const done = await runRetry({ deps, session, records: records.value }, drafted.value, signal)
    return done.ok ? done : fail({ failure: done.failure })
  })

  const summaries = async (session: ForeignSession): Promise<Result<readonly StandingOp[], Failure>> => {
    const records = await readRecords(deps, session)
    return records.ok ? ok(records.value.ledger.ops) : records
  }

  return {
    timeline: async (id) => {
      const session = sessionOf(id)
      if (!session.ok) return session
      await deps.captured()
      const records = await readRecords(deps, session.value)
      if (!records.ok) return records
      const { ledger } = records.value
      const workspace = deps.workspaceOf(session.value)
      const now = workspace === undefined || !ledger.brackets.some(({ head }) => head !== undefined) ? undefined : await headNow(workspace, deps.store.layout.indexes)
      return ok(timelineOf(id, readEvents(session.value), records.value, now))
    },

    preview: async (id, turn, scope) => {
      const drafted = await draft(id, { turn, scope })
      return drafted.ok ? ok(previewOf(deps, drafted.value, deps.agents.get(id))) : drafted
    },

    plan: async (id, { turn, scope: asked, token, putBack, only, branch, queued, running }) => {
      const scope = branch ? 'files' : asked
      const drafted = await draft(id, { turn, scope, running })
      if (!drafted.ok) return drafted
      const preview = previewOf(deps, drafted.value, deps.agents.get(id))
      if (drafted.value.token !== token) return ok({ kind: 'stale', preview })
      const selection: Selection | undefined = only === undefined ? undefined : { kind: 'paths', paths: only }
      const selected = selectRows(drafted.value, selection, deps.workspaceOf(drafted.value.session))
      if (!selected.ok) return selected
      const dropping = droppingOf(deps.agents.get(id), queued)
      if (!dropping.ok) return dropping
      const request: RollbackRequest = {
        turn, scope, branch, token, seen: { rows: preview.rows }, putBack: new Set(putBack), only: selection, running, dropping: dropping.value,
      }
      const kept = book.keep(id, { id: newPlanId(), act: { kind: 'rollback', request } })
      return ok({ kind: 'planned', planId: kept.id, expiresAtMs: kept.expiresAtMs })
    },

    planRetry: async (id, running) => {
      const session = sessionOf(id)
      if (!session.ok) return session
      const agent = deps.agents.get(id)
      const busy = agent === undefined ? undefined : whyBusy(deps.ctx, agent, running)
      if (busy !== undefined) return fail(busy)
      const records = await readRecords(deps, session.value)
      if (!records.ok) return records
      const drafted = await draftRetry(deps, records.value)
      if (!drafted.ok) return drafted
      const { again: { begin: { op: of } }, plan } = drafted.value
      const kept = book.keep(id, { id: newPlanId(), act: { kind: 'retry', of, running } })
      const workspace = deps.workspaceOf(session.value)
      return ok({ planId: kept.id, expiresAtMs: kept.expiresAtMs, of, rows: plan.rows.map(row => previewRow(row, workspace)) })
    },

    executePlan: async (agent, id) => {
      const session = idOf(agent.session)
      const plan = book.find(session, id)
      if (plan === undefined) return fail({ failure: failure('plan-expired') })
      const { act } = plan
      const done = await (act.kind === 'rollback' ? execute(agent, act.request) : retry(agent, act.running, act.of))
      if (done.ok) book.close(session, id, done.value.begin.op)
      return done
    },

    rollback: async (agent, { turn, scope = 'both', branch = false, only, running = 'refuse', queued = 'keep' }) => {
      const dropping = droppingOf(agent, queued)
      if (!dropping.ok) return fail({ failure: dropping.failure })
      const selection: Selection | undefined = only === undefined ? undefined : { kind: 'words', words: only }
      return execute(agent, { turn, scope, branch, token: undefined, putBack: noPaths, only: selection, running, dropping: dropping.value })
    },

    retry: (agent, running) => retry(agent, running),

    undo: (agent, op, running) => exclusively(agent, running, async (signal) => {
      const run = async (): Promise<Result<Operation, Refusal>> => {
        // Looked for again where it is carried out: under the lock of the session that notes it.
        const target = await findUndo(deps, agent.session, op)
        if (!target.ok) return fail({ failure: target.failure })
        // Of an original at rest, which nobody settles before: what is open there waits for its own start.
        if (target.value.site.records.ledger.open.length > 0) return fail({ failure: failure('busy') })
        const plan = await planOfUndo(deps, target.value)
        if (mayNotWrite(agent, plan)) return fail({ failure: failure('read-only') })
        const done = await runUndo(target.value, plan, signal)
        return done.ok ? done : fail({ failure: done.failure })
      }
      const found = await findUndo(deps, agent.session, op)
      if (!found.ok) return fail({ failure: found.failure })
      const { session } = found.value.site
      if (session.id === agent.session.id) return run()
      const done = await alsoIn(session, running, run)
      if (!done.ok) return done
      // It is the original's to end; in this session's journal it would be nobody's.
      const { isOpen: _isOpen, ...operation } = done.value
      return ok(operation)
    }),

    begins: (id) => { last.delete(id) },

    outcome: async (id, ask) => {
      const session = sessionOf(id)
      if (!session.ok) return session
      const run = last.get(id)
      if (ask.op === undefined && ask.planId === undefined) return ok(run === undefined ? {} : { op: summaryOfRun(run) })
      const op = ask.op ?? (ask.planId === undefined ? undefined : book.outcomeOf(id, ask.planId))
      const ops = await summaries(session.value)
      if (!ops.ok) return ops
      const found = ops.value.find(other => other.begin.op === op)
      return ok(found === undefined ? {} : { op: summaryOf(found, ops.value) })
    },
  }
}

const newPlanId = (): PlanId => planId(randomUUID().replaceAll('-', ''))

/** Ids of the messages to remove from the queue. */
function droppingOf(agent: ForeignAgent | undefined, queued: QueuedChoice): Result<readonly string[], Failure> {
  if (queued === 'keep' || agent === undefined) return ok([])
  const ids = droppable(agent)
  return ids === undefined ? fail(failure('cannot-drop')) : ok(ids)
}
