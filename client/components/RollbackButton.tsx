import { RollbackIcon } from './icons.tsx'
import css from './RollbackButton.module.css'

export interface RollbackButtonProps {
  readonly label: string
  /** Why it cannot be used now; it stays focusable and says so. */
  readonly unavailable?: string | undefined
  readonly outdent?: boolean | undefined
  onOpen(button: HTMLElement): void
}

/** One icon button in the look of the host's action row. */
export const RollbackButton = ({ label, unavailable, outdent, onOpen }: RollbackButtonProps) => (
  <button
    type="button"
    class={css.action}
    data-outdent={outdent || undefined}
    aria-label={label}
    aria-disabled={unavailable !== undefined}
    title={unavailable ?? label}
    onClick={event => (unavailable === undefined ? onOpen(event.currentTarget) : undefined)}
  >
    <RollbackIcon />
  </button>
)
