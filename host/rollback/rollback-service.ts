import { randomUUID } from 'node:crypto'
import type { Scope } from '../../src/checkpoint/journal-entry.ts'
import { planId, type OpId, type PlanId, type SessionId } from '../../src/ids.ts'
import type { StandingOp } from '../../src/ledger/ledger.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { OpSummary, Preview, TurnRow } from '../../src/protocol/requests.ts'
import type { RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { inMaintenance, sandboxMode, whyBusy } from '../dsh/agents.ts'
import type { ForeignAgent, ForeignSession } from '../dsh/host-types.ts'
import { idOf, readEvents } from '../dsh/session-log.ts'
import { runBranch } from './branch.ts'
import type { RollbackDeps } from './deps.ts'
import { draftRollback, previewOf, type Draft } from './draft.ts'
import { headNow } from './head-now.ts'
import type { Operation } from './op-end.ts'
import { runRollback, settleOperation } from './operation.ts'
import { makePlanBook } from './plan-book.ts'
import { readRecords } from './records.ts'
import { settleOpenOps } from './recovery.ts'
import { summaryOf, summaryOfRun, timelineOf } from './timeline.ts'
import { findUndo, planOfUndo, runUndo } from './undo.ts'

const noPaths: ReadonlySet<string> = new Set()

/** A refusal because the world moved; the fresh preview shows what is different now. */
export type Refusal = { readonly failure: Failure; readonly preview?: Preview }

/** What the command and the channel ask for. Every member is safe to call at any time and answers expected trouble as a value. */
export interface RollbackService {
  timeline(id: SessionId): Promise<Result<{ turns: TurnRow[]; ops: OpSummary[] }, Failure>>
  preview(id: SessionId, turn: number, scope: Scope): Promise<Result<Preview, Failure>>
  /** Keeps a plan for `token`; the fresh preview comes back when the world is not the one of the token. */
  plan(id: SessionId, request: { turn: number; scope: Scope; token: string; putBack: readonly string[]; branch: boolean }): Promise<Result<PlanAnswer, Failure>>
  executePlan(agent: ForeignAgent, id: PlanId): Promise<Result<Operation, Refusal>>
  /** The safe defaults: conflicts are kept. */
  rollback(agent: ForeignAgent, turn: number, branch: boolean): Promise<Result<Operation, Refusal>>
  /** Of `op`, or of the newest op there is to undo. */
  undo(agent: ForeignAgent, op: OpId | undefined): Promise<Result<Operation, Refusal>>
  /** A run of our command begins: whatever the one before it did is no answer to a question for the last. */
  begins(id: SessionId): void
  outcome(id: SessionId, ask: { planId?: PlanId | undefined; op?: OpId | undefined }): Promise<Result<{ op?: OpSummary }, Failure>>
}

export type PlanAnswer =
  | { readonly kind: 'planned'; readonly planId: PlanId; readonly expiresAtMs: number }
  | { readonly kind: 'stale'; readonly preview: Preview }

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

  const draft = async (id: SessionId, turn: number, scope: Scope, putBack = noPaths): Promise<Result<Draft, Failure>> => {
    const session = sessionOf(id)
    return session.ok ? draftRollback(deps, { session: session.value, agent: deps.agents.get(id), turn, scope, putBack }) : session
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
  const exclusively = async (agent: ForeignAgent, run: (signal: AbortSignal) => Promise<Result<Operation, Refusal>>): Promise<Result<Operation, Refusal>> => {
    const busy = whyBusy(deps.ctx, agent)
    if (busy !== undefined) return fail({ failure: busy })
    return locked(agent.session, async () => {
      const settledFirst = async (signal: AbortSignal): Promise<Result<Operation, Refusal>> => {
        for (const settle of [settleLast, settleEarlier]) {
          const settled = await settle(agent.session)
          if (!settled.ok) return fail({ failure: settled.failure })
        }
        const done = await run(signal)
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
  const alsoIn = (original: ForeignSession, run: () => Promise<Result<Operation, Refusal>>): Promise<Result<Operation, Refusal>> => {
    const agent = deps.agents.get(idOf(original))
    return agent === undefined ? locked(original, run) : exclusively(agent, run)
  }

  /** Everything is looked at again under the lock; `token` is what the person agreed to, or undefined for the defaults. */
  const execute = (agent: ForeignAgent, request: { turn: number; scope: Scope; putBack: ReadonlySet<string>; token: string | undefined; branch: boolean }) =>
    exclusively(agent, async (signal) => {
      const { session } = agent
      const drafted = await draftRollback(deps, { session, agent, ...request })
      if (!drafted.ok) return fail({ failure: drafted.failure })
      const isStale = request.token !== undefined && request.token !== drafted.value.token
      if (isStale) return fail({ failure: failure('stale'), preview: previewOf(deps, drafted.value, agent) })
      if (mayNotWrite(agent, drafted.value.plan)) return fail({ failure: failure('read-only') })
      const around = previewOf(deps, drafted.value, agent)
      const done = await (request.branch ? runBranch : runRollback)(deps, drafted.value, signal)
      return done.ok ? ok({ ...done.value, around }) : fail({ failure: done.failure })
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
      return ok(timelineOf(id, readEvents(session.value), ledger, now))
    },

    preview: async (id, turn, scope) => {
      const drafted = await draft(id, turn, scope)
      return drafted.ok ? ok(previewOf(deps, drafted.value, deps.agents.get(id))) : drafted
    },

    plan: async (id, { turn, scope: asked, token, putBack, branch }) => {
      const scope = branch ? 'files' : asked
      const drafted = await draft(id, turn, scope)
      if (!drafted.ok) return drafted
      if (drafted.value.token !== token) return ok({ kind: 'stale', preview: previewOf(deps, drafted.value, deps.agents.get(id)) })
      const kept = book.keep(id, { id: planId(randomUUID().replaceAll('-', '')), turn, scope, token, putBack: new Set(putBack), branch })
      return ok({ kind: 'planned', planId: kept.id, expiresAtMs: kept.expiresAtMs })
    },

    executePlan: async (agent, id) => {
      const session = idOf(agent.session)
      const plan = book.find(session, id)
      if (plan === undefined) return fail({ failure: failure('plan-expired') })
      const done = await execute(agent, plan)
      if (done.ok) book.close(session, id, done.value.begin.op)
      return done
    },

    rollback: (agent, turn, branch) => execute(agent, { turn, scope: branch ? 'files' : 'both', putBack: noPaths, token: undefined, branch }),

    undo: (agent, op) => exclusively(agent, async (signal) => {
      const run = async (): Promise<Result<Operation, Refusal>> => {
        // Looked for again where it is carried out: under the lock of the session that notes it.
        const target = await findUndo(deps, agent.session, op)
        if (!target.ok) return fail({ failure: target.failure })
        const plan = await planOfUndo(deps, target.value)
        if (mayNotWrite(agent, plan)) return fail({ failure: failure('read-only') })
        const done = await runUndo(target.value, plan, signal)
        return done.ok ? done : fail({ failure: done.failure })
      }
      const found = await findUndo(deps, agent.session, op)
      if (!found.ok) return fail({ failure: found.failure })
      const { session } = found.value.site
      return session.id === agent.session.id ? run() : alsoIn(session, run)
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
      return ok(found === undefined ? {} : { op: summaryOf(found) })
    },
  }
}
