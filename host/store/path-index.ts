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

/** One change of a path by a session, as its journal has it and its own rollbacks left it. */
export interface RecordedWrite {
  readonly session: SessionId
  /** `turn/start` of the root turn it is booked on. */
  readonly startSeq: Seq
  readonly before: FileState
  readonly after: FileState | undefined
  readonly origin: 'tool' | 'shell'
  readonly doubt: ChangeEntry['doubt']
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

/** What one segment file said when it was last read, and where to go on. */
interface Known {
  readonly ino: number
  /** Size and time of the file then; undefined when it ended inside a frame, which may be a write under way. */
  look: string | undefined
  header: Pick<SegmentHeader, 'session' | 'workspace'> | undefined
  nonce: Buffer | undefined
  offset: number
  number: number
  readonly entries: JournalEntry[]
}

interface Writes {
  /** Which files, how far read. */
  readonly key: string
  readonly byPath: ReadonlyMap<string, readonly RecordedWrite[]>
}

/** A frame's header and a journal entry or two; a blob's payload is stepped over. */
const WINDOW_BYTES = 8 * 1024
/** Record 0, as far as it matters here. */
const HeaderSchema = v.object({ format: v.literal(formatVersion), session: v.pipe(v.string(), v.transform(sessionId)), workspace: v.string() })
/** What a fold of changes and rollbacks needs. */
const needed: ReadonlySet<unknown> = new Set(['before', 'after', 'change', 'op-begin', 'op-done', 'op-taken-back'])

/** Touches no disk before the first question. One for the life of the plugin: what was read is kept. */
export function makePathIndex({ layout, fs = nodeFs }: { readonly layout: Pick<StoreLayout, 'packs'>; readonly fs?: StoreFs }): PathIndex {
  let known = new Map<string, Known>()
  const folded = new Map<SessionId, Writes>()
  let tail: Promise<unknown> = Promise.resolve()

  async function writesTo(paths: ReadonlySet<string>, { workspace, except }: Parameters<PathIndex['writesTo']>[1]) {
    const found = new Map<string, RecordedWrite[]>()
    const left = new Set([...except].map(sessionFileName))
    for (const segments of (await sessionsOf(workspace, left)).values()) {
      for (const [path, writes] of writesOf(segments)) {
        if (!paths.has(path)) continue
        const others = found.get(path)
        if (others === undefined) found.set(path, [...writes])
        else others.push(...writes)
      }
    }
    return found
  }

  /** The segments of each session of the workspace, in order. */
  async function sessionsOf(workspace: string, left: ReadonlySet<string>): Promise<ReadonlyMap<string, readonly Known[]>> {
    const names = (await unlessRefused(fs.readdir(layout.packs)) ?? []).flatMap((file) => {
      const name = parseSegmentName(file)
      return name === undefined ? [] : [{ file, ...name }]
    }).sort((a, b) => (a.session === b.session ? a.segment - b.segment : a.session < b.session ? -1 : 1))
    const facts = await Promise.all(names.map(({ file }) => unlessRefused(fs.stat(join(layout.packs, file)))))
    const now = new Map<string, Known>()
    const sessions = new Map<string, Known[]>()
    for (const [at, { file, session }] of names.entries()) {
      const fact = facts[at]
      if (fact === undefined) continue
      const before = known.get(file)
      const one: Known = before?.ino === fact.ino && before.offset <= fact.size ? before
        : { ino: fact.ino, look: undefined, header: undefined, nonce: undefined, offset: 0, number: 0, entries: [] }
      now.set(file, one)
      if (left.has(session)) continue
      await readOn(one, file, fact, workspace)
      if (one.header === undefined || !isRelated(one.header.workspace, workspace) || sessionFileName(one.header.session) !== session) continue
      sessions.set(session, [...sessions.get(session) ?? [], one])
    }
    // Files that are gone are forgotten.
    known = now
    return sessions
  }

  /** Reads what lies behind the place it was read to, up to the first frame that is not whole. */
  async function readOn(one: Known, file: string, { size, mtimeMs }: FileFacts, workspace: string): Promise<void> {
    const look = `${size} ${mtimeMs}`
    if (one.look === look || (one.header !== undefined && !isRelated(one.header.workspace, workspace))) return
    await unlessRefused(withFile(fs, join(layout.packs, file), async (opened) => {
      const read = windowed(opened)
      for (;;) {
        const head = readFrameHead(await read(one.offset, frameHeaderBytes))
        const end = one.offset + frameHeaderBytes + (head?.length ?? 0)
        if (head === undefined || end > size || head.number < one.number || (one.nonce !== undefined && !one.nonce.equals(head.nonce))) break
        // The bytes of a blob are not asked for.
        if (head.kind === 'blob' ? one.header === undefined : !take(one, head, await read(one.offset + frameHeaderBytes, head.length))) break
        Object.assign(one, { nonce: head.nonce, number: head.number + 1, offset: end })
        if (!isRelated(one.header!.workspace, workspace)) return
      }
      one.look = one.offset === size ? look : undefined
    }))
  }

  function writesOf(segments: readonly Known[]): Writes['byPath'] {
    const { session } = segments[0]!.header!
    const key = segments.map(({ ino, offset }) => `${ino}:${offset}`).join(' ')
    const before = folded.get(session)
    if (before?.key === key) return before.byPath
    const byPath = new Map([...foldLedger(segments.flatMap(({ entries }) => entries)).paths].map(([path, { records }]) => [path,
      // Both sessions have booked such a change, and nobody knows whose it is.
      records.filter(({ doubt }) => doubt !== 'overlap').map(({ turn, before: was, after, origin, doubt, atMs }): RecordedWrite =>
        ({ session, startSeq: turn.startSeq, before: was, after, origin, doubt, atMs }))] as const))
    folded.set(session, { key, byPath })
    return byPath
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

/** False when the frame does not read. What a later version wrote in a whole frame is passed over. */
function take(one: Known, head: FrameHead, payload: Buffer): boolean {
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
