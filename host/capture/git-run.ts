import { spawn } from 'node:child_process'

export interface GitExit {
  readonly code: number
  readonly stdout: Buffer
  readonly stderr: string
}

export interface GitCall {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly input?: Buffer | undefined
  readonly timeoutMs: number
}

/** Runs one git command to its end. Rejects with `GitFailure` when git cannot be started or takes too long. */
export type GitRunner = (args: readonly string[], call: GitCall) => Promise<GitExit>

/** Git did not answer; the caller looks at the folder without it. The message is git's own first line. */
export class GitFailure extends Error {
  override readonly name = 'GitFailure'
}

export const runGit: GitRunner = (args, { cwd, env, input, timeoutMs }) => new Promise((resolve, reject) => {
  const child = spawn('git', args, { cwd, env, stdio: 'pipe', windowsHide: true })
  const out: Buffer[] = []
  const err: Buffer[] = []
  const timer = setTimeout(() => {
    child.kill('SIGKILL')
    // Not at `close`: a program that git started may hold the pipes.
    reject(new GitFailure(`git ${args.find(isCommand) ?? ''} took over ${timeoutMs} ms`))
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }, timeoutMs)
  child.stdout.on('data', (part: Buffer) => out.push(part))
  child.stderr.on('data', (part: Buffer) => err.push(part))
  child.stdin.on('error', () => {
    // Git ended before it read everything; its exit code tells why.
  })
  child.on('error', (error) => {
    clearTimeout(timer)
    reject(new GitFailure(`git cannot be started: ${error.message}`, { cause: error }))
  })
  child.on('close', (code, signal) => {
    clearTimeout(timer)
    if (code === null) reject(new GitFailure(`git was ended by ${signal}`))
    else resolve({ code, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString() })
  })
  child.stdin.end(input)
})

/**
 * Before every command: nothing configured may start a program or change how stat data are compared.
 * An empty `core.fsmonitor` is off in every version; "false" is the name of a hook before git 2.36.
 */
const CONFIG = [
  'core.fsmonitor=', 'core.hooksPath=/dev/null', 'core.splitIndex=false', 'core.untrackedCache=false', 'core.quotePath=false',
  'core.ignoreStat=false', 'core.trustctime=true', 'core.checkStat=default',
]

export const GIT_OPTIONS: readonly string[] = CONFIG.flatMap(setting => ['-c', setting])

/**
 * The caller's environment without any word of git's own, so that a session started from a hook or an alias
 * still looks at its workspace. The system's configuration stays: it may hold `safe.directory` and ignore rules.
 * No protocol is allowed: a missing object of a partial clone must stay missing and not be fetched.
 */
export function gitEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.toUpperCase().startsWith('GIT_'))
  return {
    ...Object.fromEntries(kept),
    LC_ALL: 'C', GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0', GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none',
    ...more,
  }
}

/** The line of git's complaint that says what is wrong, without its prefix. */
export function complaintOf({ code, stderr }: GitExit): string {
  const line = stderr.split('\n').find(text => text.startsWith('fatal: ')) ?? stderr.split('\n')[0] ?? ''
  return line.replace(/^fatal: /, '').trim() || `git ended with code ${code}`
}

const isCommand = (arg: string): boolean => /^[a-z][a-z-]+$/.test(arg)

/** Output of a command that must succeed. */
export async function answer(asked: Promise<GitExit>): Promise<Buffer> {
  const exit = await asked
  if (exit.code !== 0) throw new GitFailure(complaintOf(exit))
  return exit.stdout
}

/** Output that is one line. */
export const lineOf = (output: Buffer): string => output.toString().replace(/\n$/, '')
