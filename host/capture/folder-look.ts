import { readdirSync, type Dirent } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import { errnoOf } from '../restore/file-system.ts'
import { fingerprintNow, isRacy, sameFingerprint, type Fingerprint } from './fingerprint.ts'
import { versionOf } from './stat-now.ts'

/** A folder as it was seen. */
export interface FolderSeen {
  /** Permission bits. */
  readonly mode: number
  /** Nothing at all is in it. */
  readonly isEmpty: boolean
}

/** The folders of a workspace or a part of it, all paths absolute: what git does not keep. */
export interface FolderLook {
  readonly folders: ReadonlyMap<string, FolderSeen>
  /** Pipes, sockets and devices, which git does not list. */
  readonly specials: ReadonlySet<string>
  /** Folders that could not be listed. */
  readonly unreadable: ReadonlySet<string>
  /** Paths whose inside this does not tell: not entered, or not listed. */
  readonly closed: ReadonlySet<string>
  /** False: there may be more than was found. */
  readonly isComplete: boolean
}

interface Listing {
  readonly print: Fingerprint
  readonly folders: readonly string[]
  readonly specials: readonly string[]
  readonly isEmpty: boolean
  readonly isRepository: boolean
  readonly hasRules: boolean
}

/** Listings of folders that did not change since, and which folders were found to be ignored. */
export interface FolderMemory {
  listings: ReadonlyMap<string, Listing>
  readonly ignored: Map<string, { readonly version: string, readonly isIgnored: boolean }>
}

export const makeFolderMemory = (): FolderMemory => ({ listings: new Map(), ignored: new Map() })

export interface FolderDisk {
  /** Undefined for an absent path; throws for any other error of the system. */
  lstat(path: string): Fingerprint | undefined
  readdir(path: string): readonly Pick<Dirent, 'name' | 'isDirectory' | 'isFile' | 'isSymbolicLink'>[]
}

const disk: FolderDisk = { lstat: fingerprintNow, readdir: path => readdirSync(path, { withFileTypes: true }) }

export interface FolderOptions {
  /** Absolute; where to begin. */
  readonly top: string
  readonly memory: FolderMemory
  /** Folders that hold something tracked or untracked, and so are not ignored. */
  isKnown(folder: string): boolean
  /** Of `folders`, those that are not to be entered. */
  ignoredOf(folders: readonly string[]): Promise<ReadonlySet<string>>
  /** Changes when the rules outside of the tree do. */
  readonly rules: string
  readonly keepOut: readonly string[]
  readonly maxFolders: number
  readonly maxMs: number
}

const BREATH_MS = 10

/**
 * Lists every folder below `top` that is neither ignored nor another repository. A folder is listed only when its
 * own stat data are new: making or removing an entry moves them. Never follows a link, never throws for an error
 * of the system.
 */
export async function lookAtFolders(options: FolderOptions, io: FolderDisk = disk): Promise<FolderLook> {
  const { top, memory, keepOut } = options
  const start = performance.now()
  const folders = new Map<string, FolderSeen>()
  const specials = new Set<string>()
  const unreadable = new Set<string>()
  const closed = new Set<string>()
  const listings = new Map<string, Listing>()
  const found = { folders, specials, unreadable, closed }
  let breathed = start

  let level = [top]
  while (level.length > 0) {
    const doubtful: string[] = []
    const next: string[] = []
    for (const folder of level) {
      if (listings.size >= options.maxFolders || performance.now() - start > options.maxMs) return { ...found, isComplete: false }
      if (performance.now() - breathed > BREATH_MS) {
        await breathe()
        breathed = performance.now()
      }
      const listing = listingOf(folder, memory.listings.get(folder), io)
      if (listing === undefined) continue
      if (listing === 'unreadable') unreadable.add(folder)
      if (listing === 'unreadable' || (listing.isRepository && folder !== top)) {
        closed.add(folder)
        continue
      }
      listings.set(folder, listing)
      if (folder !== top) folders.set(folder, { mode: listing.print.mode & 0o7777, isEmpty: listing.isEmpty })
      for (const name of listing.specials) specials.add(`${folder}/${name}`)
      for (const name of listing.folders) {
        const path = `${folder}/${name}`
        if (name === '.git' || keepOut.includes(path)) closed.add(path)
        else if (options.isKnown(path)) next.push(path)
        else doubtful.push(path)
      }
    }
    const ignored = await ignoredAmong(doubtful, options, listings)
    for (const path of doubtful) {
      if (ignored.has(path)) closed.add(path)
      else next.push(path)
    }
    level = next
  }
  memory.listings = listings
  return { ...found, isComplete: true }
}

/** True when the look would have found something at `path`. */
export function vouchesFor({ isComplete, closed }: FolderLook, path: string): boolean {
  if (!isComplete) return false
  for (let at = path; ; at = dirname(at)) {
    if (closed.has(at)) return false
    if (at === dirname(at)) return true
  }
}

function listingOf(folder: string, known: Listing | undefined, io: FolderDisk): Listing | 'unreadable' | undefined {
  try {
    const lookedAtMs = Date.now()
    const print = io.lstat(folder)
    if (print?.kind !== 'folder') return undefined
    if (known !== undefined && sameFingerprint(known.print, print) && !isRacy(print, lookedAtMs)) return known
    const entries = io.readdir(folder)
    return {
      print, isEmpty: entries.length === 0,
      folders: entries.filter(entry => entry.isDirectory()).map(({ name }) => name),
      specials: entries.filter(entry => !entry.isDirectory() && !entry.isFile() && !entry.isSymbolicLink()).map(({ name }) => name),
      isRepository: entries.some(({ name }) => name === '.git'),
      hasRules: entries.some(({ name }) => name === '.gitignore'),
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR' ? undefined : 'unreadable'
  }
}

/** Asked anew when a rule on the way to a folder is another one than before. */
async function ignoredAmong(
  paths: readonly string[], { top, memory, ignoredOf, rules }: FolderOptions, listings: ReadonlyMap<string, Listing>,
): Promise<ReadonlySet<string>> {
  const versions = new Map(paths.map(path => [path, [rules, ...parentsOf(path, top).filter(folder => listings.get(folder)?.hasRules === true)
    .map(folder => versionOf(`${folder}/.gitignore`))].join('\n')]))
  const unasked = paths.filter(path => memory.ignored.get(path)?.version !== versions.get(path))
  const ignored = unasked.length === 0 ? new Set<string>() : await ignoredOf(unasked)
  for (const path of unasked) memory.ignored.set(path, { version: versions.get(path)!, isIgnored: ignored.has(path) })
  return new Set(paths.filter(path => memory.ignored.get(path)!.isIgnored))
}

/** Folders from `top` to the one that holds `path`. */
function parentsOf(path: string, top: string): string[] {
  const parents: string[] = []
  for (let at = dirname(path); at.length >= top.length; at = dirname(at)) {
    parents.push(at)
    if (at === dirname(at)) break
  }
  return parents
}
