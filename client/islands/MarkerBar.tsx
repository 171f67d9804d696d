import type { ReadonlySignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import { gapsBeside } from '../../src/checkpoint/gaps-beside.ts'
import type { OpSummary } from '../../src/protocol/requests.ts'
import { Gaps } from '../components/Gaps.tsx'
import { GitMoves } from '../components/GitMoves.tsx'
import { MarkerLine } from '../components/MarkerLine.tsx'
import { OutcomeList } from '../components/OutcomeList.tsx'
import { changedOutcomes, filesRestored, lastUndoable } from '../state/rollback-flow.ts'
import type { RollbackStore } from '../state/rollback-store.ts'

export interface MarkerBarProps {
  readonly store: RollbackStore
  readonly t: ReadonlySignal<Translator>
  readonly marker: { readonly seq: number; readonly turn: number }
}

/** The bar of one marker. Its details come from the host; until then, or without it, it says the turn only. */
export function MarkerBar({ store, t: translator, marker }: MarkerBarProps) {
  useEffect(() => store.loadOps(), [store])
  const [asked, setAsked] = useState(false)
  const t = translator.value
  const ops = store.ops.value
  const op = ops.find(known => known.markerSeq === marker.seq)
  const isLast = store.markers.value.at(-1)?.seq === marker.seq
  const undoable = op !== undefined && op === lastUndoable(ops)
  const undoing = store.barUndo.value === 'running'
  // What an undone rollback did to the files is no longer so.
  const outcomes = op === undefined || op.undone ? [] : changedOutcomes(op)
  const gaps = op === undefined ? [] : shownGaps(op, store.shownPath)
  const moves = op?.undone === false ? (op.gitMoves ?? []) : []
  // The newest undo of it, where that could bring the conversation back.
  const copy = op?.undone === true ? ops.find(other => other.act === 'undo' && other.of === op.op)?.copy : undefined
  const waiting = isLast && store.waitingPrompt.value !== undefined
  return (
    <MarkerLine
      sessionId={store.sessionId}
      text={op?.target === undefined ? t('bar.plain', { turn: marker.turn }) : barText(op, t)}
      hero={isLast && store.empty.value ? { title: t('hero.title'), body: t('hero.body') } : undefined}
      details={
        outcomes.length + gaps.length + moves.length === 0
          ? undefined
          : {
              label: t('bar.details'),
              content: (
                <>
                  <Gaps gaps={gaps} t={t} />
                  <GitMoves moves={moves} t={t} />
                  {outcomes.length > 0 && <OutcomeList outcomes={outcomes} t={t} shown={store.shownPath} />}
                </>
              ),
            }
      }
      actions={[
        {
          label: t(store.shown.value.has(marker.seq) ? 'bar.hide' : 'bar.show'),
          busy: false,
          pressed: store.shown.value.has(marker.seq),
          run: () => store.toggleShown(marker.seq),
        },
        ...(waiting ? [{ label: t(store.isDraftWaiting.value ? 'prompt.insert.draft' : 'prompt.insert'), busy: false, run: store.insertPrompt }] : []),
        ...(copy === undefined ? [] : [{ label: t('bar.open-copy'), busy: false, run: () => store.openSession(copy) }]),
        // Asked twice: the page cannot bring an archived session back.
        ...(copy === undefined || !store.canArchive()
          ? []
          : [{ label: t(asked ? 'bar.archive.sure' : 'bar.archive'), busy: store.running.value, run: () => (asked ? void store.archive(copy) : setAsked(true)) }]),
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

function barText(op: OpSummary, t: Translator): string {
  const parts = [t.count('bar.turns', op.target?.withdrawn.length ?? 0), t(filesKey(op))]
  return [...parts, ...gapsOf(op).map(gap => t.count(`bar.gap.${gap.reason}`, gap.count))].join(' · ')
}

/** "Files put back" alone would vouch for what nobody saw as well. */
const gapsOf = (op: OpSummary) => (op.undone || op.scope === 'conversation' ? [] : op.gaps)

/** What the list of outcomes does not say itself. */
const shownGaps = (op: OpSummary, shown: (path: string) => string) =>
  gapsBeside(gapsOf(op), op.undone ? [] : op.outcomes.map(({ path, reason = '' }) => ({ name: path, reason })))
    .map(gap => ({ ...gap, names: gap.names.map(shown) }))

function filesKey(op: OpSummary) {
  if (op.scope === 'conversation') return 'bar.files.conversation'
  if (op.undone) return 'bar.files.undone'
  if (op.outcomes.some(({ result }) => result !== 'restored')) return 'bar.files.some'
  return filesRestored(op) > 0 ? 'bar.files.all' : 'bar.files.none'
}
