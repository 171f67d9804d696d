import type { SessionId } from '../../src/ids.ts'
import { busySessions, inOrderOfUse, lastUse, makePackList, removeSegment, type StoredFile } from './reclaim.ts'
import type { StoreFs } from './store-fs.ts'
import { segmentPath, sessionFileName, type StoreLayout } from './store-layout.ts'

/** What the records of all sessions may take. */
export interface StoreLimits {
  /** Bytes of all files among the segments together. */
  readonly maxBytes: number
  /** Days that a session's records are kept after its last one. */
  readonly maxDays: number
}

/** Room on the disk, shared by the sessions of a store. Throws environment errors. */
export interface StoreSpace {
  /**
   * Sets `bytes` aside for an append of `session`, which writes to its segment `own`. Where the limit would be passed,
   * the oldest records go first: segments of other sessions, least recently used ones first, then the session's own.
   * Undefined when all that may go would not be enough; nothing goes then, and nothing may be written.
   */
  reserve(bytes: number, session: SessionId, own: number | undefined): Promise<Reserved | undefined>
  /** Sets `bytes` aside for a file that is to take the place of a segment; undefined when that much is not free. Nothing goes for it. */
  lend(bytes: number): Promise<Pick<Reserved, 'settle'> | undefined>
  /** Runs `work` while nothing is set aside or removed. */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Removes the records of sessions that are over the age limit, `live` ones apart; then what is over a limit that was lowered. */
  tidy(live: ReadonlySet<SessionId>): Promise<void>
  usage(): Promise<{ readonly bytes: number; readonly maxBytes: number }>
}

export interface Reserved {
  /** Segments of the session itself had to go: what is known of its blobs is to be read again. */
  readonly hasTakenOwn: boolean
  /** To be called once, with what the segment grew by. */
  settle(grown: number): void
}

/** With more room than this a count may be so old: nobody writes and syncs as much meanwhile. With less, every append counts. */
const FAR_ROOM_BYTES = 512 * 1024 * 1024
const FAR_COUNT_MS = 1_000
/** Reclaiming stops a little below the limit, so that not every append has to look for room. */
const ROOM_LEFT = 0.02
/** Kept for a session with an op under way, whose own records stay: a full store must not refuse a rollback. */
const opRoomOf = (maxBytes: number): number => Math.max(maxBytes * 0.01, 64 * 1024)

/**
 * What is held: one process never passes the limit, at no moment. Two hosts on one home count each other's files before
 * each append, once less than 512 MiB are left. Together they can pass it by appends that began between the count
 * and the write of the other (one each), and by what the other one added in the last five seconds to a segment that
 * had been quiet for an hour. The next append of either makes it good.
 */
export function makeStoreSpace(fs: StoreFs, layout: StoreLayout, limits: () => StoreLimits, now = Date.now): StoreSpace {
  const packs = makePackList(fs, layout, now)
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

  const count = async (): Promise<readonly StoredFile[]> => {
    const files = await packs.list()
    counted = { bytes: sumOf(files), atMs: now() }
    return files
  }

  const remove = async (one: StoredFile, files: readonly StoredFile[]): Promise<boolean> => {
    const isGone = await removeSegment(fs, layout, one, files)
    if (isGone) counted!.bytes -= one.bytes
    return isGone
  }

  /**
   * Removes until there is room for `bytes` and a little more. With `isNeeded` nothing goes unless it makes the room.
   * `hasRoom` answers for an append of session `last`.
   */
  const makeRoom = async (bytes: number, { isNeeded, last, keep }: { isNeeded: boolean; last?: string; keep?: string | undefined }) => {
    const { maxBytes } = limits()
    const files = await count()
    const busy = await busySessions(fs, layout)
    const wanted = (): number => counted!.bytes + pending + bytes
    const most = last !== undefined && busy.has(last) ? maxBytes : maxBytes - opRoomOf(maxBytes)
    const removable = inOrderOfUse(files, { busy, last, keep, nowMs: now() })
    const taken = new Set<string>()
    if (wanted() > most && (!isNeeded || wanted() - sumOf(removable) <= most)) {
      for (const one of removable) {
        if (wanted() <= maxBytes - opRoomOf(maxBytes) - maxBytes * ROOM_LEFT) break
        if (await remove(one, files)) taken.add(one.name)
      }
    }
    return { taken, hasRoom: wanted() <= most }
  }

  return {
    reserve: (bytes, session, own) => inLine(async () => {
      const { maxBytes } = limits()
      if (bytes > maxBytes) return undefined
      const keep = own === undefined ? undefined : segmentPath(layout, session, own)
      const isNear = counted === undefined || counted.bytes + pending + bytes > maxBytes - FAR_ROOM_BYTES
      if (counted === undefined || isNear || Math.abs(now() - counted.atMs) >= FAR_COUNT_MS) await count()
      const last = sessionFileName(session)
      const fits = counted!.bytes + pending + bytes <= maxBytes - opRoomOf(maxBytes)
      const made = fits ? undefined : await makeRoom(bytes, { isNeeded: true, last, keep })
      if (made?.hasRoom === false) return undefined
      pending += bytes
      return {
        hasTakenOwn: made?.taken.has(last) === true,
        settle: (grown) => {
          pending -= bytes
          counted!.bytes += grown
          if (keep !== undefined) packs.forget(keep)
        },
      }
    }),

    lend: bytes => inLine(async () => {
      const { maxBytes } = limits()
      await count()
      if (counted!.bytes + pending + bytes > maxBytes - opRoomOf(maxBytes)) return undefined
      pending += bytes
      return {
        settle: (grown) => {
          pending -= bytes
          counted!.bytes += grown
        },
      }
    }),

    alone: inLine,

    tidy: live => inLine(async () => {
      const files = await count()
      const busy = await busySessions(fs, layout)
      for (const session of live) busy.add(sessionFileName(session))
      const oldest = now() - limits().maxDays * 24 * 60 * 60_000
      const used = lastUse(files)
      for (const one of inOrderOfUse(files, { busy, nowMs: now() })) if (used.get(one.name)! < oldest) await remove(one, files)
      if (counted!.bytes > limits().maxBytes) await makeRoom(0, { isNeeded: false })
    }),

    usage: () => inLine(async () => {
      await count()
      return { bytes: counted!.bytes, maxBytes: limits().maxBytes }
    }),
  }
}

const sumOf = (files: readonly StoredFile[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0)
