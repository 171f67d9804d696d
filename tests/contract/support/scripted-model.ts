import { dsh, type Foreign } from './dsh-packages.ts'

/** One answer of the model. */
export type Step =
  | string
  | { readonly text?: string; readonly tools: readonly (readonly [name: string, args: object])[] }
  /** Says the text and then waits until the request is aborted. */
  | { readonly hang: string }
  /** Thinks so and then waits likewise. */
  | { readonly think: string }
  /** The provider refuses the request. */
  | { readonly fail: string }

export interface ModelMessage {
  readonly role: string
  readonly content: readonly Foreign[]
}

export interface ModelRequest {
  readonly system: string
  readonly messages: readonly ModelMessage[]
  readonly tools: readonly { readonly name: string }[]
}

export interface ScriptedModel {
  readonly adapter: Foreign
  /** Answers in the order they are asked for; with none left it says `ok`. */
  readonly script: Step[]
  /** What the model was sent, oldest first. */
  readonly requests: ModelRequest[]
  /** Called when a request comes in, before it is answered. */
  onRequest: (() => void) | undefined
}

export async function scriptedModel(): Promise<ScriptedModel> {
  const { LlmAdapter } = await dsh('dsh-llm')
  const script: Step[] = []
  const requests: ModelRequest[] = []
  let calls = 0
  const model: { adapter: Foreign } & ScriptedModel = { adapter: undefined, script, requests, onRequest: undefined }
  class Adapter extends LlmAdapter {
    resolveModel(provider: string, id: string) {
      return Promise.resolve({ provider, id, name: id, contextWindow: 100_000 })
    }
    async *stream(options: Foreign): AsyncGenerator<unknown> {
      requests.push(JSON.parse(JSON.stringify({ system: options.system ?? '', messages: options.messages ?? [], tools: options.tools ?? [] })))
      model.onRequest?.()
      const step = script.shift() ?? 'ok'
      if (typeof step === 'string') {
        yield* saying(step)
        yield* ended('stop')
      } else if ('hang' in step || 'think' in step) {
        if ('hang' in step) yield* saying(step.hang)
        else yield* [{ type: 'block-start', index: 0, blockType: 'reasoning' }, { type: 'reasoning-delta', index: 0, text: step.think }]
        await new Promise<void>((resolve) => {
          if (options.signal?.aborted) resolve()
          options.signal?.addEventListener('abort', () => { resolve() })
        })
        throw options.signal?.reason ?? new Error('aborted')
      } else if ('fail' in step) {
        throw new Error(step.fail)
      } else {
        if (step.text !== undefined) yield* saying(step.text)
        const first = step.text === undefined ? 0 : 1
        for (const [at, [name, args]] of step.tools.entries()) {
          const id = `call-${++calls}`
          const index = first + at
          const text = JSON.stringify(args)
          yield { type: 'block-start', index, blockType: 'tool-call' }
          yield { type: 'tool-call-delta', index, id, name, argumentsDelta: text }
          yield { type: 'block-end', index, block: { type: 'tool-call', id, name, arguments: text } }
        }
        yield* ended('tool-calls')
      }
    }
  }
  return Object.assign(model, { adapter: new Adapter() })
}

function* saying(text: string): Generator<unknown> {
  yield { type: 'block-start', index: 0, blockType: 'text' }
  yield { type: 'text-delta', index: 0, text }
  yield { type: 'block-end', index: 0, block: { type: 'text', text } }
}

function* ended(kind: string): Generator<unknown> {
  yield { type: 'usage', usage: { inputTokens: 10, outputTokens: 5 } }
  yield { type: 'finish', reason: { kind } }
}
