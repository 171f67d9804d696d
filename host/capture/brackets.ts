import { realpath } from 'node:fs/promises'
import type { CallRef, ChangeEntry, JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { callLabel, toolKind } from '../../src/checkpoint/tool-table.ts'
import { sessionId } from '../../src/ids.ts'
import { watchKey } from '../../src/ledger/ledger.ts'
import type { Health } from '../dsh/health.ts'
import type { ForeignExecution, ForeignSession, ForeignSessions } from '../dsh/host-types.ts'
import { terminalOf, type Background, type Writer } from '../dsh/jobs.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import { bookOn, type Booking } from './attribution.ts'
import { makeBlobBatch, StoreFailed } from './blob-batch.ts'
import { noteBooked, unbooked, type Booked } from './booked.ts'
import { changeEntries, headEntry, overBudget } from './bracket-entries.ts'
import { makeStateCache, type StateCache } from './fingerprint.ts'
import { closeGitTree, openGitTree, type GitTree } from './git-tree.ts'
import { stateOf } from './known-states.ts'
import { endEntry, inTurn, isOver, lookLate, makeSite, type LateDeps, type Running, type Site } from './late-looks.ts'
import type { Before, LookBudget, LookDeps, Seen } from './look.ts'
import { lookAfter, lookBefore } from './workspace-look.ts'

/** A command that ran longer may have had somebody's own saves beside it. */
const LONG_MS = 30_000

export interface BracketDeps {
  readonly sessions: ForeignSessions
  readonly health: Health
  readonly background: Background
  readonly maxFileBytes: number
  readonly budget: LookBudget
  readonly dshHome: string
  readonly indexFolder: string
  readonly ignoreFolders?: readonly string[] | undefined
  journalOf(root: ForeignSession): SessionJournal
  workspaceOf(session: ForeignSession): string | undefined
  /** True when the path has an exact record of its own of a write at or after `sinceMs`. */
  isWritten(path: string, sinceMs: number): boolean
  now(): number
}

/** Looks at the workspace before and after each command, and again at what one left running. */
export interface Brackets {
  /** Resolves when everything that the command could destroy is saved, or a budget is used up. */
  open(exec: ForeignExecution): Promise<void>
  /** True when the command is covered by a record now. `writer`: what it left running. */
  close(exec: ForeignExecution, writer: Writer | undefined): Promise<boolean>
  /** True while a command of this session or of a subagent is looked at. */
  isOpen(root: ForeignSession): boolean
  /** Looks again where something that went on has ended, or has no end that anybody would tell, or is `root`'s. */
  settle(root?: ForeignSession): Promise<void>
  /** True for a path in a workspace where work of this session goes on: a change may be its own, and a late look sees it. */
  isShared(root: ForeignSession, path: string): boolean
  /** Removes the private copies of git indexes. */
  dispose(): Promise<void>
}

interface OpenBracket {
  readonly site: Site
  readonly booking: Booking
  readonly before: Before
  readonly deps: LookDeps
  /** By commands of the same session that ran beside this one. */
  readonly booked: Booked
  /** Another session's command ran in this workspace meanwhile. */
  overlapped: boolean
}

/** One set of remembered states per workspace, shared by the sessions that work in it. */
export function makeBrackets(deps: BracketDeps): Brackets {
  const caches = new Map<string, StateCache>()
  /** Their private index copies go with the plugin. */
  const trees = new Set<GitTree>()
  const sites = new Map<string, Site>()
  const open = new Map<string, OpenBracket>()
  let serial = 0
  let isDisposed = false

  /** Broken, too old or refused: the workspace is looked at as a plain folder. */
  const treeOf = async (folder: string): Promise<GitTree | undefined> => {
    const opened = await openGitTree(folder, { indexFolder: deps.indexFolder })
    if (opened.kind !== 'tree') return undefined
    trees.add(opened.tree)
    return opened.tree
  }

  const siteOf = (workspace: string): Site => {
    const site = sites.get(workspace) ?? makeSite(workspace)
    sites.set(workspace, site)
    return site
  }

  const lookDeps = (workspace: string, root: ForeignSession): LookDeps => {
    const cache = caches.get(workspace) ?? makeStateCache()
    caches.set(workspace, cache)
    return {
      workspace, cache, maxFileBytes: deps.maxFileBytes, budget: deps.budget,
      dshHome: deps.dshHome, ignoreFolders: deps.ignoreFolders, now: deps.now, treeOf,
      ...makeBlobBatch(deps.journalOf(root)),
    }
  }

  /** Undefined where nothing may be looked at or nothing can be saved; the command is then named as not covered. */
  const savedBefore = async (look: LookDeps): Promise<Before | undefined> => {
    try {
      return await lookBefore(look)
    } catch (error) {
      if (!(error instanceof StoreFailed)) throw error
      deps.health.report('store', error.message)
      return undefined
    }
  }

  const append = async (root: ForeignSession, entries: readonly JournalEntry[]): Promise<boolean> => {
    const stored = await deps.journalOf(root).append({ entries })
    if (!stored.ok) deps.health.report('store', stored.failure.facts.detail ?? stored.failure.code)
    return stored.ok
  }

  const nextId = (): string => `${deps.now().toString(36)}-c${(serial++).toString(36)}`
  const late: LateDeps = { background: deps.background, lookDeps, isWritten: deps.isWritten, append, nextId, now: deps.now }

  /** Never rejects: a late look that fails leaves the gap that is there, and the next command begins all the same. */
  const lookLateIn = async (site: Site, why: 'next' | 'settle'): Promise<void> => {
    try {
      await lookLate(late, site, why)
    } catch (error) {
      deps.health.report(error instanceof StoreFailed ? 'store' : 'late look', error)
    }
  }

  const settle = async (root?: ForeignSession): Promise<void> => {
    if (isDisposed) return
    await Promise.all([...sites.values()].map(site => inTurn(site, async () => {
      forgetClosed(site)
      const isDue = [...site.running.values()].some(running =>
        running.writer.kind !== 'job' || running.booking.root === root || isOver(deps.background, running))
      if (isDue) await lookLateIn(site, 'settle')
    })))
  }
  deps.background.onEnd(() => { void settle() })

  /** Work without an end that anybody tells ends with its session, and the look that was kept for it goes. */
  const forgetClosed = (site: Site): void => {
    for (const [key, { writer, booking }] of site.running) {
      if (writer.kind !== 'job' && deps.sessions.get(booking.root.id) !== booking.root) site.running.delete(key)
    }
    if (site.running.size === 0) site.base = undefined
  }

  const begin = async (key: string, booking: Booking, site: Site): Promise<void> => {
    forgetClosed(site)
    if (site.running.size > 0) await lookLateIn(site, 'next')
    const look = lookDeps(site.workspace, booking.root)
    const before = await savedBefore(look)
    if (before === undefined) return
    const others = [...open.values()].filter(other => other.site === site && other.booking.root !== booking.root)
    for (const other of others) other.overlapped = true
    const isBesideWork = [...site.running.values()].some(running => running.booking.root !== booking.root)
    const bracket = { site, booking, before, deps: look, booked: new Map(), overlapped: others.length > 0 || isBesideWork }
    open.set(key, bracket)
    site.open.add(bracket)
  }

  const end = async (exec: ForeignExecution, key: string, bracket: OpenBracket, writer: Writer | undefined): Promise<boolean> => {
    const { site, booking, before, booked } = bracket
    const terminal = terminalOf(exec)
    for (const running of site.running.values()) {
      if (terminal !== undefined && running.writer.id === terminal && running.writer.owner.id === exec.agent?.id) running.isFollowed = true
    }
    // Before the look: what ends during it may have written behind it.
    const over = [...site.running].filter(([, running]) => isOver(deps.background, running))
    const { seen, head, isComplete } = await lookAfter(bracket.deps, before)
    const fresh = (await unbooked(seen, booked, path => stateOf(bracket.deps, path))).filter(({ path }) => !deps.isWritten(path, before.atMs))
    await bracket.deps.settle()
    const words = callLabel(exec.name, exec.arguments as Record<string, unknown> | undefined)
    const call: CallRef = { callId: exec.callId, tool: exec.name, sessionId: sessionId(exec.agent!.id) }
    const atMs = deps.now()
    const isStored = await append(booking.root, [
      ...changeEntries({ booking, call, id: nextId, atMs }, fresh, change => doubtOf(change, bracket.overlapped, atMs - before.atMs)),
      {
        kind: 'bracket', turn: booking.turn, call, words, how: before.how, atMs,
        gaps: before.isComplete && isComplete ? [] : overBudget(words),
        ...(writer === undefined ? {} : { job: 'running' as const }), ...headEntry(head),
      },
    ])
    if (!isStored) return false
    for (const other of open.values()) if (other !== bracket && other.site === site && other.booking.root === booking.root) noteBooked(other.booked, fresh)
    noteBooked(booked, fresh)
    await endFollowed(site, over, atMs)
    if (writer !== undefined) site.running.set(key, { booking, call, words, how: before.how, writer })
    site.base = site.running.size === 0 ? undefined : { before, booked, head: JSON.stringify(head ?? null) }
    return true
  }

  /** What this bracket saw, it saw whole: the looks of what had ended by then are done with. */
  const endFollowed = async (site: Site, over: readonly (readonly [string, Running])[], atMs: number): Promise<void> => {
    for (const [key, running] of over) if (await append(running.booking.root, [endEntry(running, 'ended', atMs)])) site.running.delete(key)
  }

  return {
    open: async (exec) => {
      const key = keyOf(exec)
      const booking = exec.agent === undefined ? undefined : bookOn(deps.sessions, exec.agent.session)
      const workspace = booking === undefined ? undefined : deps.workspaceOf(booking.root)
      if (key === undefined || booking === undefined || workspace === undefined || !isCommand(exec)) return
      const site = siteOf(await realpath(workspace))
      await inTurn(site, () => begin(key, booking, site))
    },

    close: async (exec, writer) => {
      const key = keyOf(exec)
      const bracket = key === undefined ? undefined : open.get(key)
      if (key === undefined || bracket === undefined) return false
      const { site } = bracket
      return inTurn(site, async () => {
        try {
          return await end(exec, key, bracket, writer)
        } finally {
          open.delete(key)
          site.open.delete(bracket)
          if ([...site.running.values()].some(running => isOver(deps.background, running))) void settle()
        }
      })
    },

    isOpen: root => [...open.values()].some(({ booking }) => booking.root === root),
    settle,

    isShared: (root, path) => [...sites.values()].some(({ workspace, running }) =>
      path.startsWith(`${workspace}/`) && [...running.values()].some(({ booking }) => booking.root === root)),

    dispose: async () => {
      // What still goes on is lost with us: its last entry says that it does, which is a gap.
      isDisposed = true
      await Promise.allSettled([...sites.values()].map(({ tail }) => tail))
      await Promise.allSettled([...trees].map(closeGitTree))
    },
  }
}

/** File tools name what they write, readers write nothing, and containers run calls that are looked at themselves. */
const isCommand = (exec: ForeignExecution): boolean => toolKind(exec.name, exec.arguments as Record<string, unknown> | undefined) === 'command'

const keyOf = (exec: ForeignExecution): string | undefined => (exec.agent === undefined ? undefined : watchKey(exec.agent.id, exec.callId))

function doubtOf({ byGit }: Seen, overlapped: boolean, tookMs: number): ChangeEntry['doubt'] {
  if (byGit) return 'git-moved'
  if (overlapped) return 'overlap'
  return tookMs > LONG_MS ? 'long' : undefined
}
