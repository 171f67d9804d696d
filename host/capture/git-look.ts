import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { absent, unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import { cleanStates, withModeOf } from './clean-states.ts'
import { changedFolders, emptyFolderAt, factsOfLook, madeFolders, type FolderFacts } from './folder-changes.ts'
import { lookAtFolders, makeFolderMemory, type FolderLook, type FolderMemory } from './folder-look.ts'
import { walkFolder } from './folder-walk.ts'
import { changedIndexPaths, lookAtTree, type GitLook } from './git-index.ts'
import { committedBetween, ignoredPaths } from './git-objects.ts'
import { GitFailure } from './git-run.ts'
import type { GitTree } from './git-tree.ts'
import { parentsOf, walkOptions, type Before, type Difference, type LookDeps, type Seen, type TreeLook } from './look.ts'
import { stateOf } from './known-states.ts'
import { contentsOf, equal, isMade, seenOf } from './seen.ts'
import { lookNow, versionOf } from './stat-now.ts'
import { isAsIndexed } from './tracked-modes.ts'

/** Paths whose bytes git's own objects do not tell. */
export const unsettled = (look: GitLook): readonly string[] => [...look.dirty, ...look.unmerged, ...look.unwatched, ...look.untracked]

/** Tracked files that are as git has them, in another form. */
export function unlikeTheirBlobs(look: GitLook): Iterable<string> {
  if (look.converted.size === 0) return look.converted
  const read = new Set(unsettled(look))
  return [...look.converted].filter(path => !read.has(path))
}

/** False when a repository came or went, could not be looked at, or holds names that are not UTF-8: what changed there is not among the candidates. */
function isWhole(then: readonly TreeLook[], now: readonly TreeLook[]): boolean {
  const roots = (trees: readonly TreeLook[]) => trees.map(({ tree }) => tree.root).sort().join('\0')
  return roots(then) === roots(now) && [...then, ...now].every(({ look, hasUnseen }) => look.unreadableNames === 0 && !hasUnseen)
}

export async function afterInGit(deps: LookDeps, before: Before): Promise<Difference> {
  const now = await lookAtTrees(deps, true)
  const seen: Seen[] = []
  let head: Difference['head']
  for (const then of before.trees) {
    const found = now.find(other => other.tree.root === then.tree.root)
    const fresh = found?.look ?? await lookWithoutGit(deps, then.tree, then.look)
    if (hasMoved(then.look, fresh)) head ??= { from: then.look.head, to: fresh.head, fromRef: then.look.ref, ref: fresh.ref }
    const files = await afterInTree(deps, before, then, found, fresh)
    const folders = found === undefined ? [] : changedFolders({
      before: factsOfLook(then.folders), after: factsOfLook(found.folders), seen: files, sinceMs: before.atMs,
      parentsOf: path => parentsOf(path, deps.workspace),
    })
    seen.push(...files, ...folders)
  }
  return { seen, isComplete: isWhole(before.trees, now), head }
}

const hasMoved = (old: GitLook, fresh: GitLook): boolean => old.head !== fresh.head || old.ref !== fresh.ref

/** Files of one tree that are not as they were. `found` is undefined when the tree is gone or broken now. */
async function afterInTree(deps: LookDeps, before: Before, { tree, look: old, rules, folders }: TreeLook, found: TreeLook | undefined, fresh: GitLook): Promise<Seen[]> {
  const moved = hasMoved(old, fresh)
  const byIndex = new Set(changedIndexPaths(old, fresh))
  const dirtyThen = new Set(unsettled(old))
  // A nested repository that is one no more shows its files in the outer one, which knows nothing of them.
  const inner = before.trees.flatMap(other => (other.tree.root.startsWith(`${tree.root}/`) ? [`${other.tree.root}/`] : []))
  const candidates = [...new Set([...dirtyThen, ...unsettled(fresh), ...byIndex])]
    .filter(path => inner.length === 0 || !inner.some(folder => join(tree.root, path).startsWith(folder)))
  const blobs = await cleanStates(deps, tree, old, candidates.filter(path =>
    old.index.has(path) && !dirtyThen.has(path) && !before.known.has(`${tree.root}/${path}`)))
  // A file that ignore rules hid before looks new once they change; it was never ours to delete.
  const rulesMoved = found?.rules !== rules || await someMoved(deps, candidates.filter(path => basename(path) === '.gitignore')
    .map(path => `${tree.root}/${path}`), path => before.known.get(path) ?? blobs.get(path))
  // So does one that was put into the index all the same.
  const ignored = await ignoredPaths(tree, [...byIndex].filter(path => !old.index.has(path) && !dirtyThen.has(path)))
  const isExplained = moved ? await explainedByGit(deps, tree, old, fresh, byIndex, dirtyThen) : () => false
  const nameOf = (path: string): string => path.slice(tree.root.length + 1)
  const saved = contentsOf([...before.known.values(), ...blobs.values()])
  const facts = factsOfLook(folders)

  return seenOf(deps, before, candidates.map(path => `${tree.root}/${path}`), {
    before: async (path, after) => before.known.get(path) ?? blobs.get(path) ?? otherKindAt(path, facts)
      ?? (before.knowsNew && !rulesMoved && !ignored.has(nameOf(path)) && await isMade(path, after, before.atMs, saved) ? absent : unknown('not-saved')),
    absentFolders: path => madeFolders(facts, parentsOf(path, deps.workspace), before.atMs),
    byGit: (path, was, after) => isExplained(nameOf(path), was, after),
    isUntouched: path => isUntouched(tree, old, nameOf(path)),
  })
}

/** False when each path is as it was; one that was not committed is listed although nothing happened to it. */
async function someMoved(deps: LookDeps, paths: readonly string[], stateThen: (path: string) => FileState | undefined): Promise<boolean> {
  for (const path of paths) {
    const then = stateThen(path)
    const now = await stateOf(deps, path)
    if (then === undefined || then.kind === 'unknown' || !equal(withModeOf(then, now), now)) return true
  }
  return false
}

/** What git does not list, or a file of another kind in its place. */
const otherKindAt = (path: string, facts: FolderFacts): FileState | undefined =>
  facts.specials.has(path) ? unknown('special') : emptyFolderAt(path, facts)

/** Tells which changes are git's own move of HEAD. */
async function explainedByGit(deps: LookDeps, tree: GitTree, old: GitLook, fresh: GitLook, byIndex: ReadonlySet<string>, dirtyThen: ReadonlySet<string>) {
  const commits = await committedBetween(tree, old.head, fresh.head)
  const gitNow = await cleanStates(deps, tree, fresh, [...byIndex].filter(path => fresh.index.has(path)))
  const gitThen = await cleanStates(deps, tree, old, [...byIndex].filter(path => old.index.has(path) && dirtyThen.has(path)))
  return (name: string, was: FileState, after: FileState): boolean => {
    if (!byIndex.has(name) || !commits.has(name)) return false
    const path = `${tree.root}/${name}`
    // A change that was staged or not even that is the user's; where git's move took it away, it is not explained by that.
    const wasStaged = old.index.get(name)?.oid !== commits.get(name)
    const wasAsCommitted = !wasStaged && (!dirtyThen.has(name) || (old.index.has(name) && isCheckedOut(gitThen.get(path), was)))
    // The blob of a file in another form tells nothing; git's note of the stat data tells that it wrote it.
    const isAsNoted = fresh.converted.has(name) && isUntouched(tree, fresh, name)
    return wasAsCommitted && (isAsNoted || isCheckedOut(gitNow.get(path), after))
  }
}

/** The file is what git's new index says; without an entry there, git removed it. */
function isCheckedOut(indexed: FileState | undefined, now: FileState): boolean {
  if (indexed === undefined) return now.kind === 'absent'
  return indexed.kind === 'file' && now.kind === 'file' ? indexed.digest === now.digest : equal(indexed, now)
}

/** True when the file has the very stat data that git noted. */
function isUntouched({ root }: GitTree, { index }: GitLook, path: string): boolean {
  const entry = index.get(path)
  const stat = entry === undefined ? undefined : lookNow(`${root}/${path}`)
  return entry !== undefined && stat !== undefined && isAsIndexed(stat, entry)
}

/** A repository that is gone or broken now: whatever was written or removed since the look counts as a candidate. */
async function lookWithoutGit(deps: LookDeps, tree: GitTree, old: GitLook): Promise<GitLook> {
  const { files } = await walkFolder(deps.workspace, walkOptions(deps))
  const found = [...files.keys()].filter(path => path.startsWith(`${tree.root}/`)).map(path => path.slice(tree.root.length + 1))
  return { ...old, dirty: [...old.index.keys()].filter(path => !isUntouched(tree, old, path)), untracked: found.filter(path => !old.index.has(path)) }
}

/** The work tree the workspace lies in and the repositories nested in it, at any depth; none where git cannot read the outer one. */
export async function lookAtTrees(deps: LookDeps, isAfter: boolean): Promise<readonly TreeLook[]> {
  const trees: TreeLook[] = []
  const places = [deps.workspace]
  for (const folder of places) {
    const tree = await deps.treeOf(folder)
    // A submodule that is not checked out is an empty folder of the tree around it.
    if (tree !== undefined && trees.some(other => other.tree.root === tree.root)) continue
    const look = tree === undefined ? undefined : await unlessGitFails(lookAtTree(tree, isAfter))
    if (tree === undefined || look === undefined) {
      if (trees.length === 0) return []
      trees[0] = { ...trees[0]!, hasUnseen: true }
      continue
    }
    const inside = [...look.nested, ...look.submodules].map(path => join(tree.root, path))
    const room = MAX_TREES - places.length
    places.push(...inside.slice(0, Math.max(room, 0)))
    const rules = rulesOf(deps, tree)
    trees.push({ tree, look, folders: await foldersOf(deps, tree, look, rules), rules, hasUnseen: inside.length > room })
  }
  return trees
}

/** What was learned of a tree's folders, and of an index which folders its paths are in. */
const folderMemories = new WeakMap<GitTree, FolderMemory>()
const indexFolders = new WeakMap<GitLook['index'], ReadonlySet<string>>()

function foldersOf(deps: LookDeps, tree: GitTree, look: GitLook, rules: string): Promise<FolderLook> {
  const memory = folderMemories.get(tree) ?? makeFolderMemory()
  folderMemories.set(tree, memory)
  const tracked = indexFolders.get(look.index) ?? holdersOf(look.index.keys())
  indexFolders.set(look.index, tracked)
  const untracked = holdersOf(look.untracked)
  const nameOf = (path: string): string => path.slice(tree.root.length + 1)
  return lookAtFolders({
    top: isAtOrBelow(deps.workspace, tree.root) ? deps.workspace : tree.root, memory, rules,
    isKnown: folder => tracked.has(nameOf(folder)) || untracked.has(nameOf(folder)),
    ignoredOf: async (folders) => {
      const ignored = await ignoredPaths(tree, folders.map(nameOf))
      return new Set([...ignored].map(path => join(tree.root, path)))
    },
    keepOut: [deps.dshHome], maxFolders: deps.budget.maxFiles, maxMs: deps.budget.maxMs,
  })
}

/** Every folder on the way to one of `paths`. */
function holdersOf(paths: Iterable<string>): ReadonlySet<string> {
  const holders = new Set<string>()
  for (const path of paths) {
    for (let at = dirname(path); at !== '.' && !holders.has(at); at = dirname(at)) holders.add(at)
  }
  return holders
}

const isAtOrBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** Git's gitignore(5): besides each `.gitignore`, the repository's own list and the one that the settings name. */
function rulesOf(deps: LookDeps, { root, commonDir }: GitTree): string {
  const above = deps.workspace.startsWith(`${root}/`) ? [root, ...parentsOf(deps.workspace, root)] : []
  const settings = process.env.XDG_CONFIG_HOME ?? join(homedir(), '.config')
  const files = [
    ...above.map(folder => join(folder, '.gitignore')), join(commonDir, 'info/exclude'), join(commonDir, 'config'),
    join(homedir(), '.gitconfig'), join(settings, 'git/config'), join(settings, 'git/ignore'),
  ]
  return files.map(versionOf).join('\n')
}

/** A repository that git cannot read is none: the caller looks at the folder, or says that it could not. */
async function unlessGitFails(look: Promise<GitLook>): Promise<GitLook | undefined> {
  try {
    return await look
  } catch (error) {
    if (error instanceof GitFailure) return undefined
    throw error
  }
}

/** Repositories of one workspace that are looked at; each costs some git processes around every command. */
const MAX_TREES = 20
