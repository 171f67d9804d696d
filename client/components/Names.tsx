import type { Translator } from '../../locales/translate.ts'
import css from './RollbackDialog.module.css'

export interface NamesProps {
  readonly names: readonly string[]
  /** How many are not named. */
  readonly more?: number
  readonly t: Translator
}

/** Names in code type; long ones are cut by the style. */
export const Names = ({ names, more = 0, t }: NamesProps) => (
  <span class={css.names}>
    {names.map(name => (
      <code key={name} class={css.code} title={name}>
        {name}
      </code>
    ))}
    {more > 0 && <span class={css.words}>{t('gaps.more', { count: more })}</span>}
  </span>
)
