import { join } from 'node:path'
import { isHeld } from './session-lock.ts'
import { errorCode, syncFolder, unlessMissing, type StoreFs } from './store-fs.ts'
import { gonePath, parseGoneName, parseSegmentName, type StoreLayout } from './store-layout.ts'

/** A file among the segments: what may go to make room, in which order, and how it goes. Throws environment errors. */
export interface StoredFile {
  readonly path: string
  /** Its session as in file names; empty for a file that is no segment. That one takes room all the same, and never goes. */
  readonly name: string
  readonly segment: number
  readonly bytes: number
  readonly mtimeMs: number
}

/** A file touched within so long may still be written to by its process; a session's newest one then stays. */
export const QUIET_MS = 60 * 60_000
/** How long a file that has been quiet counts as it was last seen. */
const WHOLE_LOOK_MS = 5_000

export interface PackList {
  /** New files and those not yet quiet are looked at each time, the others every five seconds: a store has thousands. */
  list(): Promise<readonly StoredFile[]>
  /** This process has just written to the file. */
  forget(path: string): void
}

/** Touches no disk before the first call. */
export function makePackList(fs: StoreFs, layout: StoreLayout, now: () => number): PackList {
  const known = new Map<string, StoredFile>()
  let wholeAtMs = -Infinity

  return {
    async list() {
      const nowMs = now()
      const isWhole = nowMs < wholeAtMs || nowMs - wholeAtMs >= WHOLE_LOOK_MS
      const paths = (await unlessMissing(fs.readdir(layout.packs), [])).map(file => ({ file, path: join(layout.packs, file) }))
      const found: StoredFile[] = []
      for (const { file, path } of paths) {
        const old = known.get(path)
        const one = isWhole || old === undefined || old.name === '' || nowMs - old.mtimeMs <= QUIET_MS ? await look(path, file) : old
        if (one !== undefined) found.push(one)
      }
      known.clear()
      for (const one of found) known.set(one.path, one)
      if (isWhole) wholeAtMs = nowMs
      return found
    },
    forget: path => void known.delete(path),
  }

  async function look(path: string, file: string): Promise<StoredFile | undefined> {
    const facts = await fs.peek(path)
    const parsed = parseSegmentName(file)
    return facts && { path, name: parsed?.session ?? '', segment: parsed?.segment ?? 0, bytes: facts.size, mtimeMs: facts.mtimeMs }
  }
}

/** Sessions with an op under way or cut off, in the form of file names: their records are needed to end it. */
export async function busySessions(fs: StoreFs, layout: StoreLayout): Promise<Set<string>> {
  const busy = new Set((await unlessMissing(fs.readdir(layout.ops), [])).map(file => file.split('.')[0]!))
  for (const file of await unlessMissing(fs.readdir(layout.locks), [])) {
    // A lock that a dead process left, without an op, stands for nothing.
    if (await isHeld(fs, join(layout.locks, file))) busy.add(file.split('.lock')[0]!)
  }
  return busy
}

/**
 * Segments that may go, the one to go first in front: least recently used sessions first, `last` behind all others,
 * within a session from its oldest segment on, so that what is missing is always missing at the front.
 */
export function inOrderOfUse(files: readonly StoredFile[], { busy, last, keep, nowMs }: {
  readonly busy: ReadonlySet<string>
  /** The session that needs the room. */
  readonly last?: string | undefined
  /** The segment it writes to. */
  readonly keep?: string | undefined
  readonly nowMs: number
}): readonly StoredFile[] {
  const used = lastUse(files)
  const newest = newestSegments(files)
  return files
    .filter(({ path, name, segment, mtimeMs }) => name !== '' && !busy.has(name) && path !== keep
      && (segment !== newest.get(name) || nowMs - mtimeMs > QUIET_MS))
    .toSorted((a, b) => Number(a.name === last) - Number(b.name === last) || used.get(a.name)! - used.get(b.name)!
      || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.segment - b.segment))
}

/** When each session was last written to, Unix milliseconds. */
export function lastUse(files: readonly StoredFile[]): ReadonlyMap<string, number> {
  const used = new Map<string, number>()
  for (const { name, mtimeMs } of files) used.set(name, Math.max(mtimeMs, used.get(name) ?? -Infinity))
  return used
}

function newestSegments(files: readonly StoredFile[]): ReadonlyMap<string, number> {
  const newest = new Map<string, number>()
  for (const { name, segment } of files) newest.set(name, Math.max(segment, newest.get(name) ?? 0))
  return newest
}

/**
 * Removes one segment of `files`. False when it stays: somebody wrote to it since it was listed, or the system refuses.
 * A session's newest segment leaves its number behind: without it the next one would take the number again, and
 * nothing would tell that records are missing.
 */
export async function removeSegment(fs: StoreFs, layout: StoreLayout, one: StoredFile, files: readonly StoredFile[]): Promise<boolean> {
  const isSame = async (): Promise<boolean> => {
    const facts = await fs.peek(one.path)
    return facts === undefined || (facts.mtimeMs === one.mtimeMs && facts.size === one.bytes)
  }
  try {
    if (!await isSame()) return false
    if (newestSegments(files).get(one.name) === one.segment) {
      await noteGone(fs, layout, one)
      if (!await isSame()) return false
    }
    await unlessMissing(fs.unlink(one.path), undefined)
    return true
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return false
  }
}

/** Durable when it resolves. At most one note per session: a later one stands for the earlier ones. */
async function noteGone(fs: StoreFs, layout: StoreLayout, { name, segment, mtimeMs }: StoredFile): Promise<void> {
  await (await fs.open(gonePath(layout, name, { segment, writtenAtMs: mtimeMs }), 'w', 0o600)).close()
  await syncFolder(fs, layout.packs)
  for (const file of await fs.readdir(layout.packs)) {
    const note = parseGoneName(file)
    if (note?.session === name && note.segment < segment) await unlessMissing(fs.unlink(join(layout.packs, file)), undefined)
  }
}
