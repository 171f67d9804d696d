import type { ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import type { OpSummary, TurnRow } from '../../src/protocol/requests.ts'
import { MarkerLine } from '../components/MarkerLine.tsx'
import { OutcomeList } from '../components/OutcomeList.tsx'
import { changedOutcomes, filesRestored } from '../state/rollback-flow.ts'
import type { RollbackStore } from '../state/rollback-store.ts'
import { commandsIn, withdrawnBy } from '../state/withdrawn.ts'

export interface MarkerBarProps {
  readonly store: RollbackStore
  readonly t: ReadonlySignal<Translator>
  readonly marker: { readonly seq: number; readonly turn: number }
}

/** The bar of one marker. Its details come from the host; until then, or without it, it says the turn only. */
export function MarkerBar({ store, t: translator, marker }: MarkerBarProps) {
  useEffect(() => store.loadOps(), [store])
  const t = translator.value
  const ops = store.ops.value
  const op = ops.find(known => known.markerSeq === marker.seq)
  const isLast = store.markers.value.at(-1)?.seq === marker.seq
  const undoable = isLast && op !== undefined && op === lastStanding(ops) && filesRestored(op) > 0
  const undoing = store.barUndo.value === 'running'
  // What an undone rollback did to the files is no longer so.
  const outcomes = op === undefined || op.undone ? [] : changedOutcomes(op)
  const waiting = isLast && store.waitingPrompt.value !== undefined
  return (
    <MarkerLine
      sessionId={store.sessionId}
      text={op?.target === undefined ? t('bar.plain', { turn: marker.turn }) : barText(op, ops, store.turns.value, t)}
      hero={isLast && store.empty.value ? { title: t('hero.title'), body: t('hero.body') } : undefined}
      details={
        outcomes.length === 0
          ? undefined
          : {
              label: t('bar.details'),
              content: <OutcomeList outcomes={outcomes} t={t} shown={store.shownPath} />,
            }
      }
      actions={[
        ...(waiting ? [{ label: t('prompt.insert'), busy: false, run: store.insertPrompt }] : []),
        ...(undoable
          ? [
              {
                label: t(undoing ? 'bar.undo.running' : 'bar.undo'),
                busy: undoing || store.running.value,
                run: () => void store.undoFromBar(),
              },
            ]
          : []),
      ]}
    />
  )
}

/** The rollback that `undo` would take: the latest one not undone. */
const lastStanding = (ops: readonly OpSummary[]) =>
  ops
    .filter(op => op.act === 'rollback' && !op.undone)
    .reduce<OpSummary | undefined>((last, op) => (last === undefined || op.atMs >= last.atMs ? op : last), undefined)

function barText(op: OpSummary, ops: readonly OpSummary[], turns: readonly TurnRow[], t: Translator): string {
  const withdrawn = withdrawnBy(op, ops)
  // "Files put back" alone would vouch for what commands did as well.
  const commands = op.undone || op.scope === 'conversation' ? 0 : commandsIn(withdrawn, turns)
  const parts = [t.count('bar.turns', withdrawn.length), t(filesKey(op))]
  return [...parts, ...(commands > 0 ? [t.count('bar.commands', commands)] : [])].join(' · ')
}

function filesKey(op: OpSummary) {
  if (op.scope === 'conversation') return 'bar.files.conversation'
  if (op.undone) return 'bar.files.undone'
  if (op.outcomes.some(({ result }) => result !== 'restored')) return 'bar.files.some'
  return filesRestored(op) > 0 ? 'bar.files.all' : 'bar.files.none'
}
