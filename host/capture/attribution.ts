import type { TurnRef } from '../../src/checkpoint/journal-entry.ts'
import { readEvents } from '../dsh/session-log.ts'
import type { ForeignSession, ForeignSessions } from '../dsh/host-types.ts'

/** The root session and turn that a call's changes are booked on. */
export interface Booking {
  readonly root: ForeignSession
  readonly turn: TurnRef
}

/**
 * A subagent's call belongs to the person's session that started it, to the turn open there now; with
 * none open, to the last one, marked late. Undefined when no live root session or no turn is found.
 */
export function bookOn(sessions: ForeignSessions, session: ForeignSession): Booking | undefined {
  const root = rootOf(sessions, session)
  if (root === undefined) return undefined
  const events = readEvents(root)
  const start = events.findLast(event => event.type === 'turn/start')
  if (start === undefined) return undefined
  const isOver = events.findLast(event => event.type === 'turn/end')?.seq ?? -1
  const number = Number((start.data as { turn?: unknown }).turn)
  return { root, turn: { startSeq: start.seq, number, ...(isOver > start.seq ? { late: true as const } : {}) } }
}

/** Walks `parentSession` up from a subagent; a fork has a parent too, but is a root of its own. */
export function rootOf(sessions: ForeignSessions, session: ForeignSession): ForeignSession | undefined {
  const seen = new Set<string>()
  let current: ForeignSession | undefined = session
  while (current?.header.origin === 'subagent') {
    if (seen.has(current.id) || current.header.parentSession === undefined) return undefined
    seen.add(current.id)
    current = sessions.get(current.header.parentSession)
  }
  return current
}
