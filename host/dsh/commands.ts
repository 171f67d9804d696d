/**
 * Contract: slash commands. DSH interaction/commands (index.ts).
 * We rely on: `register` throws when the name is taken; the handler gets `agent` and the raw words;
 * `recordInput: false` keeps the words out of the log; the result text becomes a row of the chat.
 */
import { COMMAND, FALLBACK_COMMAND } from '../../src/protocol/requests.ts'
import type { Health } from './health.ts'
import type { Dispose, ForeignAgent, HostContext } from './host-types.ts'

export interface CommandAnswer {
  readonly kind: 'success' | 'error'
  readonly text: string
  /** The marker's seq, when one was written. */
  readonly sourceEventSeq?: number
}

interface ForeignCommands {
  register(definition: object): Dispose
}

/** Registers `/rollback`, or `/turnback` where another plugin has that name; answers the name that works, or undefined. */
export function registerCommand(
  ctx: HostContext,
  health: Health,
  texts: { description: string; hint: string },
  answer: (agent: ForeignAgent, rawInput: string) => Promise<CommandAnswer>,
): string | undefined {
  const commands = ctx.get('commands') as ForeignCommands
  for (const name of [COMMAND, FALLBACK_COMMAND]) {
    try {
      ctx.effect(() => commands.register({
        name,
        description: texts.description,
        input: { hint: texts.hint },
        recordInput: false,
        handler: ({ agent, rawInput }: { agent: ForeignAgent; rawInput: string }) => answer(agent, rawInput),
      }), `turnback: /${name}`)
      return name
    } catch (error) {
      health.report(`command /${name}`, error)
    }
  }
  return undefined
}
