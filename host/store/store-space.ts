import { join } from 'node:path'
import type { SessionId } from '../../src/ids.ts'
import { unlessMissing, type StoreFs } from './store-fs.ts'
import { parseSegmentName, sessionFileName, type StoreLayout } from './store-layout.ts'

/** What the records of all sessions may take. */
export interface StoreLimits {
  /** Bytes of all segment files together. */
  readonly maxBytes: number
  /** Days that a session's records are kept after its last one. */
  readonly maxDays: number
}

/** Room on the disk, shared by the sessions of a store. Throws environment errors. */
export interface StoreSpace {
  /**
   * Sets `bytes` aside for an append of `session`, which writes to its segment `own`. Where the limit would be passed,
   * the oldest records go first: segments of other sessions, least recently used ones first, then the session's own.
   * Undefined when that is not enough; nothing may be written then.
   */
  reserve(bytes: number, session: SessionId, own: number | undefined): Promise<Reserved | undefined>
  /** Removes the records of sessions that are over the age limit; `live` ones are kept. */
  tidy(live: ReadonlySet<SessionId>): Promise<void>
  usage(): Promise<{ readonly bytes: number; readonly maxBytes: number }>
}

export interface Reserved {
  /** Segments of the session itself had to go: what is known of its blobs is to be read again. */
  readonly hasTakenOwn: boolean
  /** To be called once, with what the segment grew by. */
  settle(grown: number): void
}

interface Segment {
  readonly path: string
  /** As in file names. */
  readonly name: string
  readonly segment: number
  readonly bytes: number
  readonly mtimeMs: number
}

/** A session's newest segment may be one that another process writes to, until it has been quiet for so long. */
const QUIET_MS = 60 * 60_000
/** How old a count may be: near the limit, and elsewhere. Another host on the same home adds to the store as well. */
const COUNT_MS = { near: 0, far: 5_000 }
const NEAR = 0.5
/** Reclaiming stops a little below the limit, so that not every append has to look for room. */
const ROOM_LEFT = 0.02

/**
 * Within one process the limit is never passed. Two hosts on one home count each other's segments at every append
 * once half of it is used; they can pass the limit only by what one of them adds within five seconds before that.
 */
export function makeStoreSpace(fs: StoreFs, layout: StoreLayout, limits: () => StoreLimits, now = Date.now): StoreSpace {
  let counted: { bytes: number; atMs: number } | undefined
  /** Set aside and not settled. */
  let pending = 0
  let tail: Promise<unknown> = Promise.resolve()

  const inLine = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = tail.then(work)
    tail = mine.catch(() => {
      // Told to who asked.
    })
    return mine
  }

  const count = async (): Promise<readonly Segment[]> => {
    const segments = await listSegments(fs, layout)
    counted = { bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0), atMs: now() }
    return segments
  }

  const remove = async ({ path, bytes }: Segment): Promise<void> => {
    await unlessMissing(fs.unlink(path), undefined)
    counted!.bytes -= bytes
  }

  const makeRoom = async (bytes: number, session: SessionId, own: number | undefined): Promise<boolean> => {
    const { maxBytes } = limits()
    const name = sessionFileName(session)
    const segments = await count()
    const busy = await busySessions(fs, layout)
    let hasTakenOwn = false
    for (const segment of inOrderOfAge(segments, name, now()).filter(one => !busy.has(one.name) && !(one.name === name && one.segment === own))) {
      if (counted!.bytes + pending + bytes <= maxBytes * (1 - ROOM_LEFT)) break
      await remove(segment)
      hasTakenOwn ||= segment.name === name
    }
    return hasTakenOwn
  }

  return {
    reserve: (bytes, session, own) => inLine(async () => {
      const { maxBytes } = limits()
      if (bytes > maxBytes) return undefined
      const isNear = counted === undefined || counted.bytes + pending + bytes > maxBytes * NEAR
      if (counted === undefined || now() - counted.atMs >= (isNear ? COUNT_MS.near : COUNT_MS.far)) await count()
      const fits = (): boolean => counted!.bytes + pending + bytes <= maxBytes
      const hasTakenOwn = fits() ? false : await makeRoom(bytes, session, own)
      if (!fits()) return undefined
      pending += bytes
      return {
        hasTakenOwn,
        settle: (grown) => {
          pending -= bytes
          counted!.bytes += grown
        },
      }
    }),

    tidy: live => inLine(async () => {
      const segments = await count()
      const busy = await busySessions(fs, layout)
      for (const session of live) busy.add(sessionFileName(session))
      const oldest = now() - limits().maxDays * 24 * 60 * 60_000
      const used = lastUse(segments)
      for (const segment of segments) if (!busy.has(segment.name) && used.get(segment.name)! < oldest) await remove(segment)
    }),

    usage: () => inLine(async () => {
      await count()
      return { bytes: counted!.bytes, maxBytes: limits().maxBytes }
    }),
  }
}

async function listSegments(fs: StoreFs, layout: StoreLayout): Promise<readonly Segment[]> {
  const segments: Segment[] = []
  for (const file of await unlessMissing(fs.readdir(layout.packs), [])) {
    const path = join(layout.packs, file)
    const facts = await fs.peek(path)
    const parsed = parseSegmentName(file)
    // What is no segment takes room all the same.
    if (facts) segments.push({ path, name: parsed?.session ?? '', segment: parsed?.segment ?? 0, bytes: facts.size, mtimeMs: facts.mtimeMs })
  }
  return segments
}

/** Sessions with an op under way or cut off, in the form of file names: their records are needed to end it. */
async function busySessions(fs: StoreFs, layout: StoreLayout): Promise<Set<string>> {
  const ops = await unlessMissing(fs.readdir(layout.ops), [])
  const locks = await unlessMissing(fs.readdir(layout.locks), [])
  return new Set(['', ...ops.map(file => file.split('.')[0]!), ...locks.map(file => file.split('.lock')[0]!)])
}

/** Those that may go, the one to go first in front. */
function inOrderOfAge(segments: readonly Segment[], own: string, nowMs: number): readonly Segment[] {
  const used = lastUse(segments)
  const newest = new Map<string, number>()
  for (const { name, segment } of segments) newest.set(name, Math.max(segment, newest.get(name) ?? 0))
  return segments
    .filter(({ name, segment, mtimeMs }) => segment !== newest.get(name) || nowMs - mtimeMs > QUIET_MS)
    .toSorted((a, b) => Number(a.name === own) - Number(b.name === own) || used.get(a.name)! - used.get(b.name)!
      || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.segment - b.segment))
}

function lastUse(segments: readonly Segment[]): ReadonlyMap<string, number> {
  const used = new Map<string, number>()
  for (const { name, mtimeMs } of segments) used.set(name, Math.max(mtimeMs, used.get(name) ?? 0))
  return used
}
