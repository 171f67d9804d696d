import type { ComponentChildren } from 'preact'
import type { Key } from '../../locales/keys.ts'
import type { Translator } from '../../locales/translate.ts'
import { sameState, type FileState } from '../../src/checkpoint/file-state.ts'
import type { FileChange } from '../../src/protocol/diff.ts'
import type { DiffEntry, TextView } from '../state/diff-store.ts'
import { DiffText } from './DiffText.tsx'
import css from './FileDiff.module.css'
import { ImagePair } from './ImagePair.tsx'
import { ProblemText } from './ProblemText.tsx'
import { sizeText } from './size-text.ts'

export interface FileDiffProps {
  /** The path as shown. */
  readonly shown: string
  /** Undefined before anything was asked. */
  readonly entry: DiffEntry | undefined
  /** What the list said is at the path; another state now is told. */
  readonly listed?: FileState | undefined
  readonly t: Translator
  onRetry(): void
}

/** What a rollback would do to the content of one file: lines, pictures, or in words what cannot be shown. */
export function FileDiff({ shown, entry, listed, t, onRetry }: FileDiffProps) {
  if (entry === undefined || entry.kind === 'loading') {
    return (
      <p class={css.note} role="status">
        {t('diff.loading')}
      </p>
    )
  }
  if (entry.kind === 'failed') {
    return (
      <div class={css.problem} role="alert">
        <ProblemText problem={{ kind: 'failure', failure: entry.failure }} t={t} />
        <button type="button" class={css.retry} onClick={onRetry}>
          {t('diff.retry')}
        </button>
      </div>
    )
  }
  const { change, text } = entry
  const facts = [
    ...(listed !== undefined && listed.kind !== 'unknown' && !sameState(listed, change.current) ? [t('diff.moved')] : []),
    ...factsOf(change, text, t),
  ]
  return (
    <div class={css.diff}>
      {facts.map(fact => (
        <p key={fact} class={css.note}>
          {fact}
        </p>
      ))}
      <Content change={change} text={text} shown={shown} t={t} />
    </div>
  )
}

interface ContentProps {
  readonly change: FileChange
  readonly text: TextView | undefined
  readonly shown: string
  readonly t: Translator
}

function Content({ change, text, shown, t }: ContentProps): ComponentChildren {
  const { content } = change
  switch (content.kind) {
    case 'text':
      return text === undefined ? null : <DiffText view={text} label={t('diff.of', { path: shown })} t={t} />
    case 'image':
      return <ImagePair before={content.before} after={content.after} states={change} shown={shown} t={t} />
    default:
      return null
  }
}

/** What the lines themselves do not show. */
function factsOf({ current, goal, content }: FileChange, text: TextView | undefined, t: Translator): string[] {
  const facts: string[] = []
  if (current.kind !== goal.kind) facts.push(t('diff.kind', { from: t(`diff.kind.${current.kind}`), to: t(`diff.kind.${goal.kind}`) }))
  switch (content.kind) {
    case 'text':
      if (text === undefined) facts.push(t('diff.long'))
      else facts.push(...textFacts(text, { current, goal }, t))
      break
    case 'image':
      break
    default:
      facts.push(t(`diff.${content.kind}`))
  }
  const hasSizes = current.kind === 'file' && goal.kind === 'file' && content.kind !== 'same' && content.kind !== 'image' && text === undefined
  if (hasSizes) facts.push(t('diff.size', { from: sizeText(current.bytes), to: sizeText(goal.bytes) }))
  const [from, to] = [modeText(current), modeText(goal)]
  if (from !== undefined && to !== undefined && from !== to) facts.push(t('diff.mode', { from, to }))
  return facts
}

function textFacts({ forms, isCoarse }: TextView, { current, goal }: Pick<FileChange, 'current' | 'goal'>, t: Translator): string[] {
  const { before, after } = forms
  const facts: Key[] = []
  if (isCoarse) facts.push('diff.coarse')
  if (current.kind === 'file' && current.bytes === 0) facts.push('diff.empty.before')
  if (goal.kind === 'file' && goal.bytes === 0) facts.push('diff.empty.after')
  if (current.kind !== 'file' || goal.kind !== 'file') return facts.map(key => t(key))
  if (before.hasBom !== after.hasBom) facts.push(after.hasBom ? 'diff.bom.comes' : 'diff.bom.goes')
  const said = facts.map(key => t(key))
  // A file of one line or none says nothing about line ends.
  if (before.lineEnds !== after.lineEnds && before.lineEnds !== 'none' && after.lineEnds !== 'none') {
    said.push(t('diff.ends', { from: endsText(before.lineEnds, t), to: endsText(after.lineEnds, t) }))
  }
  return said
}

const endsText = (ends: 'lf' | 'crlf' | 'mixed', t: Translator) => (ends === 'mixed' ? t('diff.ends.mixed') : ends.toUpperCase())

const modeText = (state: FileState) => (state.kind === 'file' ? state.mode.toString(8).padStart(3, '0') : undefined)
