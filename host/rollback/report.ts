import type { Gap } from '../../src/checkpoint/gap.ts'
import { gapsBeside, type NamedFile } from '../../src/checkpoint/gaps-beside.ts'
import { placeOf } from '../../src/checkpoint/git-move.ts'
import type { Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import type { Preview, PreviewRow, TurnRow } from '../../src/protocol/requests.ts'
import { losesItsOtherNames } from '../../src/restore/other-names.ts'
import { hasText, translateFailure, type Translator } from '../../locales/translate.ts'
import type { Operation } from './op-end.ts'
import { shownPath } from './draft.ts'

/** Names given in full per line; the count goes on. */
const MAX_NAMES = 8
/** Moves of HEAD told one by one. */
const MAX_MOVES = 3

/** Paths that share a fate are one line: its key, the reason in it, and their names. */
interface Line {
  readonly key: Parameters<Translator>[0]
  readonly reason?: string
  readonly names: readonly string[]
}

/** The turns as lines of text, newest first. */
export function reportList(t: Translator, turns: readonly TurnRow[]): string {
  if (turns.length === 0) return t('command.list.empty')
  return [t('command.list.title'), ...turns.map(turn => listRow(t, turn))].join('\n')
}

function listRow(t: Translator, turn: TurnRow): string {
  const title = turn.title !== '' ? turn.title : turn.images > 0 ? t.count('command.list.images', turn.images) : t('command.list.untitled')
  const facts = [
    turn.files > 0 ? t.count('command.list.files', turn.files) : '',
    ...turn.gaps.map(gap => t.count(`bar.gap.${gap.reason}`, gap.count)),
    turn.state === 'available' ? '' : t(`command.list.state.${turn.state}`),
  ].filter(fact => fact !== '')
  const time = new Date(turn.atMs).toLocaleString(t.locale === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' })
  return t('command.list.row', { turn: turn.turn, time, title, facts: facts.length === 0 ? '' : ` · ${facts.join(' · ')}` })
}

/** What a rollback would do, as lines of text. `changed`: paths of rows that are not as the person had seen them. */
export function reportPreview(t: Translator, preview: Preview, changed: ReadonlySet<string> = new Set()): string {
  const { scope, target: { turn } } = preview
  const files = preview.rows.filter(row => row.action !== 'none')
  const differing = preview.rows.filter(({ path }) => changed.has(path)).map(({ shown }) => shown)
  return [
    scope === 'files' ? t('command.preview.files-only', { turn }) : t.count('command.preview.title', preview.turns.length, { turn }),
    ...(differing.length === 0 ? [] : [t('command.preview.changed', { names: nameList(t, differing) })]),
    ...(scope === 'conversation' ? [t('command.preview.files-stay')]
      : files.length === 0 && preview.gaps.length === 0 ? [t('command.preview.nothing')] : linesOf(t, groupRows(files))),
    ...(preview.folders.length === 0 ? [] : [t('command.plan.folders', { names: nameList(t, preview.folders) })]),
    ...gapLines(t, preview.gaps, files.flatMap(({ shown, skip }) => (skip === undefined ? [] : [{ name: shown, reason: skip }]))),
    ...linkLines(t, files.filter(losesItsOtherNames).map(({ shown }) => shown)),
    ...gitLines(t, preview.gitMoves),
    ...(preview.hasCommands ? [t('files.ignored')] : []),
    ...aroundLines(t, preview),
    ...(preview.running.length === 0 ? [] : [t('command.preview.running', { names: nameList(t, preview.running.map(({ label }) => label)) })]),
    t('command.preview.run', { turn: scope === 'both' ? turn : `${turn} ${scope}` }),
  ].join('\n')
}

/** What the command says of a finished op; `around` is the preview it was planned from, where there is one. `canCopy`: an undo brings the conversation back, too. */
export function reportDone(
  t: Translator, operation: Operation, workspace: string | undefined,
  around: Pick<Preview, 'turns' | 'gaps' | 'gitMoves' | 'queued' | 'running' | 'untouched'> | undefined, canCopy = false,
): string {
  const { begin, outcomes, removedFolders, dropped = [] } = operation
  const changed = outcomes.filter(outcome => outcome.reason !== 'unchanged')
  const folders = removedFolders.map(({ path }) => shownPath(path, workspace))
  const lines = [
    ...linesOf(t, groupOutcomes(changed, workspace)),
    ...(folders.length === 0 ? [] : [t('command.files.folders', { names: nameList(t, folders) })]),
  ]
  const turn = begin.target?.number ?? 0
  if (begin.act === 'undo') {
    return [...undoneLines(t, operation), ...(lines.length === 0 ? [t('command.undone.unchanged')] : lines), ...backLines(t, operation)].join('\n')
  }
  const ends = [
    ...(changed.some(outcome => outcome.result === 'failed') ? [t('command.done.retry')] : []),
    ...(begin.markerId !== undefined && canCopy ? [t('command.done.undo.copy')]
      : changed.some(outcome => outcome.result === 'restored') ? [t('command.done.undo')] : []),
  ]
  if (begin.act === 'retry') return [t('command.retried', { turn }), ...(lines.length === 0 ? [t('command.done.nothing')] : lines), ...ends].join('\n')
  const isFiles = begin.scope !== 'conversation'
  const title = operation.copy !== undefined ? t('command.branched', { turn, title: operation.copyTitle ?? '' })
    : begin.scope === 'files' ? t('command.done.files-only', { turn }) : t.count('command.done.title', around?.turns.length ?? 1, { turn })
  return [
    title,
    ...(lines.length > 0 ? lines : [t(isFiles ? 'command.done.nothing' : 'command.done.files-stay')]),
    ...(begin.leftOut === undefined ? [] : [t.count('command.done.left', begin.leftOut)]),
    ...gapLines(t, isFiles ? around?.gaps ?? [] : [], outcomes.map(({ path, reason = '' }) => ({ name: shownPath(path, workspace), reason }))),
    ...linkLines(t, begin.rows.filter(({ action, was }) => action === 'write' && was.kind === 'file' && was.links !== undefined)
      .map(({ path }) => shownPath(path, workspace))),
    ...gitLines(t, around?.gitMoves ?? []),
    ...(around === undefined ? [] : aroundLines(t, around)),
    ...(around === undefined || around.running.length === 0 ? [] : [t('command.running', { names: nameList(t, around.running.map(({ label }) => label)) })]),
    ...(dropped.length === 0 ? [] : [t.count('command.dropped', dropped.length, { names: nameList(t, dropped) })]),
    ...ends,
  ].join('\n')
}

/** What became of the conversation comes first: it is what the reader looks at. */
function undoneLines(t: Translator, { begin, copy, copyTitle, noCopy, reverses }: Operation): readonly string[] {
  if (reverses === 'undo') return [t('command.redone'), ...(copy === undefined ? [] : [t('command.redone.open')])]
  if (copy !== undefined) return [t('command.undone.copy', { title: copyTitle ?? copy })]
  if (noCopy === undefined) return [t('command.undone.files')]
  return [t('command.undone.other'), `${reportFailure(t, noCopy)} ${t('command.undone.again', { op: begin.of ?? '' })}`]
}

/** An undo can be undone by its name, because the plain undo goes further back. */
const backLines = (t: Translator, { begin, copy, reverses, outcomes }: Operation): readonly string[] =>
  (reverses === 'rollback' && (copy !== undefined || outcomes.some(({ result }) => result === 'restored')) ? [t('command.undone.back', { op: begin.op })] : [])

/** Why not, and what to do instead, in one line. */
export function reportFailure(t: Translator, failure: Failure): string {
  const key = `command.bad.${failure.facts.detail}`
  if (failure.code === 'bad-request' && hasText(key)) return t(key, failure.facts)
  const { text, remedy } = translateFailure(t.locale, failure)
  return [text, remedy, ...(failure.code === 'jobs-running' ? [t('command.go-on')] : [])].join(' ')
}

const linkLines = (t: Translator, names: readonly string[]): readonly string[] =>
  names.length === 0 ? [] : [t('command.links', { names: nameList(t, names) })]

function groupRows(rows: readonly PreviewRow[]): readonly Line[] {
  return group(rows.map((row): Line => {
    const names = [row.shown]
    switch (row.action) {
      case 'write': case 'recreate': case 'delete': return { key: `command.plan.${row.action}`, names }
      case 'keep': return { key: `command.plan.keep.${row.conflict ?? 'changed-since'}`, names }
      default: return { key: 'command.files.skip', reason: row.skip ?? 'unreadable', names }
    }
  }))
}

function groupOutcomes(outcomes: readonly Outcome[], workspace: string | undefined): readonly Line[] {
  return group(outcomes.map(({ path, result, action, reason }): Line => {
    const names = [shownPath(path, workspace)]
    switch (result) {
      case 'restored': return { key: `command.files.${action ?? 'write'}`, names }
      case 'kept': return { key: keepKey(reason), names }
      case 'skipped': return { key: 'command.files.skip', reason: reason ?? 'unreadable', names }
      case 'failed': return { key: 'command.files.failed', reason: reason ?? 'unreadable', names }
    }
  }))
}

function keepKey(reason: string | undefined): Line['key'] {
  const key = `command.files.keep.${reason}`
  return hasText(key) ? key : 'command.files.keep.changed-since'
}

function group(lines: readonly Line[]): readonly Line[] {
  const groups = new Map<string, Line>()
  for (const line of lines) {
    const key = `${line.key} ${line.reason ?? ''}`
    groups.set(key, { ...line, names: [...groups.get(key)?.names ?? [], ...line.names] })
  }
  return [...groups.values()]
}

const linesOf = (t: Translator, lines: readonly Line[]): readonly string[] =>
  lines.map(({ key, reason, names }) => t(key, { names: nameList(t, names), ...(reason === undefined ? {} : { reason: reasonText(t, reason) }) }))

/** An errno code has no words of ours and is shown as it is. */
function reasonText(t: Translator, reason: string): string {
  const key = `reason.${reason}`
  return hasText(key) ? t(key) : t('reason.other', { code: reason })
}

function nameList(t: Translator, names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES)
  const rest = names.length - shown.length
  return [...shown, ...(rest > 0 ? [t.count('command.files.more', rest)] : [])].join(t('command.names.separator'))
}

/** `listed`: files that a line above names with their reason. */
const gapLines = (t: Translator, gaps: readonly Gap[], listed: readonly NamedFile[]): readonly string[] =>
  gapsBeside(gaps, listed).map(gap => t.count(`command.gap.${gap.reason}`, gap.count, { names: nameList(t, gap.names) }))

function gitLines(t: Translator, moves: Preview['gitMoves']): readonly string[] {
  const advice = moves.at(-1)?.advice
  return [
    ...moves.slice(0, MAX_MOVES).map(({ words, from, to, fromRef, toRef }) =>
      t('git.moved', { words, from: placeOf(fromRef, from), to: placeOf(toRef, to) })),
    ...(moves.length > MAX_MOVES ? [t('gaps.more', { count: moves.length - MAX_MOVES })] : []),
    ...(moves.length === 0 ? [] : [advice === undefined ? t('git.stays') : `${t('git.advice')} ${advice}`]),
  ]
}

function aroundLines(t: Translator, { queued, untouched }: Pick<Preview, 'queued' | 'untouched'>): readonly string[] {
  const names = untouched.map(key => (hasText(`untouched.${key}`) ? t(`untouched.${key}` as Parameters<Translator>[0]) : key))
  return [
    ...(queued.length === 0 ? [] : [t.count('command.queued', queued.length, { names: nameList(t, queued) })]),
    ...(names.length === 0 ? [] : [t('command.untouched', { names: names.join(t('command.names.separator')) })]),
  ]
}
