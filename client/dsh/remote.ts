import * as v from 'valibot'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import {
  CHANNEL,
  endpoints,
  replyEnvelope,
  type Endpoint,
  type ReplyOf,
  type RequestInput,
} from '../../src/protocol/requests.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { service, type ClientContext } from './context.ts'

/** What became of a command line. `refused` is the command's own answer, already in the page's language. */
export type CommandRun =
  | { readonly kind: 'done'; readonly text: string; readonly sourceEventSeq?: number }
  | { readonly kind: 'refused'; readonly text: string }
  | { readonly kind: 'failed'; readonly failure: Failure }

/** The way to the host half: quiet reads over our channel, acts as commands in the session. */
export interface Remote {
  call<E extends Endpoint>(
    endpoint: E,
    request: RequestInput<E>,
    signal?: AbortSignal,
  ): Promise<Result<ReplyOf<E>, Failure>>
  run(sessionId: string, line: string): Promise<CommandRun>
}

interface Rpc {
  call(channel: string, endpoint: string, payload: unknown, signal?: AbortSignal): Promise<unknown>
}
interface Commands {
  execute(sessionId: string, line: string, attachments: readonly never[]): Promise<unknown>
}

/** The two carriers: a channel of our own (0.1.0, 0.1.1), and a path under `/api` where plugins get no channel. */
const carriers = [
  (endpoint: string) => [CHANNEL, endpoint] as const,
  (endpoint: string) => ['/api', `${CHANNEL.slice(1)}/${endpoint}`] as const,
]

/** Every reply of DSH's connection: `{ok, value}` or `{ok, error}` (dsh-host-apiproxy `serverResponseSchema`). */
const wireSchema = v.variant('ok', [
  v.object({ ok: v.literal(true), value: v.optional(v.unknown()) }),
  v.object({
    ok: v.literal(false),
    error: v.optional(v.object({ code: v.optional(v.string()), message: v.optional(v.string(), '') })),
  }),
])

const ranSchema = v.object({
  result: v.object({
    kind: v.string(),
    text: v.optional(v.string(), ''),
    sourceEventSeq: v.optional(v.number()),
  }),
})

/**
 * Uses `connection.rpc.call` and `remote.commands.execute` of the page. Both services are looked up
 * at each call: they may come late or be replaced. A carrier that is not there answers HTTP 404 or 405.
 */
export function createRemote(ctx: ClientContext): Remote {
  let carrier = 0

  async function send(endpoint: string, request: unknown, signal?: AbortSignal): Promise<Result<unknown, Failure>> {
    const rpc = service<{ rpc?: Rpc }>(ctx, 'connection')?.rpc
    if (typeof rpc?.call !== 'function') return fail(failure('host-missing'))
    let last: Failure = failure('host-missing')
    for (let tries = 0; tries < carriers.length; tries++) {
      try {
        const [channel, name] = carriers[carrier]!(endpoint)
        return ok(await rpc.call(channel, name, request, signal))
      } catch (cause) {
        // The caller of the page rejects for transport faults only; what it says tells them apart.
        last = transportFailure(cause, signal)
        if (!/HTTP 40[45]/.test(String(cause))) return fail(last)
        carrier = (carrier + 1) % carriers.length
      }
    }
    return fail(last)
  }

  return {
    async call(endpoint, request, signal) {
      const sent = await send(endpoint, request, signal)
      if (!sent.ok) return sent
      const wire = v.safeParse(wireSchema, sent.value)
      if (!wire.success) return fail(failure('host-mismatch', { detail: `${endpoint}: no reply` }))
      if (!wire.output.ok) return fail(failure('host-mismatch', { detail: wire.output.error?.message ?? endpoint }))
      const envelope = v.safeParse(replyEnvelope, wire.output.value)
      if (!envelope.success)
        return fail(failure('host-mismatch', { detail: `${endpoint}: ${envelope.issues[0].message}` }))
      if (!envelope.output.ok) return fail(envelope.output.failure)
      const reply = v.safeParse(endpoints[endpoint].reply, envelope.output.value)
      if (!reply.success) return fail(failure('host-mismatch', { detail: `${endpoint}: ${reply.issues[0].message}` }))
      return ok(reply.output as ReplyOf<typeof endpoint>)
    },

    async run(sessionId, line) {
      const commands = service<Commands>(ctx, 'remote.commands')
      if (typeof commands?.execute !== 'function')
        return { kind: 'failed', failure: failure('unsupported-host', { detail: 'remote.commands' }) }
      let reply: unknown
      try {
        reply = await commands.execute(sessionId, line, [])
      } catch (cause) {
        return { kind: 'failed', failure: transportFailure(cause) }
      }
      const wire = v.safeParse(wireSchema, reply)
      if (!wire.success) return { kind: 'failed', failure: failure('host-mismatch', { detail: line }) }
      if (!wire.output.ok) return { kind: 'failed', failure: commandFailure(wire.output.error) }
      // A name nobody registered resolves without a value: our host half is not there.
      if (wire.output.value === undefined) return { kind: 'failed', failure: failure('host-missing') }
      const ran = v.safeParse(ranSchema, wire.output.value)
      if (!ran.success) return { kind: 'failed', failure: failure('host-mismatch', { detail: line }) }
      const { kind, text, sourceEventSeq } = ran.output.result
      if (kind !== 'success') return { kind: 'refused', text }
      return { kind: 'done', text, ...(sourceEventSeq === undefined ? {} : { sourceEventSeq }) }
    },
  }
}

function transportFailure(cause: unknown, signal?: AbortSignal): Failure {
  if (signal?.aborted) return failure('aborted')
  const detail = cause instanceof Error ? cause.message : String(cause)
  return /HTTP 5\d\d/.test(detail) ? failure('internal', { detail }) : failure('host-missing')
}

function commandFailure(error: { code?: string | undefined; message: string } | undefined): Failure {
  return error?.code === 'session-not-found'
    ? failure('unknown-session')
    : failure('internal', { detail: error?.message ?? '' })
}
