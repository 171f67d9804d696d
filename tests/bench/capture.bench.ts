import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { lstat, open, readFile, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { makeBlobBatch } from '../../host/capture/blob-batch.ts'
import { makeStateCache } from '../../host/capture/fingerprint.ts'
import { openGitTree } from '../../host/capture/git-tree.ts'
import { observePath } from '../../host/capture/observe.ts'
import type { LookDeps } from '../../host/capture/look.ts'
import { lookAfter, lookBefore } from '../../host/capture/workspace-look.ts'
import { openStore } from '../../host/store/store.ts'
import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { sessionId } from '../../src/ids.ts'
import type { Bench, Measurement } from './run.ts'
import { median, rounded, sideBySide } from './side-by-side.ts'

const ROUNDS = 9
/** A fresh file counts as one that may change unseen for two seconds; a warm look begins after that. */
const RACY_MS = 2_500
const session = sessionId('bench')
const run = promisify(execFile)

/** A temporary folder for a bench, removed when it ends. */
async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-bench-')))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Different text for each number, of about `bytes` bytes. */
const textOf = (number: number, bytes: number): string => `line ${number} of a generated file\n`.repeat(Math.ceil(bytes / 32)).slice(0, bytes)

function makeFiles(folder: string, count: number, bytes: number): string[] {
  return Array.from({ length: count }, (_, at) => {
    const path = join(folder, `d${at % 200}`, `f${at}.txt`)
    if (at < 200) mkdirSync(join(folder, `d${at}`), { recursive: true })
    writeFileSync(path, textOf(at, bytes))
    return path
  })
}

/** A session's look at a workspace with an empty memory and an empty store, and the end of both. */
function aLook(base: string, workspace: string): { deps: LookDeps; end(): Promise<void> } {
  const store = openStore({ root: join(base, 'store') })
  const deps: LookDeps = {
    workspace, cache: makeStateCache(), maxFileBytes: 32 * 1024 * 1024, dshHome: join(base, 'home'), now: Date.now,
    budget: { maxFiles: 20_000, maxNewBytes: 256 * 1024 * 1024, maxMs: 60_000 },
    treeOf: async (folder) => {
      const opened = await openGitTree(folder, { indexFolder: join(base, 'indexes') })
      return opened.kind === 'tree' ? opened.tree : undefined
    },
    ...makeBlobBatch(store.journal(session, workspace)),
  }
  return { deps, end: () => store.close() }
}

const bracket = async (deps: LookDeps): Promise<void> => {
  const before = await lookBefore(deps)
  if (before === undefined || !before.isComplete) throw new Error('bench: the look is not whole')
  const { seen } = await lookAfter(deps, before)
  if (seen.length > 0) throw new Error(`bench: ${seen.length} changes where nothing ran`)
}

async function statWalk(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.name === '.git') continue
    if (entry.isDirectory()) await statWalk(path)
    else await lstat(path)
  }
}

const ratio = (times: { ours: number; theirs: number }, limit: number, name: string, input: string): Measurement =>
  ({ value: rounded(times.ours / times.theirs), unit: 'ratio', limit, baseline: { name: `${name}, ${rounded(times.theirs)} ms`, value: 1 }, input })

async function captureFileTool(): Promise<Measurement> {
  return inFolder(async (base) => {
    const path = join(base, 'file.txt')
    const plain = join(base, 'plain.txt')
    const bytes = 100 * 1024
    for (const file of [path, plain]) writeFileSync(file, textOf(0, bytes))
    const store = openStore({ root: join(base, 'store'), lateSyncMs: 60_000 })
    const journal = store.journal(session, base)
    let number = 0
    const look = async (sync: 'now' | 'later', entry: (state: Awaited<ReturnType<typeof observePath>>['state']) => JournalEntry): Promise<void> => {
      const found = await observePath(path, { maxBytes: bytes * 2 })
      const blobs = found.state.kind === 'file' && found.bytes !== undefined ? [{ digest: found.state.digest, bytes: found.bytes }] : []
      const stored = await journal.append({ entries: [entry(found.state)], blobs, sync })
      if (!stored.ok) throw new Error('bench: the store cannot be written')
    }
    // The tool's own write stands between the two looks and is not counted. What the second look leaves to a later sync,
    // the first look of the next round pays: the store waits longer than a round takes before it syncs by itself.
    const added: number[] = []
    const captured = async (): Promise<void> => {
      number++
      const id = `r${number}`
      const start = performance.now()
      await look('now', state => ({ kind: 'before', id, turn: { startSeq: 1, number: 1 }, call: { callId: id, tool: 'write', sessionId: session }, origin: 'tool', path, state, absentFolders: [], atMs: 0 }))
      const between = performance.now()
      writeFileSync(path, textOf(number, bytes))
      const after = performance.now()
      await look('later', state => ({ kind: 'after', of: id, state, atMs: 0 }))
      added.push(performance.now() - after + between - start)
    }
    const times = await sideBySide(ROUNDS * 5, captured, async () => {
      await readFile(plain)
      const file = await open(plain, 'w')
      await file.writeFile(textOf(++number, bytes))
      await file.sync()
      await file.close()
    })
    await store.close()
    return ratio({ ours: median(added.slice(1)), theirs: times.theirs }, 1.2, 'read + fsynced write', '100 KB, new content each time, 45 rounds')
  })
}

async function inGitTree<T>(work: (base: string, tree: string) => Promise<T>): Promise<T> {
  return inFolder(async (base) => {
    const tree = join(base, 'tree')
    mkdirSync(tree)
    const git = (...args: string[]) => execFileSync('git', ['-c', 'user.name=b', '-c', 'user.email=b@b', ...args], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] })
    const files = makeFiles(tree, 20_000, 1_000)
    git('init', '-q')
    git('add', '-A')
    git('commit', '-qm', 'start')
    for (const [at, path] of files.slice(0, 250).entries()) writeFileSync(path, textOf(at + 1, 100 * 1024))
    for (let at = 0; at < 250; at++) writeFileSync(join(tree, `d${at % 200}`, `new${at}.txt`), textOf(at, 100 * 1024))
    await sleep(RACY_MS)
    return work(base, tree)
  })
}

const gitInput = 'a work tree of 20,000 files, 500 of 100 KB dirty or untracked, warm, 9 rounds'

export const benches: readonly Bench[] = [
  { name: 'capture_file_tool', run: captureFileTool },
  {
    name: 'bracket_git_20k',
    run: () => inGitTree(async (base, tree) => {
      const { deps, end } = aLook(base, tree)
      await bracket(deps)
      const status = () => run('git', ['status', '--porcelain=v2', '-z', '--untracked-files=all'], { cwd: tree, maxBuffer: 1 << 26 })
      const times = await sideBySide(ROUNDS, () => bracket(deps), async () => { await status(); await status() })
      await end()
      return ratio(times, 1.5, 'two git status', gitInput)
    }),
  },
  {
    name: 'bracket_git_20k_walk',
    run: () => inGitTree(async (base, tree) => {
      const { deps, end } = aLook(base, tree)
      await bracket(deps)
      const times = await sideBySide(ROUNDS, () => bracket(deps), () => statWalk(tree))
      await end()
      return ratio(times, 0.5, 'one plain stat walk', gitInput)
    }),
  },
  {
    name: 'bracket_plain_5k',
    run: () => inFolder(async (base) => {
      const folder = join(base, 'folder')
      mkdirSync(folder)
      makeFiles(folder, 5_000, 2_000)
      await sleep(RACY_MS)
      const { deps, end } = aLook(base, folder)
      await bracket(deps)
      const times = await sideBySide(ROUNDS, () => bracket(deps), () => statWalk(folder))
      await end()
      return ratio(times, 2.5, 'one plain stat walk', 'a plain folder of 5,000 files of 2 KB, warm, 9 rounds')
    }),
  },
  {
    name: 'bracket_plain_first',
    run: () => inFolder(async (base) => {
      const folder = join(base, 'folder')
      mkdirSync(folder)
      makeFiles(folder, 5_000, 2_000)
      let round = 0
      const first = async () => {
        const { deps, end } = aLook(join(base, `ours${++round}`), folder)
        await bracket(deps)
        await end()
      }
      const copy = async () => { cpSync(folder, join(base, `copy${++round}`), { recursive: true }) }
      return ratio(await sideBySide(ROUNDS, first, copy), 2, 'cp -r', 'a plain folder of 5,000 files of 2 KB, first look, 9 rounds')
    }),
  },
]
