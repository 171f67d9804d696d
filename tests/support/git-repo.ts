import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, lstatSync, lutimesSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exactTreeOf, type ExactTree } from './exact-tree.ts'

/**
 * Repositories that notice whoever does something in them: every hook, the clean and the smudge filter and the
 * file-system monitor leave a line in `.git/trace`. And the fingerprint of a repository, by which two moments are
 * compared.
 */

/** Git's own hooks (githooks(5)) as far as anything local can run them. */
const hooks = [
  'applypatch-msg', 'pre-applypatch', 'post-applypatch', 'pre-commit', 'pre-merge-commit', 'prepare-commit-msg', 'commit-msg', 'post-commit',
  'pre-rebase', 'post-checkout', 'post-merge', 'pre-push', 'pre-auto-gc', 'post-rewrite', 'post-index-change', 'reference-transaction',
]

/** Runs git as its user does. */
export const git = (folder: string, ...args: string[]): string => execFileSync('git', args, { cwd: folder, encoding: 'utf8' })

/**
 * Makes the folder a repository of one commit `start` on the branch `main`. Paths `*.secret` have a filter whose form
 * in git differs from the one on disk.
 */
export function makeRepo(folder: string): void {
  git(folder, 'init', '-q', '-b', 'main')
  git(folder, 'config', 'user.name', 'Test')
  git(folder, 'config', 'user.email', 'test@example.org')
  git(folder, 'config', 'gc.auto', '0')
  mkdirSync(join(folder, '.git', 'traps'), { recursive: true })
  mkdirSync(join(folder, '.git', 'info'), { recursive: true })
  writeFileSync(join(folder, '.git', 'info', 'attributes'), '*.secret filter=trap\n')
  for (const [name, then] of [['clean', 'exec tr a-z n-za-m'], ['smudge', 'exec tr a-z n-za-m'], ['fsmonitor', "printf 'token\\000/\\000'"]] as const) {
    placeTrap(join(folder, '.git', 'traps', name), then)
  }
  git(folder, 'config', 'filter.trap.clean', join(folder, '.git', 'traps', 'clean'))
  git(folder, 'config', 'filter.trap.smudge', join(folder, '.git', 'traps', 'smudge'))
  git(folder, 'config', 'core.fsmonitor', join(folder, '.git', 'traps', 'fsmonitor'))
  mkdirSync(join(folder, '.git', 'hooks'), { recursive: true })
  for (const name of hooks) placeTrap(join(folder, '.git', 'hooks', name), 'exit 0')
  commitAll(folder, 'start')
}

export function commitAll(folder: string, subject: string): void {
  settle(folder)
  git(folder, 'add', '-A')
  git(folder, 'commit', '-q', '-m', subject)
}

/** The traps are emptied, and no file looks as if it had just been written, so that git has no reason to read one again. */
export function settle(folder: string): void {
  for (const path of Object.keys(exactTreeOf(folder))) lutimesSync(join(folder, path), new Date('2020-01-01'), new Date('2020-01-01'))
  if (existsSync(join(folder, '.git', 'index'))) git(folder, 'status', '--porcelain')
  writeFileSync(join(folder, '.git', 'trace'), '')
}

/** The repository once more, in the same state: what a command does there it does without us. */
export function twinOf(folder: string): string {
  const twin = `${folder}-twin`
  copyRepo(folder, twin)
  return twin
}

export function copyRepo(from: string, to: string): void {
  cpSync(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  const config = join(to, '.git', 'config')
  writeFileSync(config, readFileSync(config, 'utf8').replaceAll(`${from}/`, `${to}/`))
  settle(to)
}

export interface GitPrint {
  readonly head: string
  readonly refs: string
  readonly reflogs: string
  /** The index file: digest of its bytes, and when it was written. */
  readonly index: string
  readonly stashes: string
  readonly objects: string
  /** What the traps noticed. */
  readonly trace: string
  readonly status: string
  /** Everything below `.git` with its bytes and times: a lock that was taken for a moment shows in the time of its folder. */
  readonly files: Readonly<Record<string, string>>
}

/** What git and its user can tell of the repository. Takes no lock and springs no trap. */
export function gitPrint(folder: string): GitPrint {
  const files = filesBelow(folder, '.git')
  const trace = readFileSync(join(folder, '.git', 'trace'), 'utf8')
  return { ...facts(folder), index: files['.git/index'] ?? 'none', trace, files }
}

/** What a command did to a repository, whenever and wherever it ran. */
export interface GitOutcome extends Omit<GitPrint, 'files'> {
  readonly tree: ExactTree
}

export function gitOutcome(folder: string): GitOutcome {
  const trace = readFileSync(join(folder, '.git', 'trace'), 'utf8')
  return { ...facts(folder), index: quietGit(folder, 'ls-files', '-s', '-v'), trace, tree: exactTreeOf(folder) }
}

function facts(folder: string): Omit<GitPrint, 'files' | 'index' | 'trace'> {
  const logs = join(folder, '.git', 'logs')
  const paths = existsSync(logs) ? readdirSync(logs, { recursive: true, encoding: 'utf8' }).toSorted() : []
  const reflogs = paths.map(path => join(logs, path)).filter(path => lstatSync(path).isFile()).map(path => readFileSync(path, 'utf8'))
  return {
    head: readFileSync(join(folder, '.git', 'HEAD'), 'utf8'),
    refs: quietGit(folder, 'for-each-ref'),
    reflogs: reflogs.join('\n'),
    stashes: quietGit(folder, 'stash', 'list'),
    objects: quietGit(folder, 'count-objects', '-v').replace(/^size.*\n/gm, ''),
    status: quietGit(folder, 'status', '--porcelain=v2', '--branch', '--untracked-files=all'),
  }
}

function quietGit(folder: string, ...args: string[]): string {
  const quiet = ['--no-optional-locks', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null']
  const filters = ['clean', 'smudge'].flatMap(name => ['-c', `filter.trap.${name}=tr a-z n-za-m`])
  return git(folder, ...quiet, ...filters, ...args)
}

function filesBelow(folder: string, below: string): Record<string, string> {
  const found: Record<string, string> = {}
  const visit = (path: string): void => {
    const full = join(folder, path)
    const stat = lstatSync(full, { bigint: true })
    const isFolder = stat.isDirectory()
    const content = isFolder ? 'folder' : createHash('sha256').update(readFileSync(full)).digest('hex').slice(0, 16)
    found[path] = `${(stat.mode & 0o7777n).toString(8)} ${stat.mtimeNs} ${content}`
    if (isFolder) for (const name of readdirSync(full).toSorted()) visit(join(path, name))
  }
  visit(below)
  return found
}

function placeTrap(path: string, then: string): void {
  writeFileSync(path, `#!/bin/sh\necho "$(basename "$0")" >> "$(dirname "$0")/../trace"\n${then}\n`)
  chmodSync(path, 0o755)
}
