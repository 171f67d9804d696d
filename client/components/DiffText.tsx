import type { ComponentChildren } from 'preact'
import { useId, useMemo, useRef, useState } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import { linesOfFold, type DiffLine, type Segment } from '../../src/diff/hunks.ts'
import type { TextView } from '../state/diff-store.ts'
import { Chunk, createNear } from './Chunk.tsx'
import { DiffRow } from './DiffRow.tsx'
import css from './FileDiff.module.css'

export interface DiffTextProps {
  readonly view: TextView
  readonly label: string
  readonly t: Translator
}

/** Lines that are drawn or left out together. */
const CHUNK = 20
/** Height of a line that does not wrap, in CSS pixels. */
const LINE = 20

/** A unified view that scrolls by itself; what is far from the visible part is a gap of the same height. */
export function DiffText({ view, label, t }: DiffTextProps) {
  const near = useRef(createNear())
  // Only when line ends are no all alike does the sign of one say something.
  const { before, after } = view.forms
  const showsReturns = ![before, after].every(({ lineEnds }) => lineEnds === 'crlf' || lineEnds === 'none')
  const digits = String(Math.max(view.before.length, view.after.length, 1)).length
  const draw = (line: DiffLine) => (
    <DiffRow
      key={line.kind === 'added' ? `+${line.new}` : line.kind === 'removed' ? `-${line.old}` : line.new}
      line={line}
      view={view}
      showsReturns={showsReturns}
      t={t}
    />
  )
  return (
    <div class={css.lines} style={{ '--digits': digits }} role="region" aria-label={label} tabIndex={0} data-lines>
      {view.segments.map((segment, at) =>
        segment.kind === 'fold' ? (
          <Fold key={at} segment={segment} near={near.current} draw={draw} t={t} />
        ) : (
          <Lines key={at} lines={segment.lines} near={near.current} isFirst={at <= 1} draw={draw} />
        ),
      )}
    </div>
  )
}

interface LinesProps {
  readonly lines: readonly DiffLine[]
  readonly near: ReturnType<typeof createNear>
  /** True for what is seen at once. */
  readonly isFirst: boolean
  draw(line: DiffLine): ComponentChildren
}

function Lines({ lines, near, isFirst, draw }: LinesProps) {
  const count = Math.ceil(lines.length / CHUNK)
  return (
    <>
      {Array.from({ length: count }, (_, at) => {
        const own = lines.slice(at * CHUNK, (at + 1) * CHUNK)
        return <Chunk key={at} height={own.length * LINE} near={near} isNear={isFirst && at === 0} render={() => own.map(draw)} />
      })}
    </>
  )
}

interface FoldProps extends Pick<LinesProps, 'near' | 'draw'> {
  readonly segment: Extract<Segment, { kind: 'fold' }>
  readonly t: Translator
}

/** Equal lines between two hunks, shown when asked for. */
function Fold({ segment, near, draw, t }: FoldProps) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const lines = useMemo(() => (isOpen ? linesOfFold(segment) : []), [isOpen, segment])
  return (
    <>
      <button type="button" class={css.fold} aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {t.count('diff.fold', segment.count)}
      </button>
      <div id={id} hidden={!isOpen}>
        {isOpen && <Lines lines={lines} near={near} isFirst draw={draw} />}
      </div>
    </>
  )
}
