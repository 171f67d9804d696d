/**
 * Contract: session logs on disk. DSH session/session-persistence (`inspect`).
 * We rely on: `inspect(id)` answers header and events of a stored session without making it live, and rejects for
 * one it cannot read. A host that stops takes the service away; what fails then is no fault.
 */
import type { LogEvent } from '../../src/turn/log-event.ts'
import type { Health } from './health.ts'
import type { ForeignHeader, HostContext } from './host-types.ts'

export interface StoredSession {
  readonly meta: ForeignHeader
  readonly events: readonly LogEvent[]
}

export interface StoredSessions {
  /** Undefined where this host cannot look into a stored session. */
  readonly inspect: ((id: string) => Promise<StoredSession>) | undefined
  /** Reports a fault, unless the service is on its way out. */
  report(error: unknown): void
}

/** Headers of sessions that may be at rest, each read once: a header never changes. Undefined for one the host cannot read. */
export function readHeaders(ctx: HostContext): (id: string) => Promise<ForeignHeader | undefined> {
  const known = new Map<string, ForeignHeader>()
  return async (id) => {
    const { inspect } = (ctx.get('sessionPersistence') ?? {}) as { inspect?: (id: string) => Promise<StoredSession> }
    if (known.has(id) || typeof inspect !== 'function') return known.get(id)
    try {
      const { meta } = await inspect.call(ctx.get('sessionPersistence'), id)
      known.set(id, meta)
      return meta
    } catch {
      // Deleted, damaged or of another format: nothing but what its own children know of it.
      return undefined
    }
  }
}

/** Runs `work` as soon as the host can read stored sessions. Its faults are reported under `part`. */
export function whenSessionsAreStored(ctx: HostContext, health: Health, part: string, work: (stored: StoredSessions) => Promise<void>): void {
  ctx.inject(['sessionPersistence'], health.contain(part, (inner: HostContext) => {
    const persistence = inner.get('sessionPersistence') as { inspect?: (id: string) => Promise<StoredSession> }
    let isOver = false
    inner.effect(() => () => { isOver = true }, `turnback: ${part} of stored sessions`)
    const report = (error: unknown): void => { if (!isOver) health.report(part, error) }
    const inspect = typeof persistence.inspect === 'function' ? (id: string) => persistence.inspect!(id) : undefined
    void work({ inspect, report }).catch(report)
  }))
}
