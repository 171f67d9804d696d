import type { Translator } from '../../locales/translate.ts'
import { gapsBeside } from '../../src/checkpoint/gaps-beside.ts'
import type { Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { OpSummary, Preview } from '../../src/protocol/requests.ts'
import { changedOutcomes, type PromptPhase, type UndoPhase } from '../state/rollback-flow.ts'
import css from './RollbackDialog.module.css'
import fileCss from './FileList.module.css'
import { Gaps } from './Gaps.tsx'
import { GitMoves } from './GitMoves.tsx'
import { OutcomeList } from './OutcomeList.tsx'
import { ProblemText } from './ProblemText.tsx'

export interface OutcomeBodyProps {
  readonly preview: Preview
  readonly op?: OpSummary | undefined
  readonly undo: UndoPhase
  readonly again: UndoPhase
  readonly prompt: PromptPhase
  readonly lostImages: number
  readonly t: Translator
  readonly isDraftWaiting: boolean
  onInsertPrompt(): void
  onSwapPrompt(): void
}

/** What happened: counts first, then each file. What failed is said before what worked. */
export function OutcomeBody({ preview, op, undo, again, prompt, lostImages, t, isDraftWaiting, onInsertPrompt, onSwapPrompt }: OutcomeBodyProps) {
  // What an undo has reversed is no longer so; its own words say what became of each file.
  const outcomes = op === undefined || undo.kind === 'done' ? [] : changedOutcomes(op)
  const names = new Map(preview.rows.map(row => [row.path, row.shown]))
  const shown = (path: string) => names.get(path) ?? path
  const listed = outcomes.map(({ path, reason = '' }) => ({ name: shown(path), reason }))
  return (
    <>
      <div class={css.section} role="status">
        <p class={css.lead}>{preview.scope === 'files' ? t('done.conversation') : t.count('done.turns', preview.turns.length)}</p>
        {undo.kind !== 'done' && <FileCounts op={op} t={t} />}
        {prompt === 'restored' && <p class={css.note}>{t('prompt.restored')}</p>}
        {lostImages > 0 && <p class={css.note}>{t.count('prompt.images', lostImages)}</p>}
        {again.kind === 'running' && <p class={css.note}>{t('done.again.running')}</p>}
        {(op?.leftOut ?? 0) > 0 && undo.kind !== 'done' && <p class={css.note}>{t.count('done.left-out', op!.leftOut!)}</p>}
        {undo.kind === 'running' && <p class={css.note}>{t('done.undo.running')}</p>}
        {undo.kind === 'done' && <p class={css.lead}>{t('done.undo.done')}</p>}
      </div>
      {undo.kind === 'done' && undo.text !== '' && <pre class={css.said}>{undo.text}</pre>}
      {again.kind === 'failed' && (
        <div class={css.section}>
          <ProblemText problem={again.problem} t={t} />
        </div>
      )}
      {undo.kind === 'failed' && (
        <div class={css.section}>
          <p class={css.problem}>{t('done.undo.failed')}</p>
          <ProblemText problem={undo.problem} t={t} />
        </div>
      )}
      {prompt === 'beside-draft' && (
        <p class={css.offer}>
          <span>{t(isDraftWaiting ? 'prompt.swapped' : 'prompt.kept-draft')}</span>
          <span class={css.choices}>
            <button type="button" class={css.small} onClick={onSwapPrompt}>
              {t(isDraftWaiting ? 'prompt.swap-back' : 'prompt.swap')}
            </button>
            <button type="button" class={css.small} onClick={onInsertPrompt}>
              {t(isDraftWaiting ? 'prompt.insert.draft' : 'prompt.insert')}
            </button>
          </span>
        </p>
      )}
      <Gaps gaps={gapsBeside(preview.gaps, listed)} t={t} />
      <GitMoves moves={preview.gitMoves} t={t} />
      {outcomes.length > 0 && (
        <section class={fileCss.group}>
          <OutcomeList outcomes={outcomes} t={t} shown={shown} />
        </section>
      )}
    </>
  )
}

function FileCounts({ op, t }: Pick<OutcomeBodyProps, 'op' | 't'>) {
  if (op === undefined) return <p class={css.lead}>{t('done.unknown')}</p>
  const of = (result: Outcome['result']) => changedOutcomes(op).filter(outcome => outcome.result === result).length
  return (
    <>
      <p class={css.lead}>{of('restored') === 0 ? t('done.files.none') : t.count('done.files', of('restored'))}</p>
      {of('failed') > 0 && <p class={css.problem}>{t.count('done.failed', of('failed'))}</p>}
      {of('kept') > 0 && <p class={css.lead}>{t.count('done.kept', of('kept'))}</p>}
    </>
  )
}
