/**
 * Contract: whether a session is busy. DSH core/agent (runtime-types.ts, inbox.ts), jobs/jobs (types.ts).
 * We rely on: `agent.status` is `running` from the claim of a prompt to the end of its turns;
 * `runMaintenance` throws at once unless the agent is idle and queues prompts until it settles;
 * `jobs.list(agent)` gives that agent's jobs and the unowned ones.
 */
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { rootOf } from '../capture/attribution.ts'
import type { ForeignAgent, ForeignAgents, ForeignMessage, ForeignSessions, HostContext } from './host-types.ts'

interface ForeignJob {
  readonly label?: string
  readonly kind?: string
  readonly ownerSession?: string
  readonly status?: string
}

const LIVE_JOB = new Set(['running', 'stopping'])

/** Why nothing may be rolled back right now, or undefined. Looks at the agent, its subagents and their jobs. */
export function whyBusy(ctx: HostContext, agent: ForeignAgent): Failure | undefined {
  if (agent.status === 'running') return failure('turn-running')
  const sessions = ctx.get('sessions') as ForeignSessions
  const agents = ctx.get('agents') as ForeignAgents
  const tree = agents.list().filter(other => other !== agent && rootOf(sessions, other.session) === agent.session)
  const children = tree.filter(other => other.status === 'running').map(other => `subagent ${other.id}`)
  const jobs = [agent, ...tree].flatMap(owner => jobsOf(ctx, owner)).map(job => job.label ?? job.kind ?? 'job')
  const names = [...new Set([...jobs, ...children])]
  return names.length === 0 ? undefined : failure('jobs-running', { count: names.length, names: names.slice(0, 5).join(', ') })
}

function jobsOf(ctx: HostContext, agent: ForeignAgent): readonly ForeignJob[] {
  const jobs = ctx.get('jobs') as { list?: (caller: ForeignAgent) => readonly ForeignJob[] } | undefined
  return (jobs?.list?.(agent) ?? []).filter(job => job.ownerSession !== undefined && LIVE_JOB.has(job.status ?? ''))
}

/** First lines of the messages that wait and will run after a rollback. */
export function queuedPrompts(agent: ForeignAgent): readonly string[] {
  const waiting = [...agent.inbox?.nextStep ?? [], ...agent.inbox?.nextTurn ?? []]
  return waiting.map(firstLine)
}

function firstLine(message: ForeignMessage): string {
  const text = (message.content ?? []).filter(block => block.type === 'text').map(block => block.text ?? '').join(' ').trim()
  const line = text.split('\n')[0]!
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

/** Sandbox mode of the session; undefined where the host has no sandbox policy. */
export function sandboxMode(ctx: HostContext, agent: ForeignAgent): string | undefined {
  const policy = ctx.get('sandboxPolicy') as { resolve?: (request: { session: unknown }) => { mode?: string } } | undefined
  return policy?.resolve?.({ session: agent.session }).mode
}

/**
 * Runs `task` while no turn can start; prompts that come meanwhile wait and run afterwards.
 * Undefined means that the agent was not idle: the host refuses maintenance synchronously.
 */
export function inMaintenance<T>(agent: ForeignAgent, task: (signal: AbortSignal) => Promise<T>): Promise<T> | undefined {
  try {
    return agent.runMaintenance(task)
  } catch (error) {
    if (error instanceof Error && error.message.includes('already has active work')) return undefined
    throw error
  }
}
