import { unknown } from '../../src/checkpoint/file-state.ts'
import type { BeforeEntry, CallRef, JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { toolKind } from '../../src/checkpoint/tool-table.ts'
import { sessionId } from '../../src/ids.ts'
import { watchKey } from '../../src/ledger/ledger.ts'
import type { Health } from '../dsh/health.ts'
import type { ForeignExecution, ForeignSession, ForeignSessions, ForeignTarget } from '../dsh/host-types.ts'
import type { Writer } from '../dsh/jobs.ts'
import type { Observations } from '../dsh/observations.ts'
import { readEvents } from '../dsh/session-log.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import { bookOn, lastStart, noteTurn, rootOf, type Booking } from './attribution.ts'
import { StoreFailed } from './blob-batch.ts'
import type { Brackets } from './brackets.ts'
import { fingerprintOf, sameFingerprint, type Fingerprint } from './fingerprint.ts'
import { makeFileLook } from './file-look.ts'
import { absentFoldersOf, type Observation } from './observe.ts'
import { isUnread } from './look.ts'
import type { KnownWrites } from './known-writes.ts'
import { makeWatchList } from './watch-list.ts'

/** How long a turn's first step waits at most for the look at what happened since the turn before. */
const STEP_WAITS_MS = 200
/** How long a call waits at most for another agent's call that is writing the same path. */
const RIVAL_MS = 2_000
/** How long such a look may take when nobody waits for it, and when a preview does. */
const WATCH_MS = 2_000

export interface CaptureDeps {
  readonly sessions: ForeignSessions
  readonly health: Health
  readonly observations: Observations
  readonly maxFileBytes: number
  /** Absolute; nothing under it is ever captured. */
  readonly dshHome: string
  readonly brackets: Brackets
  readonly writes: KnownWrites
  journalOf(root: ForeignSession): SessionJournal
  now(): number
}

/** Looks at each path a call writes, before and after. Every member may be called for any call and never throws on the host's behalf. */
export interface Capture {
  /** Before the body of any call; resolves when a command may start. */
  atStart(exec: ForeignExecution): Promise<void>
  /** Resolves when the state found is durable, so that the write may go on. */
  beforeWrite(exec: ForeignExecution, path: string, target: ForeignTarget): Promise<void>
  /** `writer`: what the call left running. */
  afterCall(exec: ForeignExecution, writer: Writer | undefined): Promise<void>
  /** For calls that never reached `tools/execute`: proof that nothing was missed. `isRefused`: the host says so itself. */
  afterResult(exec: ForeignExecution, isRefused: boolean): Promise<void>
  /** Before every step; the first of a turn has a look at what happened since the turn before, within a short time. */
  beforeStep(session: ForeignSession): Promise<void>
  /** Closes what calls of this session left open; a subagent may be in the middle of one when its parent's turn ends. */
  afterTurn(session: ForeignSession): Promise<void>
  /** Resolves when everything asked for so far is on disk, and when this session's paths were looked at once more. */
  settled(session?: ForeignSession): Promise<void>
  /** Before the store is closed: ends what nobody waits for, and waits for the rest. */
  dispose(): Promise<void>
}

interface OpenLook {
  readonly id: string
  readonly path: string
  readonly booking: Booking
  /** Whose call it is. */
  readonly session: ForeignSession
  /** Settles when the second look is noted. */
  readonly closed: Promise<void>
  readonly close: () => void
  /** The first look, while it is not stored. */
  unsaved?: { readonly entry: BeforeEntry; readonly found: Observation }
  /** What stat told of a path whose bytes cannot be had. */
  unread?: Fingerprint
}

/** What was seen is in the session's journal; in memory there are only calls that are under way. */
export function makeCapture(deps: CaptureDeps): Capture {
  /** Looks waiting for their `after`, by call. */
  const open = new Map<string, OpenLook[]>()
  /** Calls that went through `tools/execute`. */
  const executed = new Set<string>()
  /** Calls whose second look is being taken. */
  const closing = new Set<string>()
  const running = new Set<Promise<unknown>>()
  /** Sessions with records that may not be synced yet. */
  const late = new Set<ForeignSession>()
  /** Sessions with a subagent whose write could not be stored; their own log tells nothing of it. */
  const missed = new WeakSet<ForeignSession>()
  /** Calls that may write, by root session; what is seen beside one is nobody's until it is over. */
  const activity = new WeakMap<ForeignSession, number>()
  /** The turn whose first step was seen, by its seq. */
  const begun = new WeakMap<ForeignSession, number>()
  const fileLook = makeFileLook(deps.maxFileBytes)
  let serial = 0
  const watch = makeWatchList({
    health: deps.health, maxFileBytes: deps.maxFileBytes, dshHome: deps.dshHome, now: deps.now, journalOf: deps.journalOf,
    isShared: deps.brackets.isShared,
    activity: root => ([...open.values()].flat().some(({ booking }) => booking.root === root) || deps.brackets.isOpen(root)
      ? Infinity : activity.get(root) ?? 0),
  })
  const moved = ({ root }: Booking): void => { activity.set(root, (activity.get(root) ?? 0) + 1) }

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
    // Two agents at one path: what the later one finds is what the earlier one leaves, and not a state from before both.
    const rivals = [...open.values()].flat().filter(other => other.path === path && other.session !== exec.agent!.session)
    let close = (): void => {}
    const closed = new Promise<void>((resolve) => { close = resolve })
    const look: OpenLook = { id: `${deps.now().toString(36)}-${(serial++).toString(36)}`, path, booking, session: exec.agent!.session, closed, close }
    open.set(key, [...looks, look])
    moved(booking)
    deps.writes.begin(path)
    deps.observations.remember(booking.root, path, target, exec.agent!.session)
    if (rivals.length > 0) await atMost(RIVAL_MS, Promise.all(rivals.map(rival => rival.closed)))
    const found = await lookAt(path)
    const absentFolders = found.state.kind === 'absent' ? await absentFoldersOf(path) : []
    const entry: BeforeEntry = {
      kind: 'before', id: look.id, turn: booking.turn, call: callRef(exec), origin: 'tool',
      path, state: found.state, absentFolders, atMs: deps.now(),
    }
    const unread = isUnread(found.state) ? await fingerprintOf(path).catch(() => undefined) : undefined
    // There are no bytes to save, and most of these writes are refused: the look after the call tells.
    if (unread !== undefined) Object.assign(look, { unread, unsaved: { entry, found } })
    else if (!await append(booking, [entry], [found])) look.unsaved = { entry, found }
  }

  const close = async (looks: readonly OpenLook[]): Promise<void> => {
    for (const { id, path, booking, session, unread, unsaved } of looks) {
      moved(booking)
      const found = await lookAt(path)
      const now = unread === undefined ? undefined : await fingerprintOf(path).catch(() => undefined)
      const isUntouched = unread !== undefined && now !== undefined && sameFingerprint(unread, now)
      deps.writes.end(path)
      const atMs = deps.now()
      const after: JournalEntry = { kind: 'after', of: id, state: found.state, atMs }
      if (unsaved === undefined) {
        // The call need not wait: what comes next of this session is stored behind it.
        void track(append(booking, [after], [found], 'later'))
        continue
      }
      const isStored = isUntouched
        ? await append(booking, [{ kind: 'seen', turn: booking.turn, call: unsaved.entry.call, atMs }])
        // The disk may have been full for a moment only.
        : await append(booking, [unsaved.entry, after], [unsaved.found, found])
      if (!isStored && session !== booking.root) missed.add(booking.root)
    }
  }

  const afterCall = async (exec: ForeignExecution, writer: Writer | undefined): Promise<void> => {
    const key = keyOf(exec)
    if (key === undefined) return
    const looks = open.get(key) ?? []
    const isCovered = await closeBracket(exec, writer)
    if (looks.length > 0) await closeAll(key)
    else if (!isCovered) await markSeen(exec)
  }

  /** A look stays in `open` until its second half is noted, so that nobody takes the path's state for somebody else's. */
  const closeAll = async (key: string): Promise<void> => {
    const looks = open.get(key) ?? []
    closing.add(key)
    try {
      if (looks.length > 0) await close(looks)
    } finally {
      open.delete(key)
      closing.delete(key)
      for (const look of looks) look.close()
    }
  }

  /** A bracket that fails leaves the command as one that was not looked at: named, never taken for covered. */
  const closeBracket = async (exec: ForeignExecution, writer: Writer | undefined): Promise<boolean> => {
    try {
      return await deps.brackets.close(exec, writer)
    } catch (error) {
      // A full disk is one problem, whichever look meets it first.
      if (error instanceof StoreFailed) deps.health.report('store', error.message)
      else deps.health.report('bracket', error)
      return false
    }
  }

  /** The file tools, the containers and the commands leave a record even where they wrote nothing. */
  const markSeen = async (exec: ForeignExecution, isRefused = false): Promise<void> => {
    const args = exec.arguments as Record<string, unknown> | undefined
    const booking = bookingOf(exec)
    const kind = toolKind(exec.name, args)
    if (booking === undefined || kind === 'reader') return
    // Left without a record, the call is a gap in the person's session.
    if (kind === 'container' && exec.agent?.session === booking.root && missed.delete(booking.root)) return
    await append(booking, [{ kind: 'seen', turn: booking.turn, call: callRef(exec), ...(isRefused ? { ran: false as const } : {}), atMs: deps.now() }])
  }

  const lookAt = async (path: string): Promise<Observation> => {
    if (path === deps.dshHome || path.startsWith(`${deps.dshHome}/`)) return { state: unknown('dsh-home') }
    try {
      return await fileLook(path)
    } catch (error) {
      // Unexpected by `observePath`'s own account; the record then says that the state is not known.
      deps.health.report('capture', error)
      return { state: unknown('capture-failed') }
    }
  }

  /** First what was left running: while something is, a change in the workspace may be its own, and is shared with it. */
  const lookAround = async (root: ForeignSession): Promise<void> => {
    await deps.brackets.settle(root)
    await watch.check(root, WATCH_MS)
  }

  const bookingOf = (exec: ForeignExecution): Booking | undefined => (exec.agent === undefined ? undefined : bookOn(deps.sessions, exec.agent.session))

  return {
    atStart: async (exec) => {
      const key = keyOf(exec)
      if (key !== undefined) executed.add(key)
      const booking = bookingOf(exec)
      if (booking !== undefined && toolKind(exec.name, exec.arguments as Record<string, unknown> | undefined) === 'command') moved(booking)
      await track(deps.brackets.open(exec))
    },
    beforeWrite: (exec, path, target) => track(beforeWrite(exec, path, target)),
    afterCall: (exec, writer) => track(afterCall(exec, writer)),
    afterResult: async (exec, isRefused) => {
      const key = keyOf(exec)
      if (key === undefined || executed.delete(key)) return
      await track(markSeen(exec, isRefused))
    },
    beforeStep: async (session) => {
      const start = lastStart(readEvents(session))?.seq
      if (start === undefined || begun.get(session) === start) return
      begun.set(session, start)
      noteTurn(deps.sessions, session)
      // A step is late by this much at most; the look goes on without it, and gives way to calls that write.
      if (rootOf(deps.sessions, session) === session) await atMost(STEP_WAITS_MS, track(lookAround(session)))
    },
    afterTurn: async (session) => {
      for (const [key, looks] of [...open]) {
        if (closing.has(key) || looks.every(look => look.session !== session)) continue
        await track(closeAll(key))
      }
      await track(flush())
      if (rootOf(deps.sessions, session) === session) await track(lookAround(session))
    },
    settled: async (session) => {
      await Promise.allSettled([...running])
      await (session === undefined ? deps.brackets.settle() : lookAround(session))
      await flush()
    },
    dispose: async () => {
      watch.stop()
      await Promise.allSettled([...running])
      await flush()
    },
  }
}

/** Resolves when `work` does, or after `ms`; how it ends is told to whoever has it. */
function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void work.catch(() => {}).finally(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

const keyOf = (exec: ForeignExecution): string | undefined => (exec.agent === undefined ? undefined : watchKey(exec.agent.id, exec.callId))

const callRef = (exec: ForeignExecution): CallRef => ({ callId: exec.callId, tool: exec.name, sessionId: sessionId(exec.agent!.id) })

