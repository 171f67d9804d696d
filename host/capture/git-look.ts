import { lstat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { absent, unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import { cleanStates } from './clean-states.ts'
import { fingerprintOf } from './fingerprint.ts'
import { walkFolder } from './folder-walk.ts'
import { changedIndexPaths, lookAtTree, type GitLook } from './git-index.ts'
import { ignoredPaths } from './git-objects.ts'
import { GitFailure } from './git-run.ts'
import type { GitTree } from './git-tree.ts'
import { parentsOf, walkOptions, type Before, type Difference, type LookDeps, type Seen, type TreeLook } from './look.ts'
import { contentsOf, equal, isMade, seenOf } from './seen.ts'

/** Paths whose bytes git's own objects do not tell. */
export const unsettled = (look: GitLook): readonly string[] => [...look.dirty, ...look.unmerged, ...look.unwatched, ...look.untracked]

/** False when a repository came or went, could not be looked at, or holds names that are not UTF-8: what changed there is not among the candidates. */
function isWhole(then: readonly TreeLook[], now: readonly TreeLook[]): boolean {
  const roots = (trees: readonly TreeLook[]) => trees.map(({ tree }) => tree.root).sort().join('\0')
  return roots(then) === roots(now) && [...then, ...now].every(({ look, hasUnseen }) => look.unreadableNames === 0 && !hasUnseen)
}

export async function afterInGit(deps: LookDeps, before: Before): Promise<Difference> {
  const now = await lookAtTrees(deps)
  const seen: Seen[] = []
  let head: Difference['head']
  for (const { tree, look: old, rules } of before.trees) {
    const found = now.find(other => other.tree.root === tree.root)
    const fresh = found?.look ?? await lookWithoutGit(deps, tree, old)
    const moved = old.head !== fresh.head || old.ref !== fresh.ref
    if (moved) head ??= { from: old.head, to: fresh.head, ref: fresh.ref }
    const byIndex = new Set(changedIndexPaths(old, fresh))
    const dirtyThen = new Set(unsettled(old))
    // A nested repository that is one no more shows its files in the outer one, which knows nothing of them.
    const inner = before.trees.flatMap(other => (other.tree.root.startsWith(`${tree.root}/`) ? [`${other.tree.root}/`] : []))
    const candidates = [...new Set([...dirtyThen, ...unsettled(fresh), ...byIndex])]
      .filter(path => !inner.some(folder => join(tree.root, path).startsWith(folder)))
    const clean = candidates.filter(path => old.index.has(path) && !dirtyThen.has(path))
    const blobs = await cleanStates(deps, tree, old, clean)
    const gitNow = await cleanStates(deps, tree, fresh, moved ? [...byIndex].filter(path => fresh.index.has(path)) : [])
    // A file that ignore rules hid before looks new once they change; it was never ours to delete.
    const rulesMoved = found?.rules !== rules || candidates.some(path => basename(path) === '.gitignore')
    const added = [...byIndex].filter(path => !old.index.has(path) && !dirtyThen.has(path))
    // So does one that was put into the index all the same.
    const ignored = await ignoredPaths(tree, added)
    const gitThen = await cleanStates(deps, tree, old, moved ? [...byIndex].filter(path => old.index.has(path) && dirtyThen.has(path)) : [])
    const nameOf = (path: string): string => path.slice(tree.root.length + 1)
    const saved = contentsOf([...before.known.values(), ...blobs.values()])
    seen.push(...await seenOf(deps, before, candidates.map(path => join(tree.root, path)), {
      before: async (path, after) => before.known.get(path) ?? blobs.get(path)
        ?? (before.isComplete && !rulesMoved && !ignored.has(nameOf(path)) && await isMade(path, after, before.atMs, saved) ? absent : unknown('not-saved')),
      absentFolders: path => youngFolders(path, deps.workspace, before.atMs),
      byGit: (path, was, after) => {
        const name = nameOf(path)
        // A change that was not committed is the user's; where git's move took it away, it is not explained by that.
        const wasAsCommitted = !dirtyThen.has(name) || (old.index.has(name) && isCheckedOut(gitThen.get(path), was))
        return moved && byIndex.has(name) && wasAsCommitted && isCheckedOut(gitNow.get(path), after)
      },
    }))
  }
  return { seen, isComplete: isWhole(before.trees, now), head }
}

/** A repository that is gone or broken now: whatever was written or removed since the look counts as a candidate. */
async function lookWithoutGit(deps: LookDeps, tree: GitTree, old: GitLook): Promise<GitLook> {
  const { files } = await walkFolder(deps.workspace, walkOptions(deps))
  const found = [...files.keys()].filter(path => path.startsWith(`${tree.root}/`)).map(path => path.slice(tree.root.length + 1))
  return { ...old, dirty: [...old.index.keys()], untracked: found.filter(path => !old.index.has(path)) }
}

/** The file is what git's new index says; without an entry there, git removed it. */
function isCheckedOut(indexed: FileState | undefined, now: FileState): boolean {
  if (indexed === undefined) return now.kind === 'absent'
  return indexed.kind === 'file' && now.kind === 'file' ? indexed.digest === now.digest : equal(indexed, now)
}

/** The work tree the workspace lies in and the repositories nested in it, at any depth; none where git cannot read the outer one. */
export async function lookAtTrees(deps: LookDeps): Promise<readonly TreeLook[]> {
  const trees: TreeLook[] = []
  const folders = [deps.workspace]
  for (const folder of folders) {
    const tree = await deps.treeOf(folder)
    // A submodule that is not checked out is an empty folder of the tree around it.
    if (tree !== undefined && trees.some(other => other.tree.root === tree.root)) continue
    const look = tree === undefined ? undefined : await unlessGitFails(lookAtTree(tree))
    if (tree === undefined || look === undefined) {
      if (trees.length === 0) return []
      trees[0] = { ...trees[0]!, hasUnseen: true }
      continue
    }
    const submodules = [...look.index].filter(([, { mode }]) => mode === '160000').map(([path]) => path)
    const inside = [...look.nested, ...submodules].map(path => join(tree.root, path))
    const room = MAX_TREES - folders.length
    folders.push(...inside.slice(0, Math.max(room, 0)))
    trees.push({ tree, look, rules: await rulesOf(deps, tree), hasUnseen: inside.length > room })
  }
  return trees
}

/** Git's gitignore(5): besides each `.gitignore`, the repository's own list and the one that the settings name. */
async function rulesOf(deps: LookDeps, { root, commonDir }: GitTree): Promise<string> {
  const above = deps.workspace.startsWith(`${root}/`) ? [root, ...parentsOf(deps.workspace, root)] : []
  const settings = process.env.XDG_CONFIG_HOME ?? join(homedir(), '.config')
  const files = [
    ...above.map(folder => join(folder, '.gitignore')), join(commonDir, 'info/exclude'), join(commonDir, 'config'),
    join(homedir(), '.gitconfig'), join(settings, 'git/config'), join(settings, 'git/ignore'),
  ]
  const prints = await Promise.all(files.map(file => fingerprintOf(file).catch(() => undefined)))
  return prints.map(print => (print === undefined ? '' : [print.ino, print.size, print.mtimeNs, print.ctimeNs].join(' '))).join('\n')
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

/** Git keeps no folders, so a folder counts as new when the disk says that it was made since. */
async function youngFolders(path: string, workspace: string, sinceMs: number): Promise<readonly string[]> {
  const young: string[] = []
  for (const folder of parentsOf(path, workspace)) {
    const stat = await lstat(folder).catch(() => undefined)
    // Without a birth time (0) a folder is never taken for ours.
    if (stat?.isDirectory() === true && stat.birthtimeMs >= sinceMs) young.push(folder)
  }
  return young
}
