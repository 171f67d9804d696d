import type { BigIntStats } from 'node:fs'
import { setImmediate as breathe } from 'node:timers/promises'
import type { IndexEntry, IndexView } from './git-index-copy.ts'
import type { GitTree } from './git-tree.ts'
import { lookNow } from './stat-now.ts'

/** What was learned of a tree, for as long as somebody holds it. */
const learned = new WeakMap<GitTree, { readonly entries: IndexView['entries'], readonly modes: ReadonlyMap<string, number>, readonly isWhole: boolean }>()

/** A look may take this long over files it never looked at; the rest waits for the next one. */
const MAX_MS = 2_000
const CHUNK = 500

/**
 * Permission bits of tracked files, of which git keeps no more than whether a file is executable. A file is looked
 * at once per version of its index entry: the entry's ctime is that of the file for as long as git calls it
 * unchanged, and every change of a mode moves the ctime. Files that are not as the index has them are left out.
 */
export async function trackedModes(tree: GitTree, { entries }: IndexView): Promise<ReadonlyMap<string, number>> {
  const former = learned.get(tree)
  if (former?.entries === entries && former.isWhole) return former.modes
  const start = performance.now()
  const modes = new Map<string, number>()
  let looks = 0
  let isWhole = true
  for (const [path, entry] of entries) {
    if (entry.mode === '120000' || entry.mode === '160000') continue
    const old = former?.entries.get(path)
    const known = old !== undefined && old.ctime === entry.ctime && old.ino === entry.ino ? former?.modes.get(path) : undefined
    if (known !== undefined) {
      modes.set(path, known)
      continue
    }
    if (performance.now() - start > MAX_MS) {
      isWhole = false
      continue
    }
    if (++looks % CHUNK === 0) await breathe()
    const stat = lookNow(`${tree.root}/${path}`)
    if (stat?.isFile() === true && isAsIndexed(stat, entry)) modes.set(path, Number(stat.mode & 0o7777n))
  }
  learned.set(tree, { entries, modes, isWhole })
  return modes
}

/** True when the file was not touched since git noted its stat data. Some programs write indexes without nanoseconds. */
export function isAsIndexed(stat: BigIntStats, { ctime }: IndexEntry): boolean {
  const seconds = stat.ctimeNs / 1_000_000_000n
  return ctime === `${seconds}:${stat.ctimeNs % 1_000_000_000n}` || ctime === `${seconds}:0`
}
