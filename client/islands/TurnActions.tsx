import type { ReadonlySignal } from '@preact/signals'
import type { Translator } from '../../locales/translate.ts'
import { RollbackButton } from '../components/RollbackButton.tsx'
import type { RollbackStore } from '../state/rollback-store.ts'
import { whyUnavailable } from '../state/turn-options.ts'

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
  const row = turn === undefined ? undefined : store.facts.value.get(turn)
  const label = turn === undefined ? t('button.label.unknown') : t('button.label', { turn })
  return (
    <RollbackButton
      label={label}
      hint={row === undefined ? label : `${label} · ${row.files === 0 ? t('picker.no-files') : t.count('picker.files', row.files)}`}
      outdent={outdent}
      unavailable={store.running.value ? t('button.running') : row === undefined || row.state === 'running' ? undefined : whyUnavailable(row, t)}
      onLook={store.wantFacts}
      onOpen={button => {
        const now = find()
        if (now !== undefined) open(store, now, button)
      }}
    />
  )
}
