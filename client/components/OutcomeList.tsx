import type { Translator } from '../../locales/translate.ts'
import type { Outcome } from '../../src/checkpoint/journal-entry.ts'
import css from './FileList.module.css'
import { FilePath } from './FilePath.tsx'
import { reasonText } from './reason-text.ts'
import { WindowedList } from './WindowedList.tsx'

export interface OutcomeListProps {
  readonly outcomes: readonly Outcome[]
  readonly t: Translator
  /** The path as shown to the person. */
  shown(path: string): string
}

const ranks: Record<Outcome['result'], number> = { failed: 0, kept: 1, skipped: 2, restored: 3 }

/** What happened to each file; what did not work stands first. */
export function OutcomeList({ outcomes, t, shown }: OutcomeListProps) {
  const rows = [...outcomes].sort((a, b) => ranks[a.result] - ranks[b.result])
  return (
    <WindowedList
      items={rows}
      rowHeight={32}
      class={css.list}
      label={t('files.title')}
      render={outcome => (
        <li key={outcome.path} class={css.row} style={{ minHeight: '32px' }}>
          <div class={css.what}>
            <FilePath shown={shown(outcome.path)} />
            {outcome.reason !== undefined && outcome.result !== 'restored' && (
              <span class={css.why}>{reasonText(outcome.reason, t)}</span>
            )}
          </div>
          <span class={css.tag} data-action={outcome.result}>
            {t(resultKey(outcome))}
          </span>
        </li>
      )}
    />
  )
}

const resultKey = ({ result, action }: Outcome) =>
  result === 'restored' && action === 'delete' ? 'done.result.deleted' : (`done.result.${result}` as const)
