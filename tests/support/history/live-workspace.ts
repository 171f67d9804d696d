import { makeProgress } from '../../../host/rollback/progress.ts'
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { makeBrackets } from '../../../host/capture/brackets.ts'
import { makeCapture } from '../../../host/capture/capture.ts'
import { makeKnownWrites } from '../../../host/capture/known-writes.ts'
import { makeStateCache } from '../../../host/capture/fingerprint.ts'
import { digestOf } from '../../../host/digest.ts'
import type { ForeignAgent, ForeignEvent, ForeignExecution, ForeignSession, ForeignSessions } from '../../../host/dsh/host-types.ts'
import type { Health } from '../../../host/dsh/health.ts'
import { idOf } from '../../../host/dsh/session-log.ts'
import type { RollbackDeps } from '../../../host/rollback/deps.ts'
import { draftRollback } from '../../../host/rollback/draft.ts'
import type { Operation } from '../../../host/rollback/op-end.ts'
import { runRollback } from '../../../host/rollback/operation.ts'
import { lookAtAll } from '../../../host/rollback/paths-now.ts'
import { runUndo } from '../../../host/rollback/undo.ts'
import { selectRows } from '../../../host/rollback/select-rows.ts'
import { readRecords } from '../../../host/rollback/records.ts'
import { makePathIndex } from '../../../host/store/path-index.ts'
import { openStore } from '../../../host/store/store.ts'
import type { OpId } from '../../../src/ids.ts'
import { undoableOp } from '../../../src/ledger/ledger.ts'
import { pathsOfUndo, planUndo } from '../../../src/restore/plan.ts'
import type { Result } from '../../../src/result.ts'
import { perform } from './disk.ts'

const MAX_FILE_BYTES = 1_000_000
const never = new AbortController().signal

/** A session as far as capture and rollback look at it. */
export interface LiveSession extends ForeignSession {
  /** Begins a turn and gives its number; ends it. */
  begins(): number
  ends(): void
  readonly isOpen: boolean
}

function aSession(id: string, cwd: string, parentSession?: string): LiveSession {
  const events: ForeignEvent[] = []
  let turn = 0
  let isOpen = false
  const push = (type: string, data: unknown, more: object = {}): void => { events.push({ seq: events.length, type, time: Date.now(), data, ...more }) }
  return {
    id, events,
    header: { version: 0, id, cwd, ...(parentSession === undefined ? {} : { parentSession, origin: 'subagent' }) },
    get surface() {
      return { nodes: events.filter(event => event.surfaceOp !== undefined).map(event => event.seq) }
    },
    append: () => { throw new Error('a rollback of files appends nothing') },
    get isOpen() {
      return isOpen
    },
    begins: () => {
      turn += 1
      isOpen = true
      push('turn/start', { turn })
      push('user/message', { id: `m${events.length}`, role: 'user', source: { kind: 'user' }, content: [{ type: 'text', text: 'go' }] }, { surfaceOp: 'append' })
      return turn
    },
    ends: () => {
      isOpen = false
      push('turn/end', { turn, reason: { kind: 'completed' } })
    },
  }
}

/** Faults of ours fail the test. */
const loudHealth: Health = {
  report: (contract, cause) => { throw new Error(`health: ${contract}`, { cause }) },
  clear: () => {}, problems: () => [], contain: (_contract, listener) => listener,
}

/**
 * A real folder with two sessions and a subagent at work in it, seen by the real capture, kept in a real store and
 * taken back by the real rollback. Only the host around them is not there: its turns and calls are made here.
 */
export function aLiveWorkspace({ hasGit = false } = {}) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-live-')))
  const root = join(base, 'w')
  mkdirSync(root)
  if (hasGit) execFileSync('git', ['init', '-q', root], { stdio: 'ignore' })
  const sessions = { A: aSession('a', root), B: aSession('b', root), child: aSession('c', root, 'a') }
  const all = Object.values(sessions)
  const foreign: ForeignSessions = { get: id => all.find(session => session.id === id), list: () => all, flush: async () => true }
  const agents = new Map(all.map((session): [string, ForeignAgent] =>
    [session.id, { id: session.id, status: 'running', session, runMaintenance: task => task(never) }]))

  const store = openStore({ root: join(base, 'store') })
  const workspaceOf = (): string => root
  const journalOf = (session: ForeignSession) => store.journal(idOf(session), root)
  const writes = makeKnownWrites(Date.now)
  const observations = { remember: () => {}, announce: async () => {} }
  const shared = { sessions: foreign, health: loudHealth, maxFileBytes: MAX_FILE_BYTES, dshHome: join(base, 'home'), journalOf, now: Date.now }
  const brackets = makeBrackets({
    ...shared, workspaceOf, isWritten: writes.isWritten, indexFolder: store.layout.indexes,
    background: { after: () => undefined, isOver: () => true, onEnd: () => {} },
    budget: { maxFiles: 10_000, maxNewBytes: 100_000_000, maxMs: 60_000 },
  })
  const capture = makeCapture({ ...shared, brackets, writes, observations })
  let ops = 0
  const deps: RollbackDeps = {
    ...shared, store, observations, workspaceOf,
    ctx: { on: () => () => {}, effect: () => {}, inject: () => {}, get: () => undefined, emit: () => {} },
    copies: { make: async () => { throw new Error('no rollback of a conversation here') }, archive: async () => false, titleOf: () => undefined, isOffered: () => false },
    headerOf: async () => undefined,
    agents: { get: id => agents.get(id), list: () => [...agents.values()] },
    pathIndex: makePathIndex(store), states: makeStateCache(),
    journalOf: session => writes.ofOps(journalOf(session)),
    captured: capture.settled, localeOf: () => 'en', newId: () => String(ops++).padStart(16, '0'), progress: makeProgress(), onPhase: () => {},
  }

  let calls = 0
  const execution = (session: ForeignSession, name: string): ForeignExecution => {
    calls += 1
    return { callId: `call-${calls}`, name, arguments: name === 'bash' ? { command: 'make' } : {}, agent: agents.get(session.id)! }
  }

  return {
    root, sessions,
    begins: async (session: LiveSession): Promise<number> => {
      const turn = session.begins()
      await capture.beforeStep(session)
      return turn
    },
    ends: async (session: LiveSession): Promise<void> => {
      session.ends()
      await capture.afterTurn(session)
    },
    /** A file tool writes this; it fails where a folder is. Writes through a link, as the host does. */
    writes: async (session: ForeignSession, name: string, content: Buffer): Promise<void> => {
      const path = realTarget(join(root, name))
      if (path === undefined || !path.startsWith(`${root}/`)) return
      await nextTick()
      const exec = execution(session, 'write')
      await capture.atStart(exec)
      await capture.beforeWrite(exec, path, { targetKey: path, displayPath: path })
      perform(root, { do: 'put', path: path.slice(root.length + 1), bytes: content })
      await capture.afterCall(exec, undefined)
    },
    /** A command begins; what it gives ends it. */
    runs: async (session: ForeignSession): Promise<() => Promise<void>> => {
      await nextTick()
      const exec = execution(session, 'bash')
      await capture.atStart(exec)
      return () => capture.afterCall(exec, undefined)
    },
    /** `only`: names of paths in the workspace. */
    rollsBack: async (session: ForeignSession, turn: number, putBack: ReadonlySet<string> = new Set(), only?: readonly string[]): Promise<Operation> => {
      const draft = valueOf(await draftRollback(deps, { session, agent: undefined, turn, scope: 'files', putBack }))
      const selected = selectRows(draft, only === undefined ? undefined : { kind: 'paths', paths: only.map(name => join(root, name)) }, root)
      return valueOf(await runRollback(deps, draft, valueOf(selected), never))
    },
    /** Nothing is undone where `op` changed nothing. */
    undoes: async (session: ForeignSession, op: OpId): Promise<Operation | undefined> => {
      const records = valueOf(await readRecords(deps, session))
      const last = undoableOp(records.ledger)
      if (last?.begin.op !== op) return undefined
      const plan = planUndo(last, await lookAtAll(deps, pathsOfUndo(last)), new Set())
      return valueOf(await runUndo({ site: { deps, session, records }, of: last }, plan, never))
    },
    has: (session: ForeignSession, bytes: Buffer): Promise<boolean> => journalOf(session).hasBlob(digestOf(bytes)),
    journal: async (session: ForeignSession) => valueOf(await journalOf(session).read()).entries.map(({ entry }) => entry),
    remove: async (): Promise<void> => {
      await brackets.dispose()
      await store.close()
      rmSync(base, { recursive: true, force: true })
    },
  }
}

export type LiveWorkspace = ReturnType<typeof aLiveWorkspace>

/** Times are told apart in whole milliseconds, and a call of the model's takes longer than that. */
async function nextTick(): Promise<void> {
  const now = Date.now()
  while (Date.now() === now) { /* less than a millisecond */ }
}

/** Where a write goes, as the host resolves it; undefined behind a link to nowhere. */
function realTarget(path: string): string | undefined {
  if (existsSync(path)) return realpathSync(path)
  if (isThere(path)) return undefined
  const parent = dirname(path)
  const real = realTarget(parent)
  return real === undefined || (existsSync(real) && !lstatSync(real).isDirectory()) ? undefined : join(real, path.slice(parent.length + 1))
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path) !== undefined
  } catch {
    // Nothing, or nothing that can be a folder's.
    return false
  }
}

function valueOf<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.failure)}`)
  return result.value
}
