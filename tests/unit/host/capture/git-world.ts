import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { openGitTree, type GitTree } from '../../../../host/capture/git-tree.ts'

/** A repository in a temporary folder; git there knows nothing of the person's own settings. */
export interface GitWorld {
  /** Real path of the work tree. */
  readonly root: string
  /** Outside of the work tree: the store's folder for copies of the index. */
  readonly indexFolder: string
  readonly base: string
  git(...args: string[]): string
  gitIn(folder: string, ...args: string[]): string
  write(path: string, content: string | Buffer): void
  read(path: string): string
  open(folder?: string): Promise<GitTree>
  remove(): void
}

export function makeGitWorld({ isEmpty = false } = {}): GitWorld {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-git-')))
  const root = join(base, 'tree')
  const indexFolder = join(base, 'store', 'git')
  mkdirSync(root)
  const env = {
    PATH: process.env.PATH, HOME: base, LC_ALL: 'C', GIT_CONFIG_NOSYSTEM: '1', GIT_ALLOW_PROTOCOL: 'file',
    GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org',
  }
  const gitIn = (folder: string, ...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const world: GitWorld = {
    root, indexFolder, base, gitIn,
    git: (...args) => gitIn(root, ...args),
    write: (path, content) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    },
    read: path => readFileSync(join(root, path), 'utf8'),
    open: async (folder = root) => {
      const opened = await openGitTree(folder, { indexFolder })
      if (opened.kind !== 'tree') throw new Error(`not a tree: ${JSON.stringify(opened)}`)
      return opened.tree
    },
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
  world.git('init', '-q', '-b', 'main')
  if (!isEmpty) {
    world.write('a.txt', 'a\n')
    world.write('sub/b.txt', 'b\n')
    world.write('sub/run.sh', 'echo\n')
    world.git('add', '.')
    world.git('commit', '-q', '-m', 'first')
  }
  return world
}

/** Every name below `folder` with its kind, size, times and bytes: equal only when nothing was written there. */
export function printOf(folder: string): string {
  const hash = createHash('sha256')
  const visit = (path: string): void => {
    const stat = lstatSync(path, { bigint: true })
    hash.update(`${path}\0${stat.mode} ${stat.ino} ${stat.mtimeNs} ${stat.ctimeNs}\0`)
    if (stat.isDirectory()) for (const name of readdirSync(path).sort()) visit(join(path, name))
    else hash.update(stat.isSymbolicLink() ? readlinkSync(path) : readFileSync(path))
  }
  if (existsSync(folder)) visit(folder)
  return hash.digest('hex')
}
