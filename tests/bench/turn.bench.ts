import fs, { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Foreign } from '../contract/support/dsh-packages.ts'
import { runs, startChat } from './a-chat.ts'
import type { Bench } from './run.ts'

/** Counts the calls that list one of `folders`, whoever makes them, until `end`. */
function countFolderReads(folders: ReadonlySet<string>): { count(): number; end(): void } {
  let count = 0
  const wrapped: (() => void)[] = []
  for (const owner of [fs, fsPromises] as Record<string, Foreign>[]) {
    for (const name of ['readdir', 'readdirSync', 'opendir', 'opendirSync']) {
      const real = owner[name]
      if (typeof real !== 'function') continue
      owner[name] = (path: unknown, ...rest: unknown[]) => {
        if (folders.has(String(path))) count += 1
        return real(path, ...rest)
      }
      wrapped.push(() => { owner[name] = real })
    }
  }
  syncBuiltinESMExports()
  return {
    count: () => count,
    end: () => {
      for (const unwrap of wrapped) unwrap()
      syncBuiltinESMExports()
    },
  }
}

export const benches: readonly Bench[] = [{
  name: 'no_scan',
  run: async () => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-bench-')))
    const ws = join(base, 'ws')
    const folders = Array.from({ length: 50 }, (_, at) => join(ws, `d${at}`))
    for (const folder of folders) mkdirSync(folder, { recursive: true })
    for (let at = 0; at < 1_000; at += 1) writeFileSync(join(folders[at % 50]!, `f${at}`), 'x')
    const chat = await startChat(join(base, 'home'), ws)
    const reads = countFolderReads(new Set([ws, ...folders]))
    try {
      await chat.turn({ tools: [['write', { file_path: 'd1/new', content: '1' }]] }, { tools: [['read', { file_path: 'd2/f2' }]] }, { tools: [['edit', { file_path: 'd2/f2', old_string: 'x', new_string: 'y' }]] })
      if (fs.readFileSync(join(ws, 'd2/f2'), 'utf8') !== 'y') throw new Error('bench: the turn wrote nothing')
      const value = reads.count()
      await chat.turn(runs('true'))
      if (reads.count() - value < 50) throw new Error('bench: the count misses the look around a command')
      return { value, unit: 'folder reads', limit: 0, baseline: { name: 'a turn with a command', value: reads.count() - value }, input: 'a turn that writes and edits in a plain folder of 1,000 files in 50 folders' }
    } finally {
      reads.end()
      await chat.stop()
      rmSync(base, { recursive: true, force: true })
    }
  },
}]
