/**
 * Contract: an agent appears, and is about to take a step. DSH core/agent (runtime-types.ts).
 * We rely on: `agent/created` comes before the agent claims a prompt; a step waits for the listeners of
 * `agent/pre-step`. A throw in the first vetoes the agent, one in the second ends the turn in an error, so neither
 * may come from us; a step that is refused loses the prompt it has claimed, so it is never refused.
 */
import type { Health } from './health.ts'
import type { ForeignAgent, HostContext } from './host-types.ts'

export interface AgentWatch {
  appeared(agent: ForeignAgent): void
  /** What the agent's next step has to wait for; how it ends makes no difference. */
  beforeStep(agent: ForeignAgent): Promise<unknown> | undefined
}

/** Both faults are reported under `part`. */
export function watchAgents(ctx: HostContext, health: Health, part: string, watch: AgentWatch): void {
  ctx.on('agent/created', health.contain(part, ({ agent }: { agent: ForeignAgent }) => watch.appeared(agent)))
  const wait = health.contain(part, async (agent: ForeignAgent) => { await watch.beforeStep(agent) })
  ctx.on('agent/pre-step', async ({ agent }: { agent: ForeignAgent }, next: () => Promise<unknown>) => {
    await wait(agent)
    return next()
  }, { prepend: true })
}
