import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import * as v from 'valibot'
import { OpIdSchema } from '../../src/checkpoint/journal-entry.ts'
import { sessionId, type OpId, type SessionId } from '../../src/ids.ts'
import { ensureFolder, errorCode, syncFolder, unlessMissing, writeFully, type StoreFs } from './store-fs.ts'
import { openOpPath, type StoreLayout } from './store-layout.ts'

/**
 * Flags of ops that have begun and not ended, so that a start finds them without reading every session.
 * A flag is only a hint where to look; the op is true by its `op-begin` entry. Hence the order: the flag is
 * durable before that entry is written, and goes after the op's last entry. A flag without an entry means
 * that nothing was begun.
 */
export interface OpenOp {
  readonly session: SessionId
  /** real path */
  readonly workspace: string
  readonly op: OpId
}

const OpenOpSchema = v.object({ session: v.pipe(v.string(), v.transform(sessionId)), workspace: v.string(), op: OpIdSchema })

/** Durable when it resolves. Throws environment errors. */
export async function writeOpenOp(fs: StoreFs, layout: StoreLayout, open: OpenOp): Promise<void> {
  await ensureFolder(fs, layout.ops)
  // Written aside and renamed: the name stands for a whole flag or is not there.
  const aside = join(layout.ops, `.${randomBytes(8).toString('hex')}`)
  const file = await fs.open(aside, 'wx', 0o600)
  try {
    await writeFully(file, Buffer.from(JSON.stringify(open)), 0)
    await file.sync()
  } catch (error) {
    await fs.unlink(aside)
    throw error
  } finally {
    await file.close()
  }
  await fs.rename(aside, openOpPath(layout, open.session, open.op))
  await syncFolder(fs, layout.ops)
}

/** No sync: a flag that comes back after a power cut is harmless. Throws environment errors. */
export async function removeOpenOp(fs: StoreFs, layout: StoreLayout, session: SessionId, op: OpId): Promise<void> {
  await unlessMissing(fs.unlink(openOpPath(layout, session, op)), undefined)
}

/** Flags that do not read are left out: the op still stands in its session's journal. */
export async function readOpenOps(fs: StoreFs, layout: StoreLayout): Promise<readonly OpenOp[]> {
  const open: OpenOp[] = []
  for (const name of await unlessMissing(fs.readdir(layout.ops), [])) {
    if (!name.endsWith('.json') || name.startsWith('.')) continue
    const flag = await readFlag(fs, join(layout.ops, name))
    if (flag) open.push(flag)
  }
  return open
}

async function readFlag(fs: StoreFs, path: string): Promise<OpenOp | undefined> {
  try {
    return v.parse(OpenOpSchema, JSON.parse(await fs.readFile(path, 'utf8')))
  } catch (error) {
    // Not JSON, not a flag, gone or not readable; a bug in this one statement would be any other error.
    if (error instanceof SyntaxError || error instanceof v.ValiError || errorCode(error)) return undefined
    throw error
  }
}
