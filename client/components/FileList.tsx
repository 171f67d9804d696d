import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { hasText, type Translator } from '../../locales/translate.ts'
import type { PreviewRow } from '../../src/protocol/requests.ts'
import { goesBack, isChoosable, type Choices } from '../state/rollback-flow.ts'
import choiceCss from './Choice.module.css'
import css from './FileList.module.css'
import { FilePath } from './FilePath.tsx'
import { reasonText } from './reason-text.ts'
import { isWindowed, WindowedList } from './WindowedList.tsx'
import { Worded } from './Worded.tsx'

/** What somebody else draws in a row: `aside` beside its path, `detail` below it once the row is opened. */
export interface RowSlots {
  aside(row: PreviewRow): ComponentChildren
  detail(row: PreviewRow): ComponentChildren
}

export interface FileListProps {
  readonly rows: readonly PreviewRow[]
  readonly choices: Choices
  /** Paths to mark as changed since the preview before. */
  readonly changed?: ReadonlySet<string> | undefined
  readonly t: Translator
  readonly slots?: RowSlots | undefined
  onChoose(paths: readonly string[], isBack: boolean): void
}

/** In the order a person should read them: what asks for a decision comes first. */
const groups = ['git', 'keep', 'skip', 'write', 'recreate', 'delete'] as const
type Group = (typeof groups)[number]

const groupOf = ({ action, conflict }: PreviewRow) => (action === 'keep' && conflict === 'git-moved' ? 'git' : action)

/** Longer groups start closed, so that what follows them is not pushed out of sight. */
const OPEN = 40
/** So many files can be looked through without a filter. */
const FILTER_FROM = 20

/** In CSS pixels: a path alone, with a line below it, and with a choice beside the two. */
const heightOf = (group: Group, rows: readonly PreviewRow[]) =>
  group === 'keep' ? 56 : group === 'git' ? 36 : rows.some(row => group === 'skip' || row.origin === 'shell') ? 52 : 32

/** Of an opened row in a list that draws only some of its rows, and so must know their heights. */
const DETAIL = 360

/** The files of a preview, grouped by what happens to them. Files that stay as they are are only counted. */
export function FileList({ rows, choices, changed, t, slots, onChoose }: FileListProps) {
  const [filter, setFilter] = useState('')
  const unchanged = rows.filter(row => row.action === 'none').length
  const listed = rows.length - unchanged
  const words = filter.trim().toLowerCase()
  const found = words === '' ? rows : rows.filter(row => row.shown.toLowerCase().includes(words))
  return (
    <div class={css.files}>
      {listed === 0 && <p class={css.note}>{t('files.none')}</p>}
      {listed >= FILTER_FROM && (
        <input
          type="search"
          class={css.filter}
          value={filter}
          placeholder={t('files.filter')}
          aria-label={t('files.filter')}
          onInput={event => setFilter(event.currentTarget.value)}
        />
      )}
      {listed > 0 && words !== '' && (
        <p class={css.note} role="status">
          {t.count('files.found', found.filter(row => row.action !== 'none').length)}
        </p>
      )}
      {groups.map(group => {
        const members = found
          .filter(row => groupOf(row) === group)
          .sort((a, b) => Number(changed?.has(b.path) ?? 0) - Number(changed?.has(a.path) ?? 0))
        if (members.length === 0) return null
        return <FileGroup key={group} group={group} rows={members} choices={choices} changed={changed} t={t} slots={slots} onChoose={onChoose} />
      })}
      {unchanged > 0 && <p class={css.note}>{t.count('files.unchanged', unchanged)}</p>}
    </div>
  )
}

interface FileGroupProps extends FileListProps {
  readonly group: Group
}

function FileGroup({ group, rows, choices, changed, t, slots, onChoose }: FileGroupProps) {
  const [isOpen, setOpen] = useState(rows.length <= OPEN)
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const id = useId()
  const title = t(`files.group.${group}`)
  const height = heightOf(group, rows)
  const asked = rows.filter(isChoosable)
  const back = asked.filter(row => goesBack(row, choices)).length
  return (
    <section class={css.group}>
      <div class={css.head}>
        {asked.length > 1 && (
          <input
            type="checkbox"
            class={css.check}
            aria-label={t(group === 'delete' ? 'files.all.delete' : 'files.all', { group: title })}
            checked={back === asked.length}
            ref={(box: HTMLInputElement | null) => {
              if (box !== null) box.indeterminate = back > 0 && back < asked.length
            }}
            onChange={() => onChoose(asked.map(row => row.path), back < asked.length)}
          />
        )}
        <button type="button" class={css.heading} aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
          <span>
            {title} <span class={css.count}>{back > 0 && back < asked.length ? t('files.count.some', { back, all: rows.length }) : rows.length}</span>
          </span>
        </button>
      </div>
      <div id={id} hidden={!isOpen}>
        {isOpen && (
          <WindowedList
            items={rows}
            rowHeight={height}
            class={css.list}
            label={title}
            extraHeight={row => (opened.has(row.path) ? DETAIL : 0)}
            render={row => (
              <FileRow
                key={row.path}
                row={row}
                group={group}
                height={height}
                isBack={goesBack(row, choices)}
                isChanged={changed?.has(row.path) === true}
                t={t}
                slots={row.goal.kind === 'unknown' || row.current.kind === 'unknown' ? undefined : slots}
                isOpen={opened.has(row.path)}
                isFixed={isWindowed(rows.length)}
                onOpen={path => setOpened(toggled(opened, path))}
                onChoose={onChoose}
              />
            )}
          />
        )}
      </div>
    </section>
  )
}

function toggled(paths: ReadonlySet<string>, path: string): ReadonlySet<string> {
  const next = new Set(paths)
  if (!next.delete(path)) next.add(path)
  return next
}

interface FileRowProps {
  readonly row: PreviewRow
  readonly group: Group
  readonly height: number
  readonly isBack: boolean
  readonly isChanged: boolean
  readonly t: Translator
  /** Undefined for a row with nothing to compare. */
  readonly slots: RowSlots | undefined
  readonly isOpen: boolean
  /** True where what is open must have a height known beforehand. */
  readonly isFixed: boolean
  onOpen(path: string): void
  onChoose(paths: readonly string[], isBack: boolean): void
}

function FileRow({ row, group, height, isBack, isChanged, t, slots, isOpen, isFixed, onOpen, onChoose }: FileRowProps) {
  const id = useId()
  const isPlanned = isChoosable(row) && row.action !== 'keep'
  const isLeft = isPlanned && !isBack
  return (
    <li class={css.row} style={{ minHeight: `${height}px` }} data-changed={isChanged || undefined} data-left={isLeft || undefined}>
      {isPlanned && (
        <input
          type="checkbox"
          class={css.check}
          aria-label={t(row.action === 'delete' ? 'files.one.delete' : 'files.one', { path: row.shown })}
          checked={isBack}
          onChange={() => onChoose([row.path], !isBack)}
        />
      )}
      {slots !== undefined && (
        <button
          type="button"
          class={css.opener}
          aria-label={t('diff.of', { path: row.shown })}
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => onOpen(row.path)}
        />
      )}
      <div class={css.what}>
        <FilePath shown={row.shown} />
        {group !== 'git' && <Why row={row} t={t} />}
      </div>
      {slots?.aside(row)}
      {isChanged && <span class={css.fresh}>{t('files.changed')}</span>}
      {row.action === 'keep' && row.putBackAction !== undefined ? (
        <Choice row={row} chosen={isBack} t={t} onChoose={onChoose} />
      ) : (
        <span class={css.tag} data-action={isLeft ? 'keep' : row.action}>
          {t(`files.tag.${isLeft || group === 'git' ? 'keep' : group}`)}
        </span>
      )}
      {slots !== undefined && (
        <div id={id} class={css.detail} hidden={!isOpen} style={isFixed ? { height: `${DETAIL}px` } : {}}>
          {isOpen && slots.detail(row)}
        </div>
      )}
    </li>
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
  onChoose(paths: readonly string[], isBack: boolean): void
}

function Choice({ row, chosen, t, onChoose }: ChoiceProps) {
  const option = (value: boolean, label: string) => (
    <label class={choiceCss.option} data-chosen={chosen === value || undefined}>
      <input
        type="radio"
        name={`turnback-${row.path}`}
        checked={chosen === value}
        onChange={() => onChoose([row.path], value)}
      />
      {label}
    </label>
  )
  return (
    <fieldset class={choiceCss.choice} aria-label={t('files.choice', { path: row.shown })}>
      {option(false, t('files.choice.keep'))}
      {option(true, t(row.putBackAction === 'delete' ? 'files.choice.put-back.delete' : 'files.choice.put-back'))}
    </fieldset>
  )
}
