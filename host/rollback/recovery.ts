import { existsSync, readdirSync } from 'node:fs'
import type { OpBeginEntry } from '../../src/checkpoint/journal-entry.ts'
import type { OpId, SessionId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import type { LogEvent } from '../../src/turn/log-event.ts'
import { settleFiles } from '../restore/take-back.ts'
import { watchAgents } from '../dsh/agent-events.ts'
import { inMaintenance } from '../dsh/agents.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import { flush, idOf, readEvents } from '../dsh/session-log.ts'
import { whenSessionsAreStored, type StoredSessions } from '../dsh/stored-sessions.ts'
import type { RollbackDeps } from './deps.ts'
import { end, restoreDeps, takeBack } from './op-end.ts'
import { readRecords } from './records.ts'
import type { OpSite } from './rescue.ts'

/**
 * Ends the ops of a session that a dead process left open. With the marker in the durable log the op is
 * committed and only noted down; without it the files go back to what they were before the op. An undo and a
 * rollback of files alone are committed by `op-applied`. Doing it twice is doing it once.
 * `events` is the durable log. Never throws; what went wrong is in the health report and tried again at the next start.
 */
async function recoverSession(deps: RollbackDeps, session: ForeignSession, events: readonly LogEvent[]): Promise<void> {
  const lock = await deps.store.lock(idOf(session))
  // Held by a live host on the same home: the op is not dead but under way there.
  if (!lock.ok) return
  try {
    const records = await readRecords(deps, session)
    if (!records.ok) {
      deps.health.report('recovery', records.failure.facts.detail ?? records.failure.code)
      return
    }
    await endOpenOps({ deps, session, records: records.value }, events)
    await clearFlags(deps, idOf(session), records.value.ledger.open)
  } catch (error) {
    deps.health.report('recovery', error)
  } finally {
    await lock.value()
  }
}

async function endOpenOps(site: OpSite, events: readonly LogEvent[]): Promise<void> {
  const { deps, records } = site
  for (const begin of records.ledger.open) {
    const marker = begin.markerId === undefined ? undefined : events.find(event => messageId(event) === begin.markerId)
    const applied = records.entries.find(entry => entry.kind === 'op-applied' && entry.op === begin.op)
    const isCommitted = begin.markerId === undefined ? applied !== undefined : marker !== undefined
    if (!isCommitted) {
      await takeBack(site, begin, applied?.kind === 'op-applied' ? applied.removedFolders : undefined)
      continue
    }
    const outcomes = [...await settleFiles(begin, restoreDeps(site)), ...begin.decided]
    await end(site, {
      kind: 'op-done', op: begin.op, outcomes, recovered: true, ...(marker === undefined ? {} : { markerSeq: marker.seq }), atMs: deps.now(),
    })
  }
}

/**
 * Ends what a start could not end or an op of this run could not note, before the next op of a session begins: an op
 * still open would be taken back at some later start, over what was done since. With the lock held and in maintenance.
 */
export async function settleOpenOps(deps: RollbackDeps, session: ForeignSession): Promise<Result<undefined, Failure>> {
  const records = await readRecords(deps, session)
  if (!records.ok) return records
  if (records.value.ledger.open.length === 0) return ok(undefined)
  try {
    // Only a marker on disk makes an op true; this one may stand in memory alone.
    await flush(deps.sessions, session)
  } catch (error) {
    return fail(failure('store-unavailable', { detail: error instanceof Error ? error.message : String(error) }))
  }
  await endOpenOps({ deps, session, records: records.value }, readEvents(session))
  const after = await readRecords(deps, session)
  if (!after.ok) return after
  return after.value.ledger.open.length === 0 ? ok(undefined) : fail(failure('store-unavailable', { detail: 'an earlier rollback could not be ended' }))
}

/** A flag whose op never came to exist, because the process died in between. */
async function clearFlags(deps: RollbackDeps, session: SessionId, ended: readonly OpBeginEntry[]): Promise<void> {
  const known = new Set<OpId>(ended.map(begin => begin.op))
  for (const flag of await deps.store.openOps()) {
    if (flag.session === session && !known.has(flag.op)) await deps.store.clearOpenOp(session, flag.op)
  }
}

const messageId = (event: LogEvent): unknown => (event.type === 'user/message' ? (event.data as { id?: unknown } | null)?.id : undefined)

/**
 * Looks for open ops at the start, and again whenever an agent appears: cold sessions are recovered from
 * their stored log at once, live ones in maintenance, which makes their prompts wait.
 */
export function watchRecovery(deps: RollbackDeps): void {
  const { ctx, health, store } = deps
  const underWay = new Map<string, Promise<void>>()
  const recover = (session: ForeignSession, events: readonly LogEvent[]): Promise<void> => {
    const work = (underWay.get(session.id) ?? Promise.resolve()).then(() => recoverSession(deps, session, events))
    underWay.set(session.id, work)
    return work.finally(() => underWay.delete(session.id))
  }

  watchAgents(ctx, health, 'recovery', {
    appeared: (agent) => {
      // The folder is empty but for a crash, so that an agent is not held up for nothing.
      if (!hasOpenOps(store.layout.ops)) return
      queueMicrotask(health.contain('recovery', () => inMaintenance(agent, () => recover(agent.session, readEvents(agent.session)))))
    },
    beforeStep: agent => underWay.get(agent?.session?.id),
  })
  whenSessionsAreStored(ctx, health, 'recovery', stored => recoverCold(deps, stored, recover))
}

async function recoverCold(
  deps: RollbackDeps, { inspect, report }: StoredSessions, recover: (session: ForeignSession, events: readonly LogEvent[]) => Promise<void>,
): Promise<void> {
  const ids = new Set((await deps.store.openOps()).map(flag => flag.session))
  for (const id of ids) {
    // A live session is recovered when its agent appears, from the log that the host itself repaired.
    if (deps.sessions.get(id) !== undefined || inspect === undefined) continue
    try {
      const { meta, events } = await inspect(id)
      await recover(coldSession(id, meta), events)
    } catch (error) {
      // A log that is gone or does not read is that session's trouble; the others have theirs to be put in order.
      report(error)
    }
  }
}

/** Enough of a session for recovery, which reads records and never appends to the log. */
const coldSession = (id: string, header: ForeignSession['header']): ForeignSession => ({
  id, header, surface: { nodes: [] },
  append: () => { throw new Error(`recovery: the stored session ${id} is read only`) },
})

/** The op folder, looked at synchronously because a prompt must not slip in meanwhile. */
function hasOpenOps(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0
}
