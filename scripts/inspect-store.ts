import { parseArgs } from 'node:util'
import { basename, join } from 'node:path'
import type { JournalEntry } from '../src/checkpoint/journal-entry.ts'
import type { FileState } from '../src/checkpoint/file-state.ts'
import { sessionId, type Digest, type SessionId } from '../src/ids.ts'
import { decodeBlob } from '../host/store/blob-encoding.ts'
import type { Frame } from '../host/store/frame.ts'
import { emptyView, readSegment, type SegmentView } from '../host/store/segment.ts'
import { joinSegments, segmentBases, type Hole } from '../host/store/session-records.ts'
import { openStore } from '../host/store/store.ts'
import { nodeFs } from '../host/store/store-fs.ts'
import { parseSegmentName, sessionFileName, storeLayout, type StoreLayout } from '../host/store/store-layout.ts'

/**
 * Prints and verifies what is stored: `inspect-store.ts [--home DIR] [--root DIR] [--json] [session]`.
 * Without a session it lists all and verifies each. Reads only. Exit code 1 when something is damaged;
 * a torn tail is what a crash leaves and no damage by itself, but it is printed.
 * `inspect-store.ts <session> --bytes <digest>` writes the raw bytes of one stored state to standard
 * output: any version that was ever recorded can be had, whatever became of it. The first digits that a
 * record shows are enough.
 */
interface RecordReport {
  readonly position: number
  readonly segment: number
  readonly number: number
  readonly kind: string
  readonly encoding: string
  readonly bytes: number
  readonly summary: string
}
interface SegmentReport {
  readonly file: string
  readonly bytes: number
  readonly records: number
  readonly tornBytes: number
}
interface SessionReport {
  readonly session: SessionId
  readonly workspaces: readonly string[]
  readonly segments: readonly SegmentReport[]
  readonly records: readonly RecordReport[]
  readonly holes: readonly Hole[]
  /** Blobs that do not decode to their digest, and file states whose bytes are not there. */
  readonly damage: readonly string[]
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { home: { type: 'string' }, root: { type: 'string' }, json: { type: 'boolean', default: false }, bytes: { type: 'string' } },
  })
  const env = values.home === undefined ? process.env : { ...process.env, DSH_HOME: values.home }
  const layout = storeLayout({ root: values.root, env })
  const known = await openStore({ root: layout.root }).sessions()
  const wanted = positionals[0]
  if (values.bytes !== undefined) return writeBytes(layout, wanted, values.bytes)
  const sessions = wanted === undefined ? known : [sessionId(wanted)]
  const reports: SessionReport[] = []
  for (const session of sessions) reports.push(await inspectSession(layout, session))
  const strays = wanted === undefined ? await strayFiles(layout, known) : []

  if (values.json) console.log(JSON.stringify({ root: layout.root, sessions: reports, strays }, null, 2))
  else for (const line of describe(layout, reports, strays, wanted !== undefined)) console.log(line)
  const isMissing = wanted !== undefined && reports[0]?.segments.length === 0
  return isMissing || strays.length > 0 || reports.some(isDamaged) ? 1 : 0
}

async function writeBytes(layout: StoreLayout, session: string | undefined, prefix: string): Promise<number> {
  const refuse = (why: string): number => {
    console.error(why)
    return 1
  }
  if (session === undefined || !/^[0-9a-f]{8,64}$/.test(prefix)) return refuse('give a session and at least 8 digits of a digest')
  const journal = openStore({ root: layout.root }).journal(sessionId(session), '/')
  const records = await journal.read()
  if (!records.ok) return refuse(`the store cannot be read: ${records.failure.facts.detail}`)
  const digests = records.value.entries.flatMap(({ entry }) => statesOf(entry)).flatMap(state => (state.kind === 'file' ? [state.digest] : []))
  const found = [...new Set(digests)].filter(digest => digest.startsWith(prefix))
  if (found.length !== 1) return refuse(found.length === 0 ? `no recorded state of ${session} has the digest ${prefix}` : `${found.length} digests begin with ${prefix}`)
  const bytes = await journal.readBlob(found[0]!)
  if (bytes === undefined) return refuse(`the bytes of ${found[0]} are missing or damaged`)
  process.stdout.write(bytes)
  return 0
}

const isDamaged = (report: SessionReport): boolean => report.holes.length > 0 || report.damage.length > 0

async function inspectSession(layout: StoreLayout, session: SessionId): Promise<SessionReport> {
  const read: { view: SegmentView; file: string; bytes: number; frames: readonly Frame[] }[] = []
  for (const name of await packNames(layout)) {
    const parsed = parseSegmentName(name)
    if (parsed?.session !== sessionFileName(session)) continue
    const file = join(layout.packs, name)
    const view = emptyView(parsed.segment)
    const { size } = await nodeFs.stat(file)
    read.push({ view, file, bytes: size, frames: await readSegment(nodeFs, file, size, session, view) })
  }
  read.sort((a, b) => a.view.segment - b.view.segment)
  const views = read.map(({ view }) => view)
  const joined = joinSegments(views)
  const bases = segmentBases(views)
  const entries = new Map(joined.entries.map(({ position, entry }) => [position, entry]))
  const blobs = new Map(read.flatMap(({ view, frames }) => view.blobs.map(({ digest, place }) =>
    [digest, frames.find((frame) => frame.number === place.number)!] as const)))

  const damage: string[] = []
  const raw = (digest: Digest): Promise<Buffer | undefined> => {
    const frame = blobs.get(digest)
    return frame?.encoding ? decodeBlob(frame.encoding, frame.payload, raw, digest) : Promise.resolve(undefined)
  }
  const whole = new Set<Digest>()
  for (const digest of blobs.keys()) {
    if (await raw(digest)) whole.add(digest)
    else damage.push(`blob ${digest} does not decode to its digest`)
  }
  for (const [position, entry] of entries) {
    for (const state of statesOf(entry)) {
      if (state.kind !== 'file' || whole.has(state.digest)) continue
      damage.push(`record ${position} (${entry.kind}) names ${state.bytes} bytes ${state.digest} that are not stored`)
    }
  }
  return {
    session,
    workspaces: [...new Set(views.flatMap(({ header }) => header?.workspace ?? []))],
    segments: read.map(({ view, file, bytes }) =>
      ({ file: basename(file), bytes, records: view.end.number, tornBytes: bytes - view.end.offset })),
    records: read.flatMap(({ view, frames }, index) => frames.map((frame) => ({
      position: bases[index]! + frame.number + 1,
      segment: view.segment,
      number: frame.number,
      kind: frame.kind ?? 'unknown',
      encoding: frame.encoding ?? 'unknown',
      bytes: frame.payload.length,
      summary: summaryOf(view, frame, entries.get(bases[index]! + frame.number + 1)),
    }))),
    holes: joined.holes,
    damage,
  }
}

const packNames = (layout: StoreLayout): Promise<string[]> =>
  nodeFs.readdir(layout.packs).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  })

/** Segment files with whole records and no readable first one. Without any, a crash at the first write left them. */
async function strayFiles(layout: StoreLayout, known: readonly SessionId[]): Promise<readonly string[]> {
  const names = new Set(known.map(sessionFileName))
  const strays: string[] = []
  for (const name of await packNames(layout)) {
    const parsed = parseSegmentName(name)
    if (!parsed || names.has(parsed.session)) continue
    const file = join(layout.packs, name)
    const { size } = await nodeFs.stat(file)
    const frames = await readSegment(nodeFs, file, size, sessionId(''), emptyView(parsed.segment))
    if (frames.length > 0) strays.push(name)
  }
  return strays
}

/** The file states an entry rests on: each must have its bytes in the store. */
function statesOf(entry: JournalEntry): readonly FileState[] {
  switch (entry.kind) {
    case 'before':
    case 'after':
      return [entry.state]
    case 'change':
      return [entry.before, entry.after]
    case 'op-begin':
      return entry.rows.flatMap(({ was, goal }) => [was, goal])
    default:
      return []
  }
}

function summaryOf(view: SegmentView, frame: Frame, entry: JournalEntry | undefined): string {
  if (frame.kind === 'blob') return frame.payload.toString('hex', 0, 32)
  if (frame.kind === 'header') return view.header ? `${view.header.session} in ${view.header.workspace}` : 'does not read'
  return entry ? entrySummary(entry) : 'does not read'
}

function entrySummary(entry: JournalEntry): string {
  switch (entry.kind) {
    case 'before':
      return `before ${entry.call.tool} ${entry.path}: ${stateSummary(entry.state)} (turn ${entry.turn.number}, ${entry.id})`
    case 'after':
      return `after ${entry.of}: ${stateSummary(entry.state)}`
    case 'change':
      return `change ${entry.path}: ${stateSummary(entry.before)} -> ${stateSummary(entry.after)} (turn ${entry.turn.number}, ${entry.id})`
    case 'bracket':
      return `bracket ${entry.call.tool} ${JSON.stringify(entry.words)} by ${entry.how} (turn ${entry.turn.number})`
    case 'outside':
      return `outside ${entry.path}: ${stateSummary(entry.state)}`
    case 'seen':
      return `seen ${entry.call.tool} ${entry.call.callId} (turn ${entry.turn.number})`
    case 'op-begin':
      return `op-begin ${entry.op} ${entry.act} ${entry.scope}: ${entry.rows.length} files`
    default:
      return `${entry.kind} ${entry.op}: ${entry.outcomes.length} outcomes`
  }
}

const stateSummary = (state: FileState): string =>
  state.kind === 'file' ? `${state.bytes} bytes ${state.digest.slice(0, 12)} mode ${state.mode.toString(8)}`
    : state.kind === 'unknown' ? `unknown, ${state.reason}` : state.kind

function* describe(
  layout: StoreLayout,
  reports: readonly SessionReport[],
  strays: readonly string[],
  withRecords: boolean,
): Iterable<string> {
  yield `store ${layout.root}`
  if (reports.length === 0) yield 'no sessions'
  for (const report of reports) {
    const bytes = report.segments.reduce((sum, segment) => sum + segment.bytes, 0)
    yield `session ${report.session}: ${report.segments.length} segments, ${report.records.length} records, ${bytes} bytes`
    for (const workspace of report.workspaces) yield `  workspace ${workspace}`
    for (const { file, bytes: size, records, tornBytes } of report.segments) {
      yield `  segment ${file}: ${records} records, ${size} bytes${tornBytes > 0 ? `, torn tail of ${tornBytes} bytes` : ''}`
    }
    if (withRecords) for (const record of report.records) yield describeRecord(record)
    for (const hole of report.holes) yield `  HOLE after record ${hole.afterPosition}: ${hole.detail}`
    for (const line of report.damage) yield `  DAMAGE ${line}`
    yield isDamaged(report) ? '  damaged' : '  sound'
  }
  for (const file of strays) yield `  DAMAGE ${file}: no readable session in it`
}

const describeRecord = ({ position, kind, encoding, bytes, summary }: RecordReport): string =>
  ['', String(position).padStart(6), kind.padEnd(7), encoding.padEnd(10), String(bytes).padStart(9), summary].join('  ')

process.exitCode = await main()
