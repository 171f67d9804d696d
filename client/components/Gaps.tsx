import type { Translator } from '../../locales/translate.ts'
import { MAX_GAP_NAMES, type Gap } from '../../src/checkpoint/gap.ts'
import { WarningIcon } from './icons.tsx'
import { Names } from './Names.tsx'
import css from './RollbackDialog.module.css'

/** What nobody can vouch for; nothing when there are no gaps. */
export function Gaps({ gaps, t }: { readonly gaps: readonly Gap[]; readonly t: Translator }) {
  if (gaps.length === 0) return null
  return (
    <section class={css.warning}>
      <h3 class={css.heading}>
        <WarningIcon /> {t('gaps.title')}
      </h3>
      {gaps.map(gap => (
        <div key={gap.reason} class={css.gap}>
          <p class={css.note}>{t.count(`gaps.${gap.reason}`, gap.count)}</p>
          {gap.names.length > 0 && <Names names={gap.names} more={unnamed(gap)} t={t} />}
        </div>
      ))}
    </section>
  )
}

/** A name stands once however many calls it had: only a list that was cut short has more. */
const unnamed = ({ count, names }: Gap): number => (names.length < MAX_GAP_NAMES ? 0 : count - names.length)
