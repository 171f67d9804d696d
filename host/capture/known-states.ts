import { setImmediate as breathe } from 'node:timers/promises'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import type { Digest } from '../../src/ids.ts'
import { fingerprintOf, type Fingerprint } from './fingerprint.ts'
import type { Walk } from './folder-walk.ts'
import { isOurs, isUnread, type Before, type LookDeps } from './look.ts'
import { observePath } from './observe.ts'

/** A look gives way to others after so many milliseconds. */
const BREATH_MS = 10

/**
 * Reads what the cache does not know or the store does not have, within the budget: first `paths`, then `more`,
 * of which only the bytes are in question and not whether they are there.
 */
export async function readStates(
  deps: LookDeps, paths: readonly string[], more: readonly string[], fromMs: number, walk?: Walk,
): Promise<Pick<Before, 'known' | 'unread' | 'isComplete' | 'knowsNew'>> {
  const known = new Map<string, FileState>()
  const unread = new Map<string, Fingerprint>()
  const all = [...paths, ...more]
  let newBytes = 0
  let breathed = performance.now()
  let count = 0
  for (const path of all) {
    if (count >= deps.budget.maxFiles || newBytes > deps.budget.maxNewBytes || deps.now() - fromMs > deps.budget.maxMs) break
    count += 1
    if (isOurs(deps, path)) continue
    if (performance.now() - breathed > BREATH_MS) {
      await breathe()
      breathed = performance.now()
    }
    // The walk has just taken the fingerprint: a state known under it needs no look of its own.
    const seen = walk?.files.get(path)
    const remembered = seen === undefined ? undefined : deps.cache.known(path, seen)
    const isKept = remembered !== undefined && (remembered.kind !== 'file' || await deps.has(remembered.digest))
    const state = isKept ? remembered : await stateOf(deps, path, (bytes) => { newBytes += bytes }, remembered === undefined ? seen : undefined)
    known.set(path, state)
    const print = isUnread(state) ? seen ?? await fingerprintOf(path).catch(() => undefined) : undefined
    if (print !== undefined) unread.set(path, print)
  }
  return { known, unread, isComplete: count === all.length, knowsNew: count >= paths.length }
}

/** What a path is now; bytes that the store does not have are kept, and counted by `onRead`. */
export async function stateOf(deps: LookDeps, path: string, onRead: (bytes: number) => void = () => {}, seen?: Fingerprint): Promise<FileState> {
  const keep = async (digest: Digest, bytes: Uint8Array): Promise<void> => {
    onRead(bytes.length)
    await deps.keep(digest, bytes)
  }
  const state = await deps.cache.stateOf(path, { maxBytes: deps.maxFileBytes, seen, keep })
  if (state.kind !== 'file' || await deps.has(state.digest)) return state
  // Known from another session's look: this session's store does not have the bytes yet.
  const found = await observePath(path, { maxBytes: deps.maxFileBytes })
  if (found.state.kind === 'file' && found.bytes !== undefined) await keep(found.state.digest, found.bytes)
  return found.state
}
