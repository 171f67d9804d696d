import type { Seq } from '../ids.ts'
import type { Surface, SurfaceNode } from './origin-span.ts'

export type Cut =
  | { readonly kind: 'cut'; readonly nodes: readonly Seq[] }
  /** Nothing from the boundary on is on the surface. */
  | { readonly kind: 'nothing' }
  /** A replacement stands for events on both sides of the boundary; `by` says whose. */
  | { readonly kind: 'across'; readonly by: SurfaceNode['by'] }

/** Where a truncation falls on a surface. `from`: the place of its first node. */
export type Boundary =
  | { readonly kind: 'cut'; readonly from: number; readonly onlyMarkers: boolean }
  | Exclude<Cut, { kind: 'cut' }>

/**
 * A surface prepared for questions about many boundaries, because a timeline asks one for every turn and a long
 * session has thousands. Never the system prompt: DSH refuses a replacement over node 0 from format 3 on.
 */
export interface Boundaries {
  readonly nodes: readonly SurfaceNode[]
  before(startSeq: Seq): Boundary
}

/** Linear once, so that each question after it is cheap. */
export function boundariesOf(surface: Surface): Boundaries {
  const nodes = surface.nodes[0]?.by === 'system' ? surface.nodes.slice(1) : surface.nodes
  const newestUpTo = running(nodes, -Infinity, (most, node) => Math.max(most, node.max))
  const oldestFrom = running(nodes.toReversed(), Infinity, (least, node) => Math.min(least, node.min)).toReversed()
  const lastPlain = nodes.findLastIndex(node => node.by !== 'marker')
  return {
    nodes,
    before: (startSeq) => {
      const from = firstAtLeast(newestUpTo, startSeq)
      if (from === nodes.length) return { kind: 'nothing' }
      // Also a node further on that reaches back over the boundary: the surface is not in the order we know.
      if (oldestFrom[from]! < startSeq) {
        return { kind: 'across', by: nodes.find((node, at) => at >= from && node.min < startSeq)!.by }
      }
      return { kind: 'cut', from, onlyMarkers: lastPlain < from }
    },
  }
}

/** The surface nodes a truncation to before `startSeq` shadows, in surface order and without a gap, because DSH replaces ranges. */
export function cutBefore(surface: Surface, startSeq: Seq): Cut {
  const { nodes, before } = boundariesOf(surface)
  const boundary = before(startSeq)
  return boundary.kind === 'cut' ? { kind: 'cut', nodes: nodes.slice(boundary.from).map(node => node.seq) } : boundary
}

function running(nodes: readonly SurfaceNode[], first: number, next: (before: number, node: SurfaceNode) => number): number[] {
  let value = first
  return nodes.map(node => (value = next(value, node)))
}

/** First place in an ascending list with at least `value`; its length when there is none. */
function firstAtLeast(ascending: readonly number[], value: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ascending[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
