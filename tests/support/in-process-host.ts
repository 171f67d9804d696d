import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { expect, onTestFinished } from 'vitest'
import * as plugin from '../../host/index.ts'
import { dsh, serviceOf, type Foreign } from '../contract/support/dsh-packages.ts'
import { scriptedModel, type ModelRequest, type ScriptedModel, type Step } from '../contract/support/scripted-model.ts'
import { expectKnownAppends, watchAppends } from '../contract/support/appends.ts'

/**
 * A DSH home and a workspace on disk, and the hosts that are started on them one after another. Gone when the
 * test is over; what the plugin appended to session logs meanwhile is checked then.
 */
export interface World {
  readonly home: string
  readonly ws: string
  start(options?: HostOptions): Promise<Host>
  /** Text of a workspace file, undefined when there is none. */
  read(path: string): string | undefined
  bytes(path: string): Buffer
  write(path: string, content: string | Uint8Array, mode?: number): void
  remove(path: string): void
  exists(path: string): boolean
  /** Every path of the workspace with what it is: text of a file, target of a link, `folder`. */
  tree(): Readonly<Record<string, string>>
  /** Home and workspace as they are on disk at this moment; `restore` puts them there again. */
  snapshot(): { restore(): void }
  end(): Promise<void>
}

export interface HostOptions {
  /** Default true: our plugin is mounted. */
  readonly plugin?: boolean
  readonly settings?: Readonly<Record<string, unknown>>
  readonly sandbox?: 'read-only' | 'workspace-write' | 'danger-full-access'
  /** Default `native`. */
  readonly tools?: 'native' | 'code' | 'both'
  /** Services that this host does not have. */
  readonly without?: readonly ('sessionProjections' | 'tokenMeter' | 'jobs' | 'connection')[]
  /** The plugin is expected to complain; without this any complaint fails the test. */
  readonly complains?: boolean
  /** Mounted before our plugin; a place for other people's listeners. */
  readonly before?: (ctx: Foreign) => void | Promise<void>
}

export interface Host {
  readonly ctx: Foreign
  readonly model: ScriptedModel
  /** What the plugin wrote to the console. */
  readonly complaints: readonly string[]
  /** A new session, or the stored one of that id. */
  open(id?: string, meta?: Readonly<Record<string, unknown>>): Promise<Chat>
  /** Mounts our plugin now, in a host that was started without it; what is returned takes it out again. */
  install(settings?: Readonly<Record<string, unknown>>): Promise<{ dispose(): Promise<void> }>
  /** Asks our channel the way the page does. */
  ask(endpoint: string, payload: unknown): Promise<Foreign>
  /** Stops the host as a SIGTERM does. */
  stop(): Promise<void>
}

/** One session of a running host. */
export interface Chat {
  readonly id: string
  readonly agent: Foreign
  readonly session: Foreign
  readonly host: Host
  /** Sends a prompt, lets the model answer with these steps (then `ok`), waits until all is quiet. */
  turn(prompt: string, ...steps: Step[]): Promise<void>
  /** Sends a prompt and does not wait. */
  send(prompt: string): void
  command(line: string): Promise<{ readonly kind: string; readonly text?: string; readonly sourceEventSeq?: number }>
  events(): readonly Foreign[]
  /** What the model would be sent now, as one line of text per message: `role: text`. */
  surface(): readonly string[]
  lastRequest(): ModelRequest
  close(): Promise<void>
}

/** The blocks of a message as one text; calls and results in angle brackets. */
const textOf = (content: readonly Foreign[]): string => content.map(block =>
  block.type === 'text' ? block.text : block.type === 'tool-call' ? `<${block.name}>` : block.type === 'tool-result' ? `<result ${textOf(block.content ?? [])}>` : `<${block.type}>`).join('')
export const lineOf = (message: Foreign): string => `${message.role}: ${textOf(message.content)}`

export function aWorld(files: Readonly<Record<string, string>> = {}): World {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-contract-')))
  const home = join(root, 'home')
  const ws = join(root, 'ws')
  const running = new Set<Host>()
  const copies: string[] = []
  mkdirSync(home)
  mkdirSync(ws)
  const world: World = {
    home, ws,
    start: async (options = {}) => {
      process.env.DSH_HOME = home
      const host = await startHost(world, options, () => running.delete(host))
      running.add(host)
      return host
    },
    read: path => existsSync(join(ws, path)) ? readFileSync(join(ws, path), 'utf8') : undefined,
    bytes: path => readFileSync(join(ws, path)),
    write: (path, content, mode) => {
      mkdirSync(dirname(join(ws, path)), { recursive: true })
      writeFileSync(join(ws, path), content, mode === undefined ? {} : { mode })
    },
    remove: path => rmSync(join(ws, path), { recursive: true }),
    exists: path => lstatSync(join(ws, path), { throwIfNoEntry: false }) !== undefined,
    tree: () => treeOf(ws),
    snapshot: () => {
      const copy = mkdtempSync(join(tmpdir(), 'turnback-snapshot-'))
      copies.push(copy)
      cpSync(root, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
      return {
        restore: () => {
          rmSync(root, { recursive: true })
          cpSync(copy, root, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
        },
      }
    },
    end: async () => {
      try {
        for (const host of running) await host.stop()
      } finally {
        for (const folder of [root, ...copies]) rmSync(folder, { recursive: true, force: true })
      }
    },
  }
  for (const [path, text] of Object.entries(files)) world.write(path, text)
  onTestFinished(async () => {
    await world.end()
    expectKnownAppends()
  })
  return world
}

async function startHost(world: World, options: HostOptions, stopped: () => void): Promise<Host> {
  const { Context } = await dsh('cordis')
  await watchAppends()
  const ctx: Foreign = new Context()
  const model = await scriptedModel()
  const complaints: string[] = []
  const channel: { answer?: (endpoint: string, payload: unknown) => Promise<Foreign> } = {}
  const mount = async (module: string, config?: unknown): Promise<void> => {
    const found = await dsh(module)
    await ctx.plugin(typeof found.default === 'function' ? found.default : found, config)
  }
  const has = (service: NonNullable<HostOptions['without']>[number]): boolean => options.without?.includes(service) !== true
  const optional = async (service: Parameters<typeof has>[0], module: string, config?: unknown): Promise<void> => {
    if (has(service)) await mount(module, config)
  }

  await mount('dsh-invariants')
  await mount('dsh-llm')
  await mount('dsh-session')
  await mount('dsh-session/invariant')
  await mount('dsh-system-prompt', { persona: 'You are scripted.' })
  await mount('dsh-tools', { mode: options.tools ?? 'native' })
  await mount('dsh-agent')
  await mount('dsh-session-persistence-jsonl', { root: join(world.home, 'sessions'), writeBatchMaxDelayMs: 1 })
  await mount('dsh-session-checkpoint-policy')
  await mount('dsh-commands')
  await optional('sessionProjections', 'dsh-session-projection')
  await optional('tokenMeter', 'dsh-token-meter')
  if (has('tokenMeter')) {
    await mount('dsh-compaction-basic', { auto: false })
    await mount('dsh-command-compact')
  }
  await optional('jobs', 'dsh-jobs-local', {})
  await mount('dsh-sandbox-policy', { mode: options.sandbox ?? 'workspace-write', workspaceRoot: world.ws })
  await mount('dsh-fs-sandbox', { cwd: world.ws })
  await mount('dsh-fs-observation-policy')
  await mount('dsh-tool-fs', {})
  await mount('dsh-tool-str-replace-editor', { maxOutputChars: 16_000 })
  await mount('dsh-subprocess-local')
  await mount('dsh-bash-local', { cwd: world.ws })
  await mount('dsh-shell-env')
  await mount('dsh-tool-bash', { enableRunInBackground: has('jobs') })
  if (has('jobs')) await mount('dsh-tool-jobs', {})
  if (options.tools !== undefined) await mount('dsh-code-runtime-worker-thread', {})
  await mount('dsh-subagent')
  await mount('dsh-subagent-spawn-in-process', { providerName: 'spawn' })
  await mount('dsh-tool-subagent', { provider: 'spawn', toolName: 'subagent', enableRunInBackground: false })
  ctx.llm.registerAdapter(['scripted'], model.adapter)
  await ctx.plugin(await serviceOf('webServer', {}))
  if (has('connection')) await ctx.plugin(await serviceOf('connection', {
    rpc: {
      handle: (_channel: string, handler: (endpoint: string, payload: unknown) => Promise<Foreign>) => {
        channel.answer = handler
        return () => { delete channel.answer }
      },
    },
  }))
  await options.before?.(ctx)

  const { error } = console
  console.error = (...words: unknown[]) => {
    if (String(words[0]).startsWith('[turnback]')) complaints.push(words.join(' '))
    else error(...words)
  }
  const install: Host['install'] = async (settings = {}) => {
    const fiber = ctx.plugin(plugin, settings)
    await fiber
    // The fiber can be awaited itself, so it has to travel in something that cannot.
    return { dispose: () => fiber.dispose() }
  }
  if (options.plugin !== false) await install(options.settings)
  await mount('dsh-agent-loop', { agents: [] })

  const host: Host = {
    ctx, model, complaints, install,
    open: async (id = 's1', meta = {}) => {
      const agentOptions = { provider: 'scripted', model: 'm' }
      const stored = await ctx.get('sessionPersistence').inspect(id).then(() => true, () => false)
      const handle = stored
        ? await ctx.agents.resume({ resumeSessionId: id, agentOptions })
        : await ctx.agents.create({ sessionId: id, meta: { cwd: world.ws, ...meta }, agentOptions })
      return chatOf(host, handle)
    },
    ask: async (endpoint, payload) => (await channel.answer!(endpoint, payload)).value,
    stop: async () => {
      stopped()
      await ctx.fiber.dispose()
      console.error = error
      if (options.complains !== true) expect(complaints).toEqual([])
    },
  }
  return host
}

export function chatOf(host: Host, handle: Foreign): Chat {
  const { agent } = handle
  const { session } = agent
  return {
    id: session.id, agent, session, host,
    turn: async (prompt, ...steps) => {
      host.model.script.push(...steps)
      agent.followup(promptOf(prompt))
      await agent.whenIdle()
      // A step that nobody asked for would be the answer to something else later.
      if (host.model.script.length > 0) throw new Error(`turn "${prompt}" left ${host.model.script.length} steps`)
    },
    send: (prompt) => { agent.followup(promptOf(prompt)) },
    command: async (line) => {
      const done = await host.ctx.commands.execute(agent, line, [], new AbortController().signal)
      return done.result
    },
    events: () => session.events,
    surface: () => session.deriveMessages().map(lineOf),
    lastRequest: () => host.model.requests.at(-1)!,
    close: () => handle.dispose(),
  }
}

const promptOf = (text: string) => ({ id: randomUUID(), role: 'user', source: { kind: 'user' }, content: [{ type: 'text', text }] })

function treeOf(folder: string, prefix = ''): Record<string, string> {
  const tree: Record<string, string> = {}
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    const name = `${prefix}${entry.name}`
    if (entry.isDirectory()) Object.assign(tree, { [name]: 'folder' }, treeOf(path, `${name}/`))
    else tree[name] = entry.isSymbolicLink() ? `-> ${readlinkSync(path)}` : readFileSync(path, 'latin1')
  }
  return tree
}

// Steps that most tests use.
export const writes = (file_path: string, content: string): Step => ({ tools: [['write', { file_path, content }]] })
export const reads = (file_path: string): Step => ({ tools: [['read', { file_path }]] })
export const edits = (file_path: string, old_string: string, new_string: string): readonly Step[] =>
  [reads(file_path), { tools: [['edit', { file_path, old_string, new_string }]] }]
export const runs = (command: string): Step => ({ tools: [['bash', { command, description: 'Run a command' }]] })
