import type { Translator } from '../../locales/translate.ts'
import type { OpSummary, TurnRow } from '../../src/protocol/requests.ts'
import { filesRestored } from '../state/rollback-flow.ts'
import { filesOf, type RailItem } from '../state/rail.ts'
import { dateTime, relativeTime, wordsOf } from '../state/turn-options.ts'
import css from './Checkpoints.module.css'
import { RollbackIcon, WarningIcon } from './icons.tsx'
import { Listbox } from './Listbox.tsx'

export interface RailProps {
  readonly items: readonly RailItem[]
  readonly selected: string | undefined
  readonly nowMs: number
  readonly t: Translator
  onSelect(key: string): void
  onEnter(): void
}

/** In CSS pixels. */
const ROW = 56

/** The turns of a session and the rollbacks between them, newest first. */
export const Rail = ({ items, selected, nowMs, t, onSelect, onEnter }: RailProps) => (
  <Listbox
    items={items}
    label={t('view.rail')}
    rowHeight={ROW}
    selected={selected}
    class={css.rail}
    keyOf={({ key }) => key}
    render={item => (item.kind === 'turn' ? <TurnItem turn={item.turn} nowMs={nowMs} t={t} /> : <OpItem op={item.op} nowMs={nowMs} t={t} />)}
    onSelect={onSelect}
    onEnter={onEnter}
  />
)

interface ItemProps {
  readonly nowMs: number
  readonly t: Translator
}

function TurnItem({ turn, nowMs, t }: ItemProps & { readonly turn: TurnRow }) {
  return (
    <div class={css.item} data-state={turn.state}>
      <div class={css.top}>
        <span class={css.number}>{turn.turn}</span>
        <span class={css.words}>{wordsOf(turn, t)}</span>
        <Time atMs={turn.atMs} nowMs={nowMs} t={t} />
      </div>
      <div class={css.facts}>
        <span class={css.fact}>{turnFacts(turn, t).join(' · ')}</span>
        {turn.gaps.length > 0 && (
          <span class={css.gap} title={t('view.gaps')} role="img" aria-label={t('view.gaps')}>
            <WarningIcon />
          </span>
        )}
      </div>
    </div>
  )
}

function OpItem({ op, nowMs, t }: ItemProps & { readonly op: OpSummary }) {
  return (
    <div class={css.item} data-kind="op">
      <div class={css.top}>
        <span class={css.number}>
          <RollbackIcon />
        </span>
        <span class={css.words}>{opTitle(op, t)}</span>
        <Time atMs={op.atMs} nowMs={nowMs} t={t} />
      </div>
      <div class={css.facts}>
        <span class={css.fact}>{opFacts(op, t).join(' · ')}</span>
      </div>
    </div>
  )
}

/** What became of a turn stands first, then what it changed. */
export function turnFacts(turn: TurnRow, t: Translator): string[] {
  const files = filesOf(turn)
  const shell = turn.changed?.shell ?? 0
  return [
    ...(turn.state === 'available' ? [] : [t(`picker.state.${turn.state}`)]),
    files === 0 ? t('picker.no-files') : t.count('picker.files', files),
    ...(shell > 0 ? [t.count('view.by-command', shell)] : []),
  ]
}

export const opTitle = (op: OpSummary, t: Translator): string =>
  op.act === 'undo' || op.target === undefined ? t('view.op.undo') : t(op.scope === 'files' ? 'view.op.files' : 'view.op.rollback', { turn: op.target.number })

export function opFacts(op: OpSummary, t: Translator): string[] {
  const files = filesRestored(op)
  const turns = op.target?.withdrawn.length ?? 0
  return [
    ...(op.undone ? [t('view.op.undone')] : []),
    ...(op.act === 'rollback' && op.scope !== 'files' && turns > 0 ? [t.count('view.turns', turns)] : []),
    ...(op.scope === 'conversation' ? [t('view.scope.conversation')] : [files === 0 ? t('picker.no-files') : t.count('picker.files', files)]),
  ]
}

/** “5 minutes ago”, and the moment itself for who wants it. */
export const Time = ({ atMs, nowMs, t }: ItemProps & { readonly atMs: number }) => (
  <time class={css.time} dateTime={new Date(atMs).toISOString()} title={dateTime(atMs, t.locale)}>
    {relativeTime(Math.min(0, atMs - nowMs), t.locale)}
  </time>
)
