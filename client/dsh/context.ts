/**
 * The client's cordis context (DSH `@deepseek-ai/cordis`, client plugins), reduced to what we use.
 * We rely on: `get` answers undefined for a missing service, `effect` runs the disposer with the
 * plugin, `on` is disposed with it. Only the services of `inject` in client/index.ts may be read as members.
 */
export interface ClientContext {
  readonly slots: Slots
  readonly locale: LocaleService
  readonly sessions: SessionsService
  get(name: string): unknown
  inject?(names: readonly string[], run: (child: ClientContext) => void): unknown
  effect(run: () => () => void, label?: string): unknown
  on?(event: string, listener: (...args: readonly unknown[]) => void): unknown
}

/** DSH's store face: a stable snapshot and a subscription (client-runtime `SnapshotStore`). */
export interface Observable<T> {
  getSnapshot(): T
  subscribe(listener: () => void): () => void
}

/** DSH dsh-client-ui-slots: `inject` waits for a slot's declaration, `register` throws when it is malformed or missing. */
export interface Slots {
  inject(key: string, register: () => unknown): unknown
  register(options: object, component: unknown): () => void
  spec?(key: string): { readonly kind?: string } | undefined
}

/** DSH dsh-client-locale. */
export interface LocaleService extends Partial<Observable<{ readonly active: string }>> {}

/** DSH client-runtime up to 0.1.1, dsh-api-session-controller from 0.1.2 on. */
export interface SessionsService {
  readonly list?: Observable<{ readonly current?: string | null | undefined }>
  binding?(id: string): { readonly session: unknown } | undefined
  scope?(id: string): ClientContext | undefined
  /** Throws for a session that is not in the list. */
  open?(id: string): unknown
}

/** True for a value that can be subscribed to and read. */
export function isObservable(value: unknown): value is Observable<unknown> {
  const face = value as Partial<Observable<unknown>> | null | undefined
  return typeof face?.getSnapshot === 'function' && typeof face.subscribe === 'function'
}

/** A service that may be missing; a context whose `get` throws counts as having none. */
export function service<T>(ctx: ClientContext, name: string): T | undefined {
  try {
    return (ctx.get(name) ?? undefined) as T | undefined
  } catch {
    // cordis may refuse a name it does not know; for us that is the same as absent
    return undefined
  }
}
