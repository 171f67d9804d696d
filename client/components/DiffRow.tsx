import type { Translator } from '../../locales/translate.ts'
import type { DiffLine } from '../../src/diff/hunks.ts'
import { partsOf } from '../../src/diff/lines.ts'
import { nameOf, visibleLine, type Piece } from '../../src/diff/visible.ts'
import { wordMarks } from '../../src/diff/word-marks.ts'
import type { TextView } from '../state/diff-store.ts'
import css from './FileDiff.module.css'

export interface DiffRowProps {
  readonly line: DiffLine
  readonly view: Pick<TextView, 'before' | 'after'>
  /** Whether a carriage return at the end is worth a sign. */
  readonly showsReturns: boolean
  readonly t: Translator
}

const signs = { same: ' ', added: '+', removed: '−' } as const

/** One line with its numbers and its sign. Numbers and signs are for the eyes; who listens hears what becomes of the line. */
export function DiffRow({ line, view, showsReturns, t }: DiffRowProps) {
  const own = line.kind === 'removed' ? view.before[line.old - 1]! : view.after[line.new - 1]!
  const { text, end } = partsOf(own)
  const isChanged = line.kind !== 'same'
  const { pieces, left } = visibleLine(text, marksOf(line, text, view))
  return (
    <div class={css.line} data-kind={line.kind}>
      <span class={css.number} aria-hidden="true">
        {line.kind === 'added' ? '' : line.old}
      </span>
      <span class={css.number} aria-hidden="true">
        {line.kind === 'removed' ? '' : line.new}
      </span>
      <span class={css.sign} aria-hidden="true">
        {signs[line.kind]}
      </span>
      <span class={css.text}>
        <span class={css.unseen}>{t(`diff.line.${line.kind}`, { line: line.kind === 'removed' ? line.old : line.new })} </span>
        {pieces.map((piece, at) => (
          <Shown key={at} piece={piece} isChanged={isChanged} />
        ))}
        {left > 0 && <span class={css.aside}> {t.count('diff.cut', left)}</span>}
        {isChanged && showsReturns && end === '\r\n' && <span class={css.control}>CR</span>}
        {end === undefined && <span class={css.aside}> {t('diff.no-newline')}</span>}
      </span>
    </div>
  )
}

function marksOf(line: DiffLine, text: string, { before, after }: DiffRowProps['view']) {
  if (line.kind === 'same' || line.pair === undefined) return []
  if (line.kind === 'removed') return wordMarks(text, partsOf(after[line.pair - 1]!).text).removed
  return wordMarks(partsOf(before[line.pair - 1]!).text, text).added
}

/** Blanks get their signs in changed lines only: elsewhere they are nobody's question. */
function Shown({ piece: { kind, text, isMarked }, isChanged }: { readonly piece: Piece; readonly isChanged: boolean }) {
  const mark = isMarked ? css.mark : undefined
  switch (kind) {
    case 'hidden':
      return <span class={css.control}>{nameOf(text)}</span>
    case 'tab':
    case 'blank':
      if (!isChanged) return <>{text}</>
      return (
        <span class={`${css.blank} ${mark ?? ''}`} data-sign={kind === 'tab' ? '→' : '·'.repeat(text.length)}>
          {text}
        </span>
      )
    case 'plain':
      return mark === undefined ? <>{text}</> : <span class={mark}>{text}</span>
  }
}
