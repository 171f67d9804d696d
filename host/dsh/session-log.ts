/**
 * Contract: a session's event log and surface. DSH core/session (index.ts, surface.ts, types.ts).
 * We rely on: events readable as an array (`events`) or a snapshot (`snapshotEvents`); one
 * `user/message` append with a `replace` surfaceOp that lists every shadowed node; a message source of
 * exactly the members a later log migration accepts. What would break us: a new spelling of either.
 */
import type { SessionId, Seq } from '../../src/ids.ts'
import { sessionId } from '../../src/ids.ts'
import { MARKER_PLUGIN } from '../../src/surface/marker.ts'
import type { LogEvent } from '../../src/turn/log-event.ts'
import type { ForeignSession, ForeignSessions } from './host-types.ts'

/** First log format whose sources are named by their producer, `{kind: 'plugin:<name>'}`. */
const PRODUCER_SOURCE_FORMAT = 4
/** First log format whose replace op names its range `startSeq` / `endSeq`. */
const SEQ_RANGE_FORMAT = 3

/** All events, oldest first. Throws where neither spelling is there: an empty log would look like an empty session. */
export function readEvents(session: ForeignSession): readonly LogEvent[] {
  if (Array.isArray(session.events)) return session.events as readonly LogEvent[]
  if (typeof session.snapshotEvents === 'function') return session.snapshotEvents() as readonly LogEvent[]
  throw new Error(`session log: ${session.id} has neither events nor snapshotEvents`)
}

export const idOf = (session: ForeignSession): SessionId => sessionId(session.id)

/** Changes when a replacement changes the surface; a command or a title does not move it. */
export const surfaceGeneration = ({ surface }: ForeignSession): number => surface.replaceGeneration ?? surface.contentGeneration ?? 0

/** Events inherited from the parent of a fork: those with a lower seq are the parent's own. */
export const inheritedLength = ({ header }: ForeignSession): number => header.seedLength ?? header.inheritedEventCount ?? 0

/**
 * Exactly the members that every log migration accepts. A wrong spelling passes `append` and makes the
 * session unreadable or unwritable afterwards, so the format decides and nothing is ever added here.
 */
export const markerSource = (format: number): { kind: string; plugin?: string } =>
  format >= PRODUCER_SOURCE_FORMAT ? { kind: `plugin:${MARKER_PLUGIN}` } : { kind: 'plugin', plugin: MARKER_PLUGIN }

export interface MarkerRequest {
  readonly messageId: string
  readonly text: string
  /** Shadowed surface nodes in surface order, not empty. */
  readonly nodes: readonly Seq[]
  /** Their price for the host's token projections, when the host has a token meter. */
  readonly tokens: number | undefined
}

/**
 * Appends the marker that takes the place of `nodes`; returns its seq. Synchronous throughout: the price
 * event is a claim on the very next event, and anything in between would void it. Throws as `append` does;
 * then the surface is as it was.
 */
export function appendMarker(session: ForeignSession, { messageId, text, nodes, tokens }: MarkerRequest): Seq {
  const start = nodes[0]
  const end = nodes.at(-1)
  if (start === undefined || end === undefined) throw new Error(`session log: ${session.id} has no nodes to replace`)
  const format = session.header.version
  const message = { id: messageId, role: 'user', source: markerSource(format), content: [{ type: 'text', text }] }
  const spellings = [{ op: 'replace', start, end }, { op: 'replace', startSeq: start, endSeq: end }]
  const [likely, other] = format >= SEQ_RANGE_FORMAT ? spellings.toReversed() : spellings
  const append = (surfaceOp: unknown): Seq => session.append('user/message', message, { surfaceOp, sourceEventSeqs: [...nodes] }).seq
  if (tokens !== undefined) {
    session.append('compaction/prune', { shadowedRange: { start, end }, shadowedSeqs: [...nodes], shadowedTokenCount: tokens })
  }
  try {
    return append(likely)
  } catch (error) {
    // The host checks the op before it changes anything, so the other spelling is a safe second try.
    if (!(error instanceof Error) || !error.message.includes('invalid replace surfaceOp')) throw error
    return append(other)
  }
}

/** Price of surface nodes by the host's token meter; undefined where it has none or does not know a node. */
export function priceOf(meter: unknown, session: ForeignSession, nodes: readonly Seq[]): number | undefined {
  const measure = (meter as { measure?: (session: unknown) => unknown } | undefined)?.measure
  if (typeof measure !== 'function') return undefined
  const measured = measure.call(meter, session) as { nodes?: readonly { seq?: number; tokens?: number; heuristicTokens?: number }[] }
  const prices = new Map((measured.nodes ?? []).map(node => [node.seq, node.tokens ?? node.heuristicTokens]))
  const sum = nodes.reduce((total, seq) => total + (prices.get(seq) ?? NaN), 0)
  return Number.isFinite(sum) ? sum : undefined
}

/** Waits until the log is on disk. False when nothing durable is mounted. */
export const flush = (sessions: ForeignSessions, session: ForeignSession): Promise<boolean> => sessions.flush(session)
