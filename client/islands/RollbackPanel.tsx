import type { ReadonlySignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import type { RowSlots } from '../components/FileList.tsx'
import { RollbackDialog } from '../components/RollbackDialog.tsx'
import type { RollbackStore } from '../state/rollback-store.ts'
import { RowCounts, RowDiff } from './RowDiff.tsx'

export interface RollbackPanelProps {
  /** The session whose dialog is open. */
  readonly active: ReadonlySignal<RollbackStore | undefined>
  readonly t: ReadonlySignal<Translator>
}

/** The dialog of the session that asked for it last; nothing while no rollback is looked at. */
export function RollbackPanel({ active, t }: RollbackPanelProps) {
  const store = active.value
  const phase = store?.phase.value
  const slots = useMemo(() => (store === undefined ? undefined : slotsOf(store, t)), [store, t])
  if (store === undefined || phase === undefined || phase.kind === 'idle') return null
  return (
    <RollbackDialog
      phase={phase}
      t={t.value}
      slots={slots}
      onClose={store.close}
      onClosed={store.returnFocus}
      onConfirm={() => void store.confirm()}
      onStop={() => void store.stop()}
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

const slotsOf = ({ diffs }: RollbackStore, t: RollbackPanelProps['t']): RowSlots => ({
  aside: row => <RowCounts diffs={diffs} row={row} t={t} />,
  detail: row => <RowDiff diffs={diffs} row={row} t={t} />,
})
