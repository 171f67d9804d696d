import type { Foreign } from '../contract/support/dsh-packages.ts'
import type { ModelRequest } from '../contract/support/scripted-model.ts'
import type { WireMessage } from './mock-model.ts'

/** A request of the host as a provider of the OpenAI kind gets it: results of tools are messages of their own. */
export function wireMessages({ system, messages }: ModelRequest): readonly WireMessage[] {
  const wire = messages.flatMap(({ role, content }): WireMessage[] => {
    const results = content.filter(block => block.type === 'tool-result')
    const rest = content.filter(block => block.type !== 'tool-result')
    return [
      ...results.map((block): WireMessage => ({ role: 'tool', tool_call_id: String(block.callId ?? block.toolCallId ?? block.id), content: words(block.content ?? []) })),
      ...(rest.length === 0 && results.length > 0 ? [] : [{
        role,
        content: words(rest.filter(block => block.type === 'text')),
        tool_calls: rest.filter(block => block.type === 'tool-call').map(block => ({ id: String(block.id) })),
        reasoning_content: words(rest.filter(block => block.type === 'reasoning' || block.type === 'thinking')),
      }]),
    ]
  })
  return system === '' ? wire : [{ role: 'system', content: system }, ...wire]
}

const words = (blocks: readonly Foreign[]): string => blocks.map(block => String(block.text ?? '')).join('')
