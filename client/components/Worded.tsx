import css from './RollbackDialog.module.css'

export interface WordedProps {
  /** A text with `{words}` in it. */
  readonly text: string
  readonly words: readonly string[]
}

/** A sentence around a person's or a program's own words, which stand in code type and are cut by the style when long. */
export function Worded({ text, words }: WordedProps) {
  const [before = '', after = ''] = text.split('{words}')
  return (
    <>
      {before}
      {words.map((word, index) => (
        <>
          {index > 0 && ' '}
          <code key={word} class={css.code} title={word}>
            {word}
          </code>
        </>
      ))}
      {after}
    </>
  )
}
