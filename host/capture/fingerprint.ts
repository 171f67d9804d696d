import { lstatSync, type BigIntStats } from 'node:fs'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import type { Digest } from '../../src/ids.ts'
import { errnoOf, nodeFileSystem, type FileSystem } from '../restore/file-system.ts'
import { observePath, observeQuickly } from './observe.ts'

/**
 * What one lstat tells of a path. Two equal ones mean an unchanged path, with two exceptions: a write in the
 * same tick of the file system's clock as the look before (`isRacy`), and pages a program has mapped and
 * written whose times the kernel has not moved yet.
 */
export interface Fingerprint {
  readonly kind: 'file' | 'link' | 'folder' | 'special'
  readonly dev: number
  readonly ino: bigint
  readonly size: number
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
  /** `st_mode` whole: type and permission bits. */
  readonly mode: number
}

/** Git's rule for its index (Documentation/technical/racy-git) with room for file systems that count in 2 s steps. */
const RACY_NS = 2_000_000_000n

export const fingerprintFrom = (stat: BigIntStats): Fingerprint => ({
  kind: stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'special',
  dev: Number(stat.dev),
  ino: stat.ino,
  size: Number(stat.size),
  mtimeNs: stat.mtimeNs,
  ctimeNs: stat.ctimeNs,
  mode: Number(stat.mode),
})

/** Undefined when the path is absent; any other error of the system is thrown. */
export async function fingerprintOf(
  path: string, fs: Pick<FileSystem, 'lstat'> = nodeFileSystem,
): Promise<Fingerprint | undefined> {
  try {
    return fingerprintFrom(await fs.lstat(path))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}

/** The same without a turn of the event loop: a thousand take a few milliseconds. */
export function fingerprintNow(path: string): Fingerprint | undefined {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? undefined : fingerprintFrom(stat)
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export function sameFingerprint(a: Fingerprint, b: Fingerprint): boolean {
  return a.ctimeNs === b.ctimeNs && a.mtimeNs === b.mtimeNs && a.size === b.size && a.ino === b.ino
    && a.dev === b.dev && a.mode === b.mode
}

/**
 * A later write could leave this fingerprint as it is. By ctime alone: every write moves it and no program can
 * set it, while an mtime may lie in the future for years. A ctime in the future (the clock was set back) is racy.
 * `lookedAtMs`: Unix time right before the look.
 */
export const isRacy = (seen: Fingerprint, lookedAtMs: number): boolean =>
  seen.ctimeNs > BigInt(Math.floor(lookedAtMs)) * 1_000_000n - RACY_NS

type Keep = (digest: Digest, bytes: Buffer) => Promise<void> | void

export interface StateCache {
  /** The state read under this very fingerprint, when it is remembered: no look at the disk. */
  known(path: string, now: Fingerprint): FileState | undefined
  /**
   * What `path` is now; a file is read only when its fingerprint is new. `keep` gets the bytes of every file that
   * is read, before its state is remembered: a remembered state is one whose bytes were kept. Its error is passed on.
   */
  stateOf(path: string, how: {
    readonly maxBytes: number
    /** Taken a moment ago, when it was not `known`. */
    readonly seen?: Fingerprint | undefined
    readonly keep: Keep
  }): Promise<FileState>
  /** For when bytes that were kept may be gone. */
  clear(): void
}

/**
 * Least recently used paths go first. A racy state is returned and not remembered, so a fresh file is read again
 * the next time; unknown states are never remembered, as their cause may pass and finding them reads nothing.
 */
export function makeStateCache({ maxPaths = 200_000, fs = nodeFileSystem, now = Date.now }: {
  readonly maxPaths?: number
  readonly fs?: FileSystem
  readonly now?: () => number
} = {}): StateCache {
  // The quick calls are not in the port; what they cannot do is done through it.
  const isReal = fs === nodeFileSystem
  const remembered = new Map<string, { readonly seen: Fingerprint; readonly state: FileState }>()

  const known = (path: string, seen: Fingerprint): FileState | undefined => {
    const entry = remembered.get(path)
    if (entry === undefined) return undefined
    remembered.delete(path)
    if (!sameFingerprint(entry.seen, seen)) return undefined
    remembered.set(path, entry)
    return entry.state
  }

  const remember = (path: string, seen: Fingerprint, state: FileState): void => {
    remembered.delete(path)
    remembered.set(path, { seen, state })
    if (remembered.size > maxPaths) remembered.delete(remembered.keys().next().value!)
  }

  /** `observePath` tells by itself what it could not look at. */
  const look = async (path: string): Promise<Fingerprint | undefined> => {
    try {
      return isReal ? fingerprintNow(path) : await fingerprintOf(path, fs)
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      return undefined
    }
  }

  /** Undefined for what is not a small file at rest. */
  const readQuickly = async (path: string, maxBytes: number, lookedAtMs: number, keep: Keep): Promise<FileState | undefined> => {
    const quick = observeQuickly(path, maxBytes)
    if (quick === undefined) return undefined
    await keep(quick.state.digest, quick.bytes)
    const seen = fingerprintFrom(quick.stat)
    if (!isRacy(seen, lookedAtMs)) remember(path, seen, quick.state)
    return quick.state
  }

  return {
    known,
    clear: () => remembered.clear(),
    stateOf: async (path, { maxBytes, seen, keep }) => {
      const lookedAtMs = now()
      if (isReal && seen?.kind === 'file') {
        const quick = await readQuickly(path, maxBytes, lookedAtMs, keep)
        if (quick !== undefined) return quick
      }
      const before = await look(path)
      // The limit may have been lowered since the file was read.
      const old = before !== undefined && before.size <= maxBytes ? known(path, before) : undefined
      if (old !== undefined) return old
      const quick = isReal && before?.kind === 'file' ? await readQuickly(path, maxBytes, lookedAtMs, keep) : undefined
      if (quick !== undefined) return quick

      const { state, bytes } = await observePath(path, { maxBytes, fs })
      if (state.kind === 'file' && bytes !== undefined) await keep(state.digest, bytes)
      if (before === undefined || (state.kind !== 'file' && state.kind !== 'link')) return state
      const after = await look(path)
      if (after !== undefined && sameFingerprint(before, after) && !isRacy(after, lookedAtMs)) {
        remember(path, after, state)
      }
      return state
    },
  }
}
