import { unknown } from '../../src/checkpoint/file-state.ts'
import type { CallRef, JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { toolKind } from '../../src/checkpoint/tool-table.ts'
import { sessionId } from '../../src/ids.ts'
import { watchKey } from '../../src/ledger/ledger.ts'
import type { Health } from '../dsh/health.ts'
import type { ForeignExecution, ForeignSession, ForeignSessions, ForeignTarget } from '../dsh/host-types.ts'
import type { Observations } from '../dsh/observations.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import { bookOn, type Booking } from './attribution.ts'
import type { Brackets } from './brackets.ts'
import { absentFoldersOf, observePath, type Observation } from './observe.ts'

export interface CaptureDeps {
  readonly sessions: ForeignSessions
  readonly health: Health
  readonly observations: Observations
  readonly maxFileBytes: number
  /** Absolute; nothing under it is ever captured. */
  readonly dshHome: string
  readonly brackets: Brackets
  /** When a file tool last wrote a path, Unix ms; brackets leave those paths to their own records. */
  readonly toolWrites: Map<string, number>
  journalOf(root: ForeignSession): SessionJournal
  now(): number
}

/** Looks at each path a call writes, before and after. Every member may be called for any call and never throws on the host's behalf. */
export interface Capture {
  /** Before the body of any call; resolves when a command may start. */
  atStart(exec: ForeignExecution): Promise<void>
  /** Resolves when the state found is durable, so that the write may go on. */
  beforeWrite(exec: ForeignExecution, path: string, target: ForeignTarget): Promise<void>
  /** `wentOn`: a command that goes on in the background. */
  afterCall(exec: ForeignExecution, wentOn: boolean): Promise<void>
  /** For calls that never reached `tools/execute`: proof that nothing was missed. */
  afterResult(exec: ForeignExecution): Promise<void>
  /** Closes what calls of this session left open; a subagent may be in the middle of one when its parent's turn ends. */
  afterTurn(session: ForeignSession): Promise<void>
  /** Resolves when everything asked for so far is on disk. */
  settled(): Promise<void>
}

interface OpenLook {
  readonly id: string
  readonly path: string
  readonly booking: Booking
  /** Whose call it is. */
  readonly session: ForeignSession
  /** The first look, while it is not stored. */
  unsaved?: { readonly entry: JournalEntry; readonly found: Observation }
}

/** What was seen is in the session's journal; in memory there are only calls that are under way. */
export function makeCapture(deps: CaptureDeps): Capture {
  /** Looks waiting for their `after`, by call. */
  const open = new Map<string, OpenLook[]>()
  /** Calls that went through `tools/execute`. */
  const executed = new Set<string>()
  const running = new Set<Promise<unknown>>()
  /** Sessions with records that may not be synced yet. */
  const late = new Set<ForeignSession>()
  /** Sessions with a subagent whose write could not be stored; their own log tells nothing of it. */
  const missed = new WeakSet<ForeignSession>()
  let serial = 0

  /** `later`: the look after a call need not wait for the disk; the store syncs it with what follows, and `flush` at the latest. */
  const append = async (booking: Booking, entries: readonly JournalEntry[], looks: readonly Observation[] = [], sync: 'now' | 'later' = 'now'): Promise<boolean> => {
    const blobs = looks.flatMap(({ state, bytes }) => (state.kind === 'file' && bytes !== undefined ? [{ digest: state.digest, bytes }] : []))
    const stored = await deps.journalOf(booking.root).append({ entries, blobs, sync })
    if (sync === 'later') late.add(booking.root)
    // A call without a record is found out from the session log later (src/checkpoint/coverage.ts); here it is only told.
    if (stored.ok) deps.health.clear('store')
    else deps.health.report('store', stored.failure.facts.detail ?? stored.failure.code)
    return stored.ok
  }

  const flush = async (): Promise<void> => {
    const roots = [...late]
    late.clear()
    for (const root of roots) {
      const flushed = await deps.journalOf(root).flush()
      if (!flushed.ok) deps.health.report('store', flushed.failure.facts.detail ?? flushed.failure.code)
    }
  }

  const track = <T>(work: Promise<T>): Promise<T> => {
    running.add(work)
    void work.finally(() => running.delete(work)).catch(() => {
      // The caller has the same promise and contains it; this branch only keeps the set small.
    })
    return work
  }

  const beforeWrite = async (exec: ForeignExecution, path: string, target: ForeignTarget): Promise<void> => {
    const key = keyOf(exec)
    const booking = bookingOf(exec)
    if (key === undefined || booking === undefined) return
    const looks = open.get(key) ?? []
    // One call may ask twice for a path; its first look is the one that counts.
    if (looks.some(look => look.path === path)) return
    const look: OpenLook = { id: `${deps.now().toString(36)}-${(serial++).toString(36)}`, path, booking, session: exec.agent!.session }
    open.set(key, [...looks, look])
    deps.observations.remember(booking.root, path, target, exec.agent!.session)
    const found = await lookAt(path)
    const absentFolders = found.state.kind === 'absent' ? await absentFoldersOf(path) : []
    const entry: JournalEntry = {
      kind: 'before', id: look.id, turn: booking.turn, call: callRef(exec), origin: 'tool',
      path, state: found.state, absentFolders, atMs: deps.now(),
    }
    if (!await append(booking, [entry], [found])) look.unsaved = { entry, found }
  }

  const close = async (looks: readonly OpenLook[]): Promise<void> => {
    for (const { id, path, booking, session, unsaved } of looks) {
      deps.toolWrites.set(path, deps.now())
      const found = await lookAt(path)
      const after: JournalEntry = { kind: 'after', of: id, state: found.state, atMs: deps.now() }
      // The disk may have been full for a moment only.
      const isStored = unsaved === undefined
        ? await append(booking, [after], [found], 'later')
        : await append(booking, [unsaved.entry, after], [unsaved.found, found])
      if (!isStored && unsaved !== undefined && session !== booking.root) missed.add(booking.root)
    }
  }

  const afterCall = async (exec: ForeignExecution, wentOn: boolean): Promise<void> => {
    const key = keyOf(exec)
    if (key === undefined) return
    const looks = open.get(key) ?? []
    open.delete(key)
    if (looks.length > 0) await close(looks)
    else if (!await closeBracket(exec, wentOn)) await markSeen(exec)
  }

  /** A bracket that fails leaves the command as one that was not looked at: named, never taken for covered. */
  const closeBracket = async (exec: ForeignExecution, wentOn: boolean): Promise<boolean> => {
    try {
      return await deps.brackets.close(exec, wentOn)
    } catch (error) {
      deps.health.report('bracket', error)
      return false
    }
  }

  /** The file tools, the containers and the commands leave a record even where they wrote nothing. */
  const markSeen = async (exec: ForeignExecution): Promise<void> => {
    const args = exec.arguments as Record<string, unknown> | undefined
    const booking = bookingOf(exec)
    const kind = toolKind(exec.name, args)
    if (booking === undefined || kind === 'reader') return
    // Left without a record, the call is a gap in the person's session.
    if (kind === 'container' && exec.agent?.session === booking.root && missed.delete(booking.root)) return
    await append(booking, [{ kind: 'seen', turn: booking.turn, call: callRef(exec), atMs: deps.now() }])
  }

  const lookAt = async (path: string): Promise<Observation> => {
    if (path === deps.dshHome || path.startsWith(`${deps.dshHome}/`)) return { state: unknown('dsh-home') }
    try {
      return await observePath(path, { maxBytes: deps.maxFileBytes })
    } catch (error) {
      // Unexpected by `observePath`'s own account; the record then says that the state is not known.
      deps.health.report('capture', error)
      return { state: unknown('capture-failed') }
    }
  }

  const bookingOf = (exec: ForeignExecution): Booking | undefined => (exec.agent === undefined ? undefined : bookOn(deps.sessions, exec.agent.session))

  return {
    atStart: async (exec) => {
      const key = keyOf(exec)
      if (key !== undefined) executed.add(key)
      await track(deps.brackets.open(exec))
    },
    beforeWrite: (exec, path, target) => track(beforeWrite(exec, path, target)),
    afterCall: (exec, wentOn) => track(afterCall(exec, wentOn)),
    afterResult: async (exec) => {
      const key = keyOf(exec)
      if (key === undefined || executed.delete(key)) return
      await track(markSeen(exec))
    },
    afterTurn: async (session) => {
      for (const [key, looks] of [...open]) {
        if (looks.every(look => look.session !== session)) continue
        open.delete(key)
        await track(close(looks))
      }
      await track(flush())
    },
    settled: async () => {
      await Promise.allSettled([...running])
      await flush()
    },
  }
}

const keyOf = (exec: ForeignExecution): string | undefined => (exec.agent === undefined ? undefined : watchKey(exec.agent.id, exec.callId))

const callRef = (exec: ForeignExecution): CallRef => ({ callId: exec.callId, tool: exec.name, sessionId: sessionId(exec.agent!.id) })

