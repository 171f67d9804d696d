import { unknown } from '../../src/checkpoint/file-state.ts'
import type { BracketEntry, CallRef, JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Background, Writer } from '../dsh/jobs.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import type { Booking } from './attribution.ts'
import { noteBooked, unbooked, type Booked } from './booked.ts'
import { changeEntries, headEntry, overBudget } from './bracket-entries.ts'
import { stateOf } from './known-states.ts'
import type { Before, LookDeps, Seen } from './look.ts'
import { lookAfter } from './workspace-look.ts'

/** A command whose work goes on after its call. */
export interface Running {
  readonly booking: Booking
  readonly call: CallRef
  readonly words: string
  readonly how: BracketEntry['how']
  readonly writer: Writer
  /** A later call has looked at all that its terminal did; what comes now is booked on that one. */
  isFollowed?: true
  /** Its bracket says so already; the next command may find it cut again. */
  isCut?: true
}

/** One workspace: its commands under way, and what goes on in the background there. */
export interface Site {
  readonly workspace: string
  /** Open brackets. While there is one, its second look sees whatever is written. */
  readonly open: Set<object>
  readonly running: Map<string, Running>
  /** The last known look, kept only while something goes on; one per workspace, however much goes on. */
  base: { readonly before: Before; readonly booked: Booked; head: string } | undefined
  /** Looks of one workspace come one after another, so that each knows what the one before it booked. */
  tail: Promise<unknown>
}

export const makeSite = (workspace: string): Site => ({ workspace, open: new Set(), running: new Map(), base: undefined, tail: Promise.resolve() })

/** Its turn in the workspace; rejects as `work` does. */
export function inTurn<T>(site: Site, work: () => Promise<T>): Promise<T> {
  const mine = site.tail.then(work)
  site.tail = mine.catch(() => {
    // Whoever asked has the same promise; the next in line does not depend on how it ended.
  })
  return mine
}

export interface LateDeps {
  readonly background: Background
  lookDeps(workspace: string, root: ForeignSession): LookDeps
  isWritten(path: string, sinceMs: number): boolean
  append(root: ForeignSession, entries: readonly JournalEntry[]): Promise<boolean>
  nextId(): string
  now(): number
}

export const isOver = (background: Background, { isFollowed, writer }: Running): boolean => isFollowed === true || background.isOver(writer)

/** The last entry of a bracket whose command went on. */
export const endEntry = ({ booking, call, words, how }: Running, job: 'running' | 'ended' | 'cut', atMs: number): BracketEntry =>
  ({ kind: 'bracket', turn: booking.turn, call, words, how, gaps: [], job, atMs })

/**
 * What changed since the last known look, booked on the newest of the commands that go on, in each session that has
 * any. To be called in turn. `next`: another command is about to begin, so that what goes on is cut here.
 * Nothing is lost by a failure: the look and all that goes on stay as they were.
 */
export async function lookLate(deps: LateDeps, site: Site, why: 'next' | 'settle'): Promise<void> {
  const { base } = site
  // The bracket that is open sees it, and settles what has ended when it closes.
  if (site.open.size > 0 || site.running.size === 0) return
  if (base === undefined) return forgetOver(deps, site)
  const found: Seen[] = []
  let { head } = base
  const roots = new Set([...site.running.values()].map(({ booking }) => booking.root))
  for (const root of roots) {
    const mine = [...site.running].filter(([, running]) => running.booking.root === root)
    // Before the look: what ends during it may have written behind it.
    const over = new Set(mine.filter(([, running]) => isOver(deps.background, running)).map(([key]) => key))
    const look = deps.lookDeps(site.workspace, root)
    const { seen, head: move, isComplete } = await lookAfter(look, base.before)
    const fresh: Seen[] = []
    for (const change of await unbooked(seen, base.booked, path => stateOf(look, path))) {
      if (deps.isWritten(change.path, base.before.atMs)) continue
      // The look may be another session's, and the bytes in its store.
      const isKept = change.before.kind !== 'file' || await look.has(change.before.digest)
      fresh.push(isKept ? change : { ...change, before: unknown('not-saved') })
    }
    await look.settle()
    const atMs = deps.now()
    const newest = mine.at(-1)![1]
    const moved = JSON.stringify(move ?? null)
    const isWhole = base.before.isComplete && isComplete
    const ends = mine.flatMap(([key, running]): BracketEntry[] => {
      const isCut = why === 'next' && running.isCut !== true
      const tells = running === newest && moved !== base.head
      if (!over.has(key) && !isCut && !tells) return []
      const job = over.has(key) ? 'ended' : isCut || running.isCut === true ? 'cut' : 'running'
      return [{
        ...endEntry(running, job, atMs), ...(isWhole ? {} : { gaps: overBudget(running.words) }), ...(tells ? headEntry(move) : {}),
      }]
    })
    const changes = changeEntries({ ...newest, id: deps.nextId, atMs }, fresh, ({ byGit }) => (byGit ? 'git-moved' : 'late'))
    if (changes.length + ends.length > 0 && !await deps.append(root, [...changes, ...ends])) return
    found.push(...fresh)
    for (const [key, running] of mine) {
      if (over.has(key)) site.running.delete(key)
      else if (why === 'next') running.isCut = true
    }
    head = moved
  }
  noteBooked(base.booked, found)
  base.head = head
  if (site.running.size === 0) site.base = undefined
}

/** Without a look to compare with, the brackets stay as they are: running, and a gap. */
function forgetOver({ background }: LateDeps, site: Site): void {
  for (const [key, running] of site.running) if (isOver(background, running)) site.running.delete(key)
}
