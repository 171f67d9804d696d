import * as react from 'react'
import { activate } from './activate.ts'
import type { ClientContext } from './dsh/context.ts'

/** Only services that every host generation has: a missing one would stop the whole page. */
export const inject = ['slots', 'locale', 'sessions']

export function apply(ctx: ClientContext): void {
  activate(ctx, react)
}
