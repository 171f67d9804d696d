import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, runs, writes, type Chat, type Host, type World } from '../support/in-process-host.ts'
import { dsh } from './support/dsh-packages.ts'
import type { Step } from './support/scripted-model.ts'
import { journalOf } from './support/journal.ts'

/** Looks at workspaces so far, of all tests of this file. */
const looks = vi.hoisted(() => ({ before: 0, after: 0, isBroken: false }))

vi.mock(import('../../host/capture/workspace-look.ts'), async (load) => {
  const real = await load()
  return {
    lookBefore: (...args) => {
      looks.before += 1
      return real.lookBefore(...args)
    },
    lookAfter: (...args) => {
      if (looks.isBroken) throw new Error('EIO: a look broke')
      looks.after += 1
      return real.lookAfter(...args)
    },
  }
})

const git = (folder: string, ...args: string[]): void => {
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'init.defaultBranch=main', ...args], { cwd: folder })
}

const kinds: readonly (readonly [string, (world: World) => void])[] = [
  ['a plain folder', () => {}],
  ['a git work tree', (world) => {
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
  }],
]

const opened = async (world: World): Promise<Chat> => (await world.start()).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const inBackground = (command: string): Step => ({ tools: [['bash', { command, description: 'Go on', run_in_background: true }]] })
/** A shell line that waits until the test says so, by a file beside the workspace. */
const until = (world: World, sign: string): string => `until [ -e ${world.home}/${sign} ]; do sleep 0.02; done`
const say = (world: World, sign: string): void => { writeFileSync(join(world.home, sign), '') }
const after = (world: World, sign: string, command: string): Step => inBackground(`${until(world, sign)}; ${command}`)

const jobs = (chat: Chat): readonly string[] => chat.host.ctx.get('jobs').list(chat.agent).map((job: { status: string }) => job.status)
const jobsEnded = async (chat: Chat): Promise<void> => {
  await expect.poll(() => jobs(chat).every(status => status === 'completed'), { timeout: 10_000 }).toBe(true)
  await chat.agent.whenIdle()
}
const rowsOf = ({ rows }: Preview) => rows.map(({ shown, action, ...row }) => [shown, action, 'conflict' in row ? row.conflict : undefined])
const endings = async (world: World, chat: Chat) => (await journalOf(world, chat, 'bracket')).map(({ turn, job }) => [turn.number, job])

describe.each(kinds)('a command that goes on in the background, in %s', (_name, prepare) => {
  it('has what it changes after its turn booked on the turn that started it, as shared', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', after(world, 'go', 'echo 2 > a.txt; rm b.txt; echo n > n.txt'))
    expect(await endings(world, chat)).toEqual([[1, 'running']])
    say(world, 'go')
    await jobsEnded(chat)

    const preview = await previewOf(chat, 1)

    expect(rowsOf(preview)).toEqual([
      ['a.txt', 'keep', 'shared'], ['b.txt', 'keep', 'shared'], ['n.txt', 'keep', 'shared'],
    ])
    expect(preview.rows.map(({ turns }) => turns)).toEqual([[1], [1], [1]])
    expect(preview.gaps).toEqual([])
    expect(await endings(world, chat)).toEqual([[1, 'running'], [1, 'ended']])
    expect((await journalOf(world, chat, 'change')).map(({ doubt }) => doubt)).toEqual(['late', 'late', 'late'])
  })

  it('has its bytes from before stored: what it destroyed comes back when the person wants it', async () => {
    const world = aWorld({ 'a.txt': 'precious' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', after(world, 'go', 'echo gone > a.txt'))
    say(world, 'go')
    await jobsEnded(chat)
    const { token, rows } = await previewOf(chat, 1)
    expect(rows.map(({ shown }) => shown)).toEqual(['a.txt'])

    const { value: { planId } } = await chat.host.ask('plan', { sessionId: chat.id, turn: 1, token, putBack: [rows[0]!.path] })
    await chat.command(`/rollback --plan ${planId}`)

    expect(world.read('a.txt')).toBe('precious')
  })

  it('that changes a file twice, once during its call, has one unbroken story of it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', inBackground(`echo 2 > a.txt; touch up; ${until(world, 'go')}; echo 3 > a.txt; rm up`), runs('until [ -e up ]; do sleep 0.02; done'))
    say(world, 'go')
    await jobsEnded(chat)

    await previewOf(chat, 1)

    const story = (await journalOf(world, chat, 'change')).filter(({ path }) => path.endsWith('a.txt'))
    const digests = story.map(({ before, after: left }) => [before, left].map(state => (state.kind === 'file' ? state.digest : state.kind)))
    for (const [at, [before]] of digests.entries()) if (at > 0) expect(before).toBe(digests[at - 1]![1])
    expect(world.read('a.txt')).toBe('3\n')
    expect(digests.at(-1)![0]).not.toBe(digests[0]![0])
  })

  it('is cut by the next command, which has its own changes to itself, and looked at again at its end', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1', 'c.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', after(world, 'go', 'echo 2 > a.txt; touch done; ' + until(world, 'on') + '; echo 2 > c.txt'))
    say(world, 'go')
    await expect.poll(() => world.exists('done')).toBe(true)
    await chat.turn('second', runs('echo 2 > b.txt'))
    expect(await endings(world, chat)).toEqual([[1, 'running'], [1, 'cut'], [2, undefined]])
    say(world, 'on')
    await jobsEnded(chat)

    const turnsOf = async (turn: number) => Object.fromEntries((await previewOf(chat, turn)).rows.map(({ shown, turns, action }) => [shown, [...turns, action]]))
    expect(await turnsOf(1)).toMatchObject({ 'a.txt': [1, 'keep'], 'b.txt': [2, 'write'], 'c.txt': [1, 'keep'] })
    expect(Object.keys(await turnsOf(2))).toEqual(['b.txt'])
    expect((await endings(world, chat)).at(-1)).toEqual([1, 'ended'])
    await chat.command('/rollback 2')
    expect([world.read('a.txt'), world.read('b.txt'), world.read('c.txt')]).toEqual(['2\n', '1', '2\n'])
  })

  it('that writes while another command runs is seen there, once', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', after(world, 'go', 'echo 2 > a.txt; touch done'), runs(`touch ${world.home}/go; until [ -e done ]; do sleep 0.02; done`))
    await jobsEnded(chat)
    await previewOf(chat, 1)

    expect((await journalOf(world, chat, 'change')).filter(({ path }) => path.endsWith('a.txt'))).toMatchObject([{ turn: { number: 1 } }])
    expect((await endings(world, chat)).filter(([, job]) => job !== undefined)).toContainEqual([1, 'ended'])
  })

  it('leaves what a file tool writes meanwhile, and what a rollback puts back, to their own records', async () => {
    const world = aWorld({ 'a.txt': '1', 'z.txt': '1' })
    prepare(world)
    const host = await world.start()
    const [chat, other] = [await host.open('mine'), await host.open('other')]
    await other.turn('first', ...edits('z.txt', '1', '2'))
    await chat.turn('first', after(world, 'go', 'true'))
    await chat.turn('second', ...edits('a.txt', '1', '2'))
    expect((await other.command('/rollback 1')).kind).toBe('success')
    expect(world.read('z.txt')).toBe('1')
    say(world, 'go')
    await jobsEnded(chat)

    expect(rowsOf(await previewOf(chat, 1))).toEqual([['a.txt', 'write', undefined]])
    expect(await journalOf(world, chat, 'change')).toEqual([])
  })
})

describe('background work and its end', () => {
  it('that was lost with the host stays a gap', async () => {
    const world = aWorld()
    const first = await world.start()
    await (await first.open()).turn('first', after(world, 'go', 'true'))
    await first.stop()
    const chat = await opened(world)

    expect((await previewOf(chat, 1)).gaps).toEqual([{ reason: 'job-running', count: 1, names: [expect.stringContaining('until [ -e /')] }])
  })

  it('is found by the list of jobs where the host tells of no end', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ before: ctx => silence(ctx) })
    const chat = await host.open()
    await chat.turn('first', after(world, 'go', 'echo 2 > a.txt'))
    say(world, 'go')
    await jobsEnded(chat)

    expect(rowsOf(await previewOf(chat, 1))).toEqual([['a.txt', 'keep', 'shared']])
    expect(await endings(world, chat)).toEqual([[1, 'running'], [1, 'ended']])
  })

  it('of two jobs is booked on the newer one, and both are ended', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', after(world, 'go', 'true'))
    await chat.turn('second', after(world, 'go', 'echo 2 > a.txt'))
    say(world, 'go')
    await jobsEnded(chat)

    await previewOf(chat, 1)

    expect((await journalOf(world, chat, 'change')).filter(({ path }) => path.endsWith('a.txt'))).toMatchObject([{ turn: { number: 2 }, doubt: 'late' }])
    expect((await previewOf(chat, 1)).gaps).toEqual([])
  })

  it('costs the same looks however many jobs go on, and none when they are over', async () => {
    const looksOf = async (work: () => Promise<unknown>): Promise<typeof looks> => {
      const start = { ...looks }
      await work()
      // The list of turns waits for what the end of the turn has asked for.
      await chat.host.ask('timeline', { sessionId: chat.id })
      return { ...looks, before: looks.before - start.before, after: looks.after - start.after }
    }
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('t1', after(world, 'go', 'true'))
    const withOne = await looksOf(() => chat.turn('command', runs('true')))
    for (let turn = 2; turn <= 5; turn++) await chat.turn(`t${turn}`, after(world, 'go', 'true'))
    const withFive = await looksOf(() => chat.turn('command', runs('true')))
    say(world, 'go')
    await jobsEnded(chat)
    await previewOf(chat, 1)
    const afterwards = await looksOf(() => chat.turn('last', runs('true')))

    // At the prompt, before the command, after it, and at the end of the turn.
    expect([withOne, withFive]).toMatchObject([{ before: 1, after: 4 }, { before: 1, after: 4 }])
    expect(afterwards).toMatchObject({ before: 1, after: 1 })
    expect((await endings(world, chat)).filter(([, job]) => job === 'ended')).toHaveLength(5)
  })

  it('does not hold up the next command when the look at it fails, and stays a gap', async () => {
    const world = aWorld()
    const host = await world.start({ complains: true })
    const chat = await host.open()
    await chat.turn('first', after(world, 'go', 'echo n > n.txt'))
    say(world, 'go')
    looks.isBroken = true
    await jobsEnded(chat)
    await expect.poll(() => host.complaints.filter(line => line.includes('late look')).length).toBe(1)
    looks.isBroken = false

    await chat.turn('second', runs('echo m > m.txt'))

    expect((await previewOf(chat, 2)).rows.map(({ shown }) => shown)).toContain('m.txt')
    // The look that was kept is as good as before: what the failed one missed is seen by the next.
    expect((await previewOf(chat, 1)).rows.map(({ shown }) => shown)).toContain('n.txt')
  })

  it('is not in the way of a file tool in a turn of its own', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', after(world, 'go', 'true'))
    await chat.turn('second', writes('n.txt', 'n'))
    say(world, 'go')
    await jobsEnded(chat)
    await chat.command('/rollback 2')

    expect(world.exists('n.txt')).toBe(false)
  })
})

describe('shells that outlive their call', () => {
  /** The persistent shell of the minimal preset, in place of `bash`. */
  const persistent = async (world: World): Promise<Chat> => {
    const chat = await (await world.start({ sandbox: 'danger-full-access' })).open()
    for (const [name, config] of [['dsh-terminal', {}], ['dsh-terminal-bash', { timeoutMs: 20_000 }], ['dsh-tool-bash-persistent', { timeoutMs: 20_000 }]] as const) {
      const found = await dsh(name)
      await chat.agent.ctx.plugin(typeof found.default === 'function' ? found.default : found, config)
    }
    return chat
  }

  it('a persistent shell: what it was told to leave running is seen later, and stays a gap', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await persistent(world)
    await chat.turn('first', runs(`echo 1 > at-once.txt; (${until(world, 'go')}; echo 2 > a.txt; touch done) &`))
    say(world, 'go')
    await expect.poll(() => world.exists('done'), { timeout: 10_000 }).toBe(true)

    const preview = await previewOf(chat, 1)

    expect(rowsOf(preview)).toEqual([['a.txt', 'keep', 'shared'], ['at-once.txt', 'delete', undefined], ['done', 'keep', 'shared']])
    expect(preview.gaps).toMatchObject([{ reason: 'job-running', count: 1 }])
  })

  it('a persistent shell that waits for its command is as any command', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await persistent(world)
    await chat.turn('first', runs('echo 2 > a.txt && echo "?a=1&b=2" > b.txt 2>&1'))

    const { rows, gaps } = await previewOf(chat, 1)

    expect({ gaps, rows: rows.map(({ shown, action }) => [shown, action]) }).toEqual({ gaps: [], rows: [['a.txt', 'write'], ['b.txt', 'delete']] })
  })

  /** Tools with the names and answers of DSH's terminal tools; a send leaves `go` to be written by whoever comes later. */
  const terminals = async (world: World): Promise<Chat> => {
    const { defineTool } = await dsh('dsh-tools')
    const tool = (name: string, answer: object) => defineTool({
      name, description: name, parameters: { sessionId: { type: 'string', required: true }, text: { type: 'string' } },
      output: { schema: { type: 'json' }, render: () => [{ type: 'text', text: name }] },
      execute: () => Promise.resolve(answer),
    })
    const host = await world.start({ before: (ctx) => {
      ctx.get('tools').register(tool('terminal_send', { kind: 'foreground', viewport: '', waitReason: 'inferred_idle', sessionStatus: { kind: 'running' } }))
      ctx.get('tools').register(tool('terminal_close', { outcome: 'closed' }))
      ctx.get('tools').register(tool('terminal_read', { text: '' }))
    } })
    return host.open()
  }
  const send = (text: string): Step => ({ tools: [['terminal_send', { sessionId: 't1', text }]] })

  it('a terminal: what it does after the call is booked there, and the call that closes it ends that', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await terminals(world)
    await chat.turn('first', send('make watch'))
    world.write('a.txt', '2')
    expect(rowsOf(await previewOf(chat, 1))).toEqual([['a.txt', 'keep', 'shared']])
    expect((await previewOf(chat, 1)).gaps).toEqual([{ reason: 'job-running', count: 1, names: ['make watch'] }])

    await chat.turn('second', { tools: [['terminal_close', { sessionId: 't1' }]] })
    world.write('a.txt', '3')

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    expect((await journalOf(world, chat, 'change')).map(({ after: left }) => left)).toHaveLength(1)
  })

  it('a terminal: goes with its session, and leaves nothing to look at in the workspace', async () => {
    const world = aWorld()
    const chat = await terminals(world)
    await chat.turn('first', send('make watch'))
    await chat.close()
    const other = await chat.host.open('other')
    const start = { ...looks }
    await other.turn('first', runs('echo x > x.txt'))

    expect(rowsOf(await previewOf(other, 1))).toEqual([['x.txt', 'delete', undefined]])
    expect([looks.before - start.before, looks.after - start.after]).toEqual([1, 1])
  })

  it('a terminal: the next thing it is sent takes over, and reading it is no command', async () => {
    const world = aWorld()
    const chat = await terminals(world)
    await chat.turn('first', send('one'))
    await chat.turn('second', send('two'), { tools: [['terminal_read', { sessionId: 't1' }]] })

    expect((await previewOf(chat, 1)).gaps).toEqual([{ reason: 'job-running', count: 1, names: ['two'] }])
    expect(await endings(world, chat)).toEqual([[1, 'running'], [1, 'cut'], [2, 'running'], [1, 'ended']])
  })
})

/** A host whose list of jobs is there and whose ends are told to nobody but its own plugins. */
function silence(ctx: Host['ctx']): void {
  const jobs = ctx.get('jobs')
  const { onJobDone } = Object.getPrototypeOf(jobs)
  onTestFinished(() => { Object.assign(Object.getPrototypeOf(jobs), { onJobDone }) })
  Object.defineProperty(Object.getPrototypeOf(jobs), 'onJobDone', {
    configurable: true, writable: true,
    value(this: unknown, listener: { name?: string }) {
      return String(new Error('caller').stack).includes('/host/dsh/jobs.ts') ? () => {} : onJobDone.call(this, listener)
    },
  })
}
