import { translateFailure, type Translator } from '../../locales/translate.ts'
import type { Problem } from '../state/rollback-flow.ts'
import css from './RollbackDialog.module.css'

/** A refusal in words: what is the matter, and what to do about it. */
export function ProblemText({ problem, t }: { readonly problem: Problem; readonly t: Translator }) {
  if (problem.kind === 'said') return <pre class={css.said}>{problem.text}</pre>
  const { text, remedy } = translateFailure(t.locale, problem.failure)
  return (
    <>
      <p class={css.problem}>{text}</p>
      <p class={css.note}>{remedy}</p>
    </>
  )
}
