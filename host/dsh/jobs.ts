/**
 * Contract: what goes on after a call has answered. DSH jobs/jobs (index.ts, types.ts), shell/tool-bash,
 * shell/tool-pwsh, shell/tool-*-persistent, terminal/tool-terminal.
 * We rely on: the value `{kind: 'background', jobId}` of a call that became a job; `jobs.list(agent)` with
 * `{id, status}`; `jobs.onJobDone(listener)`, called once per job when its end is on the list. A persistent shell
 * answers with text, `terminal_send` with a `waitReason`, and neither tells when what it left running ends.
 * What would break us: a job that answers otherwise; its changes after the call would be nobody's.
 */
import type { Health } from './health.ts'
import type { ForeignAgent, ForeignExecution, HostContext } from './host-types.ts'

/** Something that a call left running. */
export interface Writer {
  /** Only a job's end is told. */
  readonly kind: 'job' | 'terminal' | 'shell'
  /** Of the job or the terminal; empty where the host gives none. */
  readonly id: string
  readonly owner: ForeignAgent
}

export interface Background {
  /** By what the call answered; undefined when nothing goes on. */
  after(exec: ForeignExecution, result: unknown): Writer | undefined
  isOver(writer: Writer): boolean
  /** `told` runs whenever some job has ended. */
  onEnd(told: () => void): void
}

interface ForeignJobs {
  list?(caller: ForeignAgent): readonly { readonly id?: unknown; readonly status?: string }[]
  onJobDone?(listener: () => void): unknown
}

const LIVE = new Set(['running', 'stopping'])

export function watchBackground(ctx: HostContext, health: Health): Background {
  const contract = 'background jobs'
  const list = health.contain(contract, (owner: ForeignAgent) => (ctx.get('jobs') as ForeignJobs | undefined)?.list?.(owner))
  return {
    after: writerOf,
    isOver: ({ kind, id, owner }) => {
      const jobs = kind === 'job' ? list(owner) : undefined
      if (jobs === undefined) return false
      const job = jobs.find(other => String(other.id) === id)
      // The host forgets the jobs of an agent that is gone, after it has stopped them.
      return job === undefined || !LIVE.has(job.status ?? '')
    },
    onEnd: (told) => {
      const listener = health.contain(contract, told)
      ctx.inject(['jobs'], health.contain(contract, (inner: HostContext) => {
        const jobs = inner.get('jobs') as ForeignJobs | undefined
        // Without it, ends are found by looking at the list.
        if (typeof jobs?.onJobDone !== 'function') return
        const stop = jobs.onJobDone(() => { listener() })
        if (typeof stop === 'function') inner.effect(() => stop as () => void, 'turnback: job ends')
      }))
    },
  }
}

/** The terminal that a call names. */
export const terminalOf = ({ name, arguments: args }: ForeignExecution): string | undefined => {
  const id = name.startsWith('terminal_') ? (args as { sessionId?: unknown } | undefined)?.sessionId : undefined
  return typeof id === 'string' ? id : undefined
}

function writerOf(exec: ForeignExecution, result: unknown): Writer | undefined {
  const owner = exec.agent
  const value = (result as { value?: unknown } | undefined)?.value
  if (owner === undefined || value === undefined || value === null) return undefined
  const { kind, jobId, waitReason } = value as { kind?: unknown; jobId?: unknown; waitReason?: unknown }
  if (kind === 'background') return jobId === undefined ? { kind: 'shell', id: '', owner } : { kind: 'job', id: String(jobId), owner }
  const { command, text } = (exec.arguments ?? {}) as { command?: unknown; text?: unknown }
  const terminal = terminalOf(exec)
  if (exec.name === 'terminal_send' && terminal !== undefined) {
    // It waits for input with nothing left behind, or its shell is gone.
    const isQuiet = waitReason === 'session_exit' || (waitReason === 'stdin_read' && !leavesRunning(text))
    return isQuiet ? undefined : { kind: 'terminal', id: terminal, owner }
  }
  return typeof value === 'string' && leavesRunning(command) ? { kind: 'shell', id: '', owner } : undefined
}

/** A shell line that starts something and does not wait for it: `cmd &`, or one of the words for it. Rather too often than too seldom. */
const leavesRunning = (line: unknown): boolean =>
  typeof line === 'string' && /(^|[^&<>|])&(?=$|[\s;)}'"])|\b(nohup|setsid|disown|Start-Job|Start-Process)\b/im.test(line)
