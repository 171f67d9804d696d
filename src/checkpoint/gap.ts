import * as v from 'valibot'

const gapReasons = [
  'no-record', // calls that may have written and left no record
  'store-hole', // records that are missing or damaged
  'late', // changes after their turn had ended
  'command', // commands whose changes nobody looked for
  'over-budget', // a workspace that could not be looked at whole around a command: a budget, a repository that came or went, names that are no text
  'too-large', // files over the size limit that changed while a command ran
  'unreadable', // files that could not be read while a command ran
  'job-running', // a command that went on in the background: what it changed later is not covered
] as const

/** Names given per gap; the count goes on. */
export const MAX_GAP_NAMES = 20

/** A change we know or must suspect and cannot vouch for. `names`: tool names or paths, each once, at most `MAX_GAP_NAMES`. */
export const GapSchema = v.object({
  reason: v.picklist(gapReasons),
  count: v.pipe(v.number(), v.integer(), v.minValue(0)),
  names: v.array(v.string()),
})
export type Gap = v.InferOutput<typeof GapSchema>
