/**
 * Contract: what the model has seen of a file. DSH fs/fs-observation-policy (index.ts).
 * The policy keeps, per session and in memory, the version the model last read or wrote; a later write
 * to another version is refused until it reads again. After a rollback that refusal is right for files whose
 * content the model saw in the withdrawn turns only, and wrong for those that are again as it had seen them before.
 * We rely on: `fs/observed (target, {kind: 'present', version} | {kind: 'absent'}, actor)` both heard and emitted.
 */
import type { Seq } from '../../src/ids.ts'
import { toolKind } from '../../src/checkpoint/tool-table.ts'
import type { Health } from './health.ts'
import { readEvents } from './session-log.ts'
import type { ForeignExecution, ForeignSession, ForeignTarget, HostContext } from './host-types.ts'

/** What a session's model knows of a file. Turns are named by the seq of their `turn/start`. */
interface Seen {
  readonly target: ForeignTarget
  /** Versions it read or wrote, oldest first. */
  shown: { readonly turn: Seq; readonly version: unknown }[]
  /** The version each turn's first write found; undefined where the model had not seen it itself. */
  found: { readonly turn: Seq; readonly version: unknown }[]
}

export interface Observations {
  /** A call of `writer` is about to write `path`; `session` is the person's session it is booked on. */
  remember(session: ForeignSession, path: string, target: ForeignTarget, writer: ForeignSession): void
  /** Tells the policy what a rollback to before `startSeq` did to `path`; only in the host run that saw it before. */
  announce(session: ForeignSession, path: string, startSeq: Seq, now: 'present' | 'absent'): Promise<void>
}

/** Listens from now on: what the model saw before, also in an earlier host run, is not known here. */
export function watchObservations(ctx: HostContext, health: Health): Observations {
  const seen = new WeakMap<ForeignSession, Map<string, Seen>>()
  const of = (session: ForeignSession): Map<string, Seen> => {
    const known = seen.get(session) ?? new Map<string, Seen>()
    seen.set(session, known)
    return known
  }
  const entryOf = (session: ForeignSession, path: string, target: ForeignTarget): Seen => {
    const known = of(session).get(path) ?? { target, shown: [], found: [] }
    of(session).set(path, known)
    return known
  }
  const turnOf = (session: ForeignSession): Seq => readEvents(session).findLast(event => event.type === 'turn/start')?.seq ?? 0
  const note = (found: Seen['found'], turn: Seq, version: unknown): void => {
    if (found.at(-1)?.turn !== turn) found.push({ turn, version })
  }
  const heard = health.contain('fs/observed', (target: ForeignTarget, version: unknown, session: ForeignSession, call: ForeignExecution) => {
    const { shown, found } = entryOf(session, target.targetKey, target)
    const last = shown.at(-1)?.version
    if (last === version) return
    const turn = turnOf(session)
    // The policy lets a write pass over the version that was seen last and over no other.
    if (toolKind(call.name, call.arguments as Record<string, unknown> | undefined) === 'file') note(found, turn, last)
    shown.push({ turn, version })
  })
  ctx.on('fs/observed', (target: ForeignTarget, observation: { version?: unknown } | undefined, actor: ForeignExecution | undefined) => {
    if (actor?.agent?.session !== undefined) heard(target, observation?.version, actor.agent.session, actor)
  })
  return {
    remember: (session, path, target, writer) => {
      // What a subagent writes over is what the subagent saw.
      if (writer !== session) note(entryOf(session, path, target).found, turnOf(session), undefined)
      else entryOf(session, path, target)
    },
    announce: async (session, path, startSeq, now) => {
      const known = of(session).get(path)
      if (known === undefined) return
      const isWithdrawn = ({ turn }: { turn: Seq }): boolean => turn >= startSeq
      const lastShown = known.shown.findLast(entry => !isWithdrawn(entry))?.version
      const isAsShown = lastShown !== undefined && known.found.find(isWithdrawn)?.version === lastShown
      known.shown = known.shown.filter(entry => !isWithdrawn(entry))
      known.found = known.found.filter(entry => !isWithdrawn(entry))
      const actor = { agent: { session } }
      if (now === 'absent') {
        ctx.emit('fs/observed', known.target, { kind: 'absent' }, actor)
        return
      }
      // What the turns found there was shown in them alone: the model has to read it again.
      if (!isAsShown) return
      const fs = ctx.get('fs') as { stat?: (target: ForeignTarget) => Promise<{ version?: unknown } | undefined> } | undefined
      const version = (await fs?.stat?.(known.target))?.version
      if (version !== undefined) ctx.emit('fs/observed', known.target, { kind: 'present', version }, actor)
    },
  }
}
