import { isFolderRemoval, type PlanRow, type RestorePlan } from './plan.ts'

/** A plan for some of its paths. */
export interface Selected {
  readonly plan: RestorePlan
  /** How many rows with something to do or to say stay out. */
  readonly leftOut: number
}

/**
 * The restriction of a plan to the rows in `chosen`. Each row that is left has the decision it has in the whole plan,
 * but for one that cannot be carried out without a row that was not chosen: that one is skipped as `in-the-way`, because
 * nothing is touched that was not chosen. What is no content comes along: a folder that has to come back for a chosen
 * path, and folders that may go when they are empty after it.
 */
export function restrictPlan({ rows, folders }: RestorePlan, chosen: ReadonlySet<string>): Selected {
  const byPath = new Map(rows.map(row => [row.path, row]))
  const left = rows.filter(row => !chosen.has(row.path))
  const leftIn = new Set(left.filter(isThere).flatMap(row => parentsOf(row.path)))
  const isChosen = ({ path }: PlanRow): boolean => chosen.has(path)
  const isBlocked = (row: PlanRow): boolean =>
    parentsOf(row.path).some(folder => byPath.has(folder) && !chosen.has(folder) && standsInTheWay(byPath.get(folder)!))
    || (isWork(row) && row.current.kind === 'folder' && row.goal.kind !== 'folder' && leftIn.has(row.path))
  const kept = rows.filter(isChosen).map((row): PlanRow => (isBlocked(row) ? { ...row, decision: { kind: 'skip', skip: 'in-the-way' } } : row))
  const goes = kept.filter(row => row.goal.kind === 'absent' && ['delete', 'none'].includes(row.decision.kind))
  const fills = kept.filter(row => row.decision.kind === 'write' && row.current.kind === 'folder')
  const emptied = new Set(goes.flatMap(row => parentsOf(row.path)))
  const needed = new Set(kept.filter(row => isWork(row) && row.goal.kind !== 'absent').flatMap(row => parentsOf(row.path)))
  const comesAlong = (row: PlanRow): boolean => {
    if (isFolderRemoval(row)) return mayGo(row.path) && !leftIn.has(row.path)
    return row.goal.kind === 'folder' && row.decision.kind === 'recreate' && needed.has(row.path)
  }
  const mayGo = (folder: string): boolean => chosen.has(folder) || emptied.has(folder) || fills.some(({ path }) => folder.startsWith(`${path}/`))
  const selected = new Map([...kept, ...left.filter(comesAlong)].map(row => [row.path, row]))
  return {
    plan: { rows: rows.flatMap(({ path }) => selected.get(path) ?? []), folders: folders.filter(folder => mayGo(folder) && isRestOfNothing(folder)) },
    leftOut: left.filter(row => !selected.has(row.path) && !isFolderRemoval(row) && row.decision.kind !== 'none').length,
  }

  /** A folder with a row of its own goes with that row, or stays with it. */
  function isRestOfNothing(folder: string): boolean {
    const row = byPath.get(folder)
    return row === undefined || selected.has(row.path)
  }
}

/** The paths of `plan` that `names` stand for: each a row's path, or a folder with everything in it. `unknown`: names that are neither. */
export function choose({ rows }: Pick<RestorePlan, 'rows'>, names: readonly string[]): { readonly chosen: ReadonlySet<string>; readonly unknown: readonly string[] } {
  const chosen = new Set<string>()
  const unknown: string[] = []
  for (const name of names) {
    const found = rows.filter(({ path }) => path === name || path.startsWith(`${name === '/' ? '' : name}/`))
    if (found.length === 0) unknown.push(name)
    for (const { path } of found) chosen.add(path)
  }
  return { chosen, unknown }
}

const isWork = ({ decision }: PlanRow): boolean => ['write', 'recreate', 'delete'].includes(decision.kind)

const isThere = ({ current }: PlanRow): boolean => current.kind !== 'absent'

/** A file or a link that goes in the whole plan, with what is to come behind it. */
const standsInTheWay = (row: PlanRow): boolean => isWork(row) && (row.current.kind === 'file' || row.current.kind === 'link')

const parentsOf = (path: string): readonly string[] => [...path.matchAll(/\//g)].slice(1).map(({ index }) => path.slice(0, index))
