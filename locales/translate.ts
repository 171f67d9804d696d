import type { Failure } from '../src/protocol/failure.ts'
import type { Locale } from '../src/protocol/requests.ts'
import { en } from './en.ts'
import type { CountKey, Key } from './keys.ts'
import { zh } from './zh.ts'

export type Params = Readonly<Record<string, string | number>>

const tables: Record<Locale, Record<Key, string>> = { en, zh }

/** The text under `key` with `{name}` filled from `params`; a placeholder without a value stays as it is. */
export function translate(locale: Locale, key: Key, params: Params = {}): string {
  return tables[locale][key].replace(/\{(\w+)\}/g, (whole, name: string) => String(params[name] ?? whole))
}

/** The text for `count` things: `<key>.one` for exactly one, else `<key>.other` with `{count}`. */
export function translateCount(locale: Locale, key: CountKey, count: number, params: Params = {}): string {
  const counted = `${key}.${count === 1 ? 'one' : 'other'}` as Key
  return translate(locale, counted, { ...params, count })
}

/** What to say about a refusal: the sentence and the remedy. */
export function translateFailure(locale: Locale, failure: Failure): { readonly text: string; readonly remedy: string } {
  return {
    text: translate(locale, `failure.${failure.code}`, failure.facts),
    remedy: translate(locale, `failure.${failure.code}.remedy`, failure.facts),
  }
}

/** True when `key` is one of ours; for keys that are built from what the host sent. */
export function hasText(key: string): key is Key {
  return Object.hasOwn(en, key)
}

/** Texts in one language, as islands and components get them. */
export interface Translator {
  readonly locale: Locale
  (key: Key, params?: Params): string
  count(key: CountKey, count: number, params?: Params): string
}

/** The texts of one language as one function. */
export function translator(locale: Locale): Translator {
  return Object.assign((key: Key, params?: Params) => translate(locale, key, params), {
    locale,
    count: (key: CountKey, count: number, params?: Params) => translateCount(locale, key, count, params),
  })
}
