import { sameState, type FileState } from '../../src/checkpoint/file-state.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'

/** What a stretch of turns made of a path. `mode`: the same bytes with other permissions. */
export type ComparedAction = 'added' | 'deleted' | 'changed' | 'mode' | 'same' | 'unknown'

export function actionOf({ before, after }: Pick<ComparedRow, 'before' | 'after'>): ComparedAction {
  if (before.kind === 'unknown' || after.kind === 'unknown') return 'unknown'
  if (sameState(before, after)) return 'same'
  if (before.kind === 'absent') return 'added'
  if (after.kind === 'absent') return 'deleted'
  return before.kind === 'file' && after.kind === 'file' && before.digest === after.digest ? 'mode' : 'changed'
}

/** For each path that came with the very bytes of one that went: that one. Each went to one place only; empty files say nothing. */
export function renames(rows: readonly ComparedRow[]): ReadonlyMap<string, ComparedRow> {
  const gone = new Map<string, ComparedRow[]>()
  for (const row of rows) {
    const key = actionOf(row) === 'deleted' ? contentKey(row.before) : undefined
    if (key !== undefined) gone.set(key, [...gone.get(key) ?? [], row])
  }
  const from = new Map<string, ComparedRow>()
  for (const row of rows) {
    const key = actionOf(row) === 'added' ? contentKey(row.after) : undefined
    const origin = key === undefined ? undefined : gone.get(key)?.shift()
    if (origin !== undefined) from.set(row.path, origin)
  }
  return from
}

const contentKey = (state: FileState): string | undefined => (state.kind === 'file' && state.bytes > 0 ? state.digest : undefined)
