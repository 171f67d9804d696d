import { effect } from '@preact/signals'
import { isObservable, type ClientContext } from './dsh/context.ts'
import type { React } from './dsh/react-bridge.ts'
import { createHealth, type Health } from './health.ts'
import { mountIsland } from './islands/mount.tsx'
import { RollbackPanel } from './islands/RollbackPanel.tsx'
import { createPage, type Page } from './page.ts'
import { joinActionRow, joinCheckpoints, joinCommandRows, joinMarker, joinPicker, joinTurnEnd } from './seats.ts'
import { hiddenCss } from './state/hidden-style.ts'
import './styles/tokens.css'

/**
 * Wires the browser half into the page. Every step is guarded on its own: a fault here would stop
 * the whole DSH page, so a part that cannot be set up is reported and left out.
 */
export function activate(ctx: ClientContext, react: React): Health {
  const health = createHealth(line => console.error(line))
  const page = health.guard('start', () => createPage(ctx, health))
  if (page === undefined) return health
  const own = (part: string, run: () => () => void) => health.guard(part, () => ctx.effect(run, `turnback: ${part}`))

  own('sessions', () => followSessions(ctx, page))
  own('language', page.followLanguage)
  own('dialog', () => mountDialog(page))
  own('hidden rows', () => styleHiddenRows(page))
  health.guard('events', () => listen(ctx, page))
  for (const join of [joinActionRow, joinTurnEnd, joinMarker, joinCommandRows, joinPicker, joinCheckpoints]) {
    health.guard(join.name, () => join({ ctx, react, health, page }))
  }
  page.greet()
  return health
}

/** A dialog belongs to what is on the screen: another session closes it (hosts without `current` leave it open). */
function followSessions(ctx: ClientContext, page: Page): () => void {
  const list = ctx.sessions.list
  const closeOther = () => {
    const current = list?.getSnapshot()?.current
    const open = page.active.peek()
    if (typeof current === 'string' && open !== undefined && open.sessionId !== current) open.close()
  }
  const stop = isObservable(list) ? list.subscribe(closeOther) : () => {}
  return () => {
    stop()
    page.dispose()
  }
}

function mountDialog({ active, t }: Page): () => void {
  const host = document.createElement('div')
  host.dataset.turnback = 'dialog'
  document.body.append(host)
  const island = mountIsland(host, RollbackPanel, { active, t })
  return () => {
    island.unmount()
    host.remove()
  }
}

/** One style element for all sessions; its rules say themselves which chat they are for. */
function styleHiddenRows({ stores }: Page): () => void {
  const style = document.createElement('style')
  style.dataset.turnback = 'hidden'
  document.head.append(style)
  const stop = effect(() => {
    style.textContent = stores.value.map(store => hiddenCss(store.sessionId, store.hidden.value)).join('\n')
  })
  return () => {
    stop()
    style.remove()
  }
}

function listen(ctx: ClientContext, page: Page): void {
  // After a host restart: it knows neither our language nor what it told us before.
  ctx.on?.('connection/reset', () => {
    page.greet()
    for (const store of page.stores.peek()) store.loadOps()
  })
  // ui-commands tells this page, and only this one, that a line typed in its composer has run.
  ctx.on?.('command/executed', (sessionId, name, result) => {
    const { kind, sourceEventSeq } = (result ?? {}) as { kind?: unknown; sourceEventSeq?: unknown }
    if (!page.isOurCommand(name) || kind !== 'success') return
    const store = page.storeOf(String(sessionId))
    if (typeof sourceEventSeq === 'number') store?.rolledBackByCommand(sourceEventSeq)
    else void store?.followCopy()
  })
}
