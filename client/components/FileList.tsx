import { hasText, type Translator } from '../../locales/translate.ts'
import type { PreviewRow } from '../../src/protocol/requests.ts'
import css from './FileList.module.css'
import { FilePath } from './FilePath.tsx'
import { reasonText } from './reason-text.ts'
import { WindowedList } from './WindowedList.tsx'
import { Worded } from './Worded.tsx'

export interface FileListProps {
  readonly rows: readonly PreviewRow[]
  readonly putBack: ReadonlySet<string>
  /** Paths to mark as changed since the preview before. */
  readonly changed?: ReadonlySet<string> | undefined
  readonly t: Translator
  onChoose(path: string, putBack: boolean): void
}

/** In the order a person should read them: what asks for a decision comes first. */
const groups = ['git', 'keep', 'skip', 'write', 'recreate', 'delete'] as const
type Group = (typeof groups)[number]

const groupOf = ({ action, conflict }: PreviewRow) => (action === 'keep' && conflict === 'git-moved' ? 'git' : action)

/** Longer groups start closed, so that what follows them is not pushed out of sight. */
const OPEN = 40

/** In CSS pixels: a path alone, with a line below it, and with a choice beside the two. */
const heightOf = (group: Group, rows: readonly PreviewRow[]) =>
  group === 'keep' ? 56 : group === 'git' ? 36 : rows.some(row => group === 'skip' || row.origin === 'shell') ? 52 : 32

/** The files of a preview, grouped by what happens to them. Files that stay as they are are only counted. */
export function FileList({ rows, putBack, changed, t, onChoose }: FileListProps) {
  const unchanged = rows.filter(row => row.action === 'none').length
  return (
    <div class={css.files}>
      {rows.length === unchanged && <p class={css.note}>{t('files.none')}</p>}
      {groups.map(group => {
        const members = rows
          .filter(row => groupOf(row) === group)
          .sort((a, b) => Number(changed?.has(b.path) ?? 0) - Number(changed?.has(a.path) ?? 0))
        if (members.length === 0) return null
        const title = t(`files.group.${group}`)
        const height = heightOf(group, members)
        return (
          <details key={group} class={css.group} open={members.length <= OPEN}>
            <summary class={css.heading}>
              {title} <span class={css.count}>{members.length}</span>
            </summary>
            <WindowedList
              items={members}
              rowHeight={height}
              class={css.list}
              label={title}
              render={row => (
                <li
                  key={row.path}
                  class={css.row}
                  style={{ minHeight: `${height}px` }}
                  data-changed={changed?.has(row.path) || undefined}
                >
                  <div class={css.what}>
                    <FilePath shown={row.shown} />
                    {group !== 'git' && <Why row={row} t={t} />}
                  </div>
                  {changed?.has(row.path) && <span class={css.fresh}>{t('files.changed')}</span>}
                  {row.action === 'keep' && row.putBackAction !== undefined ? (
                    <Choice row={row} chosen={putBack.has(row.path)} t={t} onChoose={onChoose} />
                  ) : (
                    <span class={css.tag} data-action={row.action}>
                      {t(`files.tag.${group === 'git' ? 'keep' : group}`)}
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

/** Why a row is not simply put back, or how it came about. */
function Why({ row, t }: { readonly row: PreviewRow; readonly t: Translator }) {
  if (row.skip !== undefined) return <span class={css.why}>{reasonText(row.skip, t)}</span>
  if (row.conflict !== undefined) {
    const outside = `files.conflict.${row.conflict}.outside`
    const key = row.isOutside === true && hasText(outside) ? outside : (`files.conflict.${row.conflict}` as const)
    return (
      <span class={css.why} title={row.commands?.join('\n')}>
        {t(key)}
      </span>
    )
  }
  if (row.origin === 'tool') return null
  return (
    <span class={css.story}>
      {row.commands === undefined ? t('files.origin.shell') : <Worded text={t('files.origin.commands')} words={row.commands} />}
    </span>
  )
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
