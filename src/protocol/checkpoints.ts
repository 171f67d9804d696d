import * as v from 'valibot'
import { comparedOrigins } from '../checkpoint/compare.ts'
import { FileStateSchema } from '../checkpoint/file-state.ts'

/** Rows of one reply; a longer comparison says how many more there are. */
export const MAX_COMPARED = 5000
/** Commands named per row. */
export const MAX_COMMANDS = 3

const count = v.pipe(v.number(), v.integer(), v.minValue(0))

/** One path at two points of the session. */
export const ComparedRowSchema = v.object({
  /** Absolute path on the host. */
  path: v.string(),
  /** Relative to the workspace when inside it. */
  shown: v.string(),
  before: FileStateSchema,
  after: FileStateSchema,
  origins: v.array(v.picklist(comparedOrigins)),
  /** First words of the commands during which it changed, each once. */
  commands: v.optional(v.array(v.string())),
})
export type ComparedRow = v.InferOutput<typeof ComparedRowSchema>

/** The end of a stretch of turns: after a later turn, or as things are on the disk now. Absent: the turn it begins with. */
export const untilOf = <Turn extends v.GenericSchema<number, number>>(turn: Turn) => v.optional(v.union([turn, v.literal('now')]))

export const checkpointEndpoints = <Session extends v.GenericSchema, Turn extends v.GenericSchema<number, number>>(sessionId: Session, turn: Turn) => ({
  /** Turns that changed the file at `path`, or a file whose path as shown has all of `words` in it, whatever their case. */
  history: {
    request: v.object({ sessionId, path: v.optional(v.string()), words: v.optional(v.pipe(v.string(), v.maxLength(200)), '') }),
    /** `startSeq` of each. */
    reply: v.object({ turns: v.array(count) }),
  },
  /** What changed from before `turn` to after `until`, from the records: also for turns that were rolled back or folded into a summary. */
  checkpoint: {
    request: v.object({ sessionId, turn, until: untilOf(turn) }),
    reply: v.object({ rows: v.array(ComparedRowSchema), more: count }),
  },
})
