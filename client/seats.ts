import { effect } from '@preact/signals'
import { COMMAND, FALLBACK_COMMAND, type TurnRow } from '../src/protocol/requests.ts'
import { MARKER_ROW, TURN_ROW } from '../src/surface/hidden.ts'
import { decorateCommand } from './dsh/command-popup.ts'
import type { ClientContext } from './dsh/context.ts'
import {
  markerDefinition, registerRow, tailHasActions, turnDefinition, type TailTurn, type TurnRowData,
} from './dsh/conversation-events.ts'
import { islandSeat, type React } from './dsh/react-bridge.ts'
import { joinSlot, whenDeclared } from './dsh/slots.ts'
import type { Health } from './health.ts'
import { CheckpointsView } from './islands/CheckpointsView.tsx'
import { CommandRow, type CommandNode } from './islands/CommandRow.tsx'
import { MarkerBar } from './islands/MarkerBar.tsx'
import { TurnActions } from './islands/TurnActions.tsx'
import { translateFailure } from '../locales/translate.ts'
import type { Page } from './page.ts'
import { turnOptions, whyUnavailable } from './state/turn-options.ts'

/** Every session slot hands its session's id to the component (ui-slots, standard props). */
interface SessionSlot {
  readonly sessionId?: string
}

interface Wiring {
  readonly ctx: ClientContext
  readonly react: React
  readonly health: Health
  readonly page: Page
}

/** The button in the host's action row of a turn; the host draws that row for turns with a closing text. */
export function joinActionRow({ ctx, react, health, page }: Wiring): void {
  const toProps = ({ sessionId, messageId }: SessionSlot & { messageId?: string }) => {
    const store = page.storeOf(sessionId)
    return store === undefined || messageId === undefined
      ? null
      : { store, t: page.t, at: { messageId }, open: page.open }
  }
  joinSlot(ctx, health, { name: 'conversation.chat.assistant-actions', id: 'turnback', order: 20 },
    islandSeat(react, 'actions', TurnActions, toProps))
}

/**
 * The button of turns without an action row. Where `turnTail` is a list every plugin may add to it;
 * where it is a chain its one winner is the host's own "Produced" row, so there the button gets a
 * row of its own.
 */
export function joinTurnEnd({ ctx, react, health, page }: Wiring): void {
  const button = (sessionId: string | undefined, turn: number | undefined) => {
    const store = page.storeOf(sessionId)
    return store === undefined || turn === undefined
      ? null
      : { store, t: page.t, at: { turn }, outdent: true, open: page.open }
  }
  const fromTail = ({ sessionId, turn }: SessionSlot & { turn?: TailTurn }) =>
    turn !== undefined && tailHasActions(turn) === false ? button(sessionId, turn.turn) : null
  const fromRow = ({ sessionId, node }: SessionSlot & { node?: { data?: TurnRowData } }) =>
    button(sessionId, node?.data?.turn)

  let hasRow = false
  whenDeclared(ctx, health, 'conversation.chat.turnTail', kind => {
    if (kind === 'list') {
      joinSlot(ctx, health, { name: 'conversation.chat.turnTail', id: 'turnback', order: 20 },
        islandSeat(react, 'tail', TurnActions, fromTail))
      return
    }
    // The host may declare the slot again; a second definition of one kind would throw.
    if (hasRow) return
    hasRow = true
    registerRow(ctx, health, turnDefinition)
  })
  joinSlot(ctx, health, { name: 'conversation.chat.node', key: TURN_ROW }, islandSeat(react, 'turn', TurnActions, fromRow))
}

/** The bar in place of withdrawn turns. */
export function joinMarker({ ctx, react, health, page }: Wiring): void {
  const toProps = ({ sessionId, node }: SessionSlot & { node?: { data?: { seq: number; turn: number } } }) => {
    const store = page.storeOf(sessionId)
    return store === undefined || node?.data === undefined ? null : { store, t: page.t, marker: node.data }
  }
  registerRow(ctx, health, markerDefinition)
  joinSlot(ctx, health, { name: 'conversation.chat.node', key: MARKER_ROW },
    islandSeat(react, 'marker', MarkerBar, toProps))
}

/** What our command answered, under both of its names. */
export function joinCommandRows({ ctx, react, health, page }: Wiring): void {
  const toProps = ({ node }: { node?: CommandNode }) => (node === undefined ? null : { node, t: page.t })
  for (const key of [COMMAND, FALLBACK_COMMAND]) {
    joinSlot(ctx, health, { name: 'conversation.chat.commandview', key },
      islandSeat(react, 'command', CommandRow, toProps))
  }
}

/** The list of turns that the bare command opens, under both of its names. */
export function joinPicker({ ctx, health, page }: Pick<Wiring, 'ctx' | 'health' | 'page'>): void {
  /** The rows the open list was made of, by session. */
  const listed = new Map<string, readonly TurnRow[]>()
  for (const name of [COMMAND, FALLBACK_COMMAND]) {
    decorateCommand(ctx, health, {
      name,
      isOffered: sessionId => page.isOurCommand(name) && page.storeOf(sessionId)?.offered.peek() === true,
      async options(sessionId, signal) {
        const t = page.t.peek()
        const turns = await page.storeOf(sessionId)?.turns(signal)
        if (turns === undefined) return []
        if (!turns.ok) {
          const { text, remedy } = translateFailure(t.locale, turns.failure)
          throw new Error(`${text} ${remedy}`)
        }
        listed.set(sessionId, turns.value)
        return turnOptions(turns.value, t, Date.now())
      },
      choose({ id }, sessionId) {
        const store = page.storeOf(sessionId)
        const row = listed.get(sessionId)?.find(({ startSeq }) => String(startSeq) === id)
        if (store === undefined || row === undefined) return
        const why = whyUnavailable(row, page.t.peek())
        if (why !== undefined) throw new Error(why)
        page.open(store, row.turn)
      },
    })
  }
}

/** How long a host may take to declare the views of a session that it draws. */
const VIEWS_MS = 10_000

/** The tab beside the chat: what the session's turns changed. Hosts without such tabs go without it, and say so once. */
export function joinCheckpoints({ ctx, react, health, page }: Wiring): void {
  const name = 'conversation.view'
  const toProps = ({ sessionId }: SessionSlot) => {
    const checkpoints = page.checkpointsOf(sessionId)
    return checkpoints === undefined ? null : { checkpoints, t: page.t, open: page.open }
  }
  let isThere = false
  whenDeclared(ctx, health, name, () => {
    isThere = true
  })
  joinSlot(ctx, health, { name, id: 'turnback', order: 5, label: () => page.t.peek()('view.tab') },
    islandSeat(react, 'checkpoints', CheckpointsView, toProps))
  ctx.effect(() => {
    let wait: ReturnType<typeof setTimeout> | undefined
    const stop = effect(() => {
      if (page.stores.value.length === 0 || isThere) return
      wait ??= setTimeout(() => {
        if (!isThere) health.report(`slot ${name}`, 'not there; no Checkpoints view')
      }, VIEWS_MS)
    })
    return () => {
      stop()
      clearTimeout(wait)
    }
  }, 'turnback: views')
}
