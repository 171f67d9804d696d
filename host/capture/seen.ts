import { lstatSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { absent, sameState, type FileState } from '../../src/checkpoint/file-state.ts'
import { errnoOf } from '../restore/file-system.ts'
import { withModeOf } from './clean-states.ts'
import { fingerprintOf, sameFingerprint, type Fingerprint } from './fingerprint.ts'
import { stateOf } from './known-states.ts'
import { isOurs, isUnread, parentsOf, type Before, type LookDeps, type Seen } from './look.ts'

interface Ask {
  before(path: string, after: FileState): FileState | Promise<FileState>
  absentFolders(path: string): readonly string[]
  byGit(path: string, before: FileState, after: FileState): boolean
  /** True when the path is surely the very file that it was before. */
  isUntouched?(path: string): boolean
}

export async function seenOf(deps: LookDeps, { atMs, unread }: Before, paths: readonly string[], ask: Ask): Promise<Seen[]> {
  const seen: Seen[] = []
  const isBehindLink = linkWatch(path => parentsOf(path, deps.workspace))
  for (const path of paths) {
    if (isOurs(deps, path)) continue
    // What is seen through a link is something else.
    const after = isBehindLink(path) ? absent : await stateOf(deps, path)
    const was = withModeOf(await ask.before(path, after), after)
    const isSame = isUnread(was) && isUnread(after) ? await isUntouched(path, unread.get(path)) : equal(was, after)
    // Nobody saved it, and nobody touched it either: a change of the index or of ignore rules alone.
    if (isSame || (isNotSaved(was) && (ask.isUntouched?.(path) === true || await isOlderThan(path, atMs)))) continue
    const absentFolders = was.kind === 'absent' ? ask.absentFolders(path) : []
    seen.push({ path, before: was, after, absentFolders, byGit: ask.byGit(path, was, after) })
  }
  return seen
}

/** Tells whether one of `foldersTo` a path is a link now: what is seen behind it is something else. */
export function linkWatch(foldersTo: (path: string) => readonly string[]): (path: string) => boolean {
  const known = new Map<string, boolean>()
  const isLink = (folder: string): boolean => {
    const found = known.get(folder)
    if (found !== undefined) return found
    let is = false
    try {
      is = lstatSync(folder).isSymbolicLink()
    } catch (error) {
      // Gone, or not to be looked at: the look at the path itself tells.
      if (errnoOf(error) === undefined) throw error
    }
    known.set(folder, is)
    return is
  }
  return path => foldersTo(path).some(isLink)
}

const isNotSaved = (state: FileState): boolean => state.kind === 'unknown' && state.reason === 'not-saved'

/** Without a first look the file was as git had it, and is a candidate now because it is not. */
async function isUntouched(path: string, then: Fingerprint | undefined): Promise<boolean> {
  const now = await fingerprintOf(path).catch(() => undefined)
  if (then === undefined || now === undefined) return false
  // Using a pipe moves its times.
  if (then.kind === 'special') return now.kind === 'special' && now.dev === then.dev && now.ino === then.ino && now.mode === then.mode
  return sameFingerprint(then, now)
}

/** Every write, rename and change of a mode moves the ctime, and no program can set it. */
async function isOlderThan(path: string, sinceMs: number): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined)
  return stat !== undefined && stat.ctimeMs < sinceMs - COARSE_CLOCK_MS
}

/** Two unknown states tell of no change; one of them does. */
export function equal(a: FileState, b: FileState): boolean {
  if (a.kind === 'unknown' || b.kind === 'unknown') return a.kind === b.kind
  return a.kind === 'file' ? sameState(a, b) : JSON.stringify(a) === JSON.stringify(b)
}

const contentOf = (state: FileState): string | undefined =>
  state.kind === 'file' ? state.digest : state.kind === 'link' ? `-> ${state.target}` : undefined

export const contentsOf = (states: Iterable<FileState>): ReadonlySet<string | undefined> => new Set([...states].map(contentOf).filter(content => content !== undefined))

/** A file keeps its birth time when it is moved; an old one that is none of those saved came from where nobody looked. */
export const isMade = async (path: string, after: FileState, sinceMs: number, saved: ReadonlySet<string | undefined>): Promise<boolean> =>
  saved.has(contentOf(after)) || await isBornSince(path, sinceMs)

/** False for a file that is older than the look: it was there, and nobody saved it. */
async function isBornSince(path: string, sinceMs: number): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined)
  return stat === undefined || stat.birthtimeMs >= sinceMs - COARSE_CLOCK_MS
}

/** The kernel's clock for times of files is coarse. */
const COARSE_CLOCK_MS = 50
