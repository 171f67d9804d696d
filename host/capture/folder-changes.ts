import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { absent, unknown, type FileState } from '../../src/checkpoint/file-state.ts'
import { errnoOf } from '../restore/file-system.ts'
import { vouchesFor, type FolderLook, type FolderSeen } from './folder-look.ts'
import { vouches, type Walk } from './folder-walk.ts'
import type { Seen } from './look.ts'
import { linkWatch } from './seen.ts'
import { lookNow } from './stat-now.ts'

/** What two looks need to tell of folders, whether git or a walk found them. */
export interface FolderFacts {
  readonly folders: ReadonlyMap<string, FolderSeen>
  readonly specials: ReadonlySet<string>
  readonly unreadable: ReadonlySet<string>
  /** True when the look would have found something at `path`. */
  vouches(path: string): boolean
}

export const factsOfLook = (look: FolderLook): FolderFacts => ({ ...look, vouches: path => vouchesFor(look, path) })

export function factsOfWalk(walk: Walk): FolderFacts {
  const held = new Set([...walk.files.keys(), ...walk.folders.keys(), ...walk.unreadable, ...walk.skipped.keys()].map(path => dirname(path)))
  return {
    folders: new Map([...walk.folders].map(([path, { mode }]) => [path, { mode: mode & 0o7777, isEmpty: !held.has(path) }])),
    // A walk lists these with the files.
    specials: new Set(),
    unreadable: walk.unreadable,
    vouches: path => vouches(walk, path),
  }
}

/** An empty folder that was at `path`; one with something in it comes back with that. */
export function emptyFolderAt(path: string, { folders }: FolderFacts): FileState | undefined {
  const folder = folders.get(path)
  return folder?.isEmpty === true ? { kind: 'folder', mode: folder.mode } : undefined
}

/** Parents of `path` that were made since the look before, outermost first; `parents` are those in question. */
export const madeFolders = (before: FolderFacts, parents: readonly string[], sinceMs: number): string[] =>
  parents.filter(folder => !before.folders.has(folder) && (before.vouches(folder) || isBornSince(folder, sinceMs)))

/**
 * Folders and special files that came, went or cannot be looked into any more, beside the changed files `seen`.
 * A folder is named only where no file brings it along: a made one when nothing is in it, a removed one when
 * nothing in it comes back, or when its mode would be lost.
 */
export function changedFolders({ before, after, seen, sinceMs, parentsOf }: {
  readonly before: FolderFacts
  readonly after: FolderFacts
  readonly seen: readonly Seen[]
  readonly sinceMs: number
  parentsOf(path: string): readonly string[]
}): Seen[] {
  const named = new Set(seen.map(({ path }) => path))
  const changes: Seen[] = []
  const add = (path: string, was: FileState, now: FileState, absentFolders: readonly string[] = [], byGit = false): void => {
    if (!named.has(path)) changes.push({ path, before: was, after: now, absentFolders, byGit })
  }
  const isMade = (path: string): boolean => before.vouches(path) || isBornSince(path, sinceMs)
  const isBehindLink = linkWatch(parentsOf)
  const isGone = (path: string): boolean => isBehindLink(path) || isAbsent(path)

  for (const [path, { mode, isEmpty }] of after.folders) {
    if (!isEmpty || before.folders.has(path) || !isMade(path)) continue
    add(path, absent, { kind: 'folder', mode }, madeFolders(before, parentsOf(path), sinceMs))
  }
  for (const path of after.specials) {
    if (!before.specials.has(path)) add(path, isMade(path) ? absent : unknown('not-saved'), unknown('special'), madeFolders(before, parentsOf(path), sinceMs))
  }
  for (const path of before.specials) {
    if (!after.specials.has(path) && isGone(path)) add(path, unknown('special'), absent)
  }

  const removed = [...before.folders].filter(([path]) => !after.folders.has(path) && !after.unreadable.has(path) && isGone(path))
  const comesBack = new Set([
    ...removed.map(([path]) => path),
    ...seen.filter(({ before: was }) => was.kind === 'file' || was.kind === 'link').map(({ path }) => path),
  ].flatMap(path => ancestorsOf(path)))
  // What comes back in it would bring it along with the mode that new folders get: a private one would be open to all.
  const usualMode = 0o777 & ~process.umask()
  // A move of HEAD that took all that was in a folder took the folder.
  const [byGit, byOthers] = [true, false].map(isGit => new Set(seen.filter(change => change.byGit === isGit).flatMap(({ path }) => ancestorsOf(path))))
  for (const [path, { mode }] of removed) if (!comesBack.has(path) || mode !== usualMode) add(path, { kind: 'folder', mode }, absent, [], byGit!.has(path) && !byOthers!.has(path))

  for (const path of after.unreadable) {
    const was = before.folders.get(path)
    if (was !== undefined) add(path, { kind: 'folder', mode: was.mode }, unknown('unreadable'))
  }
  return changes
}

function ancestorsOf(path: string): string[] {
  const folders: string[] = []
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) folders.push(at)
  return folders
}

/** Without a birth time (0) nothing is taken for new. */
function isBornSince(path: string, sinceMs: number): boolean {
  const stat = lookNow(path)
  return stat !== undefined && Number(stat.birthtimeMs) >= sinceMs
}

/** Only a clear answer of the system makes a path absent. */
function isAbsent(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return errnoOf(error) === 'ENOTDIR'
  }
}
