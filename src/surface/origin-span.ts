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

/** A replacement that took effect; `min` and `max` as in the node it made, which may itself be shadowed by now. */
export interface Replacement {
  readonly by: 'marker' | 'replacement'
  readonly seq: Seq
  readonly min: Seq
  readonly max: Seq
  readonly shadowed: readonly Seq[]
}

export interface Surface {
  readonly nodes: readonly SurfaceNode[]
  readonly replacements: readonly Replacement[]
}

/** The replaced range in either spelling, or undefined when `surfaceOp` is no replacement we can read. */
function rangeOf(surfaceOp: unknown): { start: Seq; end: Seq } | undefined {
  if (typeof surfaceOp !== 'object' || surfaceOp === null) return undefined
  const op = surfaceOp as { op?: unknown; start?: Seq; end?: Seq; startSeq?: Seq; endSeq?: Seq }
  const start = op.start ?? op.startSeq
  const end = op.end ?? op.endSeq
  return op.op === 'replace' && typeof start === 'number' && typeof end === 'number' ? { start, end } : undefined
}

/**
 * Folds a whole log, oldest event first. An operation that does not read and a replacement whose range is not
 * on the surface are left out: DSH refuses both, and taking them for an append would put a node where none is.
 */
export function foldSurface(events: readonly LogEvent[]): Surface {
  const nodes: SurfaceNode[] = []
  const replacements: Replacement[] = []
  /** Where each node stands: a long session has thousands of both, so a search per replacement is too slow. */
  const places = new Map<Seq, number>()
  for (const event of events) {
    if (event.surfaceOp === 'append') {
      places.set(event.seq, nodes.length)
      nodes.push({ seq: event.seq, min: event.seq, max: event.seq, by: event.type === 'system/message' ? 'system' : 'message' })
      continue
    }
    const range = rangeOf(event.surfaceOp)
    if (range === undefined) continue
    const first = places.get(range.start)
    const last = places.get(range.end)
    if (first === undefined || last === undefined || last < first) continue
    const shadowed = nodes.slice(first, last + 1)
    const min = shadowed.reduce((least, node) => Math.min(least, node.min), Infinity)
    const max = shadowed.reduce((most, node) => Math.max(most, node.max), -Infinity)
    // One system message over exactly the old one is a new system prompt, not a replacement of turns.
    const isPrompt = event.type === 'system/message' && shadowed.length === 1 && shadowed[0]!.by === 'system'
    const by = isPrompt ? 'system' : markerOf(event) === undefined ? 'replacement' : 'marker'
    nodes.splice(first, shadowed.length, { seq: event.seq, min, max, by })
    for (const { seq } of shadowed) places.delete(seq)
    // One for one, as a pruner replaces results, moves nothing.
    const moved = shadowed.length === 1 ? first + 1 : nodes.length
    for (let at = first; at < moved; at++) places.set(nodes[at]!.seq, at)
    if (by !== 'system') replacements.push({ by, seq: event.seq, min, max, shadowed: shadowed.map(node => node.seq) })
  }
  return { nodes, replacements }
}
