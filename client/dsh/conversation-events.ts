import type { LogEvent } from '../../src/turn/log-event.ts'
import { MARKER_ROW, TURN_ROW } from '../../src/surface/hidden.ts'
import { markerOf, type Marker } from '../../src/surface/marker.ts'
import type { Health } from '../health.ts'
import { service, type ClientContext } from './context.ts'

/**
 * Rows of our own in the chat. The registry is the service `conversationEvents` up to 0.1.1 and
 * `uiConversation.events` from 0.1.2 on; a Definition has the same shape (client-runtime
 * contract/conversation.ts). `match`, `start` and `update` run inside the host for every event of
 * every session: cheap, pure, no throw. A node once published is never withdrawn, only hidden: the
 * host throws otherwise. The locations are chosen so that the host's Branch button stays enabled.
 */
interface Match {
  readonly event: LogEvent
  readonly location?: unknown
}
interface NodeContext<State> {
  readonly key: string
  readonly id: string
  readonly matches: readonly Match[]
  readonly start?: { readonly location?: unknown } | undefined
  readonly state?: State | undefined
}
interface Registry {
  register(definition: object): unknown
}

/** What the row at the end of a turn carries. */
export interface TurnRowData {
  readonly turn: number
}

/** Registers a row kind as soon as the host has a registry for it; it goes with the plugin or the registry. */
export function registerRow(ctx: ClientContext, health: Health, definition: { readonly kind: string }): void {
  const part = `row ${definition.kind}`
  const register = (owner: ClientContext, registry: Registry | undefined) =>
    health.guard(part, () => {
      if (typeof registry?.register !== 'function') throw new Error('the host has no registry for rows of plugins')
      owner.effect(() => {
        const dispose = registry.register(definition)
        return () => (typeof dispose === 'function' ? dispose() : undefined)
      }, `turnback: ${part}`)
    })
  const present = registryOf(ctx)
  if (present !== undefined) return void register(ctx, present)
  if (typeof ctx.inject !== 'function') return health.report(part, 'the host has no registry for rows of plugins')
  for (const name of ['conversationEvents', 'uiConversation']) {
    health.guard(part, () => ctx.inject!([name], child => register(child, registryOf(child))))
  }
}

const registryOf = (ctx: ClientContext): Registry | undefined =>
  service<Registry>(ctx, 'conversationEvents') ?? service<{ events?: Registry }>(ctx, 'uiConversation')?.events

/** The slim bar in place of withdrawn turns, at the marker's position. */
export const markerDefinition = {
  kind: MARKER_ROW,
  target: 'chat',
  match(event: LogEvent) {
    return markerOf(event) === undefined ? null : { id: String(event.seq), role: 'start' }
  },
  start: (_context: unknown, match: Match): Marker | object => markerOf(match.event) ?? {},
  update: (context: NodeContext<unknown>) => context.state,
  buildViewNode(context: NodeContext<Marker>) {
    if (context.state?.seq === undefined) return null
    return {
      key: context.key,
      kind: MARKER_ROW,
      id: context.id,
      target: 'chat',
      anchorSeq: context.state.seq,
      location: context.start?.location ?? { kind: 'unresolved' },
      visibility: 'visible',
      data: context.state,
    }
  },
}

/**
 * A seat for the button at the end of turns where the host draws no action row: stopped before any
 * text, only tool calls, failed. Visible exactly where `conversation.chat.assistant-actions` is not drawn.
 */
export const turnDefinition = {
  kind: TURN_ROW,
  target: 'chat',
  match(event: LogEvent) {
    const turn = turnOf(event)
    if (turn === undefined) return null
    if (event.type === 'turn/start') return { id: String(turn), role: 'start' }
    const counts = event.type === 'turn/end' || (event.type === 'assistant/message' && hasText(event))
    return counts ? { id: String(turn), role: 'update' } : null
  },
  start: () => ({}),
  update: (context: NodeContext<object>) => context.state ?? {},
  buildViewNode(context: NodeContext<object>) {
    const end = context.matches.find(({ event }) => event.type === 'turn/end')
    if (end === undefined) return null
    const data: TurnRowData = { turn: Number(context.id) }
    return {
      key: context.key,
      kind: TURN_ROW,
      id: context.id,
      target: 'chat',
      anchorSeq: end.event.seq,
      location: { kind: 'unresolved' },
      visibility: hasActionRow(context, end) ? 'hidden' : 'visible',
      data,
    }
  },
}

/** A turn as the host hands it out: `turn-tail` is what its own tail row is drawn from (turn-tail.ts). */
export interface TailTurn {
  readonly turn: number
  readonly data?: { get?(key: string): unknown }
}

/**
 * Does the host draw an action row for this turn? It does for a closing assistant text with a message
 * id (a text cut off by a crash has none). Undefined where the host does not say.
 */
export function tailHasActions(turn: TailTurn): boolean | undefined {
  const tail = turn.data?.get?.('turn-tail') as { closing?: { finalNode?: { messageId?: unknown } } | null } | undefined
  if (tail?.closing === null) return false
  return tail?.closing?.finalNode === undefined ? undefined : tail.closing.finalNode.messageId !== undefined
}

function hasActionRow(context: NodeContext<object>, end: Match): boolean {
  const turn = (end.location as { turn?: TailTurn } | undefined)?.turn
  return (turn && tailHasActions(turn)) ?? context.matches.some(({ event }) => event.type === 'assistant/message')
}

function turnOf(event: LogEvent): number | undefined {
  const turn = (event.data as { turn?: unknown } | null | undefined)?.turn
  return typeof turn === 'number' ? turn : undefined
}

/** An assistant message with words, appended (a replacement is not drawn by the host). */
function hasText(event: LogEvent): boolean {
  if (typeof event.surfaceOp === 'object' && event.surfaceOp !== null) return false
  const content = (event.data as { message?: { content?: unknown } } | null)?.message?.content
  if (typeof content === 'string') return content.trim() !== ''
  return (
    Array.isArray(content) &&
    content.some(
      (block: { type?: unknown; text?: unknown } | null) =>
        block?.type === 'text' && typeof block.text === 'string' && block.text.trim() !== '',
    )
  )
}
