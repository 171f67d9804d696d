import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { OpId, SessionId } from '../../src/ids.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { readOpenOps, removeOpenOp, writeOpenOp, type OpenOp } from './open-ops.ts'
import { processMark } from './process-mark.ts'
import { makeReencodePass, type PassResult } from './re-encode-pass.ts'
import { readSegmentHeader, type WriterMark } from './segment.ts'
import { openJournal, type KeptJournal, type SessionJournal } from './session-journal.ts'
import { takeLock, type Release } from './session-lock.ts'
import { makeStoreSpace, type StoreLimits } from './store-space.ts'
import { asFailure, ensureFolder, errorCode, nodeFs, unlessMissing, type StoreFs } from './store-fs.ts'
import { lockPath, parseSegmentName, storeLayout, type StoreLayout } from './store-layout.ts'

/** All that Turnback keeps on disk. Environment errors come back as values; see each member. */
export interface TurnbackStore {
  readonly layout: StoreLayout
  /** The same object for the same session. `workspace` (a real path) goes into the segments made from here on. */
  journal(session: SessionId, workspace: string): SessionJournal
  /** Sessions with at least one readable segment; none when the store cannot be read. */
  sessions(): Promise<readonly SessionId[]>
  /** One holder over all processes; also a second take by this process is `busy`. */
  lock(session: SessionId): Promise<Result<Release, Failure>>
  /** Durable when it resolves; to be called before `op-begin` is appended, after `journal()` of that session. */
  markOpenOp(session: SessionId, op: OpId): Promise<Result<undefined, Failure>>
  /** To be called after the op's last entry is appended. */
  clearOpenOp(session: SessionId, op: OpId): Promise<Result<undefined, Failure>>
  /** Ops that were begun and not ended, of all sessions; none when the store cannot be read. */
  openOps(): Promise<readonly OpenOp[]>
  /** Removes the records of sessions that are over the age limit, apart from those this process works with. */
  tidy(): Promise<Result<undefined, Failure>>
  usage(): Promise<Result<{ readonly bytes: number; readonly maxBytes: number }, Failure>>
  /** Makes segments that are at rest smaller, also what this process has just written; otherwise that is done in quiet moments. */
  reencode(): Promise<PassResult>
  /** Waits for appends under way, closes files, gives back locks. Appends fail from then on. */
  close(): Promise<void>
}

export interface StoreOptions {
  /** The store folder; default `data/turnback/v1` under the DSH home. */
  readonly root?: string | undefined
  readonly env?: NodeJS.ProcessEnv | undefined
  readonly fs?: StoreFs | undefined
  readonly maxSegmentBytes?: number | undefined
  /** Asked at each use, so that a changed setting counts from then on. */
  readonly limits?: (() => StoreLimits) | undefined
  /** How long records written with `sync: 'later'` wait for another append before they are synced, milliseconds. */
  readonly lateSyncMs?: number | undefined
  /** After so long without an append segments at rest are made smaller; never when left out. Milliseconds. */
  readonly quietMs?: number | undefined
  /** Told of what a pass over the segments could not do. */
  readonly onProblem?: ((error: unknown) => void) | undefined
}

export const defaultLimits: StoreLimits = { maxBytes: 2 * 1024 ** 3, maxDays: 90 }
const defaultMaxSegmentBytes = 16 * 1024 * 1024
const defaultLateSyncMs = 200

/** Touches no disk: folders are made by the first write, so a home that cannot be written never stops a start. */
export function openStore(options: StoreOptions = {}): TurnbackStore {
  const fs = options.fs ?? nodeFs
  const layout = storeLayout(options)
  const limits = options.limits ?? (() => defaultLimits)
  // Whole segments are what can be removed to make room.
  const maxSegmentBytes = options.maxSegmentBytes ?? Math.min(defaultMaxSegmentBytes, Math.ceil(limits().maxBytes / 8))
  const space = makeStoreSpace(fs, layout, limits)
  const lateSyncMs = options.lateSyncMs ?? defaultLateSyncMs
  const journals = new Map<SessionId, { readonly workspace: string; readonly journal: KeptJournal }>()
  const held = new Set<Release>()
  const storeMark = randomUUID()
  let mark: Promise<WriterMark> | undefined
  const writerMark = (): Promise<WriterMark> => (mark ??= processMark(fs).then(process => ({ ...process, store: storeMark })))
  const pass = makeReencodePass({
    fs, layout, space, mark: writerMark, now: Date.now, onProblem: options.onProblem,
    journals: () => [...journals].map(([session, { journal }]) => [session, journal] as const),
  })
  const quiet = options.quietMs === undefined ? undefined : inQuiet(options.quietMs, isQuiet => pass.run(isQuiet))

  return {
    layout,

    journal(session, workspace) {
      const known = journals.get(session)
      if (known) return known.journal
      const opened = openJournal({ fs, layout, session, workspace, maxSegmentBytes, space, lateSyncMs, writerMark })
      const journal: KeptJournal = {
        ...opened,
        append: (batch) => {
          quiet?.disturb()
          return opened.append(batch)
        },
      }
      journals.set(session, { workspace, journal })
      return journal
    },

    sessions: () => unlessUnreadable(listSessions(fs, layout)),

    async lock(session) {
      try {
        await ensureFolder(fs, layout.locks)
      } catch (error) {
        return fail(asFailure(error))
      }
      const taken = await takeLock(fs, lockPath(layout, session))
      if (!taken.ok) return taken
      const release: Release = async () => {
        if (held.delete(release)) await attempt(taken.value()) // a lock that stays is stale once this process ends
      }
      held.add(release)
      return ok(release)
    },

    markOpenOp(session, op) {
      const workspace = journals.get(session)?.workspace
      if (workspace === undefined) throw new Error(`store: markOpenOp(${session}, ${op}) before journal() of that session`)
      return attempt(writeOpenOp(fs, layout, { session, workspace, op }))
    },

    clearOpenOp: (session, op) => attempt(removeOpenOp(fs, layout, session, op)),

    tidy: () => attempt(space.tidy(new Set(journals.keys()))),

    async usage() {
      try {
        return ok(await space.usage())
      } catch (error) {
        return fail(asFailure(error))
      }
    },

    reencode: () => pass.run(),

    openOps: () => unlessUnreadable(readOpenOps(fs, layout)),

    async close() {
      await quiet?.end()
      await Promise.all([...journals.values()].map(({ journal }) => journal.close()))
      await Promise.all([...held].map((release) => release()))
    },
  }
}

/** Runs `work` once nothing has disturbed for `quietMs`, and again after each later quiet; `isQuiet` turns false when it is to stop. */
function inQuiet(quietMs: number, work: (isQuiet: () => boolean) => Promise<unknown>): { disturb(): void; end(): Promise<void> } {
  let disturbed = 0
  let timer: NodeJS.Timeout | undefined
  let running: Promise<unknown> = Promise.resolve()
  let ended = false
  const wait = (): void => {
    clearTimeout(timer)
    if (ended) return
    timer = setTimeout(() => {
      const before = disturbed
      running = running.then(() => work(() => !ended && disturbed === before))
    }, quietMs).unref()
  }
  wait()
  return {
    disturb() {
      disturbed += 1
      wait()
    },
    async end() {
      ended = true
      clearTimeout(timer)
      await running
    },
  }
}

async function listSessions(fs: StoreFs, layout: StoreLayout): Promise<readonly SessionId[]> {
  const found = new Map<string, SessionId>()
  for (const file of await unlessMissing(fs.readdir(layout.packs), [])) {
    const name = parseSegmentName(file)?.session
    if (name === undefined || found.has(name)) continue
    const header = await readSegmentHeader(fs, join(layout.packs, file))
    if (header) found.set(name, header.session)
  }
  return [...found.values()]
}

async function attempt(work: Promise<void>): Promise<Result<undefined, Failure>> {
  try {
    await work
    return ok(undefined)
  } catch (error) {
    return fail(asFailure(error))
  }
}

async function unlessUnreadable<T>(work: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await work
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return []
  }
}
