import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../restore/file-system.ts'
import { fingerprintOf } from './fingerprint.ts'
import { answer, lineOf } from './git-run.ts'
import type { GitTree } from './git-tree.ts'

export interface Head {
  /** Undefined for a branch without a commit. */
  readonly head: string | undefined
  /** Full name; undefined when detached. */
  readonly ref: string | undefined
}

/** What git said of a branch that has no file of its own, for as long as the file of packed refs is the same. */
const packed = new WeakMap<GitTree, { readonly key: string, readonly head: Head }>()

/**
 * Where HEAD is. Read from its file and its branch's file where these have the plain form of gitrepository-layout(5),
 * which spares a process per look; git is asked for everything else.
 */
export async function headOf(tree: GitTree): Promise<Head> {
  const text = await textOf(join(tree.gitDir, 'HEAD'))
  if (text === undefined) return askGit(tree)
  if (isId(text)) return { head: text, ref: undefined }
  const ref = /^ref: (refs\/heads\/[^\s]+)$/.exec(text)?.[1]
  // Git's name for "not in files" (reftable), and names that would leave the folder.
  if (ref === undefined || ref.endsWith('/.invalid') || ref.includes('..')) return askGit(tree)
  const id = await textOf(join(tree.commonDir, ref))
  if (id !== undefined) return isId(id) ? { head: id, ref } : askGit(tree)

  const print = await fingerprintOf(join(tree.commonDir, 'packed-refs')).catch(() => undefined)
  const key = [ref, print?.ino, print?.size, print?.mtimeNs, print?.ctimeNs].join(' ')
  const known = packed.get(tree)
  if (known?.key === key) return known.head
  const head = await askGit(tree)
  packed.set(tree, { key, head })
  return head
}

async function askGit({ ask }: GitTree): Promise<Head> {
  const found = await ask(['rev-parse', 'HEAD', '--symbolic-full-name', 'HEAD'])
  if (found.code === 0) {
    const [head, ref] = found.stdout.toString().split('\n')
    return { head, ref: ref === 'HEAD' ? undefined : ref }
  }
  const unborn = await answer(ask(['symbolic-ref', '-q', 'HEAD']))
  return { head: undefined, ref: lineOf(unborn) }
}

/** The one line of a file; undefined for what is no plain file with one line. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    const stat = await lstat(path)
    if (!stat.isFile() || stat.size > 4096) return undefined
    return /^([^\n]+)\n$/.exec(await readFile(path, 'utf8'))?.[1]
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

const isId = (text: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text)
