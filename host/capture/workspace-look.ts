import { lstat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { absent, unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import type { Digest } from '../../src/ids.ts'
import { digestOf } from '../digest.ts'
import type { BlobBatch } from './blob-batch.ts'
import { observePath } from './observe.ts'
import { fingerprintOf, sameFingerprint, type Fingerprint, type StateCache } from './fingerprint.ts'
import { defaultIgnore } from '../../src/checkpoint/ignore-list.ts'
import { compareWalks, walkFolder, type Walk } from './folder-walk.ts'
import { GitFailure } from './git-run.ts'
import { changedIndexPaths, convertedPaths, ignoredPaths, lookAtTree, readBlobs, type GitLook, type GitTree } from './git-index.ts'

/** Limits of one look. Bytes count what has to be read because it was not seen before. */
export interface LookBudget {
  readonly maxFiles: number
  readonly maxNewBytes: number
  readonly maxMs: number
}

export interface LookDeps extends BlobBatch {
  /** Real path of the workspace. */
  readonly workspace: string
  readonly cache: StateCache
  readonly maxFileBytes: number
  readonly budget: LookBudget
  /** The git work tree a folder lies in; undefined for none, or one that git cannot read. */
  treeOf(folder: string): Promise<GitTree | undefined>
  /** Absolute; never looked into. */
  readonly dshHome: string
  now(): number
}

interface TreeLook {
  readonly tree: GitTree
  readonly look: GitLook
  /** Versions of the files that say what git ignores, apart from those that are listed themselves. */
  readonly rules: string
  /** A repository inside it could not be looked at, or there were too many: what changes there is not seen. */
  readonly hasUnseen: boolean
}

/** The workspace before a command. Every state in `known` has its bytes in the store. */
export interface Before {
  readonly how: 'git' | 'walk'
  readonly trees: readonly TreeLook[]
  readonly walk: Walk | undefined
  /** Files that no git blob stands for, by absolute path. */
  readonly known: ReadonlyMap<string, FileState>
  /** Files over the size limit, of which nothing else tells whether they changed. */
  readonly large: ReadonlyMap<string, Fingerprint>
  /** False when a budget ran out: a path that is not known may have been there. */
  readonly isComplete: boolean
  readonly atMs: number
}

/** A path that is not as it was. */
export interface Seen {
  readonly path: string
  readonly before: FileState
  readonly after: FileState
  readonly absentFolders: readonly string[]
  /** Git's own move of HEAD explains it. */
  readonly byGit: boolean
}

export interface Difference {
  readonly seen: readonly Seen[]
  /** False when the workspace could not be looked at whole: something new may be missing in `seen`. */
  readonly isComplete: boolean
  readonly head: { readonly from: string | undefined; readonly to: string | undefined; readonly ref: string | undefined } | undefined
}

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
    const paths = trees.flatMap(({ tree, look }) => unsettled(look).map(path => join(tree.root, path)))
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

/** False when a repository came or went, could not be looked at, or holds names that are not UTF-8: what changed there is not among the candidates. */
function isWhole(then: readonly TreeLook[], now: readonly TreeLook[]): boolean {
  const roots = (trees: readonly TreeLook[]) => trees.map(({ tree }) => tree.root).sort().join('\0')
  return roots(then) === roots(now) && [...then, ...now].every(({ look, hasUnseen }) => look.unreadableNames === 0 && !hasUnseen)
}

async function afterInGit(deps: LookDeps, before: Before): Promise<Difference> {
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

/** Paths whose bytes git's own objects do not tell. */
const unsettled = (look: GitLook): readonly string[] => [...look.dirty, ...look.unmerged, ...look.unwatched, ...look.untracked]

interface Ask {
  before(path: string, after: FileState): FileState | Promise<FileState>
  absentFolders(path: string): Promise<readonly string[]>
  byGit(path: string, before: FileState, after: FileState): boolean
}

async function seenOf(deps: LookDeps, { atMs, large }: Before, paths: readonly string[], ask: Ask): Promise<Seen[]> {
  const seen: Seen[] = []
  for (const path of paths) {
    if (isOurs(deps, path)) continue
    const after = await stateOf(deps, path)
    const was = withModeOf(await ask.before(path, after), after)
    const isSame = isTooLarge(was) && isTooLarge(after) ? await isUntouched(path, large.get(path)) : equal(was, after)
    // Nobody saved it, and nobody touched it either: a change of the index or of ignore rules alone.
    if (isSame || (isNotSaved(was) && await isOlderThan(path, atMs))) continue
    const absentFolders = was.kind === 'absent' ? await ask.absentFolders(path) : []
    seen.push({ path, before: was, after, absentFolders, byGit: ask.byGit(path, was, after) })
  }
  return seen
}

const isTooLarge = (state: FileState): boolean => state.kind === 'unknown' && state.reason === 'too-large'
const isNotSaved = (state: FileState): boolean => state.kind === 'unknown' && state.reason === 'not-saved'

/** Without a first look the file was as git had it, and is a candidate now because it is not. */
async function isUntouched(path: string, then: Fingerprint | undefined): Promise<boolean> {
  const now = await fingerprintOf(path).catch(() => undefined)
  return then !== undefined && now !== undefined && sameFingerprint(then, now)
}

/** Every write, rename and change of a mode moves the ctime, and no program can set it. */
async function isOlderThan(path: string, sinceMs: number): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined)
  return stat !== undefined && stat.ctimeMs < sinceMs - COARSE_CLOCK_MS
}

/** Two unknown states tell of no change; one of them does. */
function equal(a: FileState, b: FileState): boolean {
  if (a.kind === 'unknown' || b.kind === 'unknown') return a.kind === b.kind
  return JSON.stringify(a) === JSON.stringify(b)
}

/** Git keeps only whether a file is executable: the other bits of a state from a blob (`mode` over 0o7777) are those of the file now. */
function withModeOf(state: FileState, after: FileState): FileState {
  if (state.kind !== 'file' || state.mode <= 0o7777) return state
  const executable = (state.mode & 0o111) !== 0
  if (after.kind !== 'file') return { ...state, mode: (executable ? 0o777 : 0o666) & ~process.umask() }
  const bits = after.mode & ~0o111
  return { ...state, mode: executable ? bits | ((bits & 0o444) >> 2) : bits }
}

/** The file is what git's new index says; without an entry there, git removed it. */
function isCheckedOut(indexed: FileState | undefined, now: FileState): boolean {
  if (indexed === undefined) return now.kind === 'absent'
  return indexed.kind === 'file' && now.kind === 'file' ? indexed.digest === now.digest : equal(indexed, now)
}

/** Marks a mode as git's, for `withModeOf`. */
const GIT_MODE = 0o100000

/** States of tracked files that were as the index has them, out of git's own objects; copied into our store at once. */
async function cleanStates(deps: LookDeps, tree: GitTree, look: GitLook, paths: readonly string[]): Promise<ReadonlyMap<string, FileState>> {
  const states = new Map<string, FileState>()
  const files = paths.filter(path => look.index.get(path)!.mode !== '160000')
  if (files.length === 0) return states
  const { converted, blobs } = await objectsOf(tree, look, files)
  for (const path of files) {
    const { mode, oid } = look.index.get(path)!
    const bytes = converted.has(path) ? undefined : blobs.get(oid)
    states.set(join(tree.root, path), bytes === undefined ? unknown('not-saved') : await blobState(deps, mode, bytes))
  }
  return states
}

/** A repository that is gone or broken now tells nothing: none of its objects can be had. */
async function objectsOf(tree: GitTree, look: GitLook, files: readonly string[]) {
  try {
    const converted = await convertedPaths(tree, look, files)
    return { converted, blobs: await readBlobs(tree, files.filter(path => !converted.has(path)).map(path => look.index.get(path)!.oid)) }
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    return { converted: new Set(files), blobs: new Map<string, Buffer>() }
  }
}

async function blobState(deps: LookDeps, mode: string, bytes: Buffer): Promise<FileState> {
  if (mode === '120000') return { kind: 'link', target: bytes.toString() }
  if (bytes.length > deps.maxFileBytes) return unknown('too-large')
  const digest = digestOf(bytes)
  await deps.keep(digest, bytes)
  return { kind: 'file', digest, bytes: bytes.length, mode: GIT_MODE | (mode === '100755' ? 0o755 : 0o644) }
}

/** Reads what the cache does not know or the store does not have, within the budget. */
async function readStates(deps: LookDeps, paths: readonly string[], fromMs: number, walk?: Walk): Promise<Pick<Before, 'known' | 'large' | 'isComplete'>> {
  const known = new Map<string, FileState>()
  const large = new Map<string, Fingerprint>()
  let newBytes = 0
  let isComplete = paths.length <= deps.budget.maxFiles
  for (const path of paths.slice(0, deps.budget.maxFiles)) {
    if (isOurs(deps, path)) continue
    if (newBytes > deps.budget.maxNewBytes || deps.now() - fromMs > deps.budget.maxMs) {
      isComplete = false
      break
    }
    // The walk has just taken the fingerprint: a state known under it needs no look of its own.
    const seen = walk?.files.get(path)
    const remembered = seen === undefined ? undefined : deps.cache.known(path, seen)
    const isKept = remembered !== undefined && (remembered.kind !== 'file' || await deps.has(remembered.digest))
    const state = isKept ? remembered : await stateOf(deps, path, (bytes) => { newBytes += bytes })
    known.set(path, state)
    const print = isTooLarge(state) ? seen ?? await fingerprintOf(path).catch(() => undefined) : undefined
    if (print !== undefined) large.set(path, print)
  }
  return { known, large, isComplete }
}

async function stateOf(deps: LookDeps, path: string, onRead: (bytes: number) => void = () => {}): Promise<FileState> {
  const keep = async (digest: Digest, bytes: Uint8Array): Promise<void> => {
    onRead(bytes.length)
    await deps.keep(digest, bytes)
  }
  const state = await deps.cache.stateOf(path, { maxBytes: deps.maxFileBytes, keep })
  if (state.kind !== 'file' || await deps.has(state.digest)) return state
  // Known from another session's look: this session's store does not have the bytes yet.
  const found = await observePath(path, { maxBytes: deps.maxFileBytes })
  if (found.state.kind === 'file' && found.bytes !== undefined) await keep(found.state.digest, found.bytes)
  return found.state
}

/** The work tree the workspace lies in and the repositories nested in it, at any depth; none where git cannot read the outer one. */
async function lookAtTrees(deps: LookDeps): Promise<readonly TreeLook[]> {
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

const isOurs = (deps: LookDeps, path: string): boolean => path === deps.dshHome || path.startsWith(`${deps.dshHome}/`)

/** Parents of a path inside the workspace, outermost first. */
function parentsOf(path: string, workspace: string): string[] {
  const parents: string[] = []
  for (let folder = dirname(path); folder.startsWith(`${workspace}/`); folder = dirname(folder)) parents.unshift(folder)
  return parents
}

const contentOf = (state: FileState): string | undefined =>
  state.kind === 'file' ? state.digest : state.kind === 'link' ? `-> ${state.target}` : undefined

const contentsOf = (states: Iterable<FileState>): ReadonlySet<string | undefined> => new Set([...states].map(contentOf).filter(content => content !== undefined))

/** A file keeps its birth time when it is moved; an old one that is none of those saved came from where nobody looked. */
const isMade = async (path: string, after: FileState, sinceMs: number, saved: ReadonlySet<string | undefined>): Promise<boolean> =>
  saved.has(contentOf(after)) || await isBornSince(path, sinceMs)

/** False for a file that is older than the look: it was there, and nobody saved it. The kernel's clock for times of files is coarse. */
async function isBornSince(path: string, sinceMs: number): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined)
  return stat === undefined || stat.birthtimeMs >= sinceMs - COARSE_CLOCK_MS
}

const COARSE_CLOCK_MS = 50

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

function walkOptions(deps: LookDeps) {
  return { budget: { maxFiles: deps.budget.maxFiles, maxMs: deps.budget.maxMs }, ignore: defaultIgnore, keepOut: [deps.dshHome] }
}
