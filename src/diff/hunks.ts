import type { Change, LineDiff } from './line-diff.ts'

/**
 * One line as shown. Line numbers count from 1; a line that only one side has, has one. `pair` is the line of the other
 * side that stands in its place, where there is one: the nth that came for the nth that went.
 */
export type DiffLine =
  | { readonly kind: 'same'; readonly old: number; readonly new: number }
  | { readonly kind: 'removed'; readonly old: number; readonly pair?: number }
  | { readonly kind: 'added'; readonly new: number; readonly pair?: number }

/** Changes that stand close together, with the equal lines around them. Starts count from 0. */
export interface Hunk {
  readonly oldStart: number
  readonly oldCount: number
  readonly newStart: number
  readonly newCount: number
  readonly changes: readonly Change[]
}

/** Equal lines shown on either side of a change. */
export const CONTEXT = 3

/** Changes with at most twice `context` equal lines between them are one hunk, as in a patch of git. */
export function hunksOf({ changes, oldLines, newLines }: LineDiff, context = CONTEXT): Hunk[] {
  const groups: Change[][] = []
  for (const change of changes) {
    const group = groups.at(-1)
    const last = group?.at(-1)
    if (group !== undefined && last !== undefined && change.oldStart - last.oldStart - last.oldCount <= 2 * context) group.push(change)
    else groups.push([change])
  }
  return groups.map((group) => {
    const first = group[0]!
    const last = group.at(-1)!
    const above = Math.min(context, first.oldStart)
    const below = Math.min(context, oldLines - last.oldStart - last.oldCount, newLines - last.newStart - last.newCount)
    const oldStart = first.oldStart - above
    const newStart = first.newStart - above
    return {
      oldStart, newStart, changes: group,
      oldCount: last.oldStart + last.oldCount + below - oldStart, newCount: last.newStart + last.newCount + below - newStart,
    }
  })
}

/** A piece of a view, top to bottom: lines to show, or equal lines between hunks that may stay folded. Starts count from 0. */
export type Segment =
  | { readonly kind: 'hunk'; readonly lines: readonly DiffLine[] }
  | { readonly kind: 'fold'; readonly oldStart: number; readonly newStart: number; readonly count: number }

/** Every line of both texts exactly once, equal ones far from a change in folds. No changes: one fold. */
export function segmentsOf(diff: LineDiff, context = CONTEXT): Segment[] {
  const segments: Segment[] = []
  let oldAt = 0
  let newAt = 0
  const fold = (until: number): void => {
    if (until > oldAt) segments.push({ kind: 'fold', oldStart: oldAt, newStart: newAt, count: until - oldAt })
  }
  for (const hunk of hunksOf(diff, context)) {
    fold(hunk.oldStart)
    segments.push({ kind: 'hunk', lines: linesOf(hunk) })
    oldAt = hunk.oldStart + hunk.oldCount
    newAt = hunk.newStart + hunk.newCount
  }
  fold(diff.oldLines)
  return segments
}

export const linesOfFold = ({ oldStart, newStart, count }: Extract<Segment, { kind: 'fold' }>): DiffLine[] => same(oldStart, newStart, count)

/** The lines of a hunk; of a change, those removed come first. */
export function linesOf({ oldStart, oldCount, newStart, changes }: Hunk): DiffLine[] {
  const lines: DiffLine[] = []
  let oldAt = oldStart
  let newAt = newStart
  for (const change of changes) {
    for (const line of same(oldAt, newAt, change.oldStart - oldAt)) lines.push(line)
    oldAt = change.oldStart
    newAt = change.newStart
    for (let at = 1; at <= change.oldCount; at += 1) lines.push({ kind: 'removed', old: oldAt + at, ...(at <= change.newCount ? { pair: newAt + at } : {}) })
    for (let at = 1; at <= change.newCount; at += 1) lines.push({ kind: 'added', new: newAt + at, ...(at <= change.oldCount ? { pair: oldAt + at } : {}) })
    oldAt += change.oldCount
    newAt += change.newCount
  }
  for (const line of same(oldAt, newAt, oldStart + oldCount - oldAt)) lines.push(line)
  return lines
}

const same = (oldAt: number, newAt: number, count: number): DiffLine[] =>
  Array.from({ length: count }, (_, at) => ({ kind: 'same', old: oldAt + at + 1, new: newAt + at + 1 }))
