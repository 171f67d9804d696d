import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOf } from '../../host/digest.ts'
import { openStore } from '../../host/store/store.ts'
import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { sessionId, type Digest } from '../../src/ids.ts'
import type { Bench, Measurement } from './run.ts'
import { rounded } from './side-by-side.ts'

const session = sessionId('bench')
const TURNS = 200
const FILE_BYTES = 1_000_000
/** The slowest read is to take no longer than this, milliseconds. */
const READ_MS = 20

/** The next number of a fixed row below `most` (mulberry32). */
function numbers(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % most
  }
}

const words = ['const', 'return', 'await', 'if', 'else', 'function', 'value', 'index', 'session', 'record', 'path', 'state', 'digest', 'entry', 'folder', 'map', 'filter', 'undefined', 'readonly', 'string']

/** A line like one of source code: mostly known words, now and then a name of its own. */
function lineOf(next: (most: number) => number): string {
  const parts = Array.from({ length: 3 + next(8) }, () => (next(4) === 0 ? `${words[next(words.length)]}${next(1_000_000).toString(36)}` : words[next(words.length)]!))
  return `${'  '.repeat(1 + next(4))}${parts.join(' ')};`
}

/** Each version differs from the one before by one line. */
function* versions(): Generator<Buffer> {
  const next = numbers(1)
  const lines: string[] = []
  for (let bytes = 0; bytes < FILE_BYTES; bytes += lines.at(-1)!.length + 1) lines.push(lineOf(next))
  for (let turn = 0; turn <= TURNS; turn += 1) {
    yield Buffer.from(lines.join('\n'))
    lines[next(lines.length)] = lineOf(next)
  }
}

async function churn(): Promise<Measurement> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-bench-')))
  try {
    const root = join(base, 'store')
    const store = openStore({ root })
    const journal = store.journal(session, base)
    const digests: Digest[] = []
    let raw = 0
    for (const bytes of versions()) {
      const digest = digestOf(bytes)
      const entry: JournalEntry = { kind: 'outside', path: join(base, 'source.ts'), state: { kind: 'file', digest, bytes: bytes.length, mode: 0o644 }, atMs: digests.length }
      const stored = await journal.append({ entries: [entry], blobs: [{ digest, bytes }] })
      if (!stored.ok) throw new Error(`bench: ${JSON.stringify(stored.failure)}`)
      digests.push(digest)
      raw += bytes.length
    }
    const start = performance.now()
    await store.reencode()
    const passMs = performance.now() - start
    await store.close()

    // Another process: nothing of it in memory.
    const later = openStore({ root })
    const reader = later.journal(session, base)
    await reader.read()
    let slowestMs = 0
    for (const digest of digests) {
      const from = performance.now()
      const bytes = await reader.readBlob(digest)
      slowestMs = Math.max(slowestMs, performance.now() - from)
      if (bytes === undefined || digestOf(bytes) !== digest) throw new Error('bench: a version does not read back')
    }
    await later.close()
    if (slowestMs > READ_MS) console.warn(`bench: the slowest read took ${rounded(slowestMs)} ms, the limit is ${READ_MS}`)
    const stored = readdirSync(join(root, 'packs')).reduce((sum, file) => sum + statSync(join(root, 'packs', file)).size, 0)
    return {
      value: Math.round(stored / raw * 10_000) / 10_000, unit: 'of the bytes of all versions', limit: 0.05,
      input: `${TURNS} turns, one changed line each in a text of ${FILE_BYTES} bytes; stored ${stored} bytes; slowest read ${rounded(slowestMs)} ms (limit ${READ_MS}); pass ${Math.round(passMs)} ms`,
    }
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

export const benches: readonly Bench[] = [{ name: 'store_churn', run: churn }]
