import { useEffect, useState } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import { copyText } from '../state/clipboard.ts'
import css from './Checkpoints.module.css'

/** What goes on the clipboard, and what is said then; an empty text is not copied. */
export interface Copy {
  readonly text: string
  readonly said: string
}

export interface CopyButtonProps {
  readonly label: string
  readonly t: Translator
  make(): Promise<Copy>
}

/** How long it says what was copied. */
const SAID_MS = 4000

/** Copies, and says so beside the button. */
export function CopyButton({ label, t, make }: CopyButtonProps) {
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    if (said === '') return
    const timer = setTimeout(() => setSaid(''), SAID_MS)
    return () => clearTimeout(timer)
  }, [said])
  const copy = async () => {
    if (isBusy) return
    setBusy(true)
    const made = await make()
    const isCopied = made.text === '' || await copyText(made.text)
    setBusy(false)
    setSaid(isCopied ? made.said : t('view.copied.refused'))
  }
  return (
    <>
      <button type="button" class={css.action} aria-disabled={isBusy} onClick={() => void copy()}>
        {label}
      </button>
      <span class={css.said} role="status">
        {said}
      </span>
    </>
  )
}
