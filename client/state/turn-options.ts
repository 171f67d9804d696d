import type { Translator } from '../../locales/translate.ts'
import type { TurnRow } from '../../src/protocol/requests.ts'

/** One turn of the picker, as a person reads it. */
export interface TurnOption {
  readonly id: string
  readonly label: string
  readonly detail: string
}

/** Turns newest first; the one before the last prompt is called so, because it is what most people look for. */
export function turnOptions(turns: readonly TurnRow[], t: Translator, nowMs: number): readonly TurnOption[] {
  const rows = turns.toSorted((a, b) => b.startSeq - a.startSeq)
  const newest = rows.find(row => row.state === 'available')
  return rows.map(row => {
    const words = wordsOf(row, t)
    const label = t(row === newest ? 'picker.last' : 'picker.turn', { turn: row.turn, words })
    const facts = [
      ...(row.state === 'available' ? [row.files === 0 ? t('picker.no-files') : t.count('picker.files', row.files)] : [t(`picker.state.${row.state}`)]),
      relativeTime(row.atMs - nowMs, t.locale),
      ...(row.state === 'available' && row.gaps.length > 0 ? [t('picker.gaps')] : []),
    ]
    return { id: String(row.startSeq), label, detail: facts.join(' · ') }
  })
}

/** What a turn is known by: its first words, or what stands in their place. */
export const wordsOf = ({ title, images }: TurnRow, t: Translator): string =>
  title !== '' ? title : images > 0 ? t.count('picker.images', images) : t('leaves.turn.wordless')

/** Why a turn cannot be gone back to; undefined when it can. */
export function whyUnavailable(row: TurnRow, t: Translator): string | undefined {
  return row.state === 'available' ? undefined : t(`picker.why.${row.state}`, { turn: row.turn })
}

const units = [['day', 86_400_000], ['hour', 3_600_000], ['minute', 60_000]] as const

/** Making a format takes longer than using it, and a long list needs it for every row. */
function cached<T>(make: (locale: string) => T): (locale: string) => T {
  const known = new Map<string, T>()
  return (locale) => {
    const format = known.get(locale) ?? make(locale)
    known.set(locale, format)
    return format
  }
}
const relativeFormat = cached(locale => new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }))
const dateFormat = cached(locale => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }))

/** “5 minutes ago”, in the page's language; `ms` is negative for the past. */
export function relativeTime(ms: number, locale: string): string {
  const format = relativeFormat(locale)
  for (const [unit, size] of units) if (Math.abs(ms) >= size) return format.format(Math.round(ms / size), unit)
  return format.format(0, 'second')
}

/** Date and time of day, in the page's language. */
export const dateTime = (atMs: number, locale: string): string => dateFormat(locale).format(atMs)
