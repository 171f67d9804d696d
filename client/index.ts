import * as react from 'react'
import { activate } from './activate.ts'
import type { ClientContext } from './dsh/context.ts'

/** Only services that every host generation has: a missing one would stop the whole page. */
export const inject = ['slots', 'locale', 'sessions']

/** Called by the page once per load. Never throws. */
export function apply(ctx: ClientContext): void {
  activate(ctx, react)
}
