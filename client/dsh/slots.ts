import type { Health } from '../health.ts'
import type { ClientContext } from './context.ts'

export type SlotOptions = {
  readonly name: string
  readonly id?: string
  readonly key?: string
  readonly order?: number
  readonly priority?: number
  /** Read when it is shown, so that it follows the language. */
  readonly label?: () => string
}

/**
 * Joins a slot (DSH dsh-client-ui-slots, `slots.inject` + `slots.register`). Waits for slots that are
 * declared later and does nothing for those that never are. The callback may run inside our `apply`,
 * where a throw would stop the whole page, so both calls are guarded.
 */
export function joinSlot(ctx: ClientContext, health: Health, options: SlotOptions, component: unknown): void {
  const part = `slot ${options.name}`
  health.guard(part, () =>
    ctx.slots.inject(
      options.name,
      () => health.guard(part, () => ctx.slots.register(options, component)) ?? (() => {}),
    ),
  )
}

/** Runs `work` with the slot's kind once it is declared: `list` or `chain` (slots.ts `spec`). */
export function whenDeclared(
  ctx: ClientContext,
  health: Health,
  name: string,
  work: (kind: string | undefined) => void,
): void {
  const part = `slot ${name}`
  health.guard(part, () =>
    ctx.slots.inject(name, () => {
      health.guard(part, () => work(ctx.slots.spec?.(name)?.kind))
      return () => {}
    }),
  )
}
