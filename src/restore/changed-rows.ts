import { sameState } from '../checkpoint/file-state.ts'
import type { Preview, PreviewRow } from '../protocol/requests.ts'

type Rows = Pick<Preview, 'rows'>

/**
 * Paths of rows in `now` that are not what a person saw in `seen`: new ones, and those that would be done otherwise.
 * A page marks them when a plan was refused as stale. Rows that are gone from `now` are not among them.
 */
export function changedRows(seen: Rows, now: Rows): ReadonlySet<string> {
  const before = new Map(seen.rows.map(row => [row.path, row]))
  return new Set(now.rows.filter(row => !isSame(before.get(row.path), row)).map(({ path }) => path))
}

const isSame = (before: PreviewRow | undefined, now: PreviewRow): boolean =>
  before !== undefined && before.action === now.action && before.conflict === now.conflict && before.skip === now.skip
  && isSameOrUnknown(before.current, now.current) && isSameOrUnknown(before.goal, now.goal)

/** Two looks that could not tell anything are the same to a reader. */
const isSameOrUnknown = (a: PreviewRow['current'], b: PreviewRow['current']): boolean =>
  sameState(a, b) || (a.kind === 'unknown' && b.kind === 'unknown' && a.reason === b.reason)
