import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { RollbackIcon } from './icons.tsx'
import css from './MarkerLine.module.css'

export interface MarkerLineProps {
  /** Ties the hidden rows of this chat to its session (state/hidden-style.ts). */
  readonly sessionId: string
  readonly text: string
  /** A welcome in place of the bar, when nothing else is left in the chat. */
  readonly hero?: { readonly title: string; readonly body: string } | undefined
  /** What can be opened below the bar. */
  readonly details?: { readonly label: string; readonly content: ComponentChildren } | undefined
  readonly actions: readonly { readonly label: string; readonly busy: boolean; readonly pressed?: boolean; run(): void }[]
}

/** The slim bar that stands where turns were rolled back. */
export function MarkerLine({ sessionId, text, hero, details, actions }: MarkerLineProps) {
  const [open, setOpen] = useState(false)
  return (
    <div class={hero === undefined ? css.plain : css.hero} data-turnback-session={sessionId}>
      {hero !== undefined && (
        <>
          <span class={css.mark}>
            <RollbackIcon />
          </span>
          <p class={css.title}>{hero.title}</p>
          <p class={css.body}>{hero.body}</p>
        </>
      )}
      <div class={css.panel}>
        <div class={css.bar} role="note">
          <span class={css.icon}>
            <RollbackIcon />
          </span>
          <span class={css.text}>{text}</span>
          {details !== undefined && (
            <button type="button" class={css.action} aria-expanded={open} onClick={() => setOpen(!open)}>
              {details.label}
            </button>
          )}
          {actions.map(({ label, busy, pressed, run }, at) => (
            <button key={at} type="button" class={css.action} aria-disabled={busy} aria-expanded={pressed} onClick={busy ? undefined : run}>
              {label}
            </button>
          ))}
        </div>
        {open && details !== undefined && (
          <div class={css.details} data-scroll>
            {details.content}
          </div>
        )}
      </div>
    </div>
  )
}
