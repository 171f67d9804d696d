import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { commitAll, copyRepo, git, makeRepo, settle } from './git-repo.ts'

/** The folder of somebody who works in it, with one of everything that a command can do harm to. */

export function fill(folder: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

/** Makes the folder a plain one with text, bytes, modes, a link, another line end, an empty file and an empty folder. */
export function userFolder(folder: string): void {
  fill(folder, {
    'a.txt': 'a1\n', 'b.txt': 'b1\n', 'c.txt': 'c0\n', 'd/1': 'one', 'd/2': 'two', 'd/in/3': '3', 'run.sh': '#!/bin/sh\necho 1\n', 'pass.secret': 'open 1\n',
    'bin.dat': Buffer.from([0, 255, 13, 10, 0, 10]), 'crlf.txt': '\uFEFF1\r\n2\r\n', 'none.txt': '', '.gitignore': 'ignored/\n', 'ignored/x': 'hidden',
  })
  chmodSync(join(folder, 'run.sh'), 0o755)
  symlinkSync('c.txt', join(folder, 'link'))
  mkdirSync(join(folder, 'empty'))
}

/** The same as a repository: two commits, another branch, a stash, and work that is staged, not staged and untracked. */
export function userRepo(folder: string): void {
  // Made once beside the folders of a test file: a copy costs a tenth of it.
  const made = join(dirname(folder), '.user-repo')
  if (!existsSync(made)) {
    mkdirSync(made)
    makeUserRepo(made)
  }
  copyRepo(made, folder)
}

function makeUserRepo(folder: string): void {
  userFolder(folder)
  makeRepo(folder)
  git(folder, 'switch', '-q', '-c', 'side')
  fill(folder, { 'c.txt': 'side\n', 'side/n.txt': 'n\n' })
  rmSync(join(folder, 'd/1'))
  commitAll(folder, 'side')
  git(folder, 'switch', '-q', 'main')
  fill(folder, { 'c.txt': 'c1\n' })
  commitAll(folder, 'two')
  fill(folder, { 'd/2': 'stashed' })
  git(folder, 'stash', '-q')
  fill(folder, { 'b.txt': 'b staged 1\n' })
  git(folder, 'add', 'b.txt')
  fill(folder, { 'a.txt': 'a not staged 1\n', 'u.txt': 'untracked 1\n' })
  chmodSync(join(folder, 'u.txt'), 0o600)
  settle(folder)
}
