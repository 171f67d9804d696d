import type { ComponentChildren } from 'preact'
import type { Translator } from '../../locales/translate.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'
import { actionOf, renames } from '../state/compared.ts'
import css from './Checkpoints.module.css'
import { FilePath } from './FilePath.tsx'
import { Listbox } from './Listbox.tsx'

export interface ComparedFilesProps {
  readonly rows: readonly ComparedRow[]
  readonly selected: string | undefined
  readonly t: Translator
  /** Lines that came and went, beside a row. */
  counts(row: ComparedRow): ComponentChildren
  onSelect(path: string): void
  onEnter(): void
}

/** In CSS pixels: a path alone, and with a line below it. */
const ROW = 32
const TALL = 50

/** The files of a turn or of a stretch of turns: what became of each, and how. */
export function ComparedFiles({ rows, selected, t, counts, onSelect, onEnter }: ComparedFilesProps) {
  const from = renames(rows)
  const stories = new Map(rows.map(row => [row, storyOf(row, from.get(row.path), t)]))
  const hasStory = [...stories.values()].some(story => story !== '')
  return (
    <Listbox
      items={rows}
      label={t('view.files')}
      rowHeight={hasStory ? TALL : ROW}
      selected={selected}
      class={css.files}
      keyOf={({ path }) => path}
      render={row => (
        <div class={css.file}>
          <div class={css.what}>
            <FilePath shown={row.shown} />
            {stories.get(row) !== '' && <span class={css.story}>{stories.get(row)}</span>}
          </div>
          {counts(row)}
          <span class={css.tag} data-action={actionOf(row)}>
            {t(`view.action.${actionOf(row)}`)}
          </span>
        </div>
      )}
      onSelect={onSelect}
      onEnter={onEnter}
    />
  )
}

function storyOf({ origins, commands }: ComparedRow, from: ComparedRow | undefined, t: Translator): string {
  return [
    ...(from === undefined ? [] : [t('view.story.renamed', { path: from.shown })]),
    ...(origins.includes('shell') ? [commands === undefined ? t('view.story.shell') : t('view.story.commands', { words: commands.join(' · ') })] : []),
    ...(origins.includes('op') ? [t('view.story.op')] : []),
    ...(origins.includes('outside') ? [t('view.story.outside')] : []),
  ].join(' · ')
}
