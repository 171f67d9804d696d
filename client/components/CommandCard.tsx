import css from './CommandCard.module.css'

export interface CommandCardProps {
  /** The line as it was typed, without the slash's arguments when there are none. */
  readonly line: string
  readonly text: string
  readonly tone: 'running' | 'plain' | 'error'
}

/** What our command answered, readable as it was written. */
export const CommandCard = ({ line, text, tone }: CommandCardProps) => (
  <div class={css.card} data-tone={tone}>
    <code class={css.line}>{line}</code>
    <pre class={css.text} tabIndex={text.length > 600 ? 0 : undefined}>
      {text}
    </pre>
  </div>
)
