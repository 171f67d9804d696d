import { computed, effect, signal } from '@preact/signals'
import { translateFailure, translator } from '../locales/translate.ts'
import { COMMAND, FALLBACK_COMMAND } from '../src/protocol/requests.ts'
import { MARKER_ROW, TURN_ROW } from '../src/surface/hidden.ts'
import { composerOf } from './dsh/composer.ts'
import { isObservable, type ClientContext } from './dsh/context.ts'
import { markerDefinition, registerRow, tailHasActions, turnDefinition, type TailTurn, type TurnRowData } from './dsh/conversation-events.ts'
import { activeLocale } from './dsh/locale.ts'
import { islandSeat, type React } from './dsh/react-bridge.ts'
import { createRemote } from './dsh/remote.ts'
import { createSessionView } from './dsh/session-view.ts'
import { joinSlot, whenDeclared } from './dsh/slots.ts'
import { createHealth, type Health } from './health.ts'
import { CommandRow, type CommandNode } from './islands/CommandRow.tsx'
import { MarkerBar } from './islands/MarkerBar.tsx'
import { mountIsland } from './islands/mount.tsx'
import { RollbackPanel } from './islands/RollbackPanel.tsx'
import { TurnActions } from './islands/TurnActions.tsx'
import { hiddenCss } from './state/hidden-style.ts'
import { createRollbackStore, type RollbackStore } from './state/rollback-store.ts'
import './styles/tokens.css'

interface SessionSlot {
  readonly sessionId?: string
}

/**
 * Wires the browser half into the page. Every step is guarded on its own: a fault here would stop
 * the whole DSH page, so a part that cannot be set up is reported and left out.
 */
export function activate(ctx: ClientContext, react: React): Health {
  const health = createHealth((line) => console.error(line))
  health.guard('start', () => wire(ctx, react, health))
  return health
}

function wire(ctx: ClientContext, react: React, health: Health): void {
  const language = activeLocale(ctx)
  const locale = signal(language.read())
  const t = computed(() => translator(locale.value))
  const remote = createRemote(ctx)
  const command = signal<string>(COMMAND)
  const stores = new Map<string, RollbackStore>()
  const active = signal<RollbackStore | undefined>(undefined)

  const hello = async (sessionId?: string) => {
    const reply = await remote.call('hello', { locale: locale.peek(), ...(sessionId === undefined ? {} : { sessionId }) })
    if (!reply.ok) return health.report('host half', translateFailure('en', reply.failure).text)
    command.value = reply.value.command
    for (const problem of reply.value.problems) health.report(`host half: ${problem.contract}`, problem.detail)
  }

  /** The session's store, made when its first seat is drawn; undefined while the session is not open. */
  const storeOf = (sessionId: string | undefined): RollbackStore | undefined => {
    if (sessionId === undefined) return undefined
    const known = stores.get(sessionId)
    if (known !== undefined) return known
    const view = health.guard('session', () => createSessionView(ctx, sessionId))
    if (view === undefined) return undefined
    const store = createRollbackStore({
      sessionId, remote, view,
      composer: () => health.guard('composer', () => composerOf(ctx, sessionId)),
      command: () => command.peek(),
      say: (failure) => translateFailure(locale.peek(), failure).text,
    })
    stores.set(sessionId, store)
    void hello(sessionId)
    drawn.value = [...stores.values()]
    return store
  }
  const drawn = signal<readonly RollbackStore[]>([])

  const open = (store: RollbackStore, turn: number, opener: HTMLElement) => {
    active.value = store
    store.open(turn, opener)
  }

  health.guard('locale', () => ctx.effect(() => language.subscribe(() => {
    if (language.read() === locale.peek()) return
    locale.value = language.read()
    for (const sessionId of stores.keys()) void hello(sessionId)
  }), 'turnback: language'))

  // After a host restart: it knows neither our language nor what it told us before.
  health.guard('reconnect', () => ctx.on?.('connection/reset', () => {
    void hello()
    for (const [sessionId, store] of stores) {
      void hello(sessionId)
      store.loadOps()
    }
  }))

  // ui-commands tells this page, and only this one, that a line typed in its composer has run.
  health.guard('typed commands', () => ctx.on?.('command/executed', (sessionId, name, result) => {
    const { kind, sourceEventSeq } = (result ?? {}) as { kind?: unknown; sourceEventSeq?: unknown }
    if (kind !== 'success' || typeof sourceEventSeq !== 'number' || (name !== COMMAND && name !== command.peek())) return
    storeOf(String(sessionId))?.rolledBackByCommand(sourceEventSeq)
  }))

  health.guard('dialog', () => ctx.effect(() => {
    const host = document.createElement('div')
    host.dataset.turnback = 'dialog'
    document.body.append(host)
    const island = mountIsland(host, RollbackPanel, { active, t })
    return () => {
      island.unmount()
      host.remove()
    }
  }, 'turnback: dialog'))

  health.guard('hidden rows', () => ctx.effect(() => {
    const style = document.createElement('style')
    style.dataset.turnback = 'hidden'
    document.head.append(style)
    const stop = effect(() => {
      style.textContent = drawn.value.map((store) => hiddenCss(store.sessionId, store.hidden.value)).join('\n')
    })
    return () => {
      stop()
      style.remove()
    }
  }, 'turnback: hidden rows'))

  health.guard('sessions', () => ctx.effect(() => {
    const list = ctx.sessions.list
    const stop = isObservable(list) ? list.subscribe(() => {
      // A dialog belongs to what is on the screen; on hosts without `current` it closes by hand.
      const current = (list.getSnapshot() as { current?: string | null } | undefined)?.current
      if (typeof current === 'string' && active.peek() !== undefined && active.peek()!.sessionId !== current) active.peek()!.close()
    }) : () => {}
    return () => {
      stop()
      for (const store of stores.values()) store.dispose()
      stores.clear()
    }
  }, 'turnback: sessions'))

  registerRow(ctx, health, markerDefinition)

  joinSlot(ctx, health, { name: 'conversation.chat.assistant-actions', id: 'turnback', order: 20 },
    islandSeat(react, 'actions', TurnActions, ({ sessionId, messageId }: SessionSlot & { messageId?: string }) => {
      const store = storeOf(sessionId)
      return store === undefined || messageId === undefined ? null : { store, t, at: { messageId }, open }
    }))

  // Turns without an action row. Where `turnTail` is a list every plugin may add to it; where it is a
  // chain its one winner is the host's own "Produced" row, so there the button gets a row of its own.
  let turnRow = false
  whenDeclared(ctx, health, 'conversation.chat.turnTail', (kind) => {
    if (kind === 'list') {
      joinSlot(ctx, health, { name: 'conversation.chat.turnTail', id: 'turnback', order: 20 },
        islandSeat(react, 'tail', TurnActions, ({ sessionId, turn }: SessionSlot & { turn?: TailTurn }) => {
          const store = storeOf(sessionId)
          return store === undefined || turn === undefined || tailHasActions(turn) !== false ? null : { store, t, at: { turn: turn.turn }, outdent: true, open }
        }))
      return
    }
    if (turnRow) return
    turnRow = true
    registerRow(ctx, health, turnDefinition)
  })

  joinSlot(ctx, health, { name: 'conversation.chat.node', key: TURN_ROW },
    islandSeat(react, 'turn', TurnActions, ({ sessionId, node }: SessionSlot & { node?: { data?: TurnRowData } }) => {
      const store = storeOf(sessionId)
      return store === undefined || node?.data === undefined ? null : { store, t, at: { turn: node.data.turn }, outdent: true, open }
    }))

  joinSlot(ctx, health, { name: 'conversation.chat.node', key: MARKER_ROW },
    islandSeat(react, 'marker', MarkerBar, ({ sessionId, node }: SessionSlot & { node?: { data?: { seq: number; turn: number } } }) => {
      const store = storeOf(sessionId)
      return store === undefined || node?.data === undefined ? null : { store, t, marker: node.data }
    }))

  for (const key of [COMMAND, FALLBACK_COMMAND]) {
    joinSlot(ctx, health, { name: 'conversation.chat.commandview', key },
      islandSeat(react, 'command', CommandRow, ({ node }: { node?: CommandNode }) => (node === undefined ? null : { node, t })))
  }

  void hello()
}
