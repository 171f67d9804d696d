import type { Digest } from '../../src/ids.ts'
import { observePath, observeQuickly, type Observation } from './observe.ts'

/** A look at a path that calls write; see `observePath` for what it gives and for its errors. */
export type FileLook = (path: string) => Promise<Observation>

/** Bytes remembered over all paths. */
const MAX_MEMORY = 8 * 1024 * 1024

/**
 * What a call finds at a path is mostly what the call before it left: comparing bytes is cheaper than taking
 * their digest again.
 */
export function makeFileLook(maxBytes: number): FileLook {
  /** What was last read at a path, oldest first. */
  const memory = new Map<string, { readonly bytes: Buffer; readonly digest: Digest }>()
  let remembered = 0

  const forget = (path: string): void => {
    remembered -= memory.get(path)?.bytes.length ?? 0
    memory.delete(path)
  }

  return async (path) => {
    const last = memory.get(path)
    const quick = observeQuickly(path, maxBytes, last)
    if (quick === undefined) return observePath(path, { maxBytes })
    const { state, bytes } = quick
    forget(path)
    memory.set(path, { bytes, digest: state.digest })
    remembered += bytes.length
    for (const oldest of memory.keys()) {
      if (remembered <= MAX_MEMORY) break
      forget(oldest)
    }
    return { state, bytes }
  }
}
