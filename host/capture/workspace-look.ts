import { absent, unknown } from '../../src/checkpoint/file-state.ts'
import { sameFingerprint } from './fingerprint.ts'
import { changedFolders, emptyFolderAt, factsOfWalk } from './folder-changes.ts'
import { compareWalks, walkFolder, type Walk } from './folder-walk.ts'
import type { GitLook } from './git-index.ts'
import { afterInGit, lookAtTrees, unlikeTheirBlobs, unsettled } from './git-look.ts'
import { readStates } from './known-states.ts'
import { parentsOf, walkOptions, type Before, type Difference, type LookDeps, type Seen } from './look.ts'
import { contentsOf, isMade, seenOf } from './seen.ts'

/** Undefined where a workspace may not be looked at: the root of the disk, the home folder or a folder above it. */
export async function lookBefore(deps: LookDeps): Promise<Before | undefined> {
  const before = await lookAround(deps)
  await deps.settle()
  return before
}

async function lookAround(deps: LookDeps): Promise<Before | undefined> {
  const atMs = deps.now()
  const trees = await lookAtTrees(deps, false)
  if (trees.length > 0) {
    const absolute = (pathsOf: (look: GitLook) => Iterable<string>): string[] =>
      trees.flatMap(({ tree, look }) => [...pathsOf(look)].map(path => `${tree.root}/${path}`))
    const states = await readStates(deps, absolute(unsettled), absolute(unlikeTheirBlobs), atMs)
    return { how: 'git', trees, walk: undefined, ...states, atMs }
  }
  const walk = await walkFolder(deps.workspace, walkOptions(deps))
  if (walk.why === 'refused-root') return undefined
  const states = await readStates(deps, [...walk.files.keys()], [], atMs, walk)
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
  const [factsThen, factsNow] = [factsOfWalk(first), factsOfWalk(second)]
  // What an incomplete walk did not reach is not gone.
  const differences = compareWalks(first, second)
  const paths = [...differences.changed, ...differences.racy, ...differences.created, ...(second.complete ? differences.deleted : [])]
  const saved = contentsOf(before.known.values())
  const seen = await seenOf(deps, before, paths, {
    before: async (path, after) => before.known.get(path) ?? emptyFolderAt(path, factsThen)
      ?? (first.complete && !first.files.has(path) && await isMade(path, after, before.atMs, saved) ? absent : unknown('not-saved')),
    absentFolders: path => parentsOf(path, deps.workspace).filter(folder => first.complete && !first.folders.has(folder)),
    byGit: () => false,
  })
  const folders = changedFolders({
    before: factsThen, after: factsNow, seen, sinceMs: before.atMs, parentsOf: path => parentsOf(path, deps.workspace),
  })
  return { seen: [...seen, ...folders, ...changedMounts(first, second)], isComplete: second.complete, head: undefined }
}

/** What is on another file system is not looked into; that its top is another one than before tells of a change there. */
export const changedMounts = (first: Walk, second: Walk): Seen[] => [...first.mounts].filter(([path, print]) => {
  const now = second.mounts.get(path)
  return now === undefined || !sameFingerprint(print, now)
}).map(([path]) => ({ path, before: unknown('not-saved'), after: unknown('not-saved'), absentFolders: [], byGit: false }))
