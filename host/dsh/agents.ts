/**
 * Contract: what goes on in a session beside a rollback. DSH core/agent (runtime-types.ts, inbox.ts), jobs/jobs (types.ts).
 * We rely on: `agent.status` is `running` from the claim of a prompt to the end of its turns;
 * `runMaintenance` throws at once unless the agent is idle and queues prompts until it settles;
 * `jobs.list(agent)` gives that agent's jobs and the unowned ones; `inbox.remove(id)` takes a waiting message out for
 * good and answers whether it was there.
 */
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { rootOf } from '../capture/attribution.ts'
import type { RunningChoice, RunningWork } from '../../src/protocol/requests.ts'
import type { ForeignAgent, ForeignAgents, ForeignMessage, ForeignSessions, HostContext } from './host-types.ts'

interface ForeignJob {
  readonly label?: string
  readonly kind?: string
  readonly ownerSession?: string
  readonly status?: string
}

const LIVE_JOB = new Set(['running', 'stopping'])

/** Why nothing may be rolled back right now, or undefined. A running turn always refuses; other work unless it may go on. */
export function whyBusy(ctx: HostContext, agent: ForeignAgent, running: RunningChoice = 'refuse'): Failure | undefined {
  if (agent.status === 'running') return failure('turn-running')
  const names = running === 'continue' ? [] : [...new Set(workBeside(ctx, agent).map(({ kind, label }) => (kind === 'job' ? label : `${kind} ${label}`)))]
  return names.length === 0 ? undefined : failure('jobs-running', { count: names.length, names: names.slice(0, 5).join(', ') })
}

/** What goes on beside the turns of this session: jobs of the agent and of its subagents, and subagents at work. */
export function workBeside(ctx: HostContext, agent: ForeignAgent): readonly RunningWork[] {
  const sessions = ctx.get('sessions') as ForeignSessions
  const agents = ctx.get('agents') as ForeignAgents
  const tree = agents.list().filter(other => other !== agent && rootOf(sessions, other.session) === agent.session)
  return [
    ...[agent, ...tree].flatMap(owner => jobsOf(ctx, owner)).map(job => ({ kind: 'job' as const, label: job.label ?? job.kind ?? 'job' })),
    ...tree.filter(other => other.status === 'running').map(other => ({ kind: 'subagent' as const, label: other.id })),
  ]
}

function jobsOf(ctx: HostContext, agent: ForeignAgent): readonly ForeignJob[] {
  const jobs = ctx.get('jobs') as { list?: (caller: ForeignAgent) => readonly ForeignJob[] } | undefined
  return (jobs?.list?.(agent) ?? []).filter(job => job.ownerSession !== undefined && LIVE_JOB.has(job.status ?? ''))
}

/** First lines of the messages that wait and will run after a rollback. */
export const queuedPrompts = (agent: ForeignAgent): readonly string[] => waiting(agent).map(firstLine)

/** Ids of those messages, for `dropQueued`; undefined where this host cannot remove them. */
export function droppable(agent: ForeignAgent): readonly string[] | undefined {
  const ids = waiting(agent).map(({ id }) => id)
  return ids.every(id => id !== undefined && typeof agent.inbox?.remove === 'function') ? ids as string[] : undefined
}

/** Takes the messages out of the queue, and answers the first lines of those that were still in it. */
export function dropQueued(agent: ForeignAgent, ids: readonly string[]): readonly string[] {
  const named = new Set(ids)
  return waiting(agent).filter(({ id }) => id !== undefined && named.has(id) && agent.inbox?.remove?.(id) === true).map(firstLine)
}

const waiting = ({ inbox }: ForeignAgent): readonly ForeignMessage[] => [...inbox?.nextStep ?? [], ...inbox?.nextTurn ?? []]

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
