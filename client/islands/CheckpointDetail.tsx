import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'
import type { OpSummary, TurnRow } from '../../src/protocol/requests.ts'
import css from '../components/Checkpoints.module.css'
import { ComparedFiles } from '../components/ComparedFiles.tsx'
import { CopyButton, type Copy } from '../components/CopyButton.tsx'
import { FileDiff } from '../components/FileDiff.tsx'
import { Gaps } from '../components/Gaps.tsx'
import { LineCounts } from '../components/LineCounts.tsx'
import { OutcomeList } from '../components/OutcomeList.tsx'
import { Problem } from '../components/Problem.tsx'
import { opFacts, opTitle, Time, turnFacts } from '../components/Rail.tsx'
import type { CheckpointsStore, Until } from '../state/checkpoints-store.ts'
import type { RailItem } from '../state/rail.ts'
import { changedOutcomes, lastUndoable } from '../state/rollback-flow.ts'
import type { RollbackStore } from '../state/rollback-store.ts'
import { whyUnavailable, wordsOf } from '../state/turn-options.ts'

export interface CheckpointDetailProps {
  readonly checkpoints: CheckpointsStore
  readonly t: Translator
  /** The same words for what happened. */
  readonly past: ReadonlySignal<Translator>
  open(store: RollbackStore, turn: number, opener: HTMLElement, only?: string): void
}

/** What the selected turn changed, or what the selected rollback did. */
export function CheckpointDetail(props: CheckpointDetailProps) {
  const item = props.checkpoints.selected.value
  if (item === undefined) return null
  return item.kind === 'turn' ? <TurnDetail {...props} turn={item.turn} /> : <OpDetail {...props} op={item.op} />
}

function TurnDetail({ checkpoints, t, past, open, turn }: CheckpointDetailProps & { readonly turn: TurnRow }) {
  const id = useId()
  const { store } = checkpoints
  const detail = checkpoints.detail.value
  const why = store.running.value ? t('button.running') : whyUnavailable(turn, t)
  return (
    <section class={css.detail} aria-labelledby={id}>
      <header class={css.head}>
        <h2 id={id} class={css.title} tabIndex={-1} data-detail>
          {t('view.turn', { turn: turn.turn })}
        </h2>
        <p class={css.prompt}>{wordsOf(turn, t)}</p>
        <p class={css.note}>
          <Time atMs={turn.atMs} nowMs={Date.now()} t={t} /> · {turnFacts(turn, t).join(' · ')}
        </p>
        <div class={css.actions}>
          <button
            type="button"
            class={css.action}
            aria-disabled={why !== undefined}
            title={why}
            onClick={event => why === undefined && open(store, turn.turn, event.currentTarget)}
          >
            {t('view.rollback')}
          </button>
          <CompareUntil checkpoints={checkpoints} turn={turn} t={t} />
          {detail.kind === 'ready' && detail.rows.length > 1 && (
            <CopyButton label={t('view.copy.patch.all')} t={t} make={() => patchToCopy(checkpoints, detail.rows, t)} />
          )}
        </div>
      </header>
      <Gaps gaps={turn.gaps.map(gap => ({ ...gap, names: gap.names.map(store.shownPath) }))} t={t} />
      <Files
        checkpoints={checkpoints}
        t={t}
        past={past}
        actions={file => (
          <div class={css.actions}>
            <button
              type="button"
              class={css.action}
              aria-disabled={why !== undefined}
              title={why ?? t('view.restore.hint', { path: file.shown, turn: turn.turn })}
              onClick={event => why === undefined && open(store, turn.turn, event.currentTarget, file.path)}
            >
              {t('view.restore')}
            </button>
            <button type="button" class={css.action} onClick={() => checkpoints.setFilter({ path: file })}>
              {t('view.history')}
            </button>
            <CopyButton label={t('view.copy.path')} t={t} make={async () => ({ text: file.shown, said: t('view.copied.path') })} />
            <CopyButton label={t('view.copy.patch')} t={t} make={() => patchToCopy(checkpoints, [file], t)} />
          </div>
        )}
      />
    </section>
  )
}

/** So many later turns can be chosen as the other point. */
const POINTS = 100

function CompareUntil({ checkpoints, turn, t }: Pick<CheckpointDetailProps, 'checkpoints' | 't'> & { readonly turn: TurnRow }) {
  const later = checkpoints.items.value.filter((item): item is Extract<RailItem, { kind: 'turn' }> => item.kind === 'turn' && item.turn.startSeq > turn.startSeq)
  const value = checkpoints.until.value
  const untilOf = (chosen: string): Until => (chosen === '' ? undefined : chosen === 'now' ? 'now' : Number(chosen))
  return (
    <select
      class={css.select}
      aria-label={t('view.until')}
      value={String(value ?? '')}
      onChange={event => checkpoints.compareUntil(untilOf(event.currentTarget.value))}
    >
      <option value="">{t('view.until.turn')}</option>
      <option value="now">{t('view.until.now')}</option>
      {later.slice(-POINTS).map(item => (
        <option key={item.key} value={String(item.turn.turn)}>
          {t('view.until.after', { turn: item.turn.turn })}
        </option>
      ))}
    </select>
  )
}

async function patchToCopy(checkpoints: CheckpointsStore, rows: readonly ComparedRow[], t: Translator): Promise<Copy> {
  const { text, left } = await checkpoints.patch(rows)
  if (text === '') return { text, said: t('view.copied.nothing') }
  return { text, said: left === 0 ? t('view.copied.patch') : t.count('view.copied.patch.without', left) }
}

interface FilesProps extends Pick<CheckpointDetailProps, 'checkpoints' | 't' | 'past'> {
  actions(file: ComparedRow): ComponentChildren
}

function Files({ checkpoints, t, past, actions }: FilesProps) {
  const diff = useRef<HTMLDivElement>(null)
  const detail = checkpoints.detail.value
  const file = checkpoints.file.value
  switch (detail.kind) {
    case 'none':
    case 'loading':
      return (
        <p class={css.note} role="status">
          {t('view.detail.loading')}
        </p>
      )
    case 'failed':
      return <Problem title="" failure={detail.failure} t={t} onRetry={checkpoints.retry} />
    case 'ready':
      if (detail.rows.length === 0) {
        return <p class={css.note}>{t(checkpoints.until.value === undefined ? 'view.detail.none' : 'view.detail.none.stretch')}</p>
      }
      return (
        <>
          <ComparedFiles
            rows={detail.rows}
            selected={file?.path}
            t={t}
            counts={row => <Counts key={row.path} checkpoints={checkpoints} row={row} past={past} />}
            onSelect={checkpoints.selectFile}
            onEnter={() => diff.current?.querySelector<HTMLElement>('[data-lines]')?.focus()}
          />
          {detail.more > 0 && <p class={css.note}>{t.count('view.detail.more', detail.more)}</p>}
          <div ref={diff} class={css.diff}>
            {file !== undefined && (
              <>
                <h3 class={css.path}>{file.shown}</h3>
                {actions(file)}
                <Diff key={file.path} checkpoints={checkpoints} row={file} past={past} />
              </>
            )}
          </div>
        </>
      )
  }
}

interface RowProps {
  readonly checkpoints: CheckpointsStore
  readonly row: ComparedRow
  readonly past: ReadonlySignal<Translator>
}

function Counts({ checkpoints: { diffs }, row, past }: RowProps) {
  const isFile = row.before.kind === 'file' || row.after.kind === 'file'
  useEffect(() => {
    if (isFile) diffs.wantCount(row.path)
  }, [diffs, row, isFile])
  return <LineCounts count={diffs.counts.value.get(row.path)} t={past.value} />
}

function Diff({ checkpoints: { diffs }, row, past }: RowProps) {
  useEffect(() => diffs.open(row.path), [diffs, row.path])
  return <FileDiff shown={row.shown} entry={diffs.entries.value.get(row.path)} t={past.value} onRetry={() => diffs.retry(row.path)} />
}

function OpDetail({ checkpoints: { store }, t, op }: CheckpointDetailProps & { readonly op: OpSummary }) {
  const id = useId()
  const outcomes = changedOutcomes(op)
  const isUndoing = store.barUndo.value === 'running'
  const isBusy = isUndoing || store.running.value
  return (
    <section class={css.detail} aria-labelledby={id}>
      <header class={css.head}>
        <h2 id={id} class={css.title} tabIndex={-1} data-detail>
          {opTitle(op, t)}
        </h2>
        <p class={css.note}>
          <Time atMs={op.atMs} nowMs={Date.now()} t={t} /> · {[t(`view.scope.${op.scope}`), ...opFacts(op, t)].join(' · ')}
        </p>
        {op === lastUndoable(store.ops.value) && (
          <div class={css.actions}>
            <button type="button" class={css.action} aria-disabled={isBusy} title={store.running.value ? t('button.running') : undefined} onClick={() => !isBusy && void store.undoFromBar(true)}>
              {t(isUndoing ? 'bar.undo.running' : op.scope === 'files' ? 'view.undo.files' : 'bar.undo')}
            </button>
          </div>
        )}
      </header>
      {op.scope !== 'conversation' && <Gaps gaps={op.gaps.map(gap => ({ ...gap, names: gap.names.map(store.shownPath) }))} t={t} />}
      {outcomes.length === 0 ? (
        <p class={css.note}>{t('view.op.none')}</p>
      ) : (
        <div class={css.outcomes} data-scroll tabIndex={0} role="region" aria-label={t('files.title')}>
          <OutcomeList outcomes={outcomes} t={t} shown={store.shownPath} />
        </div>
      )}
    </section>
  )
}
