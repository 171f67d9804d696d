import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeStateCache } from '../../../../host/capture/fingerprint.ts'
import { runGit } from '../../../../host/capture/git-run.ts'
import { openGitTree } from '../../../../host/capture/git-tree.ts'
import type { Difference, LookBudget, LookDeps } from '../../../../host/capture/look.ts'
import { lookAfter, lookBefore } from '../../../../host/capture/workspace-look.ts'
import type { FileState } from '../../../../src/checkpoint/file-state.ts'

/** A session's looks at one workspace, with a store in memory. */
export interface LookWorld {
  /** What is different after a shell command, one line per path: `name: before -> after`, and where folders were made `(made folders)`. */
  around(command: string): Promise<string[]>
  /** The whole answer of the last look after a command. */
  last(): Difference
  /** False when the last look before a command was cut short. */
  wasComplete(): boolean
  /** First words of the git commands that were run since this was last asked. */
  gitCommands(): string[]
}

const plenty: LookBudget = { maxFiles: 20_000, maxNewBytes: 1 << 28, maxMs: 60_000 }
/** Times of files come from a coarse clock; a command is run when it surely ticked since the look. */
const TICK_MS = 20

export function aLookWorld({ workspace, indexFolder, budget = {}, maxFileBytes = 1 << 20 }: {
  readonly workspace: string
  readonly indexFolder: string
  readonly budget?: Partial<LookBudget>
  readonly maxFileBytes?: number
}): LookWorld {
  const stored = new Map<string, string>()
  let commands: string[] = []
  let difference: Difference
  let isComplete = false
  const run: typeof runGit = (args, call) => {
    commands.push(args.filter((arg, at) => arg !== '-c' && args[at - 1] !== '-c' && !arg.startsWith('--'))[0] ?? '')
    return runGit(args, call)
  }
  const deps: LookDeps = {
    workspace, cache: makeStateCache(), maxFileBytes, budget: { ...plenty, ...budget }, dshHome: `${indexFolder}-home`, now: Date.now,
    treeOf: async (folder) => {
      const opened = await openGitTree(folder, { indexFolder, run })
      return opened.kind === 'tree' ? opened.tree : undefined
    },
    has: async digest => stored.has(digest),
    keep: async (digest, bytes) => { stored.set(digest, Buffer.from(bytes).toString('latin1')) },
    settle: async () => {},
  }
  /** A file whose bytes are not in the store could not be put back. */
  const wordOf = (state: FileState): string => {
    switch (state.kind) {
      case 'file': return `${JSON.stringify(stored.get(state.digest) ?? 'LOST')} ${state.mode.toString(8)}`
      case 'link': return `link ${state.target}`
      case 'folder': return state.mode === undefined ? 'folder' : `folder ${state.mode.toString(8)}`
      case 'unknown': return state.reason
      case 'absent': return 'absent'
    }
  }
  const nameOf = (path: string): string => path.slice(workspace.length + 1)
  return {
    around: async (command) => {
      const before = await lookBefore(deps)
      if (before === undefined) throw new Error('refused')
      isComplete = before.isComplete
      await sleep(TICK_MS)
      execFileSync('sh', ['-c', command], { cwd: workspace, stdio: ['ignore', 'ignore', 'pipe'] })
      difference = await lookAfter(deps, before)
      return difference.seen.map(({ path, before: was, after, absentFolders }) =>
        `${nameOf(path)}: ${wordOf(was)} -> ${wordOf(after)}${absentFolders.length === 0 ? '' : ` (${absentFolders.map(nameOf).join(' ')})`}`).sort()
    },
    last: () => difference,
    wasComplete: () => isComplete,
    gitCommands: () => {
      const seen = commands
      commands = []
      return seen
    },
  }
}
