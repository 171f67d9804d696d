import type { Seq } from '../ids.ts'
import type { Surface, SurfaceNode } from './origin-span.ts'

export type Cut =
  | { readonly kind: 'cut'; readonly nodes: readonly Seq[] }
  /** Nothing from the boundary on is on the surface. */
  | { readonly kind: 'nothing' }
  /** A replacement stands for events on both sides of the boundary; `by` says whose. */
  | { readonly kind: 'across'; readonly by: SurfaceNode['by'] }

/**
 * The surface nodes a truncation to before `startSeq` shadows, in surface order and without a gap, because
 * DSH replaces ranges. Never the system prompt: DSH refuses a replacement over node 0 from format 3 on.
 */
export function cutBefore(surface: Surface, startSeq: Seq): Cut {
  const nodes = surface.nodes[0]?.by === 'system' ? surface.nodes.slice(1) : surface.nodes
  const first = nodes.findIndex(node => node.max >= startSeq)
  const head = nodes[first]
  if (head === undefined) return { kind: 'nothing' }
  if (head.min < startSeq) return { kind: 'across', by: head.by }
  const cut = nodes.slice(first)
  // A node further on that reaches back over the boundary: the surface is not in the order we know.
  const crossing = cut.find(node => node.min < startSeq)
  if (crossing !== undefined) return { kind: 'across', by: crossing.by }
  return { kind: 'cut', nodes: cut.map(node => node.seq) }
}
