/**
 * Contract: what the model has seen of a file. DSH fs/fs-observation-policy (index.ts).
 * The policy keeps, per session and in memory, the version the model last read or wrote; a later write
 * to another version is refused until it reads again. After a rollback that refusal is right for files the
 * model first saw in the withdrawn turns, and wrong for those it had seen before them.
 * We rely on: `fs/observed (target, {kind: 'present', version} | {kind: 'absent'}, actor)` both heard and emitted.
 */
import type { Seq } from '../../src/ids.ts'
import type { Health } from './health.ts'
import { readEvents } from './session-log.ts'
import type { ForeignExecution, ForeignSession, ForeignTarget, HostContext } from './host-types.ts'

interface Seen {
  readonly target: ForeignTarget
  /** `turn/start` seq of the turn it was first seen in; undefined when only a write is known. */
  firstTurnSeq: Seq | undefined
}

export interface Observations {
  remember(session: ForeignSession, path: string, target: ForeignTarget): void
  /** Tells the policy what a rollback to before `startSeq` did to `path`; only in the host run that saw it before. */
  announce(session: ForeignSession, path: string, startSeq: Seq, now: 'present' | 'absent'): Promise<void>
}

export function watchObservations(ctx: HostContext, health: Health): Observations {
  const seen = new WeakMap<ForeignSession, Map<string, Seen>>()
  const of = (session: ForeignSession): Map<string, Seen> => {
    const known = seen.get(session) ?? new Map<string, Seen>()
    seen.set(session, known)
    return known
  }
  const heard = health.contain('fs/observed', (target: ForeignTarget, session: ForeignSession) => {
    const known = of(session).get(target.targetKey)
    if (known?.firstTurnSeq !== undefined) return
    const turn = readEvents(session).findLast(event => event.type === 'turn/start')?.seq
    of(session).set(target.targetKey, { target, firstTurnSeq: turn })
  })
  ctx.on('fs/observed', (target: ForeignTarget, _observation: unknown, actor: ForeignExecution | undefined) => {
    if (actor?.agent?.session !== undefined) heard(target, actor.agent.session)
  })
  return {
    remember: (session, path, target) => {
      if (!of(session).has(path)) of(session).set(path, { target, firstTurnSeq: undefined })
    },
    announce: async (session, path, startSeq, now) => {
      const known = of(session).get(path)
      if (known === undefined) return
      const actor = { agent: { session } }
      if (now === 'absent') {
        ctx.emit('fs/observed', known.target, { kind: 'absent' }, actor)
        return
      }
      if (known.firstTurnSeq === undefined || known.firstTurnSeq >= startSeq) {
        // Seen in withdrawn turns only: the model has to read it again, and that read will count.
        known.firstTurnSeq = undefined
        return
      }
      const fs = ctx.get('fs') as { stat?: (target: ForeignTarget) => Promise<{ version?: unknown } | undefined> } | undefined
      const version = (await fs?.stat?.(known.target))?.version
      if (version !== undefined) ctx.emit('fs/observed', known.target, { kind: 'present', version }, actor)
    },
  }
}
