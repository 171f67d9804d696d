import * as v from 'valibot'

/** In the order a person is told of them. */
export const gapReasons = [
  'no-record', // calls that may have written and left no record
  'store-hole', // records that are missing or damaged
  'late', // changes after their turn had ended
  'command', // commands whose changes nobody looked for
  'over-budget', // a workspace that could not be looked at whole around a command: a budget, a repository that came or went, names that are no text
  'too-large', // files over the size limit that changed
  'unreadable', // files that changed and could not be read
  'special', // devices, sockets and pipes that came, went or changed
  'not-saved', // files that changed before their bytes were saved: over a budget, or kept in another form by git
  'capture-failed', // files that an error of ours kept from being saved
  'object-gone', // files whose record is there and whose bytes are not: dropped to keep the store within its limit, or damaged
  'job-running', // a command that goes on in the background: what it changes from now on is not seen yet
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
