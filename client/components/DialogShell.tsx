import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import css from './RollbackDialog.module.css'

export interface DialogShellProps {
  readonly titleId: string
  /** Escape and a click outside; nothing has happened yet, so both mean "leave". */
  onDismiss(): void
  /** The dialog is closed and the page can take the focus again. */
  onClosed(): void
  readonly children: ComponentChildren
}

/**
 * The platform's modal dialog: focus stays inside, the page behind is inert. Kept thin, because test
 * documents have no `showModal`. The first focus goes to the element with `autofocus`.
 */
export function DialogShell({ titleId, onDismiss, onClosed, children }: DialogShellProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const pressedOutside = useRef(false)
  useLayoutEffect(() => {
    const element = dialog.current!
    if (typeof element.showModal === 'function') element.showModal()
    else element.setAttribute('open', '')
    return () => {
      // Closing gives the focus back to what had it before; that may be hidden by now, so the caller decides last.
      if (typeof element.close === 'function') element.close()
      onClosed()
    }
  }, [])
  useEffect(() => {
    // The page's own Escape handling (closing menus, stopping a turn) must not answer as well.
    const element = dialog.current!
    const keep = (event: KeyboardEvent) => {
      event.stopPropagation()
      if (event.key !== 'Escape') return
      event.preventDefault()
      onDismiss()
    }
    element.addEventListener('keydown', keep)
    return () => element.removeEventListener('keydown', keep)
  }, [onDismiss])
  return (
    <dialog
      ref={dialog}
      class={css.dialog}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        onDismiss()
      }}
      onPointerDown={event => {
        pressedOutside.current = event.target === dialog.current
      }}
      onClick={event => {
        // Selecting text and letting go outside is no click outside.
        if (event.target === dialog.current && pressedOutside.current) onDismiss()
      }}
    >
      <div class={css.card}>{children}</div>
    </dialog>
  )
}
