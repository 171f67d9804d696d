import { diffArrays } from 'diff/lib/diff/array.js'
import { splitLines } from './lines.ts'

/** Lines `oldStart … oldStart + oldCount - 1` became `newStart … newStart + newCount - 1`; numbers count from 0. */
export interface Change {
  readonly oldStart: number
  readonly oldCount: number
  readonly newStart: number
  readonly newCount: number
}

/** What turns one text into another, without the lines themselves: they are in the texts. */
export interface LineDiff {
  /** `too-different`: a bound was reached, and what differs is told as one change. */
  readonly kind: 'lines' | 'too-different'
  /** In the order of lines; between two of them at least one line is equal. */
  readonly changes: readonly Change[]
  readonly oldLines: number
  readonly newLines: number
  readonly added: number
  readonly removed: number
}

export type TextDiff = LineDiff | { readonly kind: 'binary' }

export interface Bounds {
  /** How long the search for equal lines may take. */
  readonly timeoutMs: number
  /** Lines removed and added that are searched for; time and memory grow with their square. */
  readonly maxEdits: number
}

export const defaultBounds: Bounds = { timeoutMs: 1000, maxEdits: 5000 }

/** How far git looks for a zero byte before it takes a file for text. */
const BINARY_PREFIX = 8000

export const looksBinary = (text: string): boolean => text.slice(0, BINARY_PREFIX).includes('\0')

/**
 * The fewest lines to remove and add that turn `before` into `after`, or one change over everything between the equal
 * beginning and the equal end where that cannot be found within the bounds.
 */
export function diffTexts(before: string, after: string, bounds: Bounds = defaultBounds): TextDiff {
  if (looksBinary(before) || looksBinary(after)) return { kind: 'binary' }
  const [oldLines, newLines] = numbered(splitLines(before), splitLines(after))
  const start = commonStart(oldLines, newLines)
  const end = commonEnd(oldLines, newLines, start)
  const oldMiddle = oldLines.slice(start, oldLines.length - end)
  const newMiddle = newLines.slice(start, newLines.length - end)
  const found = changesOf(oldMiddle, newMiddle, bounds)
  const changes = (found ?? [{ oldStart: 0, oldCount: oldMiddle.length, newStart: 0, newCount: newMiddle.length }])
    .map(change => ({ ...change, oldStart: change.oldStart + start, newStart: change.newStart + start }))
  return {
    kind: found === undefined ? 'too-different' : 'lines', changes, oldLines: oldLines.length, newLines: newLines.length,
    added: changes.reduce((sum, { newCount }) => sum + newCount, 0),
    removed: changes.reduce((sum, { oldCount }) => sum + oldCount, 0),
  }
}

/** Equal lines as equal numbers: comparing long lines again and again would cost more than the search. */
function numbered(...sides: readonly [readonly string[], readonly string[]]): [number[], number[]] {
  const numbers = new Map<string, number>()
  const numberOf = (line: string): number => {
    const known = numbers.get(line)
    if (known !== undefined) return known
    numbers.set(line, numbers.size)
    return numbers.size - 1
  }
  return [sides[0].map(numberOf), sides[1].map(numberOf)]
}

function commonStart(a: readonly number[], b: readonly number[]): number {
  let at = 0
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1
  return at
}

function commonEnd(a: readonly number[], b: readonly number[], start: number): number {
  const most = Math.min(a.length, b.length) - start
  let count = 0
  while (count < most && a[a.length - 1 - count] === b[b.length - 1 - count]) count += 1
  return count
}

/** How many of `lines` the other side does not have. */
function withoutMatch(lines: readonly number[], other: readonly number[]): number {
  const there = new Set(other)
  return lines.filter(line => !there.has(line)).length
}

/** Undefined when a bound was reached. */
function changesOf(before: number[], after: number[], { timeoutMs, maxEdits }: Bounds): Change[] | undefined {
  if (before.length === 0 && after.length === 0) return []
  const alone = withoutMatch(before, after) + withoutMatch(after, before)
  // No line is on both sides, so there is nothing to search for.
  if (alone === before.length + after.length) return [{ oldStart: 0, oldCount: before.length, newStart: 0, newCount: after.length }]
  // At least these go and come; a search would only find that out slowly.
  if (alone > maxEdits) return undefined
  const runs = diffArrays(before, after, { timeout: timeoutMs, maxEditLength: maxEdits })
  if (runs === undefined) return undefined
  const changes: Change[] = []
  let oldAt = 0
  let newAt = 0
  let open: Change | undefined
  for (const { count, added, removed } of runs) {
    if (!added && !removed) {
      if (open !== undefined) changes.push(open)
      open = undefined
      oldAt += count
      newAt += count
      continue
    }
    open ??= { oldStart: oldAt, oldCount: 0, newStart: newAt, newCount: 0 }
    open = added ? { ...open, newCount: open.newCount + count } : { ...open, oldCount: open.oldCount + count }
    if (added) newAt += count
    else oldAt += count
  }
  if (open !== undefined) changes.push(open)
  return changes
}
