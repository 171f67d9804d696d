import type { ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import type { PreviewRow } from '../../src/protocol/requests.ts'
import { FileDiff } from '../components/FileDiff.tsx'
import { LineCounts } from '../components/LineCounts.tsx'
import type { DiffStore } from '../state/diff-store.ts'

export interface RowProps {
  readonly diffs: DiffStore
  readonly row: PreviewRow
  readonly t: ReadonlySignal<Translator>
}

/** The diff of one row of a file list, asked for while it is there. */
export function RowDiff({ diffs, row, t }: RowProps) {
  useEffect(() => diffs.open(row.path), [diffs, row.path])
  return (
    <FileDiff
      shown={row.shown}
      entry={diffs.entries.value.get(row.path)}
      listed={row.current}
      t={t.value}
      onRetry={() => diffs.retry(row.path)}
    />
  )
}

/** The line counts of one row, asked for when it is drawn. */
export function RowCounts({ diffs, row, t }: RowProps) {
  const isFile = row.current.kind === 'file' || row.goal.kind === 'file'
  useEffect(() => {
    if (isFile) diffs.wantCount(row.path)
  }, [diffs, row.path, isFile])
  return <LineCounts count={diffs.counts.value.get(row.path)} t={t.value} />
}
