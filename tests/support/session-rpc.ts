import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Endpoint, ReplyOf, RequestInput } from '../../src/protocol/requests.ts'
import type { Result } from '../../src/result.ts'
import type { Failure } from '../../src/protocol/failure.ts'

/** Sessions of the real host driven over its own wire, for tests in which the page is not the point. */

export interface CommandReply {
  readonly kind: string
  readonly text: string
}

export interface SessionRpc {
  /** A new session in the home's first workspace, or in another folder; of the default agent preset, or of another. */
  create(cwd?: string, agentPreset?: string): Promise<string>
  /** Sends a prompt and returns when the session is idle again. */
  ask(sessionId: string, prompt: string): Promise<void>
  /** Sends a prompt; its turn runs on. */
  send(sessionId: string, prompt: string): Promise<void>
  stop(sessionId: string): Promise<void>
  whenIdle(sessionId: string): Promise<void>
  command(sessionId: string, line: string): Promise<CommandReply>
  /** A request on Turnback's own channel. */
  turnback<E extends Endpoint>(endpoint: E, request: RequestInput<E>): Promise<Result<ReplyOf<E>, Failure>>
  /** Rolls back as the dialog does: preview, plan with the conflicts to put back, confirm. Paths as the preview shows them. */
  confirm(sessionId: string, turn: number, putBack?: readonly string[]): Promise<CommandReply>
}

/** `url` is asked at each call: a restarted host has another one. */
export function sessionRpc(home: string, url: () => string): SessionRpc {
  async function call(path: string, method: string, payload: unknown): Promise<unknown> {
    const response = await fetch(`${url()}${path}/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'client-request', rpcId: crypto.randomUUID(), method, payload }),
    })
    if (!response.ok) throw new Error(`${path}/${method}: HTTP ${response.status} ${await response.text()}`)
    const { result } = await response.json() as { result: { ok: boolean, value?: unknown, error?: unknown } }
    if (!result.ok) throw new Error(`${path}/${method}: ${JSON.stringify(result.error)}`)
    return result.value
  }

  const isRunning = async (sessionId: string): Promise<boolean> => {
    const { items } = await call('/api', 'session.list', {}) as { items: { sessionId: string, running: boolean }[] }
    const found = items.find(item => item.sessionId === sessionId)
    if (found === undefined) throw new Error(`session ${sessionId} is not in the host's list`)
    return found.running
  }

  const whenIdle = async (sessionId: string): Promise<void> => {
    const deadlineMs = Date.now() + 30_000
    while (await isRunning(sessionId)) {
      if (Date.now() > deadlineMs) throw new Error(`session ${sessionId} runs for more than 30 s`)
      await sleep(25)
    }
  }

  const send = async (sessionId: string, prompt: string): Promise<void> => {
    await call('/api', 'session.prompt', { sessionId, mode: 'queue', content: [{ type: 'text', text: prompt }] })
  }

  const command = async (sessionId: string, line: string): Promise<CommandReply> => {
    const value = await call('/api', 'commands/execute', { args: { agentId: sessionId, line, images: [] } })
    if (value === undefined) throw new Error(`the host knows no command in: ${line}`)
    return (value as { result: CommandReply }).result
  }

  const turnback = async <E extends Endpoint>(endpoint: E, request: RequestInput<E>) =>
    await call('/turnback', endpoint, request) as Result<ReplyOf<E>, Failure>

  return {
    async create(cwd, agentPreset) {
      const place = cwd === undefined ? { workspaceId: firstWorkspace(home) } : { cwd }
      return (await call('/api', 'session.create', { ...place, ...(agentPreset && { agentPreset }) }) as { sessionId: string }).sessionId
    },
    async ask(sessionId, prompt) {
      await send(sessionId, prompt)
      await whenIdle(sessionId)
    },
    send,
    async stop(sessionId) {
      await call('/api', 'session.cancel', { sessionId })
      await whenIdle(sessionId)
    },
    whenIdle,
    command,
    turnback,
    async confirm(sessionId, turn, putBack = []) {
      const preview = expectOk(await turnback('preview', { sessionId, turn }))
      const paths = preview.rows.filter(row => putBack.includes(row.shown)).map(row => row.path)
      if (paths.length !== putBack.length) throw new Error(`not in the preview: ${putBack.join(', ')}`)
      const plan = expectOk(await turnback('plan', { sessionId, turn, token: preview.token, putBack: paths }))
      if (plan.kind !== 'planned') throw new Error(`the plan is ${plan.kind}`)
      return command(sessionId, `/rollback --plan ${plan.planId}`)
    },
  }
}

/** The value of a reply that must be one. */
export function expectOk<T>(reply: Result<T, Failure>): T {
  if (!reply.ok) throw new Error(`refused: ${JSON.stringify(reply.failure)}`)
  return reply.value
}

function firstWorkspace(home: string): string {
  const stored = JSON.parse(readFileSync(join(home, 'storages', 'workspace.json'), 'utf8')) as { global: { workspaceIds: string[] } }
  const id = stored.global.workspaceIds[0]
  if (id === undefined) throw new Error('the home has no workspace')
  return id
}
