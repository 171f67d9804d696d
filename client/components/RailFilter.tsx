import { translateFailure, type Translator } from '../../locales/translate.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import type { Filter } from '../state/checkpoints-store.ts'
import css from './Checkpoints.module.css'
import { CloseIcon } from './icons.tsx'

export interface RailFilterProps {
  readonly filter: Filter
  readonly failure: Failure | undefined
  /** Entries that are left. */
  readonly listed: number
  readonly t: Translator
  onFilter(change: Partial<Filter>): void
}

const kinds = ['all', 'tool', 'shell', 'gaps'] as const

/** Which turns are listed: by words of a path or by one file, by how they changed files, and by what is not covered. */
export function RailFilter({ filter, failure, listed, t, onFilter }: RailFilterProps) {
  const isOn = filter.kind !== 'all' || filter.words.trim() !== '' || filter.path !== undefined
  return (
    <div class={css.filter} role="search" aria-label={t('view.filter')}>
      {filter.path === undefined ? (
        <input
          type="search"
          class={css.search}
          value={filter.words}
          placeholder={t('view.filter.words')}
          aria-label={t('view.filter.words')}
          onInput={event => onFilter({ words: event.currentTarget.value })}
        />
      ) : (
        <button type="button" class={css.chip} title={t('view.filter.path.end')} onClick={() => onFilter({ path: undefined })}>
          <span class={css.words}>{t('view.filter.path', { path: filter.path.shown })}</span>
          <CloseIcon />
        </button>
      )}
      <select
        class={css.select}
        aria-label={t('view.filter.kind')}
        value={filter.kind}
        onChange={event => onFilter({ kind: kinds.find(kind => kind === event.currentTarget.value) ?? 'all' })}
      >
        {kinds.map(kind => (
          <option key={kind} value={kind}>
            {t(`view.filter.${kind}`)}
          </option>
        ))}
      </select>
      <p class={css.found} role="status">
        {failure !== undefined ? translateFailure(t.locale, failure).text : isOn ? (listed === 0 ? t('view.filter.none') : t.count('view.filter.found', listed)) : ''}
      </p>
    </div>
  )
}
