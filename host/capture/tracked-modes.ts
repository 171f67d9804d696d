import type { BigIntStats } from 'node:fs'
import { setImmediate as breathe } from 'node:timers/promises'
import type { IndexEntry, IndexView } from './git-index-copy.ts'
import type { GitTree } from './git-tree.ts'
import { lookNow } from './stat-now.ts'

export interface TrackedModes {
  /** Permission bits, by path. */
  readonly modes: ReadonlyMap<string, number>
  /** Files that changed within the second of their ctime, which git cannot see. */
  readonly touched: ReadonlySet<string>
}

interface Memory extends TrackedModes {
  readonly entries: IndexView['entries']
  readonly isWhole: boolean
  /** Files that could change within the second of their ctime, with that ctime. */
  readonly young: ReadonlyMap<string, bigint>
}

/** What was learned of a tree, for as long as somebody holds it. */
const learned = new WeakMap<GitTree, Memory>()

/** A look may take this long over files it never looked at; the rest waits for the next one. */
const MAX_MS = 2_000
const CHUNK = 500

/**
 * Permission bits of tracked files, of which git keeps no more than whether a file is executable. A file is looked
 * at once per version of its index entry: the entry's ctime is that of the file for as long as git calls it
 * unchanged, and every change of a mode moves the ctime. Git compares whole seconds, so a file whose second was not
 * over when we looked is looked at again. Files that are not as the index has them are left out.
 */
export async function trackedModes(tree: GitTree, { entries }: IndexView): Promise<TrackedModes> {
  const former = learned.get(tree)
  if (former?.entries === entries && former.isWhole && former.young.size === 0) return former
  const start = performance.now()
  // The kernel's clock for times of files may be late.
  const lastOldSec = Math.floor(Date.now() / 1000) - 2
  const modes = new Map<string, number>()
  const touched = new Set<string>()
  const young = new Map<string, bigint>()
  let looks = 0
  let isWhole = true
  for (const [path, entry] of entries) {
    if (entry.mode === '120000' || entry.mode === '160000') continue
    const old = former?.entries.get(path)
    const isSame = old !== undefined && old.ctime === entry.ctime && old.ino === entry.ino
    const youngNs = isSame ? former?.young.get(path) : undefined
    const known = isSame && youngNs === undefined ? former?.modes.get(path) : undefined
    if (isSame && former?.touched.has(path) === true) touched.add(path)
    else if (known !== undefined) modes.set(path, known)
    else if (performance.now() - start > MAX_MS) isWhole = false
    else {
      if (++looks % CHUNK === 0) await breathe()
      const stat = lookNow(`${tree.root}/${path}`)
      const sec = stat === undefined ? 0 : Number(stat.ctimeNs / NS)
      if (stat?.isFile() !== true || sec !== secondsOf(entry.ctime)) continue
      if (youngNs !== undefined && youngNs !== stat.ctimeNs) {
        touched.add(path)
        continue
      }
      modes.set(path, Number(stat.mode & 0o7777n))
      if (sec > lastOldSec) young.set(path, stat.ctimeNs)
    }
  }
  const memory = { entries, modes, touched, young, isWhole }
  learned.set(tree, memory)
  return memory
}

/** Of an entry's `ctime`. */
const secondsOf = (ctime: string): number => Number.parseInt(ctime, 10)

const NS = 1_000_000_000n

/** True when the file was not touched since git noted its stat data. Some programs write indexes without nanoseconds. */
export function isAsIndexed(stat: BigIntStats, { ctime }: IndexEntry): boolean {
  const seconds = stat.ctimeNs / NS
  return ctime === `${seconds}:${stat.ctimeNs % NS}` || ctime === `${seconds}:0`
}
