import { computed, signal, type ReadonlySignal } from '@preact/signals'
import { translateFailure, translator, type Translator } from '../locales/translate.ts'
import { COMMAND } from '../src/protocol/requests.ts'
import { showChatEnd } from './dsh/chat-end.ts'
import { composerOf, type Composer } from './dsh/composer.ts'
import type { ClientContext } from './dsh/context.ts'
import { activeLocale } from './dsh/locale.ts'
import { createRemote } from './dsh/remote.ts'
import { archiverOf, createSessionView, openSession, workspaceOf } from './dsh/session-view.ts'
import type { Health } from './health.ts'
import { createCheckpointsStore, type CheckpointsStore } from './state/checkpoints-store.ts'
import { compareTexts } from './state/compare.ts'
import { createRollbackStore, type RollbackStore } from './state/rollback-store.ts'

/** What all parts of the browser half share: language, the host half's greeting, one store per session, one dialog. */
export interface Page {
  readonly t: ReadonlySignal<Translator>
  /** Sessions whose store was made, oldest first. */
  readonly stores: ReadonlySignal<readonly RollbackStore[]>
  /** The session whose dialog was opened last. */
  readonly active: ReadonlySignal<RollbackStore | undefined>
  /** The session's store, made when its first seat is drawn; undefined while the session is not open. */
  storeOf(sessionId: string | undefined): RollbackStore | undefined
  /** What the Checkpoints view shows of the session. */
  checkpointsOf(sessionId: string | undefined): CheckpointsStore | undefined
  open(store: RollbackStore, turn: number, opener?: HTMLElement, only?: string): void
  isOurCommand(name: unknown): boolean
  /** Tells the host half the page's language, so that commands answer in it. */
  greet(): void
  /** Follows the page's language from now on; the disposer ends that. */
  followLanguage(): () => void
  dispose(): void
}

/** Reads what the page has; nothing is registered until its members are called. */
export function createPage(ctx: ClientContext, health: Health): Page {
  const language = activeLocale(ctx)
  const locale = signal(language.read())
  const remote = createRemote(ctx)
  const command = signal<string>(COMMAND)
  const bySession = new Map<string, RollbackStore>()
  const checkpoints = new Map<string, CheckpointsStore>()
  const stores = signal<readonly RollbackStore[]>([])
  const active = signal<RollbackStore | undefined>(undefined)

  const hello = async (sessionId?: string) => {
    const request = { locale: locale.peek(), ...(sessionId === undefined ? {} : { sessionId }) }
    const reply = await remote.call('hello', request)
    if (!reply.ok) return health.report('host half', translateFailure('en', reply.failure).text)
    command.value = reply.value.command
    for (const problem of reply.value.problems) health.report(`host half: ${problem.contract}`, problem.detail)
  }
  const greet = () => {
    if (bySession.size === 0) void hello()
    for (const sessionId of bySession.keys()) void hello(sessionId)
  }

  function create(sessionId: string): RollbackStore | undefined {
    const view = health.guard('session', () => createSessionView(ctx, sessionId))
    if (view === undefined) return undefined
    return createRollbackStore({
      sessionId,
      remote,
      view,
      composer: () => health.guard('composer', () => composerOf(ctx, sessionId)),
      command: () => command.peek(),
      showEnd: () => showChatEnd(),
      placeDraft: (id, text) => void whenComposer(() => health.guard('composer', () => composerOf(ctx, id))).then((composer) => {
        if (composer?.draft().trim() === '') composer.setDraft(text)
      }),
      archiver: () => health.guard('archive', () => archiverOf(ctx)),
      openSession: id => void health.guard('open session', () => openSession(ctx, id)),
      workspace: () => health.guard('workspace', () => workspaceOf(ctx, sessionId)),
      say: failure => translateFailure(locale.peek(), failure).text,
    })
  }

  function storeOf(sessionId: string | undefined): RollbackStore | undefined {
    if (sessionId === undefined) return undefined
    const store = bySession.get(sessionId) ?? create(sessionId)
    if (store === undefined || bySession.has(sessionId)) return store
    bySession.set(sessionId, store)
    stores.value = [...bySession.values()]
    void hello(sessionId)
    return store
  }

  return {
    t: computed(() => translator(locale.value)),
    stores,
    active,
    greet,
    storeOf,
    checkpointsOf(sessionId) {
      const store = storeOf(sessionId)
      if (store === undefined) return undefined
      const known = checkpoints.get(store.sessionId) ?? createCheckpointsStore({ store, remote, compare: compareTexts })
      checkpoints.set(store.sessionId, known)
      return known
    },
    open(store, turn, opener, only) {
      active.value = store
      store.open(turn, opener, only)
    },
    isOurCommand: name => name === COMMAND || name === command.peek(),
    followLanguage: () =>
      language.subscribe(() => {
        if (language.read() === locale.peek()) return
        locale.value = language.read()
        greet()
      }),
    dispose() {
      for (const shown of checkpoints.values()) shown.dispose()
      checkpoints.clear()
      for (const store of bySession.values()) store.dispose()
      bySession.clear()
    },
  }
}

/** A session that is being opened has its composer a moment later. */
async function whenComposer(find: () => Composer | undefined): Promise<Composer | undefined> {
  for (let tries = 0; tries < 30; tries += 1) {
    const composer = find()
    if (composer !== undefined) return composer
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return undefined
}
