import { resolve } from 'node:path'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { isFolderRemoval, type PlanRow } from '../../src/restore/plan.ts'
import { choose, restrictPlan, type Selected } from '../../src/restore/selection.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { shownPath, type Draft } from './draft.ts'

/** Names given in a refusal. */
const MAX_NAMES = 8

/** Which paths take part. `paths`: rows of the plan, by their absolute path. `words`: as a person types them. */
export type Selection = { readonly kind: 'paths'; readonly paths: readonly string[] } | { readonly kind: 'words'; readonly words: readonly string[] }

/**
 * The part of a draft's plan that is to be carried out. A word is a path of the plan or a folder with everything of the
 * plan that is in it, absolute or relative to the workspace.
 * Failure `unknown-selection`: nobody is to believe that a file was put back because its name was mistyped.
 */
export function selectRows(draft: Pick<Draft, 'plan'>, selection: Selection | undefined, workspace: string | undefined): Result<Selected, Failure> {
  const { plan } = draft
  if (selection === undefined) return ok({ plan, leftOut: 0 })
  const { chosen, unknown } = selection.kind === 'words'
    ? choose(plan, selection.words.map(word => resolve(workspace ?? '/', word)))
    : exactly(plan.rows, selection.paths)
  if (unknown.length > 0) {
    const there = plan.rows.filter(row => !isFolderRemoval(row)).map(({ path }) => path)
    return fail(failure('unknown-selection', { names: named(unknown, workspace), there: named(there, workspace), count: there.length }))
  }
  return ok(restrictPlan(plan, chosen))
}

function exactly(rows: readonly PlanRow[], paths: readonly string[]): ReturnType<typeof choose> {
  const known = new Set(rows.map(({ path }) => path))
  return { chosen: new Set(paths), unknown: paths.filter(path => !known.has(path)) }
}

function named(paths: readonly string[], workspace: string | undefined): string {
  const names = paths.slice(0, MAX_NAMES).map(path => shownPath(path, workspace))
  return [...names, ...(paths.length > MAX_NAMES ? ['…'] : [])].join(', ') || '—'
}
