import { absent, unknown } from '../../src/checkpoint/file-state.ts'
import { compareWalks, walkFolder, type Walk } from './folder-walk.ts'
import { afterInGit, lookAtTrees, unsettled } from './git-look.ts'
import { readStates } from './known-states.ts'
import { parentsOf, walkOptions, type Before, type Difference, type LookDeps } from './look.ts'
import { contentsOf, isMade, seenOf } from './seen.ts'

/** Undefined where a workspace may not be looked at: the root of the disk, the home folder or a folder above it. */
export async function lookBefore(deps: LookDeps): Promise<Before | undefined> {
  const before = await lookAround(deps)
  await deps.settle()
  return before
}

async function lookAround(deps: LookDeps): Promise<Before | undefined> {
  const atMs = deps.now()
  const trees = await lookAtTrees(deps)
  if (trees.length > 0) {
    const paths = trees.flatMap(({ tree, look }) => unsettled(look).map(path => `${tree.root}/${path}`))
    return { how: 'git', trees, walk: undefined, ...await readStates(deps, paths, atMs), atMs }
  }
  const walk = await walkFolder(deps.workspace, walkOptions(deps))
  if (walk.why === 'refused-root') return undefined
  const states = await readStates(deps, [...walk.files.keys()], atMs, walk)
  return { how: 'walk', trees: [], walk, ...states, isComplete: states.isComplete && walk.complete, atMs }
}

/** What is different from `before` now. Bytes of new states are handed to `keep`. */
export async function lookAfter(deps: LookDeps, before: Before): Promise<Difference> {
  const difference = await (before.walk === undefined ? afterInGit(deps, before) : afterInFolder(deps, before, before.walk))
  await deps.settle()
  return difference
}

async function afterInFolder(deps: LookDeps, before: Before, first: Walk): Promise<Difference> {
  const second = await walkFolder(deps.workspace, walkOptions(deps))
  // What an incomplete walk did not reach is not gone.
  const differences = compareWalks(first, second)
  const paths = [...differences.changed, ...differences.racy, ...differences.created, ...(second.complete ? differences.deleted : [])]
  const saved = contentsOf(before.known.values())
  const seen = await seenOf(deps, before, paths, {
    before: async (path, after) => before.known.get(path)
      ?? (first.complete && !first.files.has(path) && await isMade(path, after, before.atMs, saved) ? absent : unknown('not-saved')),
    absentFolders: async path => parentsOf(path, deps.workspace).filter(folder => first.complete && !first.folders.has(folder)),
    byGit: () => false,
  })
  return { seen, isComplete: second.complete, head: undefined }
}
