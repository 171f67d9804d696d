import { isUtf8 } from 'node:buffer'
import { convertedPaths, learnConfig } from './conversions.ts'
import type { IndexEntry } from './git-index-copy.ts'
import { headOf } from './git-head.ts'
import { answer } from './git-run.ts'
import { forget, type GitTree } from './git-tree.ts'
import { trackedModes } from './tracked-modes.ts'

export interface GitLook {
  /** Undefined for a branch without a commit. */
  readonly head: string | undefined
  /** Full name; undefined when detached. */
  readonly ref: string | undefined
  /** A mode 160000 is a submodule: what is inside it is another tree's and is not looked at here. */
  readonly index: ReadonlyMap<string, IndexEntry>
  /** Permission bits of files that are as the index has them; some may be missing. */
  readonly modes: ReadonlyMap<string, number>
  /** Tracked paths whose blob may not be the file's bytes. */
  readonly converted: ReadonlySet<string>
  readonly submodules: readonly string[]
  readonly unmerged: readonly string[]
  /** Tracked paths whose file may differ from the index: all that do are here, some here may be equal. */
  readonly dirty: readonly string[]
  /** Tracked paths that git was told not to look at (sparse checkout, assume-unchanged); any of them may differ. */
  readonly unwatched: readonly string[]
  readonly untracked: readonly string[]
  /** Folders of repositories that this tree does not track, without the last `/`. */
  readonly nested: readonly string[]
  /** Names that are not UTF-8; those paths are nowhere else. */
  readonly unreadableNames: number
}

/** With more stale stat data than this a refresh of the copy is cheaper than reading the files ourselves in every look. */
const MANY_STALE = 1_000

/**
 * Changes nothing in the work tree or its `.git`. Rejects with `GitFailure` when git does not answer. `isAfter`: a
 * command has just run, so that many stale stat data are many files it touched, each to be looked at by the caller.
 */
export function lookAtTree(tree: GitTree, isAfter = false): Promise<GitLook> {
  const look = tree.state.last.then(() => lookOnce(tree, isAfter))
  // The failure is told to the caller of that look; the tree is opened anew for the next one.
  tree.state.last = look.catch(() => {
    forget(tree)
    return tree.copy.remove()
  })
  return look
}

/** Paths whose entry in the index differs: a switch of branches leaves nothing dirty. */
export function changedIndexPaths(before: GitLook, after: GitLook): readonly string[] {
  const changed = new Set<string>()
  if (before.index !== after.index) {
    for (const [path, entry] of before.index) if (!isSame(entry, after.index.get(path))) changed.add(path)
    for (const path of after.index.keys()) if (!before.index.has(path)) changed.add(path)
  }
  for (const path of before.unmerged) if (!after.unmerged.includes(path)) changed.add(path)
  for (const path of after.unmerged) if (!before.unmerged.includes(path)) changed.add(path)
  return [...changed]
}

async function lookOnce(tree: GitTree, isAfter: boolean): Promise<GitLook> {
  const { view: reading } = await tree.copy.current()
  // We look at modes while git looks at the rest: a file that changes in between is dirty for git.
  const [firstView, firstModes, head, untracked, firstDirty] = await Promise.all([
    reading, reading.then(entries => trackedModes(tree, entries)), headOf(tree), listUntracked(tree), statDirty(tree), learnConfig(tree),
  ])
  let view = firstView
  let dirty = firstDirty
  const nowSec = Math.floor(Date.now() / 1000)
  const stale = dirty.filter(path => !tree.state.settled.has(path)).length
    + [...view.racy.values()].filter(({ mtimeSec }) => mtimeSec < nowSec).length
  const isRefreshed = !isAfter && stale > MANY_STALE && await tree.copy.refresh()
  if (isRefreshed) {
    view = await (await tree.copy.current()).view
    dirty = await statDirty(tree)
    tree.state.settled = new Set(dirty)
  }

  const unmerged = new Set(view.unmerged)
  const { modes, touched } = isRefreshed ? await trackedModes(tree, view) : firstModes
  const converted = await convertedPaths(tree, view, untracked.names)
  return {
    ...head,
    index: view.entries, modes, converted, submodules: view.submodules, unmerged: view.unmerged, unwatched: view.unwatched,
    dirty: [...new Set([...dirty, ...view.racy.keys(), ...touched])].filter(path => !unmerged.has(path)),
    untracked: untracked.names.filter(name => !name.endsWith('/')),
    nested: untracked.names.filter(name => name.endsWith('/')).map(name => name.slice(0, -1)),
    unreadableNames: view.unreadableNames + untracked.unreadable,
  }
}

async function listUntracked({ ask, copy, pathspec }: GitTree): Promise<Names> {
  return namesOf(await answer(ask(['--literal-pathspecs', 'ls-files', '--others', '--exclude-standard', '-z', ...pathspec], { indexFile: copy.file })))
}

/** By stat data only: see the note on racy entries in git-index-copy.ts. */
async function statDirty({ ask, copy, pathspec }: GitTree): Promise<string[]> {
  const args = ['--literal-pathspecs', 'diff-files', '--raw', '-z', '--no-renames', '--ignore-submodules=all', ...pathspec]
  const output = await answer(ask(args, { indexFile: copy.file }))
  // Each path follows its own field of modes and ids, which starts with a colon; a path may start with one too.
  return namesOf(output, 2).names
}

interface Names { readonly names: string[], readonly unreadable: number }

/** Every `step`-th of the fields that end with NUL. */
function namesOf(output: Buffer, step: 1 | 2 = 1): Names {
  if (isUtf8(output)) return { names: output.toString().split('\0').slice(0, -1).filter((_, i) => i % step === step - 1), unreadable: 0 }
  const names: string[] = []
  let unreadable = 0
  for (let at = 0, i = 0; at < output.length; i += 1) {
    const end = output.indexOf(0, at)
    if (end < 0) break
    const name = output.subarray(at, end)
    at = end + 1
    if (i % step !== step - 1) continue
    if (isUtf8(name)) names.push(name.toString())
    else unreadable += 1
  }
  return { names, unreadable }
}

const isSame = (a: IndexEntry, b: IndexEntry | undefined): boolean => b !== undefined && a.mode === b.mode && a.oid === b.oid
