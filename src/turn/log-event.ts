import type { Seq } from '../ids.ts'

/** One event of a DSH session log, as both generations store it. `data` is foreign: read it through the functions in this room. */
export interface LogEvent {
  readonly seq: Seq
  readonly type: string
  /** Unix ms */
  readonly time: number
  readonly data: unknown
  readonly surfaceOp?: unknown
  readonly sourceEventSeqs?: readonly Seq[]
}
