import type { ComponentType, VNode } from 'preact'
import { h, render } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { ClientContext, Observable } from '../../client/dsh/context.ts'
import type { React } from '../../client/dsh/react-bridge.ts'

/** The host's page as far as our adapters see it, in the spelling of one generation. Preact plays React. */

export const react: React = {
  createElement: h as React['createElement'],
  useRef,
  useLayoutEffect: useLayoutEffect as React['useLayoutEffect'],
}

export function observable<T>(value: T): Observable<T> & { set(next: T): void; count(): number } {
  const listeners = new Set<() => void>()
  return {
    getSnapshot: () => value,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    set(next) {
      value = next
      for (const listener of [...listeners]) listener()
    },
    count: () => listeners.size,
  }
}

type Entry = {
  readonly options: { readonly name: string; readonly id?: string; readonly key?: string }
  readonly component: ComponentType<object>
}

export interface Decoration {
  readonly name: string
  available(session: { readonly sessionId: string }): boolean
  readonly ui: {
    readonly kind: string
    options(session: { readonly sessionId: string }, signal: AbortSignal): Promise<readonly { id: string; label: string; detail?: string }[]>
    onSelect(option: { id: string; label: string }, session: { readonly sessionId: string }): void
  }
}

export interface FakePageOptions {
  /** `old`: 0.1.0 and 0.1.1; `new`: chat apart from the session, list-form turn tail, other registry. */
  readonly generation?: 'old' | 'new'
  /** Services that are missing. */
  readonly without?: readonly string[]
  /** Slots nobody declares. */
  readonly undeclared?: readonly string[]
  readonly rpc?: (channel: string, endpoint: string, payload: unknown) => Promise<unknown>
  readonly execute?: (sessionId: string, line: string) => Promise<unknown>
  readonly locale?: string
}

export function fakePage(options: FakePageOptions = {}) {
  const isNew = options.generation === 'new'
  const has = (name: string) => !(options.without ?? []).includes(name)
  const entries: Entry[] = []
  const definitions: { kind: string }[] = []
  const disposers: (() => void)[] = []
  const listeners: { event: string; listener: (...args: readonly unknown[]) => void }[] = []
  const drafts = { text: '' }
  const opened: string[] = []
  const chat = observable({
    order: [] as string[],
    nodes: new Map<string, object>(),
    legacy: { nodes: [] as object[] },
  })
  const session = observable<Record<string, unknown>>({ running: false, subagent: null })
  const projection = observable<unknown>({ markers: [] })
  const current = observable<{ current?: string }>({ current: 's1' })
  const locale = observable({ active: options.locale ?? 'en' })
  const registry = {
    register(definition: { kind: string }) {
      definitions.push(definition)
      return () => void definitions.splice(definitions.indexOf(definition), 1)
    },
  }
  const conversation = {
    input: {
      for: () => ({
        setDraft: (text: string) => {
          drafts.text = text
        },
        state: { getSnapshot: () => ({ draft: drafts.text }) },
        notify: () => {},
      }),
    },
  }
  // Up to 0.1.1 one snapshot holds both; publishing either publishes the session.
  const face = isNew
    ? session
    : {
        getSnapshot: () => ({
          ...session.getSnapshot(),
          chat: chat.getSnapshot(),
          nodes: chat.getSnapshot().legacy.nodes,
        }),
        subscribe(listener: () => void) {
          const stops = [session.subscribe(listener), chat.subscribe(listener)]
          return () => stops.forEach(stop => stop())
        },
      }
  const decorations = new Map<string, Decoration>()
  const commandUi = {
    decorate(decoration: Decoration) {
      if (decorations.has(decoration.name)) throw new Error(`ui-commands: duplicate decoration for /${decoration.name}`)
      decorations.set(decoration.name, decoration)
      return () => void decorations.delete(decoration.name)
    },
  }
  const services: Record<string, unknown> = {
    commandUi,
    connection: { rpc: { call: options.rpc ?? (() => Promise.reject(new Error('transport failure: HTTP 404'))) } },
    'remote.commands': { execute: options.execute ?? (async () => ({ ok: true })) },
    conversation,
    ...(isNew
      ? { uiConversation: { events: registry, binding: () => ({ target: () => chat }) } }
      : { conversationEvents: registry }),
  }
  const get = (name: string) => (has(name) ? services[name] : undefined)
  const undeclared = new Set(options.undeclared)
  const ctx = {
    get,
    slots: has('slots')
      ? {
          inject: (key: string, register: () => unknown) => (undeclared.has(key) ? undefined : register()),
          register(slot: Entry['options'], component: ComponentType<object>) {
            const entry = { options: slot, component }
            entries.push(entry)
            return () => void entries.splice(entries.indexOf(entry), 1)
          },
          spec: (key: string) => ({ kind: key === 'conversation.chat.turnTail' ? (isNew ? 'list' : 'chain') : 'list' }),
        }
      : undefined,
    locale: has('locale') ? locale : undefined,
    sessions: has('sessions')
      ? {
          list: isNew ? observable({}) : current,
          binding: (id: string) =>
            id === 's1' || id === 's2'
              ? { session: { ...face, projections: { faceOf: () => projection } } }
              : undefined,
          open: (id: string) => void opened.push(id),
          scope: (id: string) => (id === 's1' ? { get } : undefined),
        }
      : undefined,
    effect(run: () => () => void) {
      disposers.push(run())
    },
    inject(names: readonly string[], run: (child: unknown) => void) {
      if (names.every(name => get(name) !== undefined)) run(ctx)
    },
    on: (event: string, listener: (...args: readonly unknown[]) => void) => void listeners.push({ event, listener }),
  } as unknown as ClientContext

  return {
    ctx,
    entries,
    definitions,
    decorations,
    chat,
    session,
    projection,
    current,
    locale,
    drafts,
    /** Sessions that were opened, in order. */
    opened,
    slots: () => entries.map(({ options: { name, id, key } }) => `${name} ${id ?? key}`),
    /** Draws one slot entry as the host would, into its own element. */
    draw(name: string, idOrKey: string, props: object) {
      const entry = entries.find(
        known => known.options.name === name && (known.options.id ?? known.options.key) === idOrKey,
      )
      if (entry === undefined) throw new Error(`nothing registered as ${name} ${idOrKey}`)
      const place = document.createElement('div')
      document.body.append(place)
      render(h(entry.component, props) as VNode, place)
      return place
    },
    emit(event: string, ...args: readonly unknown[]) {
      for (const known of listeners) if (known.event === event) known.listener(...args)
    },
    dispose() {
      for (const dispose of disposers.splice(0).reverse()) dispose()
    },
  }
}
