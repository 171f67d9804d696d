import { join } from 'node:path'
import type { SessionId } from '../../src/ids.ts'
import { isRunning, thisHost } from './process-mark.ts'
import { reencodeSegment, Unwanted } from './re-encode.ts'
import { readSegmentHeader, type WriterMark } from './segment.ts'
import { takeLock } from './session-lock.ts'
import { errorCode, syncFolder, unlessMissing, type StoreFs } from './store-fs.ts'
import { parseSegmentName, sessionFileName, type StoreLayout } from './store-layout.ts'
import type { StoreSpace } from './store-space.ts'

/**
 * Goes through the segments that nobody writes to any more, over all sessions, and puts smaller ones in their place
 * (`re-encode.ts`). A temporary file beside the segment, synced and read back, takes its name; a reader that knew the
 * old file sees another inode and reads again. Whatever goes wrong, the segment stays as it is.
 */
export interface ReencodePass {
  /** One pass, segment by segment, until all are through, `isWanted` says no, or another process is at it. Throws nothing. */
  run(isWanted?: () => boolean): Promise<PassResult>
}
export interface PassResult {
  readonly segments: number
  readonly bytesBefore: number
  readonly bytesAfter: number
}

interface Deps {
  readonly fs: StoreFs
  readonly layout: StoreLayout
  readonly space: StoreSpace
  readonly mark: () => Promise<WriterMark>
  /** This store's journals: what they have sealed. */
  readonly journals: () => Iterable<readonly [SessionId, { sealed(): ReadonlyMap<number, number>; seal(minBytes: number): Promise<void> }]>
  readonly onProblem?: ((error: unknown) => void) | undefined
  readonly now: () => number
}

/** An own segment with less than this goes on, one that is sealed with less than the second figure is not worth the work. */
const SEAL_BYTES = 1024 * 1024
const MIN_BYTES = 64 * 1024
/** A process that made a segment writes to no earlier one; an append that was under way then has ended long ago. */
const SETTLED_MS = 10 * 60_000
const tempName = /^.+-[1-9]\d{0,8}\.pack\.tmp$/

export function makeReencodePass({ fs, layout, space, mark, journals, onProblem, now }: Deps): ReencodePass {
  /** Segments that stay as they are: size and inode by file name. */
  const tried = new Map<string, string>()

  return { run }

  async function run(isWanted = () => true): Promise<PassResult> {
    let result: PassResult = { segments: 0, bytesBefore: 0, bytesAfter: 0 }
    if (await fs.peek(layout.packs).catch(() => undefined) === undefined) return result
    const lock = await takeLock(fs, join(layout.root, 're-encode.lock'))
    if (!lock.ok) return result
    try {
      await removeTemps()
      for (const [, journal] of journals()) await journal.seal(SEAL_BYTES)
      for (const file of await fs.readdir(layout.packs)) {
        if (!isWanted()) break
        const gain = await tryOne(file, isWanted)
        if (gain !== undefined) result = { segments: result.segments + 1, bytesBefore: result.bytesBefore + gain.before, bytesAfter: result.bytesAfter + gain.after }
      }
    } catch (error) {
      onProblem?.(error)
    } finally {
      await lock.value().catch(() => {
        // A lock that stays is stale once this process ends.
      })
    }
    return result
  }

  /** Who holds the lock is the only one with a temporary file. */
  async function removeTemps(): Promise<void> {
    for (const file of await fs.readdir(layout.packs)) {
      if (tempName.test(file)) await unlessMissing(fs.unlink(join(layout.packs, file)), undefined)
    }
  }

  /** One segment that cannot be read or written costs no other one its turn. */
  async function tryOne(file: string, isWanted: () => boolean): Promise<{ before: number; after: number } | undefined> {
    const path = join(layout.packs, file)
    const temp = `${path}.tmp`
    try {
      const facts = await fs.peek(path)
      if (facts === undefined || facts.size < MIN_BYTES || parseSegmentName(file) === undefined) return undefined
      const look = `${facts.size} ${facts.ino}`
      if (tried.get(file) === look || !await isAtRest(file, path, facts)) return undefined
      const lent = await space.lend(facts.size)
      if (lent === undefined) return undefined
      let grown = 0
      try {
        const size = await reencodeSegment(fs, { path, size: facts.size, temp }, isWanted)
        if (size === undefined) tried.set(file, look)
        else if (await putInPlace(temp, path, facts)) grown = size - facts.size
      } finally {
        await unlessMissing(fs.unlink(temp), undefined)
        lent.settle(grown)
      }
      return grown === 0 ? undefined : { before: facts.size, after: facts.size + grown }
    } catch (error) {
      if (error instanceof Unwanted) return undefined
      if (errorCode(error) === undefined) throw error
      onProblem?.(error)
      return undefined
    }
  }

  /** False when the segment is no more what was read. Its time stays: it tells when the session was last used. */
  function putInPlace(temp: string, path: string, { size, mtimeMs, ino }: { size: number; mtimeMs: number; ino: number }): Promise<boolean> {
    return space.alone(async () => {
      await fs.utimes(temp, mtimeMs / 1000, mtimeMs / 1000)
      const is = await fs.peek(path)
      if (is?.size !== size || is.mtimeMs !== mtimeMs || is.ino !== ino) return false
      await fs.rename(temp, path)
      await syncFolder(fs, layout.packs)
      return true
    })
  }

  /** True when nobody will write to it any more. */
  async function isAtRest(file: string, path: string, { size, mtimeMs }: { size: number; mtimeMs: number }): Promise<boolean> {
    const { session: name, segment } = parseSegmentName(file)!
    const header = await readSegmentHeader(fs, path)
    if (header === undefined) return false
    const { writer } = header
    if (writer?.store === (await mark()).store) {
      // What a failed write left behind its last record does not count, and must not come to count.
      for (const [session, journal] of journals()) if (sessionFileName(session) === name) return journal.sealed().get(segment) === size
      return false
    }
    if (writer !== undefined && writer.host === thisHost() && !await isRunning(fs, writer)) return true
    return now() - mtimeMs > SETTLED_MS && await hasSuccessor(name, segment)
  }

  async function hasSuccessor(name: string, segment: number): Promise<boolean> {
    for (const file of await fs.readdir(layout.packs)) {
      const parsed = parseSegmentName(file)
      if (parsed?.session !== name || parsed.segment <= segment) continue
      const facts = await fs.peek(join(layout.packs, file))
      if (facts !== undefined && now() - facts.mtimeMs > SETTLED_MS) return true
    }
    return false
  }
}
