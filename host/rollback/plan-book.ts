import type { OpId, PlanId, SessionId } from '../../src/ids.ts'
import type { RunningChoice } from '../../src/protocol/requests.ts'
import type { RollbackRequest } from './rollback-service.ts'

/** How long a plan may be executed, and how many a session keeps; the oldest goes. */
const PLAN_LIFE_MS = 10 * 60 * 1000
const PLANS_PER_SESSION = 8

/** What a person saw and agreed to. */
export interface KeptPlan {
  readonly id: PlanId
  readonly act: { readonly kind: 'rollback'; readonly request: RollbackRequest } | { readonly kind: 'retry'; readonly of: OpId; readonly running: RunningChoice }
  readonly expiresAtMs: number
}

/** Plans wait in memory only: after a restart the world has to be looked at again anyway. */
export interface PlanBook {
  keep(session: SessionId, plan: Omit<KeptPlan, 'expiresAtMs'>): KeptPlan
  /** Undefined when the id is unknown or too old. */
  find(session: SessionId, id: PlanId): KeptPlan | undefined
  /** A plan is executed once; what came of it stays readable under its id. */
  close(session: SessionId, id: PlanId, op: OpId): void
  outcomeOf(session: SessionId, id: PlanId): OpId | undefined
}

/** `now` in Unix ms. */
export function makePlanBook(now: () => number): PlanBook {
  const plans = new Map<SessionId, readonly KeptPlan[]>()
  const closed = new Map<SessionId, readonly { readonly id: PlanId; readonly op: OpId }[]>()
  const alive = (session: SessionId): readonly KeptPlan[] => (plans.get(session) ?? []).filter(plan => plan.expiresAtMs > now())
  return {
    keep: (session, plan) => {
      const kept = { ...plan, expiresAtMs: now() + PLAN_LIFE_MS }
      plans.set(session, [...alive(session), kept].slice(-PLANS_PER_SESSION))
      return kept
    },
    find: (session, id) => alive(session).find(plan => plan.id === id),
    close: (session, id, op) => {
      plans.set(session, alive(session).filter(plan => plan.id !== id))
      closed.set(session, [...closed.get(session) ?? [], { id, op }].slice(-PLANS_PER_SESSION))
    },
    outcomeOf: (session, id) => closed.get(session)?.find(entry => entry.id === id)?.op,
  }
}
