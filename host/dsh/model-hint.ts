/**
 * Contract: sections of the system prompt. DSH core/system-prompt (index.ts).
 * We rely on: `systemPrompt.section({name, order, text})`, undone with the context it is called on; a name that is
 * taken throws. Tool guidance has orders from 100 to 199. A preset whose persona is complete drops every section.
 * What would break us: a text that changes, which costs the model's prompt cache, and `{{`, which names a variable.
 */
import type { Health } from './health.ts'
import type { HostContext } from './host-types.ts'

/** Read by the model and never by a person. */
export const MODEL_HINT = 'Prefer the file tools over shell commands for creating and changing files: what they change can be rolled back exactly.'

/** After the host's own tool guidance. */
const ORDER = 190

interface ForeignPrompt {
  section?(section: { readonly name: string; readonly order: number; readonly text: string }): unknown
}

export function hintModel(ctx: HostContext, health: Health): void {
  ctx.inject(['systemPrompt'], health.contain('model hint', (inner: HostContext) => {
    const prompt = inner.get('systemPrompt') as ForeignPrompt | undefined
    if (typeof prompt?.section !== 'function') return
    const remove = prompt.section({ name: 'turnback:file-tools', order: ORDER, text: MODEL_HINT })
    if (typeof remove === 'function') inner.effect(() => remove as () => void, 'turnback: model hint')
  }))
}
