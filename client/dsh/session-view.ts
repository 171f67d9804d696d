import * as v from 'valibot'
import { ProjectionViewSchema, PROJECTION } from '../../src/protocol/requests.ts'
import { MARKER_ROW, type ChatRow, type MarkerSpan } from '../../src/surface/hidden.ts'
import { isObservable, service, type ClientContext, type Observable } from './context.ts'

/** A rollback as the page knows it: from our projection, or from the marker's own row when the host half is away. */
export interface PageMarker extends MarkerSpan {
  readonly op: string
}

/** A message that left the conversation; `images` are attachment ids of the session. */
export interface WithdrawnPrompt {
  readonly text: string
  readonly images: readonly string[]
}

/** What we read of one session in the page. Every read is of this moment; `subscribe` tells when to read again. */
export interface SessionView {
  isRunning(): boolean
  /** Subagent views and removed sessions offer no rollback. */
  isOffered(): boolean
  /** Older history is not loaded. */
  hasMore(): boolean
  /** Keys of the chat's rows in order; the same array while nothing was added or moved. */
  order(): readonly string[]
  rows(ourCommands: ReadonlySet<string>): readonly ChatRow[]
  markers(): readonly PageMarker[]
  turnOfMessage(messageId: string): number | undefined
  /** The person's message that began the turn a marker goes back to, as far as it is loaded. */
  promptAt(marker: MarkerSpan): WithdrawnPrompt | undefined
  subscribe(listener: () => void): () => void
}

interface Chat {
  readonly order?: readonly string[]
  readonly nodes?: { get?(key: string): ChatNode | undefined; values?(): Iterable<ChatNode> }
  readonly legacy?: { readonly nodes?: readonly FlatNode[] }
}
interface ChatNode {
  readonly key: string
  readonly kind: string
  readonly anchorSeq: number
  readonly location?: { readonly kind?: string; readonly turn?: { readonly turn?: number } }
  readonly data?: unknown
}
interface FlatNode {
  readonly kind?: string
  readonly seq?: number
  readonly content?: readonly UserBlock[]
  readonly messageId?: string
  readonly turn?: number
}
/** A block of a person's message, as it stands in the log. */
interface UserBlock {
  readonly type?: string
  readonly text?: string
  readonly attachment?: { readonly attachmentId?: string }
}
interface Conversation {
  readonly chat?: Chat
  readonly nodes?: readonly FlatNode[]
  readonly running?: boolean
  readonly subagent?: unknown
  readonly removed?: boolean
  readonly hasMore?: boolean
}

/**
 * Up to 0.1.1 `sessions.binding(id).session` publishes the whole conversation (client-runtime
 * sessions/conversation.ts `ConversationSnapshot`); from 0.1.2 on it publishes the lifecycle and the
 * chat comes from `uiConversation.binding(id).target('chat')`. Undefined while the session is not open.
 */
export function createSessionView(ctx: ClientContext, id: string): SessionView | undefined {
  const session = ctx.sessions.binding?.(id)?.session
  if (!isObservable(session)) return undefined
  const chatTarget = service<{ binding?(id: string): { target?(name: string): unknown } | undefined }>(
    ctx,
    'uiConversation',
  )
    ?.binding?.(id)
    ?.target?.('chat')
  const chatSource = isObservable(chatTarget) ? chatTarget : undefined
  const projection = projectionOf(session)

  const conversation = () => (session.getSnapshot() ?? {}) as Conversation
  const chat = (): Chat => (conversation().chat ?? chatSource?.getSnapshot() ?? {}) as Chat
  const node = (key: string) => chat().nodes?.get?.(key)
  const flatNodes = () => conversation().nodes ?? chat().legacy?.nodes ?? []

  return {
    isRunning: () => conversation().running === true,
    isOffered: () => (conversation().subagent ?? null) === null && conversation().removed !== true,
    hasMore: () => conversation().hasMore === true,
    order: () => chat().order ?? [],
    rows: ourCommands =>
      (chat().order ?? []).flatMap(key => {
        const found = node(key)
        return found === undefined ? [] : [toRow(found, ourCommands)]
      }),
    markers: () => mergeMarkers(pushedMarkers(projection), drawnMarkers(chat())),
    turnOfMessage(messageId) {
      const known = flatNodes().find(entry => entry.kind === 'assistant' && entry.messageId === messageId)
      if (known?.turn !== undefined) return known.turn
      for (const entry of chat().nodes?.values?.() ?? []) {
        const data = entry.data as { turn?: number; finalNode?: { messageId?: string } } | undefined
        if (entry.kind === 'assistant-step' && data?.finalNode?.messageId === messageId) return data.turn
      }
      return undefined
    },
    promptAt({ startSeq, seq }) {
      const message = flatNodes().find(
        entry => entry.kind === 'user' && entry.seq !== undefined && entry.seq > startSeq && entry.seq < seq,
      )
      return message === undefined ? undefined : promptOf(message.content ?? [])
    },
    subscribe(listener) {
      const stops = [session, chatSource, projection].flatMap(source =>
        source === undefined ? [] : [source.subscribe(listener)],
      )
      return () => stops.forEach(stop => stop())
    },
  }
}

/** Shows a session of the list, as a click on its row does. The host puts a session it has made in there before a command that made it answers. */
export function openSession({ sessions }: ClientContext, id: string): void {
  if (typeof sessions.open !== 'function') throw new Error('sessions has no open')
  sessions.open(id)
}

/** `workspaces.archiveSession` (client-runtime contract/workspaces.ts), what the session list's own menu calls; undefined where the host has none. There is no way back from the page. */
export function archiverOf(ctx: ClientContext): ((id: string) => Promise<void>) | undefined {
  const workspaces = service<{ archiveSession?(id: string): Promise<void> }>(ctx, 'workspaces')
  return typeof workspaces?.archiveSession === 'function' ? id => workspaces.archiveSession!(id) : undefined
}

/** The folder a session works in, from the session list's row (client-runtime `SessionListState.byId`, an object or a map). */
export function workspaceOf(ctx: ClientContext, id: string): string | undefined {
  const { byId } = (ctx.sessions.list?.getSnapshot() ?? {}) as { byId?: unknown }
  const row = (byId instanceof Map ? byId.get(id) : (byId as Record<string, unknown> | undefined)?.[id]) as
    { cwd?: unknown } | undefined
  return typeof row?.cwd === 'string' ? row.cwd : undefined
}

function promptOf(content: readonly UserBlock[]): WithdrawnPrompt {
  return {
    text: content.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : [])).join('\n'),
    images: content.flatMap(({ attachment }) => attachment?.attachmentId ?? []),
  }
}

function toRow(node: ChatNode, ourCommands: ReadonlySet<string>): ChatRow {
  const turn = node.location?.kind === 'turn' || node.location?.kind === 'step' ? node.location.turn?.turn : undefined
  return {
    key: node.key,
    kind: node.kind,
    anchorSeq: node.anchorSeq,
    ...(turn === undefined ? {} : { turn }),
    ...commandOf(node, ourCommands),
  }
}

function commandOf(node: ChatNode, ourCommands: ReadonlySet<string>): Pick<ChatRow, 'command'> {
  if (node.kind !== 'command') return {}
  const { name, outcome } = (node.data ?? {}) as { name?: string; outcome?: { sourceEventSeq?: number } | null }
  if (name === undefined || !ourCommands.has(name)) return {}
  const sourceEventSeq = outcome?.sourceEventSeq
  const answered = outcome !== null && outcome !== undefined
  return { command: { answered, ...(sourceEventSeq === undefined ? {} : { sourceEventSeq }) } }
}

/** `session.projections.faceOf(key)` (client-runtime contract/session.ts): the value our host half pushes. */
function projectionOf(session: unknown): Observable<unknown> | undefined {
  const face = (session as { projections?: { faceOf?(key: string): unknown } }).projections?.faceOf?.(PROJECTION)
  return isObservable(face) ? face : undefined
}

function pushedMarkers(projection: Observable<unknown> | undefined): readonly PageMarker[] {
  const parsed = v.safeParse(ProjectionViewSchema, projection?.getSnapshot())
  return parsed.success ? parsed.output.markers : []
}

function drawnMarkers(chat: Chat): readonly PageMarker[] {
  return (chat.order ?? []).flatMap(key => {
    if (!key.startsWith(`${MARKER_ROW.length}:${MARKER_ROW}`)) return []
    const data = chat.nodes?.get?.(key)?.data as PageMarker | undefined
    return data === undefined ? [] : [data]
  })
}

function mergeMarkers(pushed: readonly PageMarker[], drawn: readonly PageMarker[]): readonly PageMarker[] {
  const bySeq = new Map([...drawn, ...pushed].map(marker => [marker.seq, marker]))
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq)
}
