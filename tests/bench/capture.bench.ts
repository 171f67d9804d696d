import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { lstat, open, readFile, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { makeBlobBatch } from '../../host/capture/blob-batch.ts'
import { makeStateCache } from '../../host/capture/fingerprint.ts'
import type { Observation } from '../../host/capture/observe.ts'
import { openGitTree } from '../../host/capture/git-tree.ts'
import { makeFileLook } from '../../host/capture/file-look.ts'
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
    const lookAt = makeFileLook(bytes * 2)
    let number = 0
    const noted = async (found: Observation, sync: 'now' | 'later', entry: JournalEntry): Promise<void> => {
      const blobs = found.state.kind === 'file' && found.bytes !== undefined ? [{ digest: found.state.digest, bytes: found.bytes }] : []
      const stored = await journal.append({ entries: [entry], blobs, sync })
      if (!stored.ok) throw new Error('bench: the store cannot be written')
    }
    // Counted is what a call waits for. The tool's own write stands between the two looks and is not counted, nor is the
    // write of the second look's record, which runs beside what follows; its sync the first look of the next round pays,
    // because the store waits longer than a round takes before it syncs by itself.
    const added: number[] = []
    const captured = async (): Promise<void> => {
      number++
      const id = `r${number}`
      const start = performance.now()
      const before = await lookAt(path)
      await noted(before, 'now', { kind: 'before', id, turn: { startSeq: 1, number: 1 }, call: { callId: id, tool: 'write', sessionId: session }, origin: 'tool', path, state: before.state, absentFolders: [], atMs: 0 })
      const between = performance.now()
      writeFileSync(path, textOf(number, bytes))
      const written = performance.now()
      const after = await lookAt(path)
      const beside = noted(after, 'later', { kind: 'after', of: id, state: after.state, atMs: 0 })
      added.push(performance.now() - written + between - start)
      await beside
    }
    const times = await sideBySide(ROUNDS * 5, captured, async () => {
      await readFile(plain)
      const file = await open(plain, 'w')
      await file.writeFile(textOf(++number, bytes))
      await file.sync()
      await file.close()
    })
    await store.close()
    return ratio({ ours: median(added.slice(1)), theirs: times.theirs }, 1.2, 'read + fsynced write', 'what a call waits for; 100 KB, new content each time, 45 rounds')
  })
}

async function inGitTree<T>(work: (base: string, tree: string) => Promise<T>): Promise<T> {
  return inFolder(async (base) => {
    const tree = join(base, 'tree')
    mkdirSync(tree)
    const git = (...args: string[]) => execFileSync('git', ['-c', 'user.name=b', '-c', 'user.email=b@b', ...args], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] })
    const files = makeFiles(tree, 20_000, 1_000)
    git('init', '-q')
    // Git would tidy up in the background while we measure.
    git('config', 'gc.auto', '0')
    git('add', '-A')
    git('commit', '-qm', 'start')
    for (const [at, path] of files.slice(0, 250).entries()) writeFileSync(path, textOf(at + 1, 100 * 1024))
    for (let at = 0; at < 250; at++) writeFileSync(join(tree, `d${at % 200}`, `new${at}.txt`), textOf(at, 100 * 1024))
    await sleep(RACY_MS)
    return work(base, tree)
  })
}

/** A shadow of the work tree's files in a repository of its own, as other tools keep one. */
function shadowOf(tree: string, gitDir: string) {
  const env = { ...process.env, GIT_DIR: gitDir, GIT_WORK_TREE: tree }
  for (const args of [['init', '-q'], ['config', 'gc.auto', '0']]) execFileSync('git', args, { env })
  return {
    add: () => run('git', ['add', '-A'], { cwd: tree, env, maxBuffer: 1 << 26 }),
    writeTree: () => run('git', ['write-tree'], { cwd: tree, env }),
  }
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
    name: 'bracket_git_stale',
    run: () => inGitTree(async (base, tree) => {
      const copy = join(base, 'copy')
      execFileSync('cp', ['-a', tree, copy])
      await sleep(RACY_MS)
      const [warm, stale] = [aLook(join(base, 'ours'), tree), aLook(join(base, 'copied'), copy)]
      for (const { deps } of [warm, stale]) await bracket(deps)
      const times = await sideBySide(ROUNDS, () => bracket(stale.deps), () => bracket(warm.deps))
      for (const { end } of [warm, stale]) await end()
      return ratio(times, 1.5, 'the same in the tree itself', 'a `cp -a` of a work tree of 20,000 files, 500 of 100 KB dirty or untracked, from the second bracket on, 9 rounds')
    }),
  },
  {
    name: 'bracket_git_change',
    run: () => inGitTree(async (base, tree) => {
      const { deps, end } = aLook(base, tree)
      const shadow = shadowOf(tree, join(base, 'shadow'))
      await shadow.add()
      await bracket(deps)
      const times = { ours: [] as number[], theirs: [] as number[] }
      for (let round = -1; round < ROUNDS; round++) {
        const start = performance.now()
        const before = await lookBefore(deps)
        const between = performance.now()
        // Committed files in their committed state, 200 others in every round.
        for (let at = 0; at < 200; at++) writeFileSync(join(tree, `d${at}`, `f${2_000 + round * 200 + at}.txt`), textOf(-round - at, 1_000))
        const ran = performance.now()
        const { seen } = await lookAfter(deps, before!)
        const looked = performance.now()
        await shadow.add()
        await shadow.writeTree()
        const added = performance.now()
        if (seen.length !== 200 || seen.some(({ before: was }) => was.kind !== 'file')) throw new Error(`bench: ${seen.length} of 200 changes`)
        if (round < 0) continue
        times.ours.push(between - start + looked - ran)
        times.theirs.push(added - looked)
      }
      await end()
      return ratio({ ours: median(times.ours), theirs: median(times.theirs) }, 2, 'git add -A && git write-tree in a warm shadow', 'a command that rewrites 200 files of 1 KB in a work tree of 20,000 files, 500 of 100 KB dirty or untracked, 9 rounds')
    }),
  },
  {
    name: 'bracket_git_first',
    run: () => inGitTree(async (base, tree) => {
      let number = 0
      const ours = async () => {
        const { deps, end } = aLook(join(base, `ours${++number}`), tree)
        await bracket(deps)
        await end()
      }
      const theirs = async () => { await shadowOf(tree, join(base, `shadow${number}`)).add() }
      return ratio(await sideBySide(ROUNDS, ours, theirs), 0.2, 'first git add -A of a shadow', 'a work tree of 20,000 files, 500 of 100 KB dirty or untracked, first bracket, 9 rounds')
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
