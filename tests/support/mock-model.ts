import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { scenarios as builtIn } from './scenarios.ts'

/**
 * A scripted stand-in for the chat-completions API. The host's stock route posts to
 * `$DEEPSEEK_BASE_URL/chat/completions` with `stream: true` and reads server-sent events up to `data: [DONE]`.
 *
 * The answer depends on the request alone, so retries, host restarts and parallel sessions replay the same script:
 * the last user message that names a scenario chooses it, and the number of assistant messages after that message
 * chooses the step.
 */

/** One answer of the model. */
export interface Step {
  /** Text of the thinking block. */
  readonly reasoning?: string
  readonly text?: string
  /** Tool calls, in order; `args` as a string is sent as it is. */
  readonly tools?: readonly { readonly name: string, readonly args: unknown }[]
  /** Pause between streamed pieces. */
  readonly chunkMs?: number
  /** Stream everything, then wait for `release()` (or for the host hanging up). */
  readonly hold?: boolean
  /** Answer with this HTTP error instead of a stream. */
  readonly status?: number
}

export interface WireMessage {
  readonly role: string
  readonly content?: string | readonly { readonly type?: string, readonly text?: string }[] | null
  readonly tool_calls?: readonly { readonly id?: string }[]
  readonly tool_call_id?: string
  /** Where DeepSeek has the thinking; a turn stopped in the middle of it leaves nothing else. */
  readonly reasoning_content?: string
}

export interface ChatRequest {
  readonly model: string
  readonly messages: readonly WireMessage[]
  readonly tools?: readonly unknown[]
  readonly max_tokens?: number
}

export interface RecordedRequest {
  readonly atMs: number
  readonly headers: IncomingHttpHeaders
  readonly body: ChatRequest
}

export interface MockModelOptions {
  /** 0 (the default) takes a free port. */
  readonly port?: number
  /** More scenarios, by name; they win over the built-in ones. */
  readonly scenarios?: Readonly<Record<string, readonly Step[]>>
  /** The scenario of a prompt without a directive. Called for each user message from the last one back. */
  readonly route?: (prompt: string) => string | undefined
  /** Title of the session that a scenario starts; `Session NAME` when not given. */
  readonly title?: (scenario: string) => string
}

export interface MockModel {
  readonly url: string
  /** Every chat request received, in order. */
  readonly requests: RecordedRequest[]
  /** Requests for other paths, and chat requests that a strict provider refuses; nothing is expected here. */
  readonly unexpected: string[]
  setScenario(name: string, steps: readonly Step[]): void
  /** Resolves when at least one `hold` step waits. */
  held(): Promise<void>
  /** Let every waiting `hold` step go on. */
  release(): void
  close(): Promise<void>
}

const directive = /\[scenario:([\w./-]+)\]/g

/** Plain text of a message, whichever way its content is written. */
export function textOf(message: WireMessage): string {
  if (typeof message.content === 'string') return message.content
  return (message.content ?? []).map(part => part.text ?? '').join('')
}

/** True for a request that continues a conversation; titles and summaries are asked for without tools. */
export function isConversation(request: RecordedRequest): boolean {
  return (request.body.tools?.length ?? 0) > 0
}

export async function startMockModel(options: MockModelOptions = {}): Promise<MockModel> {
  const scripts = new Map(Object.entries({ ...builtIn, ...options.scenarios }))
  const requests: RecordedRequest[] = []
  const unexpected: string[] = []
  const waiting = new Set<() => void>()
  const holdListeners = new Set<() => void>()

  async function hold(response: ServerResponse): Promise<void> {
    await new Promise<void>((go) => {
      waiting.add(go)
      response.on('close', () => { waiting.delete(go); go() })
      for (const listener of holdListeners) listener()
      holdListeners.clear()
    })
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', 'http://model').pathname
    if (request.method !== 'POST' || !path.endsWith('/chat/completions')) {
      unexpected.push(`${request.method} ${path}`)
      return sendError(response, 404, `no route ${request.method} ${path}`)
    }
    const body = JSON.parse(await readAll(request)) as ChatRequest
    requests.push({ atMs: Date.now(), headers: request.headers, body })
    const refusal = whyRefused(body.messages)
    if (refusal !== undefined) {
      unexpected.push(`POST ${path}: ${refusal}`)
      return sendError(response, 400, refusal)
    }
    const step = pickStep(body, scripts, options)
    if (step.status !== undefined) return sendError(response, step.status, 'scripted failure')
    await stream(response, body.model, step, hold)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  })
  await new Promise<void>((done, failed) => {
    server.once('error', failed)
    server.listen(options.port ?? 0, '127.0.0.1', done)
  })

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    unexpected,
    setScenario: (name, steps) => { scripts.set(name, steps) },
    held: () => waiting.size > 0 ? Promise.resolve() : new Promise((done) => { holdListeners.add(done) }),
    release() {
      for (const go of waiting) go()
      waiting.clear()
    },
    close: () => new Promise((done) => {
      server.close(() => done())
      server.closeAllConnections()
    }),
  }
}

/** What a strict provider of the OpenAI kind says to these messages: nothing empty, each call answered at once, no answer without a call. */
export function whyRefused(messages: readonly WireMessage[]): string | undefined {
  const open = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const { role, tool_calls: calls = [] } = message
    if (!['system', 'user', 'assistant', 'tool'].includes(role)) return `message ${at} has the role ${role}`
    if (role === 'system' && at > 0) return `message ${at} is a system message behind others`
    if (role !== 'tool' && open.size > 0) return `message ${at} comes before the answer to ${[...open].join(', ')}`
    if (role === 'tool' && !open.delete(message.tool_call_id ?? '')) return `message ${at} answers no call`
    const said = textOf(message) + (message.reasoning_content ?? '')
    if (role !== 'tool' && calls.length === 0 && said === '') return `message ${at} of ${role} is empty`
    for (const { id } of calls) open.add(id ?? '')
  }
  return open.size > 0 ? `no answer to ${[...open].join(', ')}` : undefined
}

function pickStep(body: ChatRequest, scripts: ReadonlyMap<string, readonly Step[]>, options: MockModelOptions): Step {
  if (!body.tools?.length) return auxiliary(body, options)
  for (let at = body.messages.length - 1; at >= 0; at--) {
    const message = body.messages[at]
    if (message?.role !== 'user') continue
    const name = scenarioOf(textOf(message), options)
    if (name === undefined) continue
    const steps = scripts.get(name)
    if (steps === undefined) return { text: `No scenario is named ${name}.` }
    const answered = body.messages.slice(at + 1).filter(later => later.role === 'assistant').length
    return steps[answered] ?? { text: `Scenario ${name} has only ${steps.length} steps.` }
  }
  return { text: 'No message of this conversation names a scenario.' }
}

function scenarioOf(text: string, { route }: MockModelOptions): string | undefined {
  return [...text.matchAll(directive)].at(-1)?.[1] ?? route?.(text)
}

/** A request without tools: the title of a new session (a short answer is asked for) or a summary for a compaction. */
function auxiliary(body: ChatRequest, options: MockModelOptions): Step {
  if ((body.max_tokens ?? 0) > 256) return { text: 'Summary of the conversation so far.' }
  const text = body.messages.filter(message => message.role === 'user').map(textOf).join('\n')
  const name = scenarioOf(text, options) ?? 'untitled'
  return { text: options.title?.(name) ?? `Session ${name}` }
}

async function stream(
  response: ServerResponse, model: string, step: Step, hold: (response: ServerResponse) => Promise<void>,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const send = (choices: readonly object[], more: object = {}) => {
    const chunk = { id: 'scripted', object: 'chat.completion.chunk', created: 0, model, choices, ...more }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  for (const delta of deltas(step)) {
    if (response.destroyed) return
    send([{ index: 0, delta, finish_reason: null }])
    if (step.chunkMs !== undefined) await sleep(step.chunkMs)
  }
  if (step.hold) await hold(response)
  if (response.destroyed) return
  send([{ index: 0, delta: {}, finish_reason: step.tools?.length ? 'tool_calls' : 'stop' }])
  send([], { usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } })
  response.end('data: [DONE]\n\n')
}

/** The pieces of a step in the order the real API streams them. */
function* deltas(step: Step): Generator<object> {
  yield { role: 'assistant', content: '' }
  for (const piece of pieces(step.reasoning ?? '')) yield { reasoning_content: piece }
  for (const piece of pieces(step.text ?? '')) yield { content: piece }
  for (const [index, tool] of (step.tools ?? []).entries()) {
    // The host requires an id that no other call of the conversation has.
    const id = `call_${crypto.randomUUID().slice(0, 12)}_${index}`
    yield { tool_calls: [{ index, id, type: 'function', function: { name: tool.name, arguments: '' } }] }
    const args = typeof tool.args === 'string' ? tool.args : JSON.stringify(tool.args)
    for (const piece of pieces(args)) yield { tool_calls: [{ index, function: { arguments: piece } }] }
  }
}

function pieces(text: string): readonly string[] {
  // Long contents (a test may write a megabyte) come in few pieces, short ones in visible steps.
  const size = Math.max(24, Math.ceil(text.length / 64))
  return text.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? []
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function sendError(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { message, type: 'scripted', code: 'scripted' } }))
}
