import { execFile, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runs, startChat } from './a-chat.ts'
import type { Bench, Measurement } from './run.ts'
import { median, rounded, sideBySide } from './side-by-side.ts'
import { pathOf, textOf, writeFiles, type Generated } from './write-files.ts'

const ROUNDS = 9
const FILES = 2_000
/** A fresh file counts as one that may change unseen for two seconds; a warm look begins after that. */
const RACY_MS = 2_500
/** Room for the looks of a command that rewrites everything. */
const roomy = { maxBracketMs: 120_000, maxBracketBytes: 4 * 1024 ** 3, maxStoreBytes: 20 * 1024 ** 3 }
const run = promisify(execFile)

/** A home and a workspace in a temporary folder, removed when the bench ends. */
async function inFolder<T>(work: (folders: { base: string; home: string; ws: string }) => Promise<T>): Promise<T> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-bench-')))
  const [home, ws] = [join(base, 'home'), join(base, 'ws')]
  for (const folder of [home, ws]) mkdirSync(folder)
  try {
    return await work({ base, home, ws })
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

/** A turn's command that writes the files. */
const script = fileURLToPath(new URL('write-files.ts', import.meta.url))
const rewriting = (files: Generated) => runs(`${process.execPath} --disable-warning=ExperimentalWarning ${script} '${JSON.stringify(files)}'`)

async function restore2000(): Promise<Measurement> {
  return inFolder(async ({ base, home, ws }) => {
    const bytes = 8 * 1024
    writeFiles({ ws, words: 'before', to: FILES, bytes })
    const plain = join(base, 'plain')
    const chat = await startChat(home, ws, roomy)
    const times = { ours: [] as number[], theirs: [] as number[] }
    for (let round = -1; round < ROUNDS; round++) {
      await chat.turn(rewriting({ ws, words: `round ${round}`, to: FILES, bytes }))
      const turn = (await chat.ask('timeline', {})).turns[0].turn
      const start = performance.now()
      const { kind, text } = await chat.command(`/rollback ${turn}`)
      const restored = performance.now()
      if (kind !== 'success' || readFileSync(pathOf(ws, FILES - 1), 'utf8') !== textOf('before', FILES - 1, bytes)) throw new Error(`bench: ${text}`)
      writeFiles({ ws: plain, words: `round ${round}`, to: FILES, bytes })
      const begun = performance.now()
      for (let at = 0; at < FILES; at++) {
        const path = pathOf(plain, at)
        const file = await open(`${path}.tmp`, 'wx')
        await file.writeFile(textOf('before', at, bytes))
        await file.sync()
        await file.close()
        await rename(`${path}.tmp`, path)
      }
      if (round < 0) continue
      times.ours.push(restored - start)
      times.theirs.push(performance.now() - begun)
    }
    await chat.stop()
    const [ours, theirs] = [median(times.ours), median(times.theirs)]
    return {
      value: rounded(ours / theirs), unit: 'ratio', limit: 1.5, baseline: { name: `write temp + fsync + rename, ${rounded(theirs)} ms`, value: 1 },
      input: `the whole command, ${FILES} files of 8 KB in 40 folders, ${ROUNDS} rounds`,
    }
  })
}

async function preview50x2000(): Promise<Measurement> {
  return inFolder(async ({ home, ws }) => {
    const bytes = 8 * 1024
    const git = (...args: string[]) => execFileSync('git', ['-c', 'user.name=b', '-c', 'user.email=b@b', ...args], { cwd: ws, stdio: ['ignore', 'ignore', 'inherit'] })
    writeFiles({ ws, words: 'before', to: FILES, bytes })
    git('init', '-q')
    git('config', 'gc.auto', '0')
    git('add', '-A')
    git('commit', '-qm', 'start')
    const chat = await startChat(home, ws, roomy)
    const perTurn = FILES / 50
    for (let turn = 0; turn < 50; turn++) await chat.turn(rewriting({ ws, words: `turn ${turn}`, from: turn * perTurn, to: (turn + 1) * perTurn, bytes }))
    await sleep(RACY_MS)
    const theirs = async (): Promise<void> => {
      const { stdout } = await run('git', ['diff', '--name-status'], { cwd: ws, maxBuffer: 1 << 26 })
      if (stdout.split('\n').length !== FILES + 1) throw new Error('bench: git sees another change')
    }
    const ours = async (): Promise<void> => {
      const { rows } = await chat.ask('preview', { turn: 1 })
      if (rows.length !== FILES) throw new Error(`bench: ${rows.length} rows`)
    }
    const times = await sideBySide(ROUNDS * 3, ours, theirs)
    await chat.stop()
    return {
      value: rounded(times.ours / times.theirs), unit: 'ratio', limit: 3, baseline: { name: `git diff --name-status, ${rounded(times.theirs)} ms`, value: 1 },
      input: `a span of 50 turns and ${FILES} changed files of 8 KB, warm, ${ROUNDS * 3} rounds`,
    }
  })
}

/** Peak memory of a host that does `act` over what it takes when idle, MB, in a process of its own. */
async function peakOf(act: 'preview' | 'rollback', folders: { home: string; ws: string }): Promise<number> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', fileURLToPath(new URL('peak-memory.ts', import.meta.url)), JSON.stringify({ act, ...folders, settings: roomy })],
    { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (data) => { said += data })
  const code = await new Promise(done => { child.on('close', done) })
  if (code !== 0) throw new Error(`bench: the host for ${act} ended with ${String(code)}`)
  return (JSON.parse(said.split('\n').findLast(line => line.startsWith('{'))!) as { peakMb: number }).peakMb
}

const memory = (act: 'preview' | 'rollback') => (): Promise<Measurement> => inFolder(async ({ home, ws }) => {
  const bytes = 1024 * 1024
  writeFiles({ ws, words: 'before', to: FILES, bytes })
  const chat = await startChat(home, ws, roomy)
  await chat.turn(rewriting({ ws, words: 'after', to: FILES, bytes }))
  await chat.stop()
  const value = await peakOf(act, { home, ws })
  return { value, unit: 'MB', limit: 150, input: `peak RSS over the idle host, ${FILES} files of 1 MB, in a process of its own` }
})

export const benches: readonly Bench[] = [
  { name: 'restore_2000', run: restore2000 },
  { name: 'preview_50x2000', run: preview50x2000 },
  { name: 'memory_preview', run: memory('preview') },
  { name: 'memory_rollback', run: memory('rollback') },
]
