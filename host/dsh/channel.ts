/**
 * Contract: a request channel from the page that leaves no trace in a session's log. DSH client/connection (rpc.ts).
 * `connection.rpc.handle` up to 0.1.1, `connection.fetch.register` on newer hosts, where the first takes no effect.
 * Both stand behind the host's own fence; `trusted-host` admits the hosts the user configured. Where neither is
 * there (headless) nothing is registered, and the command works alone.
 */
import * as v from 'valibot'
import { CHANNEL, endpoints, type Endpoint, type ReplyOf, type RequestOf } from '../../src/protocol/requests.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, type Result } from '../../src/result.ts'
import type { Health } from './health.ts'
import type { HostContext } from './host-types.ts'

export type Handlers = { readonly [E in Endpoint]: (request: RequestOf<E>) => Promise<Result<ReplyOf<E>, Failure>> }

interface ForeignConnection {
  readonly rpc?: { handle?: (channel: string, handler: (endpoint: string, payload: unknown) => Promise<unknown>, options: object) => unknown }
  readonly fetch?: { register?: (route: object) => unknown }
}

/** Registers every endpoint on whichever channel this host has; it goes with the plugin. */
export function openChannel(ctx: HostContext, health: Health, handlers: Handlers): void {
  ctx.inject(['connection', 'webServer'], health.contain('channel', (inner: HostContext) => {
    const connection = inner.get('connection') as ForeignConnection
    if (typeof connection.fetch?.register !== 'function') {
      const handle = connection.rpc?.handle
      if (typeof handle !== 'function') throw new Error('connection has neither fetch.register nor rpc.handle')
      inner.effect(() => handle.call(connection.rpc, CHANNEL, async (endpoint: string, payload: unknown) =>
        ({ ok: true, value: await answer(handlers, health, endpoint, payload) }), { authority: 'trusted-host' }), 'turnback: channel')
    }
  }))
  ctx.inject(['connection'], health.contain('channel routes', (inner: HostContext) => {
    const connection = inner.get('connection') as ForeignConnection
    const register = connection.fetch?.register
    if (typeof register !== 'function') return
    for (const endpoint of Object.keys(endpoints)) {
      inner.effect(() => register.call(connection.fetch, {
        path: `/api${CHANNEL}/${endpoint}`, methods: ['POST'], requestBody: 'buffered',
        fetch: async (request: Request) => {
          const body = await envelopeOf(request)
          const value = await answer(handlers, health, endpoint, body?.payload)
          return Response.json({ type: 'server-response', rpcId: body?.rpcId, result: { ok: true, value } })
        },
      }), `turnback: ${endpoint}`)
    }
  }))
}

/** Undefined for a body that is no JSON object; the endpoint then refuses its missing payload. */
async function envelopeOf(request: Request): Promise<{ readonly rpcId?: unknown; readonly payload?: unknown } | undefined> {
  try {
    return await request.json() as { rpcId?: unknown; payload?: unknown } | null ?? undefined
  } catch {
    // Not JSON, or the caller went away while sending it: nobody is helped by a failing route.
    return undefined
  }
}

/** Checks the request, asks the handler; never rejects. */
export async function answer(handlers: Handlers, health: Health, endpoint: string, payload: unknown): Promise<Result<unknown, Failure>> {
  if (!Object.hasOwn(endpoints, endpoint)) return fail(failure('bad-request', { detail: 'endpoint', word: endpoint.slice(0, 40) }))
  const name = endpoint as Endpoint
  const request = v.safeParse(endpoints[name].request, payload)
  if (!request.success) {
    const issue = request.issues[0]
    return fail(failure('bad-request', { detail: 'request', word: `${v.getDotPath(issue) ?? ''} ${issue.message}`.trim() }))
  }
  try {
    return await (handlers[name] as (request: unknown) => Promise<Result<unknown, Failure>>)(request.output)
  } catch (error) {
    health.report(`endpoint ${name}`, error)
    return fail(failure('internal', { detail: error instanceof Error ? error.message : String(error) }))
  }
}
