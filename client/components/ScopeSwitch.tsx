import type { Translator } from '../../locales/translate.ts'
import { modes, type Mode } from '../state/rollback-flow.ts'
import css from './Choice.module.css'

export interface ScopeSwitchProps {
  readonly mode: Mode
  readonly t: Translator
  onMode(mode: Mode): void
}

/** What a rollback takes back: conversation and files, one of them, or the files while the conversation goes on elsewhere. */
export function ScopeSwitch({ mode, t, onMode }: ScopeSwitchProps) {
  return (
    <fieldset class={css.choice} data-wide aria-label={t('scope.title')}>
      {modes.map(one => (
        <label key={one} class={css.option} data-chosen={mode === one || undefined} title={t(`scope.${one}.title`)}>
          <input type="radio" name="turnback-scope" checked={mode === one} onChange={() => onMode(one)} />
          {t(`scope.${one}`)}
        </label>
      ))}
    </fieldset>
  )
}
