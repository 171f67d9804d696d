import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { errnoOf } from '../restore/file-system.ts'
import { makeIndexCopy, type AskGit, type IndexCopy } from './git-index-copy.ts'
import { answer, complaintOf, GIT_OPTIONS, gitEnvironment, GitFailure, lineOf, runGit, type GitRunner } from './git-run.ts'

/** One work tree, as far as the session's workspace reaches. Looks at it run one after another. */
export interface GitTree {
  /** Real path of the work tree's top; every path below is relative to it, with `/`. */
  readonly root: string
  /** Of this work tree: its HEAD and index are there. */
  readonly gitDir: string
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

const OLDEST = [2, 20] as const
const TIMEOUT_MS = 20_000

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

/** Open trees of this process, by workspace and folder of copies. */
const open = new Map<string, GitTree>()

const keyOf = (folder: string, indexFolder: string): string => `${folder}\0${indexFolder}`

/** The next look opens the tree anew. */
export function forget(tree: GitTree): void {
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
  // Found by git's own search, so that its check of the owner (safe.directory) applies.
  const [version, places] = await Promise.all([
    answer(discover(['version'])), discover(['rev-parse', '--show-toplevel', '--absolute-git-dir', '--git-common-dir']),
  ])
  if (isTooOld(lineOf(version))) throw new GitFailure(`${lineOf(version)} is too old`)
  const [top, gitDir, commonDir, ...more] = linesOf((await answer(Promise.resolve(places))).toString(), root)
  if (top !== root || gitDir === undefined || commonDir === undefined || more.length > 0) throw new GitFailure('the work tree is not where its .git is')

  // From here on without a search: when `.git` is deleted, git must not take a repository further up.
  const ask: AskGit = (args, { indexFile, input } = {}) => run([...GIT_OPTIONS, ...args], {
    cwd: root, input, timeoutMs: TIMEOUT_MS,
    env: gitEnvironment({ GIT_DIR: gitDir, GIT_WORK_TREE: root, ...(indexFile === undefined ? {} : { GIT_INDEX_FILE: indexFile }) }),
  })
  const pathspec = prefix === '' ? [] : ['--', prefix]
  const copy = makeIndexCopy({ real: join(gitDir, 'index'), file: await placeOfCopy(indexFolder, root), pathspec, ask })
  const tree: GitTree = { root, gitDir, commonDir: resolve(folder, commonDir), ask, copy, pathspec, run, gitId, state: { last: Promise.resolve(), settled: new Set() } }
  const former = open.get(keyOf(folder, indexFolder))
  if (former !== undefined) await closeGitTree(former)
  open.set(keyOf(folder, indexFolder), tree)
  return tree
}

/** Paths that each end with a line break; the tree's own may have some in it. */
function linesOf(text: string, root: string): string[] {
  const lines: string[] = []
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', text.startsWith(root, at) ? at + root.length : at)
    if (end < 0) break
    lines.push(text.slice(at, end))
    at = end + 1
  }
  return lines
}

/** The `./` keeps a name that starts with a colon from being read as a pattern. */
async function isIgnored({ ask }: GitTree, prefix: string): Promise<boolean> {
  if (prefix === '') return false
  const found = await ask(['check-ignore', '-q', '--', `./${prefix}`])
  if (found.code > 1) throw new GitFailure(complaintOf(found))
  return found.code === 0
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
