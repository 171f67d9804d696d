import { join } from 'node:path'
import * as v from 'valibot'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import { JournalEntrySchema, type ChangeEntry, type JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { sessionId, type Seq, type SessionId } from '../../src/ids.ts'
import { foldLedger } from '../../src/ledger/ledger.ts'
import { frameHeaderBytes, readFrameHead, type FrameHead } from './frame.ts'
import { formatVersion, type SegmentHeader } from './segment.ts'
import { errorCode, nodeFs, readUpTo, type FileFacts, type StoreFile, type StoreFs } from './store-fs.ts'
import { parseSegmentName, sessionFileName, type StoreLayout } from './store-layout.ts'

/** One change of a path by a session, as its journal has it and its own rollbacks left it, or by one of these rollbacks and undos (`op`). */
export interface RecordedWrite {
  readonly session: SessionId
  /** `turn/start` of the root turn it is booked on; infinite for an op. */
  readonly startSeq: Seq
  readonly before: FileState
  readonly after: FileState | undefined
  readonly origin: 'tool' | 'shell' | 'op'
  readonly doubt: ChangeEntry['doubt']
  /** Unix ms of the last look; of an op, when it began. */
  readonly atMs: number
}

/**
 * What the sessions of a workspace did to a path, over all hosts on the home, read from the segment files
 * whether a session is open or not. Never the truth: a segment that cannot be read, or is damaged from some
 * place on, tells less, and nothing here is an error.
 */
export interface PathIndex {
  /**
   * Writes to `paths`, oldest first per session. `workspace` is a real path; sessions whose workspace is
   * neither it nor inside or around it are left out, and so are `except`.
   */
  writesTo(paths: ReadonlySet<string>, ask: { readonly workspace: string; readonly except: ReadonlySet<SessionId> }): Promise<ReadonlyMap<string, readonly RecordedWrite[]>>
}

/** One segment file, as far as it was read. */
interface Segment {
  readonly file: string
  readonly ino: number
  header: Pick<SegmentHeader, 'session' | 'workspace'> | undefined
  nonce: Buffer | undefined
  offset: number
  number: number
  readonly entries: JournalEntry[]
}

interface Session {
  /** Names, sizes, times and inodes of its files. */
  readonly look: string
  readonly workspaces: ReadonlySet<string>
  /** In order. Undefined when the fold is all that is kept: a session at rest seldom comes to life again. */
  segments: readonly Segment[] | undefined
  /** Undefined until somebody in a workspace of its own asks. */
  byPath: ReadonlyMap<string, readonly RecordedWrite[]> | undefined
}

type Listed = FileFacts & { readonly file: string; readonly segment: number }

/** A frame's header and a journal entry or two; a blob's payload is stepped over. */
const WINDOW_BYTES = 8 * 1024
/** Record 0, as far as it matters here. */
const HeaderSchema = v.object({ format: v.literal(formatVersion), session: v.pipe(v.string(), v.transform(sessionId)), workspace: v.string() })
/** What a fold of changes and rollbacks needs. */
const needed: ReadonlySet<unknown> = new Set(['before', 'after', 'change', 'op-begin', 'op-done', 'op-taken-back'])

/** Age of the newest segment from which on a session is at rest. */
const REST_MS = 10 * 60_000

/** Touches no disk before the first question. One for the life of the plugin: what was read is kept. */
export function makePathIndex({ layout, fs = nodeFs }: { readonly layout: Pick<StoreLayout, 'packs'>; readonly fs?: StoreFs }): PathIndex {
  let known = new Map<string, Session>()
  let tail: Promise<unknown> = Promise.resolve()

  async function writesTo(paths: ReadonlySet<string>, { workspace, except }: Parameters<PathIndex['writesTo']>[1]) {
    const found = new Map<string, RecordedWrite[]>()
    const left = new Set([...except].map(sessionFileName))
    const now = new Map<string, Session>()
    for (const [name, files] of await listed()) {
      const before = known.get(name)
      if (left.has(name)) {
        if (before !== undefined) now.set(name, before)
        continue
      }
      const session = await lookAt(name, files, before)
      now.set(name, session)
      if (![...session.workspaces].some(other => isRelated(other, workspace))) continue
      session.byPath ??= await readWhole(session, files)
      for (const path of paths) {
        const writes = session.byPath.get(path) ?? []
        const others = found.get(path)
        if (others !== undefined) others.push(...writes)
        else if (writes.length > 0) found.set(path, [...writes])
      }
    }
    // Sessions whose files are gone are forgotten.
    known = now
    return found
  }

  /** The segment files of each session, in order. */
  async function listed(): Promise<ReadonlyMap<string, readonly Listed[]>> {
    const files = (await unlessRefused(fs.readdir(layout.packs)) ?? []).flatMap((file) => {
      const name = parseSegmentName(file)
      return name === undefined ? [] : [{ file, ...name }]
    })
    const facts = await Promise.all(files.map(({ file }) => unlessRefused(fs.stat(join(layout.packs, file)))))
    const sessions = new Map<string, Listed[]>()
    for (const [at, { file, session, segment }] of files.entries()) {
      const fact = facts[at]
      if (fact === undefined) continue
      const { size, mtimeMs, ino } = fact
      const same = sessions.get(session)
      if (same === undefined) sessions.set(session, [{ file, segment, size, mtimeMs, ino }])
      else same.push({ file, segment, size, mtimeMs, ino })
    }
    for (const segments of sessions.values()) segments.sort((a, b) => a.segment - b.segment)
    return new Map([...sessions].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Reads no more than headers. Segments that grew keep what was read of them. */
  async function lookAt(name: string, files: readonly Listed[], before: Session | undefined): Promise<Session> {
    const look = files.map(({ file, size, mtimeMs, ino }) => `${file} ${size} ${mtimeMs} ${ino}`).join('\n')
    if (before?.look === look) return before
    const segments = files.map(({ file, size, ino }): Segment =>
      before?.segments?.find(known => known.file === file && known.ino === ino && known.offset <= size)
        ?? { file, ino, header: undefined, nonce: undefined, offset: 0, number: 0, entries: [] })
    for (const [at, segment] of segments.entries()) if (segment.header === undefined) await readOn(segment, files[at]!.size, 'header')
    const headers = segments.flatMap(({ header }) => (header !== undefined && sessionFileName(header.session) === name ? [header] : []))
    return { look, workspaces: new Set(headers.map(({ workspace }) => workspace)), segments, byPath: undefined }
  }

  async function readWhole(session: Session, files: readonly Listed[]): Promise<NonNullable<Session['byPath']>> {
    const segments = session.segments ?? []
    for (const [at, segment] of segments.entries()) await readOn(segment, files[at]!.size, 'all')
    if (Date.now() - Math.max(...files.map(({ mtimeMs }) => mtimeMs)) > REST_MS) session.segments = undefined
    return foldOf(segments)
  }

  /** Reads from the place it was read to, up to the first frame that is not whole. */
  async function readOn(segment: Segment, size: number, what: 'header' | 'all'): Promise<void> {
    if (segment.offset === size) return
    await unlessRefused(withFile(fs, join(layout.packs, segment.file), async (opened) => {
      const read = windowed(opened)
      for (;;) {
        const head = readFrameHead(await read(segment.offset, frameHeaderBytes))
        const end = segment.offset + frameHeaderBytes + (head?.length ?? 0)
        const isNext = head !== undefined && end <= size && head.number >= segment.number && (segment.nonce === undefined || segment.nonce.equals(head.nonce))
        if (!isNext) return
        // The bytes of a blob are not asked for.
        if (head.kind === 'blob' ? segment.header === undefined : !take(segment, head, await read(segment.offset + frameHeaderBytes, head.length))) return
        Object.assign(segment, { nonce: head.nonce, number: head.number + 1, offset: end })
        if (what === 'header') return
      }
    }))
  }

  return {
    // One at a time: two readings of one file would take its entries twice.
    writesTo: (paths, ask) => {
      const mine = tail.then(() => writesTo(paths, ask))
      tail = mine.catch(() => undefined)
      return mine
    },
  }
}

function foldOf(segments: readonly Segment[]): NonNullable<Session['byPath']> {
  const session = segments.find(({ header }) => header !== undefined)!.header!.session
  const { paths, ops } = foldLedger(segments.flatMap(({ entries }) => entries))
  const byPath = new Map([...paths].map(([path, { records }]): [string, RecordedWrite[]] => [path,
    // Both sessions have booked such a change, and nobody knows whose it is.
    records.filter(({ doubt }) => doubt !== 'overlap').map(({ turn, before, after, origin, doubt, atMs }) =>
      ({ session, startSeq: turn.startSeq, before, after, origin, doubt, atMs }))]))
  for (const { begin, done } of ops) {
    const restored = new Set(done.outcomes.flatMap(({ path, result }) => (result === 'restored' ? [path] : [])))
    for (const { path, was, goal } of begin.rows) {
      if (!restored.has(path)) continue
      const write = { session, startSeq: Infinity, before: was, after: goal, origin: 'op' as const, doubt: undefined, atMs: begin.atMs }
      const writes = byPath.get(path)
      if (writes === undefined) byPath.set(path, [write])
      else writes.push(write)
    }
  }
  return byPath
}

/** False when the frame does not read. What a later version wrote in a whole frame is passed over. */
function take(one: Segment, head: FrameHead, payload: Buffer): boolean {
  if (!head.isWhole(payload)) return false
  if (head.number === 0 && head.kind !== 'header') return false
  if (head.kind === undefined || head.encoding !== 'raw') return one.header !== undefined
  const value = parseJson(payload)
  if (head.kind === 'header') {
    const parsed = v.safeParse(HeaderSchema, value)
    if (!parsed.success) return false
    one.header = parsed.output
    return true
  }
  if (one.header === undefined) return false
  if (!needed.has((value as { kind?: unknown } | undefined)?.kind)) return true
  const parsed = v.safeParse(JournalEntrySchema, value)
  if (parsed.success) one.entries.push(parsed.output)
  return true
}

/** Reads through a window that moves along, so that small frames cost no read each. */
function windowed(file: StoreFile): (offset: number, length: number) => Promise<Buffer> {
  let from = 0
  let bytes: Buffer = Buffer.alloc(0)
  return async (offset, length) => {
    if (offset < from || offset + length > from + bytes.length) {
      from = offset
      bytes = await readUpTo(file, offset, Math.max(length, WINDOW_BYTES))
    }
    return bytes.subarray(offset - from, offset - from + length)
  }
}

/** The same folder, or one inside the other. */
const isRelated = (a: string, b: string): boolean => a === b || isInside(a, b) || isInside(b, a)
const isInside = (path: string, folder: string): boolean => path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)

async function withFile(fs: StoreFs, path: string, work: (file: StoreFile) => Promise<void>): Promise<void> {
  const file = await fs.open(path, 'r')
  try {
    await work(file)
  } finally {
    await file.close()
  }
}

async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
