import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import { isFinal } from '../../src/protocol/failure.ts'
import { filesRestored, filesToChange, obstacle, type Around, type Mode, type Phase } from '../state/rollback-flow.ts'
import { DialogShell } from './DialogShell.tsx'
import type { RowSlots } from './FileList.tsx'
import { CloseIcon } from './icons.tsx'
import { OutcomeBody } from './OutcomeBody.tsx'
import { PreviewBody } from './PreviewBody.tsx'
import { ProblemText } from './ProblemText.tsx'
import css from './RollbackDialog.module.css'

export interface RollbackDialogProps {
  readonly phase: Exclude<Phase, { kind: 'idle' }>
  readonly t: Translator
  readonly slots?: RowSlots | undefined
  onClose(): void
  onClosed(): void
  onConfirm(): void
  onStop(): void
  onChoose(paths: readonly string[], isBack: boolean): void
  onMode(mode: Mode): void
  onAround(around: Partial<Around>): void
  onTryAgain(): void
  onRetry(): void
  onUndo(): void
  onInsertPrompt(): void
  onSwapPrompt(): void
  /** The draft and the withdrawn prompt have changed places. */
  readonly isDraftWaiting: boolean
}

const TITLE_ID = 'turnback-dialog-title'
const countForm = (count: number) => (count === 0 ? 'none' : count === 1 ? 'one' : 'other')

/** One rollback from the first look to the result. Until the primary button is pressed nothing changes anywhere. */
export function RollbackDialog(props: RollbackDialogProps) {
  const { phase, t, onClose, onClosed } = props
  const body = useRef<HTMLDivElement>(null)
  const isStale = phase.kind === 'ready' && phase.changed !== undefined
  useLayoutEffect(() => {
    // The notice and the marked rows stand at the top; the reader may be far below.
    if (isStale) body.current!.scrollTop = 0
  }, [isStale])
  const title = t(phase.kind === 'done' ? 'done.title' : 'dialog.title', { turn: phase.turn })
  return (
    <DialogShell titleId={TITLE_ID} onDismiss={onClose} onClosed={onClosed}>
      <header class={css.header}>
        <h2 id={TITLE_ID} class={css.title}>
          {title}
        </h2>
        <button
          type="button"
          class={css.close}
          aria-label={t('dialog.close')}
          aria-disabled={phase.kind === 'applying'}
          onClick={onClose}
        >
          <CloseIcon />
        </button>
      </header>
      {/* A result has nothing in it to tab to, and must be scrolled with the keys all the same. */}
      <div
        ref={body}
        class={css.body}
        data-scroll
        role="group"
        aria-labelledby={TITLE_ID}
        tabIndex={phase.kind === 'done' ? 0 : -1}
      >
        <Body {...props} />
      </div>
      <footer class={css.footer}>
        <Buttons {...props} />
      </footer>
      {/* Loading and readiness are told to those who do not see them; results are told by their own region. */}
      <p class={css.unseen} role="status">
        {announcement(phase, t)}
      </p>
    </DialogShell>
  )
}

function Body({ phase, t, slots, isDraftWaiting, onChoose, onMode, onAround, onInsertPrompt, onSwapPrompt }: RollbackDialogProps) {
  switch (phase.kind) {
    case 'loading':
      return <p class={css.waiting}>{t('dialog.loading')}</p>
    case 'ready':
      return (
        <PreviewBody
          preview={phase.preview}
          mode={phase.awaited?.mode ?? phase.mode}
          choices={phase.choices}
          around={phase.around}
          changed={phase.changed}
          t={t}
          slots={slots}
          onChoose={onChoose}
          onMode={onMode}
          onAround={onAround}
        />
      )
    case 'applying':
      return (
        <>
          <ProgressLine phase={phase} t={t} />
          <div class={css.still} aria-busy="true">
            <PreviewBody
              preview={phase.preview}
              mode={phase.mode}
              choices={phase.choices}
              around={phase.around}
              t={t}
              onChoose={() => {}}
              onMode={() => {}}
              onAround={() => {}}
            />
          </div>
        </>
      )
    case 'failed':
      return (
        <div class={css.section} role="alert">
          <ProblemText problem={phase.problem} t={t} />
        </div>
      )
    case 'done':
      return (
        <OutcomeBody
          preview={phase.preview}
          op={phase.op}
          undo={phase.undo}
          again={phase.again}
          prompt={phase.prompt}
          lostImages={phase.lostImages}
          t={t}
          isDraftWaiting={isDraftWaiting}
          onInsertPrompt={onInsertPrompt}
          onSwapPrompt={onSwapPrompt}
        />
      )
  }
}

/** The leaving button is the same element in every phase and has the first focus: Enter never destroys anything by accident. */
function Buttons({ phase, t, onClose, onConfirm, onStop, onRetry, onUndo, onTryAgain }: RollbackDialogProps) {
  const leave = useRef<HTMLButtonElement>(null)
  const ended = phase.kind === 'done' || phase.kind === 'failed'
  useEffect(() => {
    // The button that was pressed is gone now; the focus would fall to the page behind.
    if (ended) leave.current?.focus()
  }, [ended])
  const applying = phase.kind === 'applying'
  return (
    <>
      {/* Stands before the leaving button: what a second click of a double click on the primary one hits is "Close". */}
      {phase.kind === 'done' &&
        canUndo(phase) &&
        (phase.undo.kind === 'offered' || phase.undo.kind === 'failed') && (
          <button key="undo" type="button" class={css.plain} onClick={onUndo}>
            {t('done.undo')}
          </button>
        )}
      {phase.kind === 'done' && canTryAgain(phase) && (
        <button key="again" type="button" class={css.plain} onClick={onTryAgain}>
          {t('done.again')}
        </button>
      )}
      <button key="leave" ref={leave} type="button" class={css.plain} autofocus aria-disabled={applying && !canStop(phase)} onClick={applying ? (canStop(phase) ? onStop : undefined) : onClose}>
        {t(ended ? 'dialog.close' : phase.kind === 'applying' && phase.progress !== undefined ? 'dialog.stop' : 'dialog.cancel')}
      </button>
      {phase.kind === 'failed' && !(phase.problem.kind === 'failure' && isFinal(phase.problem.failure)) && (
        <button type="button" class={css.primary} onClick={onRetry}>
          {t('dialog.retry')}
        </button>
      )}
      {(phase.kind === 'ready' || phase.kind === 'applying') && (
        <button type="button" class={css.primary} aria-disabled={!canConfirm(phase)} onClick={canConfirm(phase) ? onConfirm : undefined}>
          {applying ? t('dialog.applying') : confirmLabel(phase, t)}
        </button>
      )}
    </>
  )
}

/** Before the host writes; afterwards only an undo takes it back. */
const canStop = (phase: Phase): boolean =>
  phase.kind === 'applying' && phase.isStopping !== true && phase.progress !== undefined && phase.progress.stage !== 'writing'

/** How far a long rollback is; nothing for one that is over in a moment. */
function ProgressLine({ phase: { progress, isStopping }, t }: { readonly phase: Extract<Phase, { kind: 'applying' }>; readonly t: Translator }) {
  if (progress?.stage === undefined) return null
  const { stage, done, total } = progress
  const words = isStopping === true ? t('progress.stopping') : t(`progress.${stage}`, { done, total })
  return (
    <div class={css.section}>
      <p class={css.lead}>{words}</p>
      <progress class={css.progress} aria-label={t(`progress.${stage}`, { done, total })} max={Math.max(total, 1)} value={stage === 'looking' ? undefined : done} />
    </div>
  )
}

type Ready = Extract<Phase, { kind: 'ready' | 'applying' }>

/** Not while the preview of another mode is on its way, and not when it could only be refused or nothing would happen. */
function canConfirm(phase: Ready): boolean {
  return phase.kind === 'ready' && phase.awaited === undefined && obstacle(phase) === undefined
}

function confirmLabel({ preview, mode, choices }: Ready, t: Translator): string {
  const turns = preview.turns.length
  const files = filesToChange(preview, choices)
  switch (mode) {
    case 'both':
      return t(`confirm.${turns === 1 ? 'one' : 'other'}.${countForm(files)}`, { turns, files })
    case 'files':
      return files === 0 ? t('confirm.files.none') : t.count('confirm.files', files)
    case 'conversation':
      return t.count('confirm.conversation', turns)
    case 'branch':
      return t(`confirm.branch.${countForm(files)}`, { turn: preview.target.turn, files })
  }
}

const canTryAgain = ({ op, again, undo }: Extract<Phase, { kind: 'done' }>) =>
  (op?.retryable?.length ?? 0) > 0 && again.kind !== 'running' && (undo.kind === 'offered' || undo.kind === 'failed')
const canUndo = ({ op }: Extract<Phase, { kind: 'done' }>) => op !== undefined && (op.scope !== 'files' || filesRestored(op) > 0)

function announcement(phase: Phase, t: Translator): string {
  switch (phase.kind) {
    case 'loading':
      return t('dialog.loading')
    case 'ready':
      return t('dialog.ready')
    case 'applying':
      return t('dialog.applying')
    default:
      return ''
  }
}
