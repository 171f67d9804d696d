/**
 * Contract: another session that begins with a prefix of this one's log. DSH session/session-persistence,
 * host/apiproxy, core/agent, preset/agent-presets, workspace/workspace, session/session-title.
 * We rely on: a log that is written cold under a new header is resumed by the host's own `sessions.create`, which
 * gives it preset, model and workspace; where that is not there, `agents.create` takes a seed, and the root context's
 * `agents` keeps the session when the plugin goes. A later generation names the inherited part of a header otherwise,
 * so a session whose events are not readable as an array is not copied at all.
 */
import { randomUUID } from 'node:crypto'
import { sessionId, type Seq, type SessionId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import type { Health } from './health.ts'
import type { ForeignEvent, ForeignHeader, ForeignSession, ForeignSessions, HostContext } from './host-types.ts'

export interface CopyRequest {
  /** A live session. */
  readonly source: ForeignSession
  /** The copy holds the events below; between two turns (src/turn/session-cut.ts). */
  readonly cut: Seq
  readonly title: string
}

/** Members never throw; what went wrong beside a refusal is in the health report. */
export interface SessionCopies {
  /** Whether this host has a way to make one, as far as that shows beforehand. */
  isOffered(source: ForeignSession): boolean
  /** A session of its own in the source's workspace, live and durable. Fails with `unsupported-host` or `no-copy`. */
  make(request: CopyRequest): Promise<Result<SessionId, Failure>>
  /** Takes a session out of the list; DSH has no way back. False where the host cannot. */
  archive(id: SessionId): Promise<boolean>
  /** The session's title as the list shows it, where it has one. */
  titleOf(session: ForeignSession): string | undefined
}

interface Persistence {
  create?(header: object): Promise<void>
  append?(id: string, events: readonly ForeignEvent[]): Promise<void>
}
type Answer = { readonly result?: { readonly ok?: boolean; readonly error?: { readonly message?: string } } }
type Rpc = (request: { rpcId: string; payload: object }) => Promise<Answer>
interface Api {
  readonly sessions?: { create?: Rpc; rename?: Rpc; models?: Rpc }
}
interface Workspace {
  readonly id: string
  readonly path?: string
  readonly sessionIds?: readonly string[]
  attachSession?(id: string): Promise<unknown>
}
interface Workspaces {
  list?(): readonly Workspace[]
  archiveSession?(id: string): Promise<unknown>
}
interface Presets {
  resolve?(id: string | undefined): Promise<{ readonly id: string }>
  mount?(ctx: unknown, id: string): Promise<unknown>
}
interface Titles {
  rename?(session: ForeignSession, title: string): unknown
}
interface Handle {
  readonly agent: { readonly session: ForeignSession }
  dispose?(): unknown
}
interface Creator {
  create?(options: object): Promise<Handle>
}
interface Model {
  readonly provider?: string
  readonly model?: string
}

/** What both ways of making a copy start from. */
interface Plan {
  readonly id: SessionId
  readonly request: CopyRequest
  readonly seed: readonly ForeignEvent[]
  readonly header: ForeignHeader
  readonly preset: string | undefined
  readonly workspace: Workspace | undefined
}

/** Which way this host offers is looked at for each copy: services come and go. */
export function makeSessionCopies(ctx: HostContext, sessions: ForeignSessions, health: Health): SessionCopies {
  const workspaces = () => ctx.get('workspaceRegistry') as Workspaces | undefined

  const planOf = (request: CopyRequest): Plan | undefined => {
    const { source, cut } = request
    if (!Array.isArray(source.events)) return undefined
    const seed = (source.events as readonly ForeignEvent[]).slice(0, cut)
    const id = sessionId(`session-${randomUUID()}`)
    const preset = presetOf(seed) ?? source.header.agentPreset
    const { version, cwd } = source.header
    return {
      id, request, seed, preset,
      header: {
        version, id, createdAt: Date.now(), parentSession: source.id, seedLength: cut,
        ...(cwd === undefined ? {} : { cwd }), ...(preset === undefined ? {} : { agentPreset: preset }),
      },
      workspace: workspaces()?.list?.().find(({ sessionIds }) => sessionIds?.includes(source.id) === true),
    }
  }

  const archive = async (id: SessionId): Promise<boolean> => {
    try {
      const registry = workspaces()
      if (typeof registry?.archiveSession !== 'function') return false
      await registry.archiveSession(id)
      return true
    } catch {
      // A session the host does not know: there is nothing in the list that could go.
      return false
    }
  }

  /** Undefined where this host has no such way. */
  const writtenCold = (plan: Plan): (() => Promise<void>) | undefined => {
    const persistence = ctx.get('sessionPersistence') as Persistence | undefined
    const api = ctx.get('apiProxy') as Api | undefined
    const { id, seed, header, workspace, preset, request } = plan
    if (typeof persistence?.create !== 'function' || typeof persistence.append !== 'function') return undefined
    if (typeof api?.sessions?.create !== 'function' || typeof api.sessions.rename !== 'function') return undefined
    // The host gives a session of a workspace the workspace's path, and refuses another one.
    const isAtHome = workspace?.path !== undefined && workspace.path === header.cwd
    if (!isAtHome && header.cwd === undefined) return undefined
    return async () => {
      if (seed.length > 0) {
        await persistence.create!(header)
        await persistence.append!(id, seed)
      }
      // A session that nothing is stored of is made new; then its preset has to be named.
      const place = isAtHome ? { workspaceId: workspace.id } : { cwd: header.cwd }
      await accepted(api.sessions!.create!({
        rpcId: randomUUID(), payload: { sessionId: id, ...place, ...(seed.length > 0 || preset === undefined ? {} : { agentPreset: preset }) },
      }))
      if (!isAtHome) await workspace?.attachSession?.(id)
      await named(() => accepted(api.sessions!.rename!({ rpcId: randomUUID(), payload: { sessionId: id, title: request.title } })))
    }
  }

  const seeded = (plan: Plan): (() => Promise<void>) | undefined => {
    // An agent of our own context would go with the plugin, and its session out of the list.
    const agents = ctx.root?.get('agents') as Creator | undefined
    const presets = ctx.get('agentPresets') as Presets | undefined
    const { id, seed, header, workspace, preset, request } = plan
    const { provider, model } = modelOf(ctx, request.source) ?? {}
    if (typeof agents?.create !== 'function' || provider === undefined || model === undefined) return undefined
    // Without its preset a session has no tools on a host that keeps them there.
    if (presets !== undefined ? typeof presets.resolve !== 'function' || typeof presets.mount !== 'function' : preset !== undefined) return undefined
    const { version: _version, id: _id, createdAt: _createdAt, ...meta } = header
    return async () => {
      const composed = await presets?.resolve!(preset)
      const handle = await agents.create!({
        sessionId: id, seed, meta: { ...meta, ...(composed === undefined ? {} : { agentPreset: composed.id }) }, agentOptions: { provider, model },
        setup: async (agentCtx: unknown) => { if (composed !== undefined) await presets!.mount!(agentCtx, composed.id) },
      })
      try {
        await workspace?.attachSession?.(id)
        await named(async () => { (ctx.get('sessionTitle') as Titles | undefined)?.rename?.(handle.agent.session, request.title) })
        if (!await sessions.flush(handle.agent.session)) throw new Error('nothing durable is mounted')
      } catch (error) {
        await handle.dispose?.()
        throw error
      }
      // Only spares the first one to open it a moment.
      const models = (ctx.get('apiProxy') as Api | undefined)?.sessions?.models
      if (typeof models === 'function') await models({ rpcId: randomUUID(), payload: { sessionId: id } }).catch(() => undefined)
    }
  }

  /** A copy under the old title is a copy all the same. */
  const named = async (rename: () => Promise<unknown>): Promise<void> => { await health.contain('session title', rename)() }

  const wayOf = (plan: Plan): (() => Promise<void>) | undefined => writtenCold(plan) ?? seeded(plan)

  return {
    archive,
    isOffered: source => health.contain('session copy', () => {
      const plan = planOf({ source, cut: 0, title: '' })
      return plan !== undefined && wayOf(plan) !== undefined
    })() === true,
    titleOf: session => titleIn(session.events ?? []),
    make: async (request) => {
      let plan: Plan | undefined
      try {
        plan = planOf(request)
        const run = plan === undefined ? undefined : wayOf(plan)
        if (plan === undefined || run === undefined) return fail(failure('unsupported-host', { detail: 'session copy' }))
        await run()
        health.clear('session copy')
        return ok(plan.id)
      } catch (error) {
        health.report('session copy', error)
        // Whatever is there of it, and in the list, is no session anybody should open.
        if (plan !== undefined) await archive(plan.id)
        return fail(failure('no-copy', { detail: error instanceof Error ? error.message : String(error) }))
      }
    },
  }
}

async function accepted(answer: Promise<Answer>): Promise<void> {
  const { result } = await answer
  if (result?.ok !== true) throw new Error(result?.error?.message ?? 'the host did not take it')
}

const member = (data: unknown, key: string): string | undefined => {
  const value = (data as Readonly<Record<string, unknown>> | null)?.[key]
  return typeof value === 'string' ? value : undefined
}

const presetOf = (events: readonly ForeignEvent[]): string | undefined =>
  member(events.findLast(({ type }) => type === 'agent-preset/selected')?.data, 'agentPreset')

const titleIn = (events: readonly ForeignEvent[]): string | undefined =>
  member(events.findLast(({ type }) => type === 'session/title')?.data, 'title')

/** The one the session last spoke to; one that never did gets the host's default. */
function modelOf(ctx: HostContext, source: ForeignSession): Model | undefined {
  const defaults = ctx.get('agentDefaultModel') as { currentSelection?(): Model } | undefined
  return source.requestHeader?.()?.config ?? defaults?.currentSelection?.()
}
