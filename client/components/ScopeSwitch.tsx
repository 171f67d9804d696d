import type { Translator } from '../../locales/translate.ts'
import type { Scope } from '../../src/checkpoint/journal-entry.ts'
import css from './Choice.module.css'

export interface ScopeSwitchProps {
  readonly scope: Scope
  readonly t: Translator
  onScope(scope: Scope): void
}

const scopes = ['both', 'files', 'conversation'] as const

/** What a rollback takes back: conversation and files, or one of them. */
export function ScopeSwitch({ scope, t, onScope }: ScopeSwitchProps) {
  return (
    <fieldset class={css.choice} data-wide aria-label={t('scope.title')}>
      {scopes.map(one => (
        <label key={one} class={css.option} data-chosen={scope === one || undefined}>
          <input type="radio" name="turnback-scope" checked={scope === one} onChange={() => onScope(one)} />
          {t(`scope.${one}`)}
        </label>
      ))}
    </fieldset>
  )
}
