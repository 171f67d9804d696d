/**
 * Contract: a stored session is live only once something asks for its agent. DSH host/apiproxy.
 * The page draws a stored session from its history first and has it resumed right after, so that the page's first
 * questions about it may come too early by a moment; on a busy machine that is a second.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionId } from '../../src/ids.ts'
import type { ForeignAgents, ForeignSessions } from './host-types.ts'

const LOOK_MS = 50
const LOOKS = 60

/** Resolves with `id` when the session is live, or after three seconds in any case. */
export async function untilLive(sessions: ForeignSessions, agents: ForeignAgents, id: SessionId): Promise<SessionId> {
  for (let look = 0; look < LOOKS; look++) {
    if (sessions.get(id) !== undefined || agents.get(id) !== undefined) break
    await sleep(LOOK_MS)
  }
  return id
}
