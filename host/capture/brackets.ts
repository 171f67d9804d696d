import { realpath } from 'node:fs/promises'
import type { CallRef, ChangeEntry, JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { callLabel, toolKind } from '../../src/checkpoint/tool-table.ts'
import { sessionId } from '../../src/ids.ts'
import { watchKey } from '../../src/ledger/ledger.ts'
import type { Health } from '../dsh/health.ts'
import type { ForeignExecution, ForeignSession, ForeignSessions } from '../dsh/host-types.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import { bookOn, type Booking } from './attribution.ts'
import { makeBlobBatch, StoreFailed } from './blob-batch.ts'
import { makeStateCache, type StateCache } from './fingerprint.ts'
import { closeGitTree, openGitTree, type GitTree } from './git-tree.ts'
import type { Before, LookBudget, LookDeps, Seen } from './look.ts'
import { lookAfter, lookBefore } from './workspace-look.ts'

/** A command that ran longer may have had somebody's own saves beside it. */
const LONG_MS = 30_000

export interface BracketDeps {
  readonly sessions: ForeignSessions
  readonly health: Health
  readonly maxFileBytes: number
  readonly budget: LookBudget
  readonly dshHome: string
  readonly indexFolder: string
  journalOf(root: ForeignSession): SessionJournal
  workspaceOf(session: ForeignSession): string | undefined
  /** True when a file tool wrote this path at or after `sinceMs`: it has its own, exact record. */
  isWrittenByTool(path: string, sinceMs: number): boolean
  now(): number
}

/** Looks at the workspace before and after each command. */
export interface Brackets {
  /** Resolves when everything that the command could destroy is saved, or a budget is used up. */
  open(exec: ForeignExecution): Promise<void>
  /** True when the command is covered by a record now. `wentOn`: it goes on in the background. */
  close(exec: ForeignExecution, wentOn: boolean): Promise<boolean>
  /** Removes the private copies of git indexes. */
  dispose(): Promise<void>
}

interface OpenBracket {
  readonly booking: Booking
  readonly before: Before
  readonly deps: LookDeps
  /** Another session's command ran in this workspace meanwhile. */
  overlapped: boolean
}

/** One set of remembered states per workspace, shared by the sessions that work in it. */
export function makeBrackets(deps: BracketDeps): Brackets {
  const caches = new Map<string, StateCache>()
  /** Their private index copies go with the plugin. */
  const trees = new Set<GitTree>()
  const open = new Map<string, OpenBracket>()
  let serial = 0

  /** Broken, too old or refused: the workspace is looked at as a plain folder. */
  const treeOf = async (folder: string): Promise<GitTree | undefined> => {
    const opened = await openGitTree(folder, { indexFolder: deps.indexFolder })
    if (opened.kind !== 'tree') return undefined
    trees.add(opened.tree)
    return opened.tree
  }

  const lookDeps = (workspace: string, journal: SessionJournal): LookDeps => {
    const cache = caches.get(workspace) ?? makeStateCache()
    caches.set(workspace, cache)
    return {
      workspace, cache, maxFileBytes: deps.maxFileBytes, budget: deps.budget,
      dshHome: deps.dshHome, now: deps.now, treeOf,
      ...makeBlobBatch(journal),
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

  return {
    open: async (exec) => {
      const key = keyOf(exec)
      const booking = exec.agent === undefined ? undefined : bookOn(deps.sessions, exec.agent.session)
      const workspace = booking === undefined ? undefined : deps.workspaceOf(booking.root)
      if (key === undefined || booking === undefined || workspace === undefined || !isCommand(exec)) return
      const look = lookDeps(await realpath(workspace), deps.journalOf(booking.root))
      const before = await savedBefore(look)
      if (before === undefined) return
      const others = [...open.values()].filter(other => other.deps.workspace === look.workspace && other.booking.root !== booking.root)
      for (const other of others) other.overlapped = true
      open.set(key, { booking, before, deps: look, overlapped: others.length > 0 })
    },

    close: async (exec, wentOn) => {
      const key = keyOf(exec)
      const bracket = key === undefined ? undefined : open.get(key)
      if (key === undefined || bracket === undefined) return false
      open.delete(key)
      const { booking, before } = bracket
      const { seen, head, isComplete } = await lookAfter(bracket.deps, before)
      const words = callLabel(exec.name, exec.arguments as Record<string, unknown> | undefined)
      const call: CallRef = { callId: exec.callId, tool: exec.name, sessionId: sessionId(exec.agent!.id) }
      const atMs = deps.now()
      const changes = seen.filter(({ path }) => !deps.isWrittenByTool(path, before.atMs)).map((change): JournalEntry => ({
        kind: 'change', id: `${atMs.toString(36)}-c${(serial++).toString(36)}`, turn: booking.turn, call, origin: 'shell',
        path: change.path, before: change.before, after: change.after, absentFolders: [...change.absentFolders],
        ...doubtOf(change, bracket.overlapped, atMs - before.atMs), atMs,
      }))
      const stored = await deps.journalOf(booking.root).append({
        entries: [...changes, {
          kind: 'bracket', turn: booking.turn, call, words, how: before.how, atMs,
          gaps: before.isComplete && isComplete ? [] : [{ reason: 'over-budget' as const, count: 1, names: [words] }],
          ...(wentOn ? { job: 'running' as const } : {}),
          ...(head === undefined ? {} : { head: compact(head) }),
        }],
      })
      if (!stored.ok) deps.health.report('store', stored.failure.facts.detail ?? stored.failure.code)
      return stored.ok
    },

    dispose: async () => { await Promise.allSettled([...trees].map(closeGitTree)) },
  }
}

/** File tools name what they write, readers write nothing, and containers run calls that are looked at themselves. */
const isCommand = (exec: ForeignExecution): boolean => toolKind(exec.name, exec.arguments as Record<string, unknown> | undefined) === 'command'

const keyOf = (exec: ForeignExecution): string | undefined => (exec.agent === undefined ? undefined : watchKey(exec.agent.id, exec.callId))

function doubtOf({ byGit }: Seen, overlapped: boolean, tookMs: number): Pick<ChangeEntry, 'doubt'> {
  if (byGit) return { doubt: 'git-moved' }
  if (overlapped) return { doubt: 'overlap' }
  return tookMs > LONG_MS ? { doubt: 'long' } : {}
}

const compact = (head: { from: string | undefined; to: string | undefined; ref: string | undefined }) =>
  Object.fromEntries(Object.entries(head).filter(([, value]) => value !== undefined)) as { from?: string; to?: string; ref?: string }
