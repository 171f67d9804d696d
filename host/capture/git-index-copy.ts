import { isUtf8 } from 'node:buffer'
import type { BigIntStats } from 'node:fs'
import { copyFile, open, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { errnoOf } from '../restore/file-system.ts'
import { complaintOf, GitFailure, type GitExit } from './git-run.ts'

export interface IndexEntry {
  readonly mode: '100644' | '100755' | '120000' | '160000'
  readonly oid: string
  /** Bytes of the working file when git last compared it, modulo 2^32. */
  readonly size: number
  /** Of the file when git last compared it: seconds, colon, nanoseconds. */
  readonly ctime: string
  /** Modulo 2^32. */
  readonly ino: string
}

/** What one version of the index says, of the paths below the workspace. */
export interface IndexView {
  readonly entries: ReadonlyMap<string, IndexEntry>
  readonly unmerged: readonly string[]
  /** Git does not look at these files: sparse (often absent) or "assume unchanged". */
  readonly unwatched: readonly string[]
  /** The stat data of these cannot tell: written in the second in which the index was, or later. */
  readonly racy: ReadonlyMap<string, { readonly mtimeSec: number }>
  /** The tracked `.gitattributes`. */
  readonly attributeFiles: readonly string[]
  readonly submodules: readonly string[]
  readonly unreadableNames: number
}

export type AskGit = (args: readonly string[], options?: { readonly indexFile?: string, readonly input?: Buffer }) => Promise<GitExit>

export interface IndexCopy {
  readonly file: string
  /** Takes a new copy when the user's index is not the one copied before. Once it is there git can be asked of it, while `view` is still read. */
  current(): Promise<{ readonly view: Promise<IndexView> }>
  /** Compares stale stat data with the files' content, in the copy only. False when git did not do it. */
  refresh(): Promise<boolean>
  remove(): Promise<void>
}

const EMPTY: IndexView = { entries: new Map(), unmerged: [], unwatched: [], racy: new Map(), attributeFiles: [], submodules: [], unreadableNames: 0 }

/**
 * Git compares the content of a file written in the same second as the index ("racy", git's
 * Documentation/technical/racy-git.txt), and that runs clean filters. With an index file dated after every
 * entry it never does; which entries are racy is then ours to say.
 */
const AFTER_ALL_SEC = 0xffff_ffff

const VALID = 0x8000
const SKIP_WORKTREE = 0x4000_0000

/** Our copy of the index `real` at `file`; git may lock and rewrite the copy, never the user's. One call at a time. */
export function makeIndexCopy({ real, file, pathspec, ask }: {
  readonly real: string
  readonly file: string
  readonly pathspec: readonly string[]
  readonly ask: AskGit
}): IndexCopy {
  let copied: string | undefined
  let writtenSec = 0
  let view = EMPTY

  const read = async (): Promise<IndexView> => {
    const listed = await ask(['--literal-pathspecs', 'ls-files', '--stage', '--debug', '-z', ...pathspec], { indexFile: file })
    if (listed.code !== 0) throw new GitFailure(complaintOf(listed))
    return parseEntries(listed.stdout, writtenSec)
  }

  const take = async (): Promise<{ readonly view: Promise<IndexView> }> => {
    const source = await openIfThere(real)
    if (source === undefined) {
      await rm(file, { force: true })
      copied = undefined
      return { view: Promise.resolve(EMPTY) }
    }
    try {
      // Git replaces its index by a rename, so one open file is one version.
      const seen = await source.stat({ bigint: true })
      if (copied === versionOf(seen)) return { view: Promise.resolve(view) }
      copied = undefined
      await writeFile(`${file}.new`, await source.readFile(), { mode: 0o600 })
      await utimes(`${file}.new`, AFTER_ALL_SEC, AFTER_ALL_SEC)
      await rename(`${file}.new`, file)
      writtenSec = secondOf(seen)
      return {
        view: read().then((entries) => {
          view = entries
          copied = versionOf(seen)
          return view
        }),
      }
    } finally {
      await source.close()
    }
  }

  return {
    file,
    current: take,
    refresh: async () => {
      const temp = `${file}.new`
      const off = await filtersOff(ask)
      if (off === undefined || copied === undefined) return false
      try {
        await copyFile(file, temp)
        await utimes(temp, writtenSec, writtenSec)
        const done = await ask([...off, 'update-index', '-q', '--ignore-submodules', '--unmerged', '--force-write-index', '--refresh'], { indexFile: temp })
        if (done.code !== 0 && done.code !== 1) return false
        writtenSec = secondOf(await stat(temp, { bigint: true }))
        await utimes(temp, AFTER_ALL_SEC, AFTER_ALL_SEC)
        await rename(temp, file)
        view = await read()
        return true
      } finally {
        await rm(temp, { force: true })
        await rm(`${temp}.lock`, { force: true })
      }
    },
    remove: async () => {
      copied = undefined
      await rm(file, { force: true })
    },
  }
}

/**
 * Options that leave every configured filter without a command: a clean filter is a program of the user's
 * that may write. A file with a filter then only counts as unchanged when its raw bytes are the blob.
 * Undefined when a name cannot be given on a command line.
 */
async function filtersOff(ask: AskGit): Promise<string[] | undefined> {
  const found = await ask(['config', '--null', '--name-only', '--get-regexp', '^filter\\.'])
  if (found.code > 1) return undefined
  const names = new Set(found.stdout.toString().split('\0').filter(Boolean).map(key => key.slice(0, key.lastIndexOf('.'))))
  if ([...names].some(name => name.includes('=') || name.includes('\ufffd'))) return undefined
  return [...names].flatMap(name => [
    '-c', `${name}.clean=`, '-c', `${name}.smudge=`, '-c', `${name}.process=`, '-c', `${name}.required=false`,
  ])
}

/** One entry of `ls-files --stage --debug -z`, as written by show_ce and print_debug in git's builtin/ls-files.c. */
const ENTRY = new RegExp(
  '(\\d{6}) ([0-9a-f]+) ([0-3])\\t([^\\0]*)\\0'
  + '  ctime: (\\d+:\\d+)\\n  mtime: (\\d+):\\d+\\n  dev: \\d+\\tino: (\\d+)\\n  uid: \\d+\\tgid: \\d+\\n  size: (\\d+)\\tflags: ([0-9a-f]+)\\n', 'y')

function parseEntries(output: Buffer, writtenSec: number): IndexView {
  const text = output.toString('latin1')
  const entries = new Map<string, IndexEntry>()
  const unmerged = new Set<string>()
  const unwatched: string[] = []
  const racy = new Map<string, { mtimeSec: number }>()
  const attributeFiles: string[] = []
  const submodules: string[] = []
  let unreadableNames = 0
  ENTRY.lastIndex = 0
  while (ENTRY.lastIndex < text.length) {
    const at = ENTRY.lastIndex
    const match = ENTRY.exec(text)
    if (match === null) throw new GitFailure(`git lists its index in an unknown form at byte ${at}`)
    const [, mode, oid, stage, rawName, ctime, mtime, ino, size, flagsHex] = match as unknown as [string, IndexEntry['mode'], string, string, string, string, string, string, string, string]
    const path = nameOf(rawName)
    if (path === undefined) {
      unreadableNames += 1
      continue
    }
    if (stage !== '0') {
      unmerged.add(path)
      continue
    }
    const flags = Number.parseInt(flagsHex, 16)
    const mtimeSec = Number(mtime)
    entries.set(path, { mode, oid, size: Number(size), ctime, ino })
    if (path.endsWith('.gitattributes')) attributeFiles.push(path)
    if (mode === '160000') submodules.push(path)
    if ((flags & (VALID | SKIP_WORKTREE)) !== 0) unwatched.push(path)
    else if (mtimeSec >= writtenSec && mode !== '160000') racy.set(path, { mtimeSec })
  }
  return { entries, unmerged: [...unmerged], unwatched, racy, attributeFiles, submodules, unreadableNames }
}

/** A name as text, of its bytes given as latin1; undefined when the bytes are not UTF-8. */
function nameOf(latin1: string): string | undefined {
  if (!/[\u0080-\u00ff]/.test(latin1)) return latin1
  const bytes = Buffer.from(latin1, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

async function openIfThere(path: string) {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw new GitFailure(`the index cannot be read: ${errnoOf(error) ?? String(error)}`, { cause: error })
  }
}

const versionOf = (seen: BigIntStats): string => [seen.ino, seen.size, seen.mtimeNs, seen.ctimeNs].join(' ')

const secondOf = (seen: BigIntStats): number => Number(seen.mtimeNs / 1_000_000_000n)
