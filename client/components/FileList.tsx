import type { Translator } from '../../locales/translate.ts'
import type { PreviewRow } from '../../src/protocol/requests.ts'
import css from './FileList.module.css'
import { FilePath } from './FilePath.tsx'
import { reasonText } from './reason-text.ts'
import { WindowedList } from './WindowedList.tsx'

export interface FileListProps {
  readonly rows: readonly PreviewRow[]
  readonly putBack: ReadonlySet<string>
  /** Paths to mark as changed since the preview before. */
  readonly changed?: ReadonlySet<string> | undefined
  readonly t: Translator
  onChoose(path: string, putBack: boolean): void
}

/** In the order a person should read them: what asks for a decision comes first. */
const groups = ['keep', 'write', 'recreate', 'delete', 'skip'] as const
type Group = (typeof groups)[number]

/** Longer groups start closed, so that what follows them is not pushed out of sight. */
const OPEN = 40

const rowHeights: Record<Group, number> = { keep: 56, write: 32, recreate: 32, delete: 32, skip: 52 }

/** The files of a preview, grouped by what happens to them. Files that stay as they are are only counted. */
export function FileList({ rows, putBack, changed, t, onChoose }: FileListProps) {
  const unchanged = rows.filter(row => row.action === 'none').length
  return (
    <div class={css.files}>
      {rows.length === unchanged && <p class={css.note}>{t('files.none')}</p>}
      {groups.map(group => {
        const members = rows
          .filter(row => row.action === group)
          .sort((a, b) => Number(changed?.has(b.path) ?? 0) - Number(changed?.has(a.path) ?? 0))
        if (members.length === 0) return null
        const title = t(`files.group.${group}`)
        return (
          <details key={group} class={css.group} open={members.length <= OPEN}>
            <summary class={css.heading}>
              {title} <span class={css.count}>{members.length}</span>
            </summary>
            <WindowedList
              items={members}
              rowHeight={rowHeights[group]}
              class={css.list}
              label={title}
              render={row => (
                <li
                  key={row.path}
                  class={css.row}
                  style={{ minHeight: `${rowHeights[group]}px` }}
                  data-changed={changed?.has(row.path) || undefined}
                >
                  <div class={css.what}>
                    <FilePath shown={row.shown} />
                    <Why row={row} t={t} />
                  </div>
                  {changed?.has(row.path) && <span class={css.fresh}>{t('files.changed')}</span>}
                  {row.action === 'keep' && row.putBackAction !== undefined ? (
                    <Choice row={row} chosen={putBack.has(row.path)} t={t} onChoose={onChoose} />
                  ) : (
                    <span class={css.tag} data-action={group}>
                      {t(`files.tag.${group}`)}
                    </span>
                  )}
                </li>
              )}
            />
          </details>
        )
      })}
      {unchanged > 0 && <p class={css.note}>{t.count('files.unchanged', unchanged)}</p>}
    </div>
  )
}

function Why({ row, t }: { readonly row: PreviewRow; readonly t: Translator }) {
  if (row.conflict !== undefined) return <span class={css.why}>{t(`files.conflict.${row.conflict}`)}</span>
  if (row.skip === undefined) return row.origin === 'shell' ? <span class={css.why}>{t('files.origin.shell')}</span> : null
  return <span class={css.why}>{reasonText(row.skip, t)}</span>
}

interface ChoiceProps {
  readonly row: PreviewRow
  readonly chosen: boolean
  readonly t: Translator
  onChoose(path: string, putBack: boolean): void
}

function Choice({ row, chosen, t, onChoose }: ChoiceProps) {
  const option = (value: boolean, label: string) => (
    <label class={css.option} data-chosen={chosen === value || undefined}>
      <input
        type="radio"
        name={`turnback-${row.path}`}
        checked={chosen === value}
        onChange={() => onChoose(row.path, value)}
      />
      {label}
    </label>
  )
  return (
    <fieldset class={css.choice} aria-label={t('files.choice', { path: row.shown })}>
      {option(false, t('files.choice.keep'))}
      {option(true, t(row.putBackAction === 'delete' ? 'files.choice.put-back.delete' : 'files.choice.put-back'))}
    </fieldset>
  )
}
