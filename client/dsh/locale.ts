import type { Locale } from '../../src/protocol/requests.ts'
import { isObservable, type ClientContext } from './context.ts'

export interface ActiveLocale {
  read(): Locale
  subscribe(listener: () => void): () => void
}

/**
 * The page's language (DSH dsh-client-locale: `getSnapshot().active`, `subscribe`). A language we have
 * no texts for reads as English, as the host's own fallback does.
 */
export function activeLocale(ctx: ClientContext): ActiveLocale {
  const source: unknown = ctx.locale
  if (!isObservable(source)) return { read: pageLocale, subscribe: () => () => {} }
  return {
    read: () => toLocale((source.getSnapshot() as { active?: unknown } | undefined)?.active),
    subscribe: listener => source.subscribe(listener),
  }
}

const toLocale = (active: unknown): Locale => (typeof active === 'string' && /^zh\b/i.test(active) ? 'zh' : 'en')
const pageLocale = (): Locale => toLocale(document.documentElement.lang)
