import type { Seq } from '../ids.ts'
import type { LogEvent } from '../turn/log-event.ts'
import { markerOf } from './marker.ts'

/**
 * What the model sees, folded from a log. DSH keeps the same list in `session.surface.nodes`
 * (core/session surface.ts): an `append` adds a node at the end; a `replace` puts its own seq in the
 * place of a range. So a replacement has a high seq at a low position, and comparing seqs would cut
 * too much; each node therefore carries the interval of first-hand events it stands for.
 */
export interface SurfaceNode {
  readonly seq: Seq
  /** Oldest and newest first-hand event this node stands for; its own seq for an appended one. */
  readonly min: Seq
  readonly max: Seq
  readonly by: 'message' | 'system' | 'marker' | 'replacement'
}

export interface Replacement {
  readonly by: 'marker' | 'replacement'
  readonly seq: Seq
  readonly shadowed: readonly Seq[]
}

export interface Surface {
  readonly nodes: readonly SurfaceNode[]
  readonly replacements: readonly Replacement[]
}

/** The replaced range in either spelling, or undefined for an append. */
function rangeOf(surfaceOp: unknown): { start: Seq; end: Seq } | undefined {
  if (typeof surfaceOp !== 'object' || surfaceOp === null) return undefined
  const op = surfaceOp as { op?: unknown; start?: Seq; end?: Seq; startSeq?: Seq; endSeq?: Seq }
  const start = op.start ?? op.startSeq
  const end = op.end ?? op.endSeq
  return op.op === 'replace' && typeof start === 'number' && typeof end === 'number' ? { start, end } : undefined
}

/** Folds a whole log, oldest event first. A replacement whose range is not on the surface is left out, as DSH would have refused it. */
export function foldSurface(events: readonly LogEvent[]): Surface {
  const nodes: SurfaceNode[] = []
  const replacements: Replacement[] = []
  for (const event of events) {
    if (event.surfaceOp === undefined) continue
    const range = rangeOf(event.surfaceOp)
    const isMarker = markerOf(event) !== undefined
    if (range === undefined) {
      const by = isMarker ? 'marker' : event.type === 'system/message' ? 'system' : 'message'
      nodes.push({ seq: event.seq, min: event.seq, max: event.seq, by })
      continue
    }
    const first = nodes.findIndex(node => node.seq === range.start)
    const last = nodes.findIndex(node => node.seq === range.end)
    if (first < 0 || last < first) continue
    const shadowed = nodes.slice(first, last + 1)
    // One system message over exactly the old one is a new system prompt, not a replacement of turns.
    const by = event.type === 'system/message' ? 'system' : isMarker ? 'marker' : 'replacement'
    nodes.splice(first, shadowed.length, {
      seq: event.seq, by,
      min: Math.min(...shadowed.map(node => node.min)),
      max: Math.max(...shadowed.map(node => node.max)),
    })
    if (by !== 'system') replacements.push({ by, seq: event.seq, shadowed: shadowed.map(node => node.seq) })
  }
  return { nodes, replacements }
}
