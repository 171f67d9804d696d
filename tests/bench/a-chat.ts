import { randomUUID } from 'node:crypto'
import * as plugin from '../../host/index.ts'
import { dsh, serviceOf, type Foreign } from '../contract/support/dsh-packages.ts'
import { scriptedModel, type Step } from '../contract/support/scripted-model.ts'

/** One session of a host in this process. */
export interface BenchChat {
  /** Lets the model answer with these steps (then `ok`) and waits until all is quiet. */
  turn(...steps: Step[]): Promise<void>
  command(line: string): Promise<{ readonly kind: string; readonly text?: string }>
  /** Asks our channel the way the page does; the answer's value. */
  ask(endpoint: string, payload: object): Promise<Foreign>
  stop(): Promise<void>
}

/** The packages of DSH that a turn with file tools and commands needs, our plugin, and session `s1` in `ws`: the stored one where there is one. */
export async function startChat(home: string, ws: string, settings: object = {}): Promise<BenchChat> {
  process.env.DSH_HOME = home
  const { Context } = await dsh('cordis')
  const ctx: Foreign = new Context()
  const model = await scriptedModel()
  const channel: { answer?: (endpoint: string, payload: unknown) => Promise<Foreign> } = {}
  const packages: [string, object?][] = [
    ['dsh-invariants'], ['dsh-llm'], ['dsh-session'], ['dsh-session/invariant'], ['dsh-system-prompt', { persona: 'You are scripted.' }],
    ['dsh-tools', { mode: 'native' }], ['dsh-agent'], ['dsh-session-persistence-jsonl', { root: `${home}/sessions`, writeBatchMaxDelayMs: 1 }],
    ['dsh-session-checkpoint-policy'], ['dsh-commands'], ['dsh-sandbox-policy', { mode: 'workspace-write', workspaceRoot: ws }],
    ['dsh-fs-sandbox', { cwd: ws }], ['dsh-fs-observation-policy'], ['dsh-tool-fs', {}], ['dsh-subprocess-local'],
    ['dsh-bash-local', { cwd: ws }], ['dsh-shell-env'], ['dsh-tool-bash', { enableRunInBackground: false }],
  ]
  const mount = async ([module, config]: [string, object?]): Promise<void> => {
    const found = await dsh(module)
    await ctx.plugin(typeof found.default === 'function' ? found.default : found, config)
  }
  for (const entry of packages) await mount(entry)
  ctx.llm.registerAdapter(['scripted'], model.adapter)
  await ctx.plugin(await serviceOf('webServer', {}))
  await ctx.plugin(await serviceOf('connection', {
    rpc: {
      handle: (_channel: string, handler: (endpoint: string, payload: unknown) => Promise<Foreign>) => {
        channel.answer = handler
        return () => { delete channel.answer }
      },
    },
  }))
  await ctx.plugin(plugin, settings)
  await mount(['dsh-agent-loop', { agents: [] }])
  const agentOptions = { provider: 'scripted', model: 'm' }
  const isStored = await ctx.get('sessionPersistence').inspect('s1').then(() => true, () => false)
  const { agent } = isStored
    ? await ctx.agents.resume({ resumeSessionId: 's1', agentOptions })
    : await ctx.agents.create({ sessionId: 's1', meta: { cwd: ws }, agentOptions })
  return {
    turn: async (...steps) => {
      model.script.push(...steps)
      agent.followup({ id: randomUUID(), role: 'user', source: { kind: 'user' }, content: [{ type: 'text', text: 'go' }] })
      await agent.whenIdle()
      if (model.script.length > 0) throw new Error('bench: the turn did not run')
    },
    command: async line => (await ctx.commands.execute(agent, line, [], new AbortController().signal)).result,
    ask: async (endpoint, payload) => {
      const { value: answer } = await channel.answer!(endpoint, { sessionId: 's1', ...payload })
      if (answer.ok !== true) throw new Error(`bench: ${endpoint}: ${JSON.stringify(answer)}`)
      return answer.value
    },
    stop: () => ctx.fiber.dispose(),
  }
}

export const runs = (command: string): Step => ({ tools: [['bash', { command, description: 'Run' }]] })
