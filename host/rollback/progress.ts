import type { SessionId } from '../../src/ids.ts'
import type { ReplyOf } from '../../src/protocol/requests.ts'

type Stage = NonNullable<ReplyOf<'progress'>['stage']>

/** How far the op of each session is, for who waits for it; in memory, because a restart ends the op. */
export interface Progress {
  /** An op is looked at, and may be stopped until it writes; the result ends that. */
  begin(session: SessionId): { readonly signal: AbortSignal; end(): void }
  /** `done` of `total` files. Does nothing for a session without an op. */
  at(session: SessionId, stage: Stage, done: number, total: number): void
  of(session: SessionId): ReplyOf<'progress'>
  /** True when the op was asked to stop; false when there is none, or it is past the point of no return. */
  stop(session: SessionId): boolean
}

export function makeProgress(): Progress {
  const ops = new Map<SessionId, { stage: Stage; done: number; total: number; readonly abort: AbortController }>()
  return {
    begin(session) {
      const op = { stage: 'looking' as Stage, done: 0, total: 0, abort: new AbortController() }
      ops.set(session, op)
      return { signal: op.abort.signal, end: () => void (ops.get(session) === op && ops.delete(session)) }
    },
    at(session, stage, done, total) {
      const op = ops.get(session)
      if (op !== undefined) Object.assign(op, { stage, done, total })
    },
    of(session) {
      const op = ops.get(session)
      return op === undefined ? { done: 0, total: 0 } : { stage: op.stage, done: op.done, total: op.total }
    },
    stop(session) {
      const op = ops.get(session)
      if (op === undefined || op.stage === 'writing') return false
      op.abort.abort()
      return true
    },
  }
}
