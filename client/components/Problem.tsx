import type { Translator } from '../../locales/translate.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import css from './Checkpoints.module.css'
import { ProblemText } from './ProblemText.tsx'

interface ProblemProps {
  readonly title: string
  readonly failure: Failure
  readonly t: Translator
  onRetry(): void
}

/** Why something is not shown, and another try. */
export const Problem = ({ title, failure, t, onRetry }: ProblemProps) => (
  <div class={css.problem} role="alert">
    <p class={css.note}>{title}</p>
    <ProblemText problem={{ kind: 'failure', failure }} t={t} />
    <button type="button" class={css.action} onClick={onRetry}>
      {t('view.retry')}
    </button>
  </div>
)
