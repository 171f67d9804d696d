import type { Translator } from '../../locales/translate.ts'
import type { LineCount } from '../../src/protocol/diff.ts'
import css from './FileDiff.module.css'

/** `+a −d`, once it is known. */
export function LineCounts({ count, t }: { readonly count: LineCount | undefined; readonly t: Translator }) {
  if (count === undefined) return null
  const { added, removed } = count
  return (
    <span class={css.counts}>
      <span aria-hidden="true">
        +{added} −{removed}
      </span>
      <span class={css.unseen}>{t('diff.counts', { added, removed })}</span>
    </span>
  )
}
