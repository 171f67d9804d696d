/**
 * Contract: the tool pipeline and the fs intents. DSH core/tools (index.ts), fs/fs (events).
 * We rely on: `fs/write-intent` and `fs/edit-intent` fire after every approval and right before the
 * write, with the resolved target and the execution as actor; `tools/execute` wraps the body and
 * `tools/result` follows every call, also a denied one. The intents reach prepended listeners only,
 * because the host's own policy answers them without calling `next()`.
 * A call that was refused has an error for a result and never comes to `tools/execute`.
 * What would break us: an intent that fires before the approval, or a write tool without one.
 */
import type { Capture } from '../capture/capture.ts'
import type { Health } from './health.ts'
import type { Background } from './jobs.ts'
import type { ForeignAgent, ForeignExecution, ForeignTarget, HostContext } from './host-types.ts'

type Intent = (target: ForeignTarget, actor: ForeignExecution | undefined, next: () => Promise<unknown>) => Promise<unknown>

/** Registers capture around every tool call. A fault of ours changes neither the call nor its result. */
export function watchToolCalls(ctx: HostContext, capture: Capture, background: Background, health: Health): void {
  const before = health.contain('capture before a write', (exec: ForeignExecution, target: ForeignTarget) =>
    capture.beforeWrite(exec, pathOf(ctx, target), target))
  const after = health.contain('capture after a call', capture.afterCall)
  const settled = health.contain('capture of a denied call', capture.afterResult)
  const started = health.contain('capture at the start of a call', capture.atStart)
  const leaves = health.contain('capture of what goes on', background.after)
  const turnEnded = health.contain('capture at the end of a turn', capture.afterTurn)

  const intent: Intent = async (target, actor, next) => {
    // First the host's answer: where it refuses the write there is nothing to capture.
    const answer = await next()
    if (actor !== undefined) await before(actor, target)
    return answer
  }
  ctx.on('fs/write-intent', intent, { prepend: true })
  ctx.on('fs/edit-intent', intent, { prepend: true })
  ctx.on('tools/execute', async (exec: ForeignExecution, next: () => Promise<unknown>) => {
    await started(exec)
    let result: unknown
    try {
      result = await next()
      return result
    } finally {
      await after(exec, leaves(exec, result))
    }
  }, { prepend: true })
  ctx.on('tools/result', (exec: ForeignExecution, result: unknown) => {
    settled(exec, (result as { isError?: unknown } | undefined)?.isError === true)
  })
  ctx.on('agent/status', ({ agent, status }: { agent: ForeignAgent; status: string }) => {
    if (status === 'idle') turnEnded(agent.session)
  })
}

/** The operating system's path of a target; on local backends the key is that path. */
function pathOf(ctx: HostContext, target: ForeignTarget): string {
  const fs = ctx.get('fs') as { processPath?: (target: ForeignTarget) => unknown } | undefined
  const path = fs?.processPath?.(target)
  return typeof path === 'string' ? path : target.targetKey
}
