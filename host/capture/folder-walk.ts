import { readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setImmediate as breathe } from 'node:timers/promises'
import { errnoOf, nodeFileSystem, type FileSystem } from '../restore/file-system.ts'
import { fingerprintNow, fingerprintOf, isRacy, sameFingerprint, type Fingerprint } from './fingerprint.ts'

export type WalkFileSystem = Pick<FileSystem, 'lstat' | 'realpath'> & { readdir(path: string): Promise<string[]> }

/** With this one a walk looks without a turn of the event loop, which is most of what a look costs. */
export const nodeWalkFileSystem: WalkFileSystem = { ...nodeFileSystem, readdir: path => readdir(path) }

export interface WalkOptions {
  readonly budget: {
    /** Entries of any kind, folders too: a million empty folders take as long. */
    readonly maxFiles: number
    readonly maxMs: number
    readonly maxEntriesPerFolder?: number
  }
  /** Names of folders not to enter, anywhere below the root; `.git` is never entered. */
  readonly ignore: ReadonlySet<string>
  /** Absolute folders never to enter: the DSH home, our store. */
  readonly keepOut?: readonly string[]
  readonly home?: string
}

export type SkipReason =
  | 'ignored' // by its name
  | 'cache' // holds a CACHEDIR.TAG (bford.info/cachedir), as Cargo's `target` does
  | 'repository' // a bare git repository, or a git folder under another name
  | 'other-file-system' // something is mounted there
  | 'keep-out'

/** What a folder held, by lstat alone. Not one moment: a program that writes meanwhile is seen in part. */
export interface Walk {
  /** Unix time before the first look. */
  readonly startedAtMs: number
  /** All that is not a folder, links and special files included. */
  readonly files: ReadonlyMap<string, Fingerprint>
  /** Folders below the root that were entered. */
  readonly folders: ReadonlyMap<string, Fingerprint>
  /** False: what is missing in `files` and `folders` may exist. */
  readonly complete: boolean
  readonly why?: 'too-many-files' | 'too-slow' | 'refused-root'
  /** Paths that could not be looked at or listed; also names that are no text. */
  readonly unreadable: ReadonlySet<string>
  /** Folders that were not entered. */
  readonly skipped: ReadonlyMap<string, SkipReason>
  /** Those on another file system and those that could not be listed, as they look from here. */
  readonly mounts: ReadonlyMap<string, Fingerprint>
}

/** Looks between two turns of the event loop: a fraction of a millisecond. */
const LOOKS_IN_FLIGHT = 128
const LISTS_IN_FLIGHT = 16
/** Looks in one huge folder after which others get a turn: some milliseconds. */
const BREATH = 16 * LOOKS_IN_FLIGHT

/**
 * Looks at everything below `root`. Never follows a link, never reads a file, never throws for an error of the
 * system. Refuses a root that is a file system's top, the home folder or above it, inside a folder to keep out of,
 * or no folder; an absent root is a complete walk that found nothing.
 */
export async function walkFolder(
  root: string, { budget, ignore, keepOut = [], home = homedir() }: WalkOptions, fs: WalkFileSystem = nodeWalkFileSystem,
): Promise<Walk> {
  const startedAtMs = Date.now()
  const start = performance.now()
  const files = new Map<string, Fingerprint>()
  const folders = new Map<string, Fingerprint>()
  const unreadable = new Set<string>()
  const skipped = new Map<string, SkipReason>()
  const mounts = new Map<string, Fingerprint>()
  const found = { startedAtMs, files, folders, unreadable, skipped, mounts }
  const cut = (why: NonNullable<Walk['why']>): Walk => ({ ...found, complete: false, why })

  if (await isRefused(root, home, keepOut, fs)) return cut('refused-root')
  const top = await lookAt(root, unreadable, fs)
  if (top === undefined) return { ...found, complete: true }
  if (top.kind !== 'folder') return cut('refused-root')

  let count = 0
  const pending = [root]
  while (pending.length > 0) {
    const batch = pending.splice(-LISTS_IN_FLIGHT)
    const lists = await Promise.all(batch.map(folder => list(folder, unreadable, fs)))
    const paths: string[] = []
    for (const [index, folder] of batch.entries()) {
      const names = lists[index]
      const reason = names === undefined ? undefined : insideReason(names)
      if (names === undefined) {
        const print = folders.get(folder)
        if (print !== undefined && unreadable.has(folder)) mounts.set(folder, print)
        folders.delete(folder)
      }
      else if (folder !== root && reason !== undefined) {
        folders.delete(folder)
        skipped.set(folder, reason)
      } else if (reason === 'repository') return cut('refused-root')
      else if (names.length > (budget.maxEntriesPerFolder ?? Infinity)) return cut('too-many-files')
      else for (const name of names) paths.push(folder === '/' ? folder + name : `${folder}/${name}`)
    }
    count += paths.length
    if (count > budget.maxFiles) return cut('too-many-files')

    for (let from = 0; from < paths.length || from === 0; from += LOOKS_IN_FLIGHT) {
      if (performance.now() - start >= budget.maxMs) return cut('too-slow')
      if (from % BREATH === BREATH - LOOKS_IN_FLIGHT) await breathe()
      const some = paths.slice(from, from + LOOKS_IN_FLIGHT)
      const looks = fs === nodeWalkFileSystem
        ? some.map(path => lookAtNow(path, unreadable))
        : await Promise.all(some.map(path => lookAt(path, unreadable, fs)))
      for (const [index, path] of some.entries()) {
        const seen = looks[index]
        if (seen === undefined) continue
        if (seen.kind !== 'folder') files.set(path, seen)
        else {
          const reason = outsideReason(path, seen, top, ignore, keepOut)
          if (reason === 'other-file-system') mounts.set(path, seen)
          if (reason !== undefined) skipped.set(path, reason)
          else {
            folders.set(path, seen)
            pending.push(path)
          }
        }
      }
    }
  }
  return { ...found, complete: true }
}

export interface WalkChanges {
  readonly changed: readonly string[]
  readonly created: readonly string[]
  readonly deleted: readonly string[]
  readonly createdFolders: readonly string[]
  readonly deletedFolders: readonly string[]
  /** Look the same and were written too shortly before the first walk to be sure: compare their bytes. */
  readonly racy: readonly string[]
}

/**
 * What differs, each list sorted. Leaves out what the walks cannot vouch for: nothing is created when the first
 * walk may have missed it, nothing is deleted when the second one may have. A rename is a deletion and a creation.
 */
export function compareWalks(before: Walk, after: Walk): WalkChanges {
  const changed: string[] = []
  const racy: string[] = []
  for (const [path, old] of before.files) {
    const now = after.files.get(path)
    if (now === undefined) continue
    if (!sameFingerprint(old, now)) changed.push(path)
    else if (isRacy(old, before.startedAtMs)) racy.push(path)
  }
  return {
    changed: changed.sort(),
    created: missingFiles(after, before),
    deleted: missingFiles(before, after),
    createdFolders: missingFolders(after, before),
    deletedFolders: missingFolders(before, after),
    racy: racy.sort(),
  }
}

const missingFiles = (there: Walk, gone: Walk): string[] => [...there.files.keys()]
  .filter(path => !gone.files.has(path) && !gone.unreadable.has(path) && vouches(gone, dirname(path))).sort()

const missingFolders = (there: Walk, gone: Walk): string[] => [...there.folders.keys()]
  .filter(path => !gone.folders.has(path) && vouches(gone, path)).sort()

/** True when the walk would have found something in `folder`. */
export function vouches(walk: Walk, folder: string): boolean {
  if (!walk.complete) return false
  if (walk.unreadable.size === 0 && walk.skipped.size === 0) return true
  for (let path = folder; ; path = dirname(path)) {
    if (walk.unreadable.has(path) || walk.skipped.has(path)) return false
    if (path === dirname(path)) return true
  }
}

async function isRefused(
  root: string, home: string, keepOut: readonly string[], fs: WalkFileSystem,
): Promise<boolean> {
  // Both as named and as they really are: the home folder is often behind a link.
  const roots = [root, await realPathOf(root, fs)]
  const homes = [home, await realPathOf(home, fs)]
  return roots.some(path => dirname(path) === path || homes.some(below => isWithin(below, path))
    || keepOut.some(folder => isWithin(path, folder)))
}

async function realPathOf(path: string, fs: WalkFileSystem): Promise<string> {
  try {
    return await fs.realpath(path)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return path
  }
}

const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(join(folder, '/'))

/** Why not to enter a folder, as its own entry tells. */
function outsideReason(
  path: string, seen: Fingerprint, top: Fingerprint, ignore: ReadonlySet<string>, keepOut: readonly string[],
): SkipReason | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (name === '.git' || ignore.has(name)) return 'ignored'
  if (seen.dev !== top.dev) return 'other-file-system'
  return keepOut.includes(path) ? 'keep-out' : undefined
}

/** Why not to go on in a folder, as the names in it tell. */
function insideReason(names: readonly string[]): SkipReason | undefined {
  if (names.includes('CACHEDIR.TAG')) return 'cache'
  return ['HEAD', 'objects', 'refs'].every(name => names.includes(name)) ? 'repository' : undefined
}

/** Names in a folder; undefined when it is gone or, noted in `unreadable`, cannot be listed. */
async function list(folder: string, unreadable: Set<string>, fs: WalkFileSystem): Promise<string[] | undefined> {
  try {
    return await fs.readdir(folder)
  } catch (error) {
    const code = errnoOf(error)
    if (code === undefined) throw error
    // ENOTDIR is no deletion here: the path was a folder a moment ago and is something else now.
    if (code !== 'ENOENT') unreadable.add(folder)
    return undefined
  }
}

/** Undefined when the path is gone or, noted in `unreadable`, cannot be looked at. */
async function lookAt(path: string, unreadable: Set<string>, fs: WalkFileSystem): Promise<Fingerprint | undefined> {
  try {
    return readable(path, await fingerprintOf(path, fs), unreadable)
  } catch (error) {
    return noted(path, error, unreadable)
  }
}

function lookAtNow(path: string, unreadable: Set<string>): Fingerprint | undefined {
  try {
    return readable(path, fingerprintNow(path), unreadable)
  } catch (error) {
    return noted(path, error, unreadable)
  }
}

/** A name that is no text comes with this character in place of its bytes, and such a path is not there. */
function readable(path: string, seen: Fingerprint | undefined, unreadable: Set<string>): Fingerprint | undefined {
  if (seen === undefined && path.includes('\ufffd')) unreadable.add(path)
  return seen
}

function noted(path: string, error: unknown, unreadable: Set<string>): undefined {
  if (errnoOf(error) === undefined) throw error
  unreadable.add(path)
}
