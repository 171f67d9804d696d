import type { TurnRef } from '../../src/checkpoint/journal-entry.ts'
import type { Seq } from '../../src/ids.ts'
import type { LogEvent } from '../../src/turn/log-event.ts'
import { readEvents } from '../dsh/session-log.ts'
import type { ForeignSession, ForeignSessions } from '../dsh/host-types.ts'

/** The root session and turn that a call's changes are booked on. */
export interface Booking {
  readonly root: ForeignSession
  readonly turn: TurnRef
}

/** What was open in the root session when a subagent's turn began. */
const noted = new WeakMap<ForeignSession, { readonly childStart: Seq; readonly turn: TurnRef }>()

/**
 * A subagent's call belongs to the person's session that started it, to the turn that was open there when the
 * subagent's own turn began, even where it has ended since; with none open, to the last one, marked late.
 * Undefined when no live root session or no turn is found.
 */
export function bookOn(sessions: ForeignSessions, session: ForeignSession): Booking | undefined {
  const root = rootOf(sessions, session)
  if (root === undefined) return undefined
  const events = readEvents(root)
  const own = root === session ? undefined : lastStart(readEvents(session))
  const known = noted.get(session)
  const turn = own === undefined ? openTurn(events) : known?.childStart === own.seq ? known.turn : openTurn(events, own.time)
  return turn === undefined ? undefined : { root, turn }
}

/** To be called when a session's turn has begun, before any call of it: from then on the root may go ahead. */
export function noteTurn(sessions: ForeignSessions, session: ForeignSession): void {
  const root = rootOf(sessions, session)
  if (root === undefined || root === session) return
  const own = lastStart(readEvents(session))
  const turn = openTurn(readEvents(root))
  if (own !== undefined && turn !== undefined && noted.get(session)?.childStart !== own.seq) noted.set(session, { childStart: own.seq, turn })
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

export const lastStart = (events: readonly LogEvent[]): LogEvent | undefined => events.findLast(event => event.type === 'turn/start')

/**
 * The turn open now, or at `atMs` by the host's clock; `late` when the newest one had ended. For a moment before any turn,
 * which a clock set back makes possible, the newest.
 */
function openTurn(events: readonly LogEvent[], atMs = Infinity): TurnRef | undefined {
  const start = events.findLast(event => event.type === 'turn/start' && event.time <= atMs) ?? lastStart(events)
  if (start === undefined) return undefined
  const isOver = events.some(event => event.seq > start.seq && event.type === 'turn/end' && event.time <= atMs)
  return { startSeq: start.seq, number: Number((start.data as { turn?: unknown }).turn), ...(isOver ? { late: true as const } : {}) }
}
