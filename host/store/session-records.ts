import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { SegmentView } from './segment.ts'

/** A place in a session where records are missing. What lies around it cannot be taken as complete. */
export interface Hole {
  /** Position of the last record before it; 0 is the beginning. */
  readonly afterPosition: number
  readonly detail: string
  /** What is missing was written by processes that had ended before the next record's began. */
  readonly isOfEarlierRuns: boolean
}
export interface SessionRecords {
  readonly entries: readonly { readonly position: number; readonly entry: JournalEntry }[]
  readonly holes: readonly Hole[]
  /** Position of the last record. */
  readonly position: number
}

/** Position in front of each segment's record 0. A position counts all records of a session from 1, lost ones too. */
export function segmentBases(views: readonly SegmentView[]): readonly number[] {
  const bases: number[] = []
  let end = 0
  for (const view of views) {
    end = Math.max(end, view.header?.after.position ?? 0)
    bases.push(end)
    end += view.end.number
  }
  return bases
}

/**
 * Joins a session's segments (in order of their numbers) to one list, and finds what is missing between them.
 * `goneUpTo`: there were segments up to this number.
 */
export function joinSegments(views: readonly SegmentView[], goneUpTo = 0): SessionRecords {
  const entries: { position: number; entry: JournalEntry }[] = []
  const holes: Hole[] = []
  const bases = segmentBases(views)
  views.forEach((view, index) => {
    const before = views[index - 1]
    const lastPosition = before ? bases[index - 1]! + before.end.number : 0
    const hole = (detail: string, isOfEarlierRuns = false): void => void holes.push({ afterPosition: lastPosition, detail, isOfEarlierRuns })
    const missing = missingBetween(before?.segment ?? 0, view.segment)
    if (missing) hole(missing, view.header?.opensRun)
    const after = view.header?.after
    if (before && after?.segment === before.segment && after.records > before.end.number) {
      hole(`segment ${before.segment} ends after ${before.end.number} records, it had ${after.records}`)
    }
    for (const gap of view.holes) holes.push({ afterPosition: bases[index]! + gap.afterRecords, detail: gap.detail, isOfEarlierRuns: false })
    if (view.unreadable) {
      const detail = `segment ${view.segment} cannot be read: ${view.unreadable}`
      holes.push({ afterPosition: bases[index]! + view.end.number, detail, isOfEarlierRuns: false })
    }
    for (const { number, entry } of view.entries) entries.push({ position: bases[index]! + number + 1, entry })
  })
  const missing = missingBetween(views.at(-1)?.segment ?? 0, goneUpTo + 1)
  if (missing) holes.push({ afterPosition: endPosition(views), detail: missing, isOfEarlierRuns: false })
  return { entries, holes, position: endPosition(views) }
}

/** Long sessions lose segments by the hundred: one hole. */
function missingBetween(before: number, next: number): string | undefined {
  if (before + 1 >= next) return undefined
  return before + 2 === next ? `segment ${before + 1} is missing` : `segments ${before + 1} to ${next - 1} are missing`
}

/** Position of the last record. */
export function endPosition(views: readonly SegmentView[]): number {
  const last = views.at(-1)
  return last ? segmentBases(views).at(-1)! + last.end.number : 0
}
