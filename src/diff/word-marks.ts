import { diffArrays } from 'diff/lib/diff/array.js'

/** Part of a line: characters `start` to before `end`, in UTF-16 units. */
export interface Mark {
  readonly start: number
  readonly end: number
}

export interface LineMarks {
  readonly removed: readonly Mark[]
  readonly added: readonly Mark[]
}

/** Longer lines, and pairs with more words to exchange, get no marks. */
const MAX_LENGTH = 1000
const MAX_EDITS = 120
/** With less than this part of the longer line in common, marks would only make noise. */
const MIN_COMMON = 0.3

const none: LineMarks = { removed: [], added: [] }

/** Words, runs of blanks, and every other character for itself; ideographs make no words. */
const tokens = /(?:(?!\p{Ideographic})[\p{L}\p{N}\p{M}_])+|[^\S\r\n]+|[^]/gu

/** What differs inside a line that was changed: in `before` what went, in `after` what came. Both without line ends. */
export function wordMarks(before: string, after: string): LineMarks {
  if (before.length > MAX_LENGTH || after.length > MAX_LENGTH || before === after) return none
  const runs = diffArrays(before.match(tokens) ?? [], after.match(tokens) ?? [], { maxEditLength: MAX_EDITS })
  if (runs === undefined) return none
  const removed: Mark[] = []
  const added: Mark[] = []
  let oldAt = 0
  let newAt = 0
  let common = 0
  for (const run of runs) {
    const length = run.value.join('').length
    if (run.removed) removed.push({ start: oldAt, end: oldAt + length })
    else if (run.added) added.push({ start: newAt, end: newAt + length })
    else common += run.value.join('').trim().length
    if (!run.added) oldAt += length
    if (!run.removed) newAt += length
  }
  return common < MIN_COMMON * Math.max(before.trim().length, after.trim().length) ? none : { removed, added }
}
