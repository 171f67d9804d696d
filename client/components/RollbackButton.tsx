import { RollbackIcon } from './icons.tsx'
import css from './RollbackButton.module.css'

export interface RollbackButtonProps {
  readonly label: string
  /** The label with what the turn changed, once that is known. */
  readonly hint: string
  /** Why it cannot be used now; it stays focusable and says so. */
  readonly unavailable?: string | undefined
  readonly outdent?: boolean | undefined
  /** Somebody points at it or comes to it with the keys. */
  onLook(): void
  onOpen(button: HTMLElement): void
}

/** One icon button in the look of the host's action row. */
export const RollbackButton = ({ label, hint, unavailable, outdent, onLook, onOpen }: RollbackButtonProps) => (
  <button
    type="button"
    class={css.action}
    data-outdent={outdent || undefined}
    aria-label={label}
    aria-disabled={unavailable !== undefined}
    title={unavailable ?? hint}
    onPointerEnter={onLook}
    onFocus={onLook}
    onClick={event => (unavailable === undefined ? onOpen(event.currentTarget) : undefined)}
  >
    <RollbackIcon />
  </button>
)
