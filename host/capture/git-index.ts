import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { errnoOf } from '../restore/file-system.ts'
import { makeIndexCopy, type AskGit, type IndexCopy, type IndexEntry } from './git-index-copy.ts'
import { complaintOf, GIT_OPTIONS, gitEnvironment, GitFailure, runGit, type GitExit, type GitRunner } from './git-run.ts'

/** One work tree, as far as the session's workspace reaches. Looks at it run one after another. */
export interface GitTree {
  /** Real path of the work tree's top; every path below is relative to it, with `/`. */
  readonly root: string
  /** Where the repository's settings are; work trees of one repository share it. */
  readonly commonDir: string
  readonly ask: AskGit
  readonly copy: IndexCopy
  /** Limits a command to the workspace; empty when that is the whole tree. */
  readonly pathspec: readonly string[]
  readonly run: GitRunner
  /** Which `.git` this was opened with. */
  readonly gitId: string
  /** `settled`: paths that a refresh found to differ; another one would change nothing for them. */
  readonly state: { last: Promise<unknown>, settled: ReadonlySet<string> }
}

export type OpenedTree =
  | { readonly kind: 'tree', readonly tree: GitTree }
  /** Not in a work tree, or in a folder that its tree ignores. */
  | { readonly kind: 'none' }
  | { readonly kind: 'broken', readonly why: string }

export interface GitLook {
  /** Undefined for a branch without a commit. */
  readonly head: string | undefined
  /** Full name; undefined when detached. */
  readonly ref: string | undefined
  /** A mode 160000 is a submodule: what is inside it is another tree's and is not looked at here. */
  readonly index: ReadonlyMap<string, IndexEntry>
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

const OLDEST = [2, 20] as const
const TIMEOUT_MS = 20_000
/** With more stale stat data than this a refresh of the copy is cheaper than reading the files ourselves in every look. */
const MANY_STALE = 1_000

export interface OpenOptions {
  /** Ours, outside of the tree; what processes that ended left in it is removed. */
  readonly indexFolder: string
  readonly run?: GitRunner | undefined
}

/**
 * `folder` is a real path. Asked again for a folder whose `.git` is the same, it gives the same tree: the copy
 * of the index and what was learned of stale stat data are worth keeping between brackets.
 */
export async function openGitTree(folder: string, { indexFolder, run = runGit }: OpenOptions): Promise<OpenedTree> {
  const holder = await holderOfGit(folder)
  const prefix = holder === undefined ? '' : relative(holder.root, folder).split(sep).join('/')
  if (holder === undefined || prefix === '.git' || prefix.startsWith('.git/')) return { kind: 'none' }
  const known = open.get(keyOf(folder, indexFolder))
  const tree = known !== undefined && known.gitId === holder.gitId && known.run === run ? known : undefined
  try {
    const opened = tree ?? await discoverTree({ ...holder, folder, prefix, indexFolder, run })
    // The rules may have changed since the last look. Git sees nothing of a folder that it ignores.
    if (await isIgnored(opened, prefix)) return { kind: 'none' }
    return { kind: 'tree', tree: opened }
  } catch (error) {
    if (error instanceof GitFailure) return { kind: 'broken', why: error.message }
    throw error
  }
}

/** Removes the copy; the tree must not be used any more. */
export async function closeGitTree(tree: GitTree): Promise<void> {
  forget(tree)
  await tree.state.last
  await tree.copy.remove()
}

/** Changes nothing in the work tree or its `.git`. Rejects with `GitFailure` when git does not answer. */
export function lookAtTree(tree: GitTree): Promise<GitLook> {
  const look = tree.state.last.then(() => lookOnce(tree))
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

/** Raw bytes of blobs, all in memory at once: leave out what is too large by the entry's `size`. A missing one is not in the map. */
export async function readBlobs(tree: GitTree, oids: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
  const wanted = [...new Set(oids)]
  const blobs = new Map<string, Buffer>()
  if (wanted.length === 0) return blobs
  // When git stops at a damaged object, what it wrote before is whole and the rest is missing.
  const { stdout } = await tree.ask(['cat-file', '--batch'], { input: Buffer.from(`${wanted.join('\n')}\n`) })
  for (let at = 0; at < stdout.length;) {
    const lineEnd = stdout.indexOf(10, at)
    if (lineEnd < 0) break
    const [oid, type, size] = stdout.toString('latin1', at, lineEnd).split(' ')
    at = lineEnd + 1
    if (size === undefined) continue
    const end = at + Number(size)
    if (end >= stdout.length) break
    if (type === 'blob') blobs.set(oid!, stdout.subarray(at, end))
    at = end + 1
  }
  return blobs
}

/** Of `paths`, those whose blob may not be the file's bytes: a conversion is configured or took place, or there is no such blob. */
export async function convertedPaths(tree: GitTree, look: GitLook, paths: readonly string[]): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set()
  const input = Buffer.from(paths.map(path => `${path}\0`).join(''))
  const oids = [...new Set(paths.flatMap(path => look.index.get(path)?.oid ?? []))]
  const attributes = ['filter', 'ident', 'working-tree-encoding']
  const [now, staged, sizes] = await Promise.all([
    answer(tree.ask(['check-attr', '-z', '--stdin', ...attributes], { input })),
    // The command may have changed or deleted the file of attributes.
    answer(tree.ask(['check-attr', '-z', '--stdin', '--cached', ...attributes], { input, indexFile: tree.copy.file })),
    tree.ask(['cat-file', '--batch-check'], { input: Buffer.from(oids.map(oid => `${oid}\n`).join('')) }),
  ])

  const converted = new Set<string>()
  for (const output of [now, staged]) {
    const fields = output.toString().split('\0')
    for (let i = 0; i + 2 < fields.length; i += 3) if (!NOT_SET.has(fields[i + 2]!)) converted.add(fields[i]!)
  }
  const sizeOf = new Map<string, number>()
  for (const line of sizes.stdout.toString('latin1').split('\n')) {
    const [oid, type, size] = line.split(' ')
    if (type === 'blob') sizeOf.set(oid!, Number(size) % 2 ** 32)
  }
  // Line ends: git records the size of the working file, so the two differ when any were converted.
  for (const path of paths) {
    const entry = look.index.get(path)
    if (entry === undefined || sizeOf.get(entry.oid) !== entry.size) converted.add(path)
  }
  return converted
}

/** Of `paths`, those that the present rules ignore, tracked or not; all of them when git does not say. */
export async function ignoredPaths({ ask }: GitTree, paths: readonly string[]): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set()
  const input = Buffer.from(paths.map(path => `./${path}\0`).join(''))
  const { code, stdout } = await ask(['check-ignore', '--no-index', '-z', '--stdin'], { input })
  if (code > 1) return new Set(paths)
  return new Set(stdout.toString().split('\0').map(path => path.replace(/^\.\//, '')))
}

const NOT_SET = new Set(['unspecified', 'unset'])

/** Open trees of this process, by workspace and folder of copies. */
const open = new Map<string, GitTree>()

const keyOf = (folder: string, indexFolder: string): string => `${folder}\0${indexFolder}`

function forget(tree: GitTree): void {
  for (const [key, value] of open) if (value === tree) open.delete(key)
}

async function discoverTree({ root, gitId, folder, prefix, indexFolder, run }: {
  readonly root: string
  readonly gitId: string
  readonly folder: string
  readonly prefix: string
  readonly indexFolder: string
  readonly run: GitRunner
}): Promise<GitTree> {
  const discover: AskGit = args => run([...GIT_OPTIONS, ...args], { cwd: folder, env: gitEnvironment(), timeoutMs: TIMEOUT_MS })
  const version = lineOf(await answer(discover(['version'])))
  if (isTooOld(version)) throw new GitFailure(`${version} is too old`)
  // Found by git's own search, so that its check of the owner (safe.directory) applies.
  const [top, gitDir, commonDir] = await Promise.all([
    answer(discover(['rev-parse', '--show-toplevel'])), answer(discover(['rev-parse', '--absolute-git-dir'])),
    answer(discover(['rev-parse', '--git-common-dir'])),
  ])
  if (lineOf(top) !== root) throw new GitFailure('the work tree is not where its .git is')

  // From here on without a search: when `.git` is deleted, git must not take a repository further up.
  const ask: AskGit = (args, { indexFile, input } = {}) => run([...GIT_OPTIONS, ...args], {
    cwd: root, input, timeoutMs: TIMEOUT_MS,
    env: gitEnvironment({ GIT_DIR: lineOf(gitDir), GIT_WORK_TREE: root, ...(indexFile === undefined ? {} : { GIT_INDEX_FILE: indexFile }) }),
  })
  const pathspec = prefix === '' ? [] : ['--', prefix]
  const copy = makeIndexCopy({ real: join(lineOf(gitDir), 'index'), file: await placeOfCopy(indexFolder, root), pathspec, ask })
  const tree: GitTree = { root, commonDir: resolve(folder, lineOf(commonDir)), ask, copy, pathspec, run, gitId, state: { last: Promise.resolve(), settled: new Set() } }
  const former = open.get(keyOf(folder, indexFolder))
  if (former !== undefined) await closeGitTree(former)
  open.set(keyOf(folder, indexFolder), tree)
  return tree
}

/** The `./` keeps a name that starts with a colon from being read as a pattern. */
async function isIgnored({ ask }: GitTree, prefix: string): Promise<boolean> {
  if (prefix === '') return false
  const found = await ask(['check-ignore', '-q', '--', `./${prefix}`])
  if (found.code > 1) throw new GitFailure(complaintOf(found))
  return found.code === 0
}

async function lookOnce(tree: GitTree): Promise<GitLook> {
  let view = await tree.copy.current()
  const [head, untracked, firstDirty] = await Promise.all([headOf(tree), listUntracked(tree), statDirty(tree)])
  let dirty = firstDirty
  const nowSec = Math.floor(Date.now() / 1000)
  const stale = dirty.filter(path => !tree.state.settled.has(path)).length
    + [...view.racy.values()].filter(({ mtimeSec }) => mtimeSec < nowSec).length
  if (stale > MANY_STALE && await tree.copy.refresh()) {
    view = await tree.copy.current()
    dirty = await statDirty(tree)
    tree.state.settled = new Set(dirty)
  }

  const unmerged = new Set(view.unmerged)
  return {
    ...head,
    index: view.entries, unmerged: view.unmerged, unwatched: view.unwatched,
    dirty: [...new Set([...dirty, ...view.racy.keys()])].filter(path => !unmerged.has(path)),
    untracked: untracked.names.filter(name => !name.endsWith('/')),
    nested: untracked.names.filter(name => name.endsWith('/')).map(name => name.slice(0, -1)),
    unreadableNames: view.unreadableNames + untracked.unreadable,
  }
}

async function headOf({ ask }: GitTree): Promise<{ head: string | undefined, ref: string | undefined }> {
  const found = await ask(['rev-parse', 'HEAD', '--symbolic-full-name', 'HEAD'])
  if (found.code === 0) {
    const [head, ref] = found.stdout.toString().split('\n')
    return { head, ref: ref === 'HEAD' ? undefined : ref }
  }
  const unborn = await answer(ask(['symbolic-ref', '-q', 'HEAD']))
  return { head: undefined, ref: lineOf(unborn) }
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

async function answer(asked: Promise<GitExit>): Promise<Buffer> {
  const exit = await asked
  if (exit.code !== 0) throw new GitFailure(complaintOf(exit))
  return exit.stdout
}

/** The folder at or above `folder` that has a `.git`; the nearest one must be the tree, or else its `.git` is broken. */
async function holderOfGit(folder: string): Promise<{ readonly root: string, readonly gitId: string } | undefined> {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const { dev, ino, birthtimeMs } = await lstat(join(at, '.git'))
      return { root: at, gitId: [at, dev, ino, birthtimeMs].join(' ') }
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
    }
    if (at === dirname(at)) return undefined
  }
}

/** A name of its own per opened tree: two copies of one index may be of different moments. */
async function placeOfCopy(indexFolder: string, root: string): Promise<string> {
  await mkdir(indexFolder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(indexFolder)) {
    const pid = /^[0-9a-f]{16}-(\d+)-\d+(\.new)?(\.lock)?$/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(indexFolder, name), { force: true })
  }
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 16)
  return join(await realpath(indexFolder), `${hash}-${process.pid}-${serial++}`)
}

let serial = 0

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) !== 'ESRCH'
  }
}

function isTooOld(version: string): boolean {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? []
  return major === undefined || Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1])
}

const isSame = (a: IndexEntry, b: IndexEntry | undefined): boolean => b !== undefined && a.mode === b.mode && a.oid === b.oid

const lineOf = (output: Buffer): string => output.toString().replace(/\n$/, '')
