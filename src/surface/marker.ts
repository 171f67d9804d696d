import { opId, type OpId, type Seq } from '../ids.ts'
import type { LogEvent } from '../turn/log-event.ts'

/** Plugin name in the marker's source; format 4 spells it into the kind. */
export const MARKER_PLUGIN = 'dsh-turnback'
const PREFIX = 'turnback:1:'

export interface MarkerId {
  /** `turn/start` seq of the target turn: everything from there to the marker is withdrawn. */
  readonly startSeq: Seq
  readonly turn: number
  readonly op: OpId
}

/** A marker found in a log. */
export interface Marker extends MarkerId {
  readonly seq: Seq
}

/** The message id carries what readers need, because a marker's `source` may hold no key of ours (DSH log migrations refuse them). */
export const markerId = ({ startSeq, turn, op }: MarkerId): string => `${PREFIX}${startSeq}:${turn}:${op}`

/** Undefined when `id` is not one of ours. */
export function parseMarkerId(id: unknown): MarkerId | undefined {
  const match = typeof id === 'string' ? /^turnback:1:(\d{1,15}):(\d{1,9}):([0-9a-z]{8,32})$/.exec(id) : null
  if (match === null) return undefined
  return { startSeq: Number(match[1]), turn: Number(match[2]), op: opId(match[3]!) }
}

/** True for both spellings: `{kind:'plugin', plugin}` up to format 3 and `{kind:'plugin:<name>'}` from format 4 on. */
function isOurSource(source: unknown): boolean {
  const { kind, plugin } = (source ?? {}) as { kind?: unknown; plugin?: unknown }
  return kind === `plugin:${MARKER_PLUGIN}` || (kind === 'plugin' && plugin === MARKER_PLUGIN)
}

/**
 * The marker in this event, or undefined. A copy of the message that was appended plainly is no marker: it
 * took nothing away. Whether a replacement took effect is for the fold to say.
 */
export function markerOf(event: LogEvent): Marker | undefined {
  if (event.type !== 'user/message' || event.surfaceOp === 'append') return undefined
  const message = event.data as { id?: unknown; source?: unknown } | null
  const id = parseMarkerId(message?.id)
  if (id === undefined || !isOurSource(message?.source)) return undefined
  return { ...id, seq: event.seq }
}

export type MarkerText = 'all-files' | 'some-files' | 'conversation-only'

/** What the model reads in place of the withdrawn turns: neutral, no instruction, at most 140 characters. */
export const markerTexts: Readonly<Record<MarkerText, string>> = {
  'all-files': '[The user rolled back the turns that were here. The files these turns changed are as they were before them.]',
  'some-files': '[The user rolled back the turns that were here. Some files they changed may not be as they were before them.]',
  'conversation-only': '[The user rolled back the turns that were here. The files they changed were left as they are.]',
}
