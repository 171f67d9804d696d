import type { Seq } from '../ids.ts'
import type { LogEvent } from './log-event.ts'

/** A message a person wrote. `images` are attachment ids in message order. */
export interface Prompt {
  readonly seq: Seq
  readonly text: string
  readonly images: readonly string[]
}

/** `not-started`: DSH says the body never ran. `open`: no result yet. */
export type CallOutcome = 'ok' | 'error' | 'not-started' | 'open'

export interface ToolCall {
  readonly seq: Seq
  readonly callId: string
  readonly name: string
  /** Parsed arguments; undefined when they were no JSON object. */
  readonly args: Readonly<Record<string, unknown>> | undefined
  readonly outcome: CallOutcome
}

/** One drain of the input: turn/start … turn/end. */
export interface Turn {
  readonly number: number
  readonly startSeq: Seq
  readonly atMs: number
  /** Undefined while the turn runs. */
  readonly endSeq: Seq | undefined
  readonly prompts: readonly Prompt[]
  readonly calls: readonly ToolCall[]
}

interface OpenTurn extends Turn {
  endSeq: Seq | undefined
  readonly prompts: Prompt[]
  readonly calls: ToolCall[]
}

/** Result codes that prove a call's body never ran (DSH core/session repair.ts, core/tools index.ts). */
const NOT_STARTED = new Set(['TOOL_NOT_STARTED', 'ABORTED_BEFORE_DISPATCH', 'UNKNOWN_TOOL'])

type Foreign = Readonly<Record<string, unknown>>
const record = (value: unknown): Foreign => (typeof value === 'object' && value !== null ? value as Foreign : {})
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Folds a session log, oldest event first, into its turns in order. Numbers may repeat in a fork; `startSeq` does not. */
export function indexTurns(events: readonly LogEvent[]): readonly Turn[] {
  const turns: OpenTurn[] = []
  const places = new Map<string, CallPlace>()
  let open: OpenTurn | undefined
  for (const event of events) {
    const data = record(event.data)
    switch (event.type) {
      case 'turn/start':
        // A turn whose end was never written is over all the same.
        if (open !== undefined) open.endSeq = event.seq - 1
        open = { number: Number(data.turn), startSeq: event.seq, atMs: event.time, endSeq: undefined, prompts: [], calls: [] }
        turns.push(open)
        break
      case 'turn/end':
        if (open !== undefined) open.endSeq = event.seq
        open = undefined
        break
      case 'user/message':
        if (open !== undefined && record(data.source).kind === 'user') open.prompts.push(promptOf(event.seq, data))
        break
      case 'tool/call':
      case 'tool/code-dispatch-start':
      case 'tool/ptc-dispatch-start':
        if (open !== undefined) addCall(open, callOf(event.seq, data), places)
        break
      case 'tool/result':
      case 'tool/code-dispatch':
      case 'tool/ptc-dispatch':
        settleCall(places, event.type, data)
        break
      default:
    }
  }
  return turns
}

/** The turn with this number that counts: the newest, because a fork's own turns come after the inherited ones. */
export const findTurn = (turns: readonly Turn[], number: number): Turn | undefined => turns.findLast(turn => turn.number === number)

/** Text blocks joined by new lines, and attachment ids of the pictures. */
function promptOf(seq: Seq, message: Foreign): Prompt {
  const blocks = list(message.content).map(record)
  const text = blocks.filter(block => block.type === 'text').map(block => String(block.text ?? '')).join('\n')
  const images = blocks.filter(block => block.type === 'image').map(block => record(block.attachment).attachmentId)
  return { seq, text, images: images.filter(id => typeof id === 'string') }
}

function callOf(seq: Seq, data: Foreign): ToolCall {
  const args = typeof data.arguments === 'string' ? parseObject(data.arguments) : record(data.arguments)
  return { seq, callId: String(data.callId ?? data.subCallId ?? ''), name: String(data.name ?? ''), args, outcome: 'open' }
}

function parseObject(text: string): Foreign | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Foreign : undefined
  } catch {
    // A model may send arguments that are no JSON; the host then refuses the call. Nothing else throws here.
    return undefined
  }
}

/** Where the newest call of an id stands. */
interface CallPlace {
  readonly calls: ToolCall[]
  readonly at: number
}

function addCall({ calls }: OpenTurn, call: ToolCall, places: Map<string, CallPlace>): void {
  places.set(call.callId, { calls, at: calls.length })
  calls.push(call)
}

/** A repaired log adds results after the fact and a pruner replaces old ones, so the call may stand in any turn. */
function settleCall(places: ReadonlyMap<string, CallPlace>, type: string, data: Foreign): void {
  const { callId, outcome } = type === 'tool/result' ? resultOf(data) : dispatchOf(data)
  const place = places.get(callId)
  if (place !== undefined) place.calls[place.at] = { ...place.calls[place.at]!, outcome }
}

/** The result names its call in `message.source.callId` up to format 3 and in `message.toolCallId` from format 4 on (DSH core/session types.ts). */
function resultOf(data: Foreign): { callId: string; outcome: CallOutcome } {
  const message = record(data.message)
  const callId = String(record(message.source).callId ?? message.toolCallId ?? '')
  const isError = message.isError === true || list(message.content).some(block => record(block).isError === true)
  return { callId, outcome: NOT_STARTED.has(String(record(data.error).code)) ? 'not-started' : isError ? 'error' : 'ok' }
}

/** A call nested in code mode, logged under its own `subCallId` (DSH core/tools types.ts). */
function dispatchOf(data: Foreign): { callId: string; outcome: CallOutcome } {
  return { callId: String(data.subCallId ?? ''), outcome: data.isError === true ? 'error' : 'ok' }
}
