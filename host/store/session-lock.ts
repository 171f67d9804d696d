import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { isRunning, processMark, ProcessMarkSchema, thisHost } from './process-mark.ts'
import { asFailure, errorCode, unlessMissing, writeFully, type StoreFs } from './store-fs.ts'

/** Gives a lock back; a second call does nothing. */
export type Release = () => Promise<void>

/**
 * A lock between processes: the file is the lock, and who could make it (O_EXCL) has it. Its content says
 * who that is, so that the lock of a dead process can be taken over.
 *
 * Taking over is the dangerous part: of two who saw the same dead holder, the slower one must not remove
 * the lock the faster one has just made. So a dead lock with token T may only be removed by who holds a
 * second lock named after T, and only after a second look shows T still there. Should that one die too,
 * its lock is taken over in the same way.
 */
const HolderSchema = v.object({
  ...ProcessMarkSchema.entries,
  token: v.string(),
  atMs: v.number(),
})
type Holder = v.InferOutput<typeof HolderSchema>

/** A lock of another machine (a shared home, a container) cannot be asked; no rollback takes this long. */
const foreignLockMs = 10 * 60_000
/** A lock file without its content: just being written, or its writer died between two calls. */
const unwrittenLockMs = 10_000
const maxTakeovers = 4

/** `busy` while another process, or another caller in this one, holds it; never waits. */
export async function takeLock(fs: StoreFs, path: string): Promise<Result<Release, Failure>> {
  try {
    const release = await take(fs, path, maxTakeovers)
    return release ? ok(release) : fail(failure('busy'))
  } catch (error) {
    return fail(asFailure(error))
  }
}

async function take(fs: StoreFs, path: string, takeovers: number): Promise<Release | undefined> {
  const made = await make(fs, path)
  if (made) return made
  const dead = await deadToken(fs, path)
  if (dead === undefined || takeovers === 0) return undefined
  const releaseClaim = await take(fs, `${path}.${dead}`, takeovers - 1)
  if (!releaseClaim) return undefined
  try {
    if ((await deadToken(fs, path)) !== dead) return undefined
    await fs.unlink(path)
    return await make(fs, path)
  } finally {
    await releaseClaim()
  }
}

async function make(fs: StoreFs, path: string): Promise<Release | undefined> {
  const token = randomBytes(8).toString('hex')
  const holder: Holder = { ...await processMark(fs), token, atMs: Date.now() }
  const file = await fs.open(path, 'wx', 0o600).catch((error: unknown) => {
    if (errorCode(error) === 'EEXIST') return undefined
    throw error
  })
  if (!file) return undefined
  const release = async (): Promise<void> => {
    // Only our own lock: it may have been taken over while this process was suspended on another machine.
    if ((await readHolder(fs, path))?.token === token) await unlessMissing(fs.unlink(path), undefined)
  }
  try {
    await writeFully(file, Buffer.from(JSON.stringify(holder)), 0)
  } catch (error) {
    await fs.unlink(path)
    throw error
  } finally {
    await file.close()
  }
  return release
}

/** False for a lock that a dead process left. One that goes meanwhile counts as held. */
export const isHeld = async (fs: StoreFs, path: string): Promise<boolean> => await deadToken(fs, path) === undefined

/** Names a lock whose holder is gone; `undefined` while it is held, or when there is none. */
async function deadToken(fs: StoreFs, path: string): Promise<string | undefined> {
  const facts = await unlessMissing(fs.stat(path), undefined)
  if (!facts) return undefined
  const holder = await readHolder(fs, path)
  if (!holder) return Date.now() - facts.mtimeMs > unwrittenLockMs ? `${facts.ino}-${Math.trunc(facts.mtimeMs)}` : undefined
  if (holder.host !== thisHost()) return Date.now() - holder.atMs > foreignLockMs ? holder.token : undefined
  return await isRunning(fs, holder) ? undefined : holder.token
}

async function readHolder(fs: StoreFs, path: string): Promise<Holder | undefined> {
  const text = await unlessMissing(fs.readFile(path, 'utf8'), '')
  try {
    return v.parse(HolderSchema, JSON.parse(text))
  } catch {
    return undefined // empty or cut off; nothing else writes here
  }
}
