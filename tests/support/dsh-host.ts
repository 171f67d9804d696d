import { execFile, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { zstdDecompressSync } from 'node:zlib'

/** The real DSH web host of tests/e2e/host on a private DSH home, and what it leaves on disk. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = join(root, 'node_modules', '.bin')
const dsh = join(root, 'tests', 'e2e', 'host', 'node_modules', '@deepseek-ai', 'dsh', 'lib', 'bin.js')
const run = promisify(execFile)

/** The first-run notice of the pinned host; a home that names it as seen starts without the dialog. */
const noticeVersion = '2026-08-13.1'

export interface HostOptions {
  /** DSH home; made when missing, kept when present. */
  readonly home: string
  /** The folder the host starts in; made when missing. */
  readonly workspace: string
  /** Base URL of the model server; without it the host talks to the model the environment names. */
  readonly modelUrl?: string
  /** 0 (the default) takes a free port. */
  readonly port?: number
  /** Folders or packed files to install first. */
  readonly plugins?: readonly string[]
  /** Accept the first-run notice beforehand. */
  readonly skipNotice?: boolean
  /** Register the workspace beforehand, so that the page opens a blank session in it. New homes only. */
  readonly openWorkspace?: boolean
  /** More environment of the host, e.g. `DSH_PERMISSION_MODE`. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Host {
  readonly url: string
  readonly pid: number
  readonly startMs: number
  /** All the host has printed so far. */
  log(): string
  /** The exit code, or the signal's name. */
  readonly exited: Promise<number | NodeJS.Signals | null>
  /** SIGTERM is the graceful way (killed after eight seconds); SIGKILL plays a crash. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Start the host and wait until its whole plugin tree has settled. */
export async function startHost(options: HostOptions): Promise<Host> {
  const home = resolve(options.home)
  const workspace = resolve(options.workspace)
  mkdirSync(home, { recursive: true })
  mkdirSync(workspace, { recursive: true })
  if (options.skipNotice) {
    placeOnce(join(home, 'settings.yaml'), `ui-onboarding:\n  welcomeNoticeVersion: ${noticeVersion}\n`)
  }
  if (options.openWorkspace) placeOnce(join(home, 'storages', 'workspace.json'), workspaceRecord(workspace))
  for (const plugin of options.plugins ?? []) await addPlugin(home, plugin)

  const startedMs = Date.now()
  const child = spawn(node(), [entry(), 'web', '--no-open', '--port', String(options.port ?? 0)], {
    cwd: workspace,
    env: hostEnv(home, options),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // A test or demo that ends without `stop` leaves no host behind.
  const killAtExit = () => child.kill('SIGKILL')
  process.once('exit', killAtExit)
  child.once('exit', () => process.off('exit', killAtExit))
  let log = ''
  const exited = new Promise<number | NodeJS.Signals | null>((done) => {
    child.on('exit', (code, signal) => done(code ?? signal))
  })
  const url = await new Promise<string>((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`the host did not serve within 60 s\n${log}`)), 60_000)
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        log += data
        const match = /dsh web: (http:\/\/\S+)/.exec(log)
        if (match?.[1] === undefined) return
        clearTimeout(timer)
        done(match[1])
      })
    }
    void exited.then((code) => {
      clearTimeout(timer)
      failed(new Error(`the host exited (${code}) before it served\n${log}`))
    })
  }).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })

  return {
    url,
    pid: child.pid ?? -1,
    startMs: Date.now() - startedMs,
    log: () => log,
    exited,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode !== null || child.signalCode !== null) return
      const force = setTimeout(() => child.kill('SIGKILL'), 8_000)
      child.kill(signal)
      await exited
      clearTimeout(force)
    },
  }
}

/**
 * Install a plugin into the home's `web` profile as a user would. A folder is linked, a packed file is unpacked into
 * the profile; the package has no dependencies, so neither needs the network.
 */
export async function addPlugin(home: string, path: string): Promise<void> {
  await runDsh(home, ['plugin', '--profile', 'web', 'add', resolve(path)])
}

/** Run a `dsh` command on the home to its end; its output. Throws with the output when it fails. */
export async function runDsh(home: string, args: readonly string[]): Promise<string> {
  const env = hostEnv(resolve(home), {})
  const { stdout, stderr } = await run(node(), [entry(), ...args], { env, cwd: root, maxBuffer: 1 << 26 })
  return stdout + stderr
}

/**
 * The built project as `npm pack` makes it: a .tgz below .cache. It is packed once per content, so that the test
 * files of one run share it and a rebuild gets its own.
 */
export async function packPlugin(): Promise<string> {
  const parts = ['lib/index.js', 'lib/client.js', 'cordis.patch.yml', 'package.json']
  const missing = parts.filter(part => !existsSync(join(root, part)))
  if (missing.length > 0) throw new Error(`not built: ${missing.join(', ')} (npm run build)`)
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update(readFileSync(join(root, part)))
  const folder = join(root, '.cache', 'pack', hash.digest('hex').slice(0, 16))
  const packed = () => existsSync(folder) ? readdirSync(folder).find(name => name.endsWith('.tgz')) : undefined

  const known = packed()
  if (known !== undefined) return join(folder, known)
  // Packed aside and renamed: the folder's name is the promise that the file in it is whole.
  const aside = `${folder}.${process.pid}`
  mkdirSync(aside, { recursive: true })
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', aside], { cwd: root, env: toolEnv() })
  try {
    renameSync(aside, folder)
  } catch (error) {
    // Another process was first; its file has the same content.
    rmSync(aside, { recursive: true, force: true })
    if (packed() === undefined) throw error
  }
  const name = packed()
  if (name === undefined) throw new Error(`npm pack left no file in ${folder}`)
  return join(folder, name)
}

/** Ids of the sessions that are on disk, in no particular order. */
export function storedSessionIds(home: string): readonly string[] {
  const sessions = join(resolve(home), 'sessions')
  if (!existsSync(sessions)) return []
  return readdirSync(sessions).flatMap(cwd => readdirSync(join(sessions, cwd)))
}

export interface LogLine {
  readonly type?: string
  readonly seq?: number
  readonly data?: Readonly<Record<string, unknown>>
  readonly [key: string]: unknown
}

/** The stored log of a session: the header, then the events (runs of stream chunks are packed into one line each). */
export function readSessionLog(home: string, sessionId: string): readonly LogLine[] {
  const sessions = join(resolve(home), 'sessions')
  const file = readdirSync(sessions).map(cwd => join(sessions, cwd, sessionId, 'session.jsonl.zstd')).find(existsSync)
  if (file === undefined) throw new Error(`no log of session ${sessionId} below ${sessions}`)
  return decodeFrames(readFileSync(file)).trim().split('\n').map(line => JSON.parse(line) as LogLine)
}

function placeOnce(file: string, content: string): void {
  if (existsSync(file)) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

/** The host's list of workspaces with one in it, as the pinned version stores it. */
function workspaceRecord(path: string): string {
  const id = randomUUID()
  const now = new Date().toISOString()
  const workspace = { path, title: basename(path), sessionIds: [], createdAt: now, updatedAt: now }
  return JSON.stringify({
    unit: { name: 'workspace', version: 2 },
    global: { initialized: true, workspaceIds: [id], archivedSessionIds: [] },
    tables: { workspaces: { [id]: workspace } },
  })
}

/** One frame per flush; Node's decoder stops silently after the first, so each is cut out and decoded by itself. */
function decodeFrames(data: Buffer): string {
  const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
  const texts: Buffer[] = []
  let start = 0
  while (start < data.length) {
    // The magic may also occur inside a frame: a cut that does not decode is widened to the next one.
    let end = data.indexOf(magic, start + 4)
    for (;;) {
      const frame = data.subarray(start, end < 0 ? data.length : end)
      try {
        texts.push(zstdDecompressSync(frame))
        break
      } catch (error) {
        if (end < 0) throw error
        end = data.indexOf(magic, end + 4)
      }
    }
    start = end < 0 ? data.length : end
  }
  return Buffer.concat(texts).toString('utf8')
}

/** Node 22 of the project when it is installed for this machine, else the one that runs us. */
function node(): string {
  const own = join(bin, 'node')
  return existsSync(own) ? own : process.execPath
}

function entry(): string {
  if (!existsSync(dsh)) throw new Error('the DSH host is not installed in tests/e2e/host (npm run test:e2e installs it)')
  return dsh
}

/** Our tools first on PATH (`dsh plugin add` calls pnpm); nothing of the npm run we may be part of. */
function toolEnv(): NodeJS.ProcessEnv {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    !/^npm_(?!config_registry$)/i.test(name) && name !== 'NODE_PATH' && name !== 'NODE_OPTIONS' && name !== 'VITEST'))
  return { ...env, PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` }
}

function hostEnv(home: string, { modelUrl, env }: Pick<HostOptions, 'modelUrl' | 'env'>): NodeJS.ProcessEnv {
  const model = modelUrl === undefined ? {} : { DEEPSEEK_BASE_URL: modelUrl, DEEPSEEK_API_KEY: 'scripted' }
  return { ...toolEnv(), DSH_HOME: home, DSH_TELEMETRY_DISABLED: '1', ...model, ...env }
}
