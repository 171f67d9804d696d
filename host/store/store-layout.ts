import { createHash } from 'node:crypto'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { OpId, SessionId } from '../../src/ids.ts'

/**
 * Where things are on disk. The folder is named after the format: another format gets another folder,
 * so that an older Turnback never reads, and never cuts, what it does not know.
 *
 *     $DSH_HOME/data/turnback/v1/   packs/  segments: the only truth
 *                                   ops/    one flag file per op that has begun and not ended
 *                                   locks/  one file per session whose files are being changed
 *                                   indexes/  private copies of git indexes
 */
export interface StoreLayout {
  readonly root: string
  readonly packs: string
  readonly ops: string
  readonly locks: string
  /** Private copies of git indexes; may be deleted at any time. */
  readonly indexes: string
}

export function storeLayout(options: { root?: string | undefined; env?: NodeJS.ProcessEnv | undefined } = {}): StoreLayout {
  const root = options.root ?? join(dshHome(options.env ?? process.env), 'data', 'turnback', 'v1')
  return { root, packs: join(root, 'packs'), ops: join(root, 'ops'), locks: join(root, 'locks'), indexes: join(root, 'indexes') }
}

/** The DSH home: `DSH_HOME`, else `~/.dsh`; an empty variable counts as not set. */
export function dshHome(env: NodeJS.ProcessEnv): string {
  return env['DSH_HOME'] ? resolve(env['DSH_HOME']) : join(homedir(), '.dsh')
}

const longestName = 120

/**
 * A session id as part of a file name: different ids give different names, also on a disk that ignores
 * case; no separator, no leading dot, never too long. Small letters, digits, `-` and `_` stay readable, all
 * else becomes `%xx`. An id that is too long, or has no UTF-8 form, ends in `~` and a digest instead, so
 * the name does not give back the id: that stands in the segment header.
 */
export function sessionFileName(session: SessionId): string {
  const utf8 = Buffer.from(session, 'utf8')
  const hex = (byte: string): string => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`
  const name = utf8.toString('latin1').replace(/[^a-z0-9_-]/g, hex)
  if (name !== '' && name.length <= longestName && utf8.toString('utf8') === session) return name
  return `${name.slice(0, 40)}~${createHash('sha256').update(session, 'utf16le').digest('hex')}`
}

export const segmentPath = (layout: StoreLayout, session: SessionId, segment: number): string =>
  join(layout.packs, `${sessionFileName(session)}-${segment}.pack`)

/** The session part and the number of a segment's file name; `undefined` for a file that is not a segment. */
export function parseSegmentName(name: string): { session: string; segment: number } | undefined {
  const match = /^(.+)-([1-9]\d{0,8})\.pack$/.exec(name)
  return match ? { session: match[1]!, segment: Number(match[2]) } : undefined
}

/** A session's segments up to this number were removed; the last one was last written to at this time. */
export interface Gone {
  readonly segment: number
  /** Unix milliseconds. */
  readonly writtenAtMs: number
}

/** An empty file that says so, `<session>-<number>-<time>.gone`. `name` as in file names. */
export const gonePath = (layout: StoreLayout, name: string, { segment, writtenAtMs }: Gone): string =>
  join(layout.packs, `${name}-${segment}-${Math.max(0, Math.ceil(writtenAtMs))}.gone`)

export function parseGoneName(name: string): Gone & { session: string } | undefined {
  const match = /^(.+)-([1-9]\d{0,8})-(\d{1,15})\.gone$/.exec(name)
  return match ? { session: match[1]!, segment: Number(match[2]), writtenAtMs: Number(match[3]) } : undefined
}

export const lockPath = (layout: StoreLayout, session: SessionId): string =>
  join(layout.locks, `${sessionFileName(session)}.lock`)

export const openOpPath = (layout: StoreLayout, session: SessionId, op: OpId): string =>
  join(layout.ops, `${sessionFileName(session)}.${op}.json`)
