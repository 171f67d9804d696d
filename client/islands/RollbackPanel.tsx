import type { ReadonlySignal } from '@preact/signals'
import type { Translator } from '../../locales/translate.ts'
import { RollbackDialog } from '../components/RollbackDialog.tsx'
import type { RollbackStore } from '../state/rollback-store.ts'

export interface RollbackPanelProps {
  /** The session whose dialog is open. */
  readonly active: ReadonlySignal<RollbackStore | undefined>
  readonly t: ReadonlySignal<Translator>
}

/** The dialog of the session that asked for it last; nothing while no rollback is looked at. */
export function RollbackPanel({ active, t }: RollbackPanelProps) {
  const store = active.value
  const phase = store?.phase.value
  if (store === undefined || phase === undefined || phase.kind === 'idle') return null
  return (
    <RollbackDialog
      phase={phase}
      t={t.value}
      onClose={store.close}
      onClosed={store.returnFocus}
      onConfirm={() => void store.confirm()}
      onChoose={store.choose}
      onMode={store.setMode}
      onAround={store.setAround}
      onTryAgain={() => void store.tryAgain()}
      onRetry={store.retry}
      onUndo={() => void store.undo()}
      onInsertPrompt={store.insertPrompt}
      onSwapPrompt={store.swapPrompt}
      isDraftWaiting={store.isDraftWaiting.value}
    />
  )
}
