import { setImmediate } from 'node:timers/promises'
import { sameState, unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import type { JournalEntry, OpBeginEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Digest, OpId } from '../../src/ids.ts'
import { foldLedger } from '../../src/ledger/ledger.ts'
import type { Health } from '../dsh/health.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import { parentsAreReal } from '../restore/safe-path.ts'
import { errnoOf } from '../restore/file-system.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import { fingerprintOf, makeStateCache } from './fingerprint.ts'
import { observePath } from './observe.ts'

/** Paths of one check; the next goes on where it stopped. */
const MAX_PATHS = 20_000
/** Bytes read in one check, about. */
const MAX_READ_BYTES = 64 * 1024 * 1024
const LOOKS_IN_FLIGHT = 32

export interface WatchDeps {
  readonly health: Health
  readonly maxFileBytes: number
  /** Absolute; nothing under it is looked at. */
  readonly dshHome: string
  journalOf(root: ForeignSession): SessionJournal
  /** Moves with every call of the session or of its subagents that may write; Infinity while one is under way. */
  activity(root: ForeignSession): number
  /** Left out: somebody else's look tells of it. */
  isShared(root: ForeignSession, path: string): boolean
  now(): number
}

/**
 * Looks at the paths that a session is known to have changed, for states that none of its calls left: a person's own
 * edit, another session, a program that was left behind. Their bytes go into the store with an `outside` entry, so that
 * they can be had again whatever the session does to the path next. Nothing here is ever booked on a turn.
 */
export interface WatchList {
  /** Ends after about `maxMs`, at the latest; what was not looked at then comes first the next time. Reads no folder. */
  check(root: ForeignSession, maxMs: number): Promise<void>
  /** Ends the checks under way at the next path, and every later one at once. */
  stop(): void
}

/** What the journal says of one session's paths, as far as `position`. */
interface Watched {
  position: number
  readonly states: Map<string, FileState>
  readonly befores: Map<string, { readonly path: string; readonly state: FileState }>
  readonly ops: Map<OpId, OpBeginEntry>
  /** How many paths the last checks have got through. */
  cursor: number
  tail: Promise<unknown>
}

export function makeWatchList(deps: WatchDeps): WatchList {
  const sessions = new WeakMap<ForeignSession, Watched>()
  /** Shared: it holds fingerprints with digests, and no bytes. */
  const cache = makeStateCache({ maxPaths: MAX_PATHS * 5 })
  let isStopped = false

  const check = async (root: ForeignSession, watched: Watched, maxMs: number): Promise<void> => {
    const untilMs = performance.now() + maxMs
    const activity = deps.activity(root)
    // Its own look sees what a call does; a path in the middle of one is in a state of nobody's yet.
    if (isStopped || activity === Infinity || !await catchUp(deps.journalOf(root), watched)) return
    const all = [...watched.states.keys()].filter(path => !path.startsWith(`${deps.dshHome}/`))
    const from = watched.cursor < all.length ? watched.cursor : 0
    const paths = [...all.slice(from), ...all.slice(0, from)].slice(0, MAX_PATHS)
    let bytesRead = 0
    for (let at = 0; at < paths.length; at += LOOKS_IN_FLIGHT) {
      watched.cursor = (from + at) % all.length
      if (performance.now() >= untilMs || bytesRead >= MAX_READ_BYTES) return
      const some = paths.slice(at, at + LOOKS_IN_FLIGHT)
      const states = await Promise.all(some.map(knownNow))
      for (const [index, path] of some.entries()) {
        const state = states[index] ?? await readNow(path, (bytes) => { bytesRead += bytes })
        if (!differs(watched.states.get(path)!, state) || deps.isShared(root, path)) continue
        if (isStopped || deps.activity(root) !== activity || !await note(root, watched, path)) return
      }
      await setImmediate()
    }
    watched.cursor = all.length === 0 ? 0 : (from + paths.length) % all.length
  }

  /** Without reading: undefined for what has to be read. */
  const knownNow = async (path: string): Promise<FileState | undefined> => {
    const print = await fingerprintOf(path).catch(() => undefined)
    return print === undefined ? undefined : cache.known(path, print)
  }

  const readNow = (path: string, onRead: (bytes: number) => void): Promise<FileState> =>
    cache.stateOf(path, { maxBytes: deps.maxFileBytes, keep: (_digest: Digest, bytes) => { onRead(bytes.length) } })

  /** False when it could not be stored. Read again for its bytes, which are kept for no other path. */
  const note = async (root: ForeignSession, watched: Watched, path: string): Promise<boolean> => {
    const activity = deps.activity(root)
    const { state, bytes } = await isReachable(path) ? await observePath(path, { maxBytes: deps.maxFileBytes }) : { state: unknown('behind-link') }
    if (isStopped || !differs(watched.states.get(path)!, state) || deps.activity(root) !== activity) return true
    const blobs = state.kind === 'file' && bytes !== undefined ? [{ digest: state.digest, bytes }] : []
    const stored = await deps.journalOf(root).append({ entries: [{ kind: 'outside', path, state, atMs: deps.now() }], blobs, sync: 'later' })
    if (!stored.ok) {
      deps.health.report('store', stored.failure.facts.detail ?? stored.failure.code)
      return false
    }
    watched.states.set(path, state)
    return true
  }

  return {
    stop: () => { isStopped = true },
    check: (root, maxMs) => {
      const watched = sessions.get(root) ?? { position: 0, states: new Map(), befores: new Map(), ops: new Map(), cursor: 0, tail: Promise.resolve() }
      sessions.set(root, watched)
      const mine = watched.tail.then(() => check(root, watched, maxMs))
      watched.tail = mine.catch(() => {
        // Whoever asked has the same promise; the next check does not depend on how this one ended.
      })
      return mine
    },
  }
}

/** Takes in what the journal has got since; false when it cannot be read. */
async function catchUp(journal: SessionJournal, watched: Watched): Promise<boolean> {
  const read = await journal.read()
  if (!read.ok) return false
  const { entries, position } = read.value
  // Another process, or a part that was lost, has moved the positions.
  if (position < watched.position) Object.assign(watched, { position: 0, states: new Map(), befores: new Map(), ops: new Map() })
  const from = entries.findLastIndex(entry => entry.position <= watched.position) + 1
  let hasOp = false
  for (const { entry } of entries.slice(from)) {
    takeIn(watched, entry)
    hasOp ||= entry.kind === 'op-done'
  }
  watched.position = position
  if (!hasOp) return true
  // Paths that an op put back to before their first record are nobody's again.
  const { paths } = foldLedger(entries.map(({ entry }) => entry))
  for (const path of watched.states.keys()) if (!paths.has(path)) watched.states.delete(path)
  return true
}

function takeIn({ states, befores, ops }: Watched, entry: JournalEntry): void {
  switch (entry.kind) {
    case 'before':
      befores.set(entry.id, entry)
      if (states.has(entry.path)) states.set(entry.path, entry.state)
      break
    case 'after': {
      const before = befores.get(entry.of)
      befores.delete(entry.of)
      // A refused write does not make a path the session's.
      if (before !== undefined && (states.has(before.path) || !sameState(before.state, entry.state))) states.set(before.path, entry.state)
      break
    }
    case 'change':
      states.set(entry.path, entry.after)
      break
    case 'outside':
      if (states.has(entry.path)) states.set(entry.path, entry.state)
      break
    case 'op-begin':
      ops.set(entry.op, entry)
      break
    case 'op-done':
    case 'op-taken-back': {
      const rows = new Map(ops.get(entry.op)?.rows.map(row => [row.path, row]))
      for (const { path, result } of entry.outcomes) {
        const row = result === 'restored' ? rows.get(path) : undefined
        if (row !== undefined && states.has(path)) states.set(path, entry.kind === 'op-done' ? row.goal : row.was)
      }
      ops.delete(entry.op)
      break
    }
    case 'bracket':
    case 'seen':
    case 'op-applied':
      break
  }
}

/** Two states that nobody could take tell of no change, and of a folder only that it is there. */
const differs = (left: FileState, now: FileState): boolean => !(left.kind === 'unknown' && now.kind === 'unknown') && !sameState(left, now)

/** False behind a link that was not there when the path was recorded. */
async function isReachable(path: string): Promise<boolean> {
  try {
    return await parentsAreReal(path)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
