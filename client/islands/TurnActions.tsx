import type { ReadonlySignal } from '@preact/signals'
import type { Translator } from '../../locales/translate.ts'
import { RollbackButton } from '../components/RollbackButton.tsx'
import type { RollbackStore } from '../state/rollback-store.ts'

export interface TurnActionsProps {
  readonly store: RollbackStore
  readonly t: ReadonlySignal<Translator>
  /** The turn, or the message that closes it. */
  readonly at: { readonly turn: number } | { readonly messageId: string }
  /** Own row: as far left as the host's action row. */
  readonly outdent?: boolean
  open(store: RollbackStore, turn: number, opener: HTMLElement): void
}

/** The one button of a finished turn. */
export function TurnActions({ store, t: translator, at, outdent = false, open }: TurnActionsProps) {
  const t = translator.value
  if (!store.offered.value) return null
  const find = () => ('turn' in at ? at.turn : store.turnOfMessage(at.messageId))
  const turn = find()
  return (
    <RollbackButton
      label={turn === undefined ? t('button.label.unknown') : t('button.label', { turn })}
      outdent={outdent}
      unavailable={store.running.value ? t('button.running') : undefined}
      onOpen={button => {
        const now = find()
        if (now !== undefined) open(store, now, button)
      }}
    />
  )
}
