import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, chatOf, edits, runs, writes, type Chat, type Host, type HostOptions, type World } from '../support/in-process-host.ts'
import { journalOf } from './support/journal.ts'
import type { Step } from './support/scripted-model.ts'

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const listed = async (chat: Chat, turn: number) => (await previewOf(chat, turn)).rows.map(({ shown, action, ...row }) => [shown, action, 'conflict' in row ? row.conflict : undefined])
const tool = (name: string, args: object): Step => ({ tools: [[name, args]] })
const program = (code: string): Step => tool('run_code', { code, description: 'Run a program' })
const until = (world: World, sign: string): string => `until [ -e ${world.home}/${sign} ]; do sleep 0.02; done`
const say = (world: World, sign: string): void => { writeFileSync(join(world.home, sign), '') }
const heard = (world: World, sign: string): Promise<void> => expect.poll(() => execFileSync('ls', [world.home], { encoding: 'utf8' }).split('\n').includes(sign), { timeout: 10_000 }).toBe(true)

/** Sends a prompt whose command waits for `go`; resolves when the command runs. */
async function busy(world: World, chat: Chat, prompt: string, command: string): Promise<void> {
  chat.host.model.script.push(runs(`touch ${world.home}/up-${chat.id}; ${until(world, 'go')}; ${command}`))
  chat.send(prompt)
  await heard(world, `up-${chat.id}`)
}

/** A subagent of `parent` that lives on its own, as a continuable one does. */
async function childOf(host: Host, world: World, parent: string, id = 'child', delegationDepth = 1): Promise<Chat> {
  const handle = await host.ctx.agents.create({
    sessionId: id, meta: { cwd: world.ws, parentSession: parent, origin: 'subagent', delegationDepth },
    agentOptions: { provider: 'scripted', model: 'm' },
  })
  onTestFinished(() => handle.dispose())
  return chatOf(host, handle)
}

describe('two sessions in one workspace', () => {
  it('field 41: a file tool of another session during a command is the other session’s alone', async () => {
    const world = aWorld({ 'b.txt': '1' })
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await busy(world, mine, 'first', 'echo a > a.txt')
    await other.turn('first', ...edits('b.txt', '1', '2'), writes('n.txt', 'n'))
    say(world, 'go')
    await mine.agent.whenIdle()

    expect(await listed(mine, 1)).toEqual([['a.txt', 'delete', undefined]])
    expect(await listed(other, 1)).toEqual([['b.txt', 'write', undefined], ['n.txt', 'delete', undefined]])
  })

  it('field 41: a program of another session during a command is the other session’s alone', async () => {
    const world = aWorld()
    const host = await world.start({ tools: 'both' })
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await busy(world, mine, 'first', 'echo a > a.txt')
    await other.turn('first', program(`await tools.write({ file_path: 'n.txt', content: 'n' })`))
    say(world, 'go')
    await mine.agent.whenIdle()

    expect(await listed(mine, 1)).toEqual([['a.txt', 'delete', undefined]])
    expect(await listed(other, 1)).toEqual([['n.txt', 'delete', undefined]])
  })

  it('commands at the same time leave nobody sure of what is whose', async () => {
    const world = aWorld()
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await busy(world, mine, 'first', 'echo a > a.txt')
    await other.turn('first', runs('echo b > b.txt'))
    say(world, 'go')
    await mine.agent.whenIdle()

    expect(await listed(mine, 1)).toEqual([['a.txt', 'keep', 'shared'], ['b.txt', 'keep', 'shared']])
    expect(await listed(other, 1)).toEqual([['b.txt', 'keep', 'shared']])
    expect((await journalOf(world, other, 'change')).map(({ doubt }) => doubt)).toEqual(['overlap'])
  })

  it('a command beside another session’s background work leaves nobody sure either', async () => {
    const world = aWorld()
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await mine.turn('first', tool('bash', { command: until(world, 'go'), description: 'Wait', run_in_background: true }))
    await other.turn('first', runs('echo b > b.txt'))
    say(world, 'go')

    expect((await journalOf(world, other, 'change')).map(({ doubt }) => doubt)).toEqual(['overlap'])
  })
})

describe('calls of one session at the same time', () => {
  it('commands of two subagents book a change once, on the one that saw it first', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start()
    const chat = await host.open()
    await chat.turn('first', 'one')
    const [one, two] = [await childOf(host, world, chat.id, 'one'), await childOf(host, world, chat.id, 'two')]
    await busy(world, one, 'work', `echo 2 > a.txt; touch ${world.home}/done`)
    await busy(world, two, 'work', `${until(world, 'done')}; sleep 0.2; echo 3 > b.txt`)
    say(world, 'go')
    await Promise.all([one.agent.whenIdle(), two.agent.whenIdle()])

    const rows = await listed(chat, 1)
    const booked = (await journalOf(world, chat, 'change')).map(({ path, call }) => [path.slice(world.ws.length + 1), call.sessionId])
    expect(booked.sort()).toEqual([['a.txt', 'one'], ['b.txt', 'two']])
    expect(rows).toEqual([['a.txt', 'write', undefined], ['b.txt', 'delete', undefined]])
    await chat.command('/rollback 1')
    expect(world.tree()).toEqual({ 'a.txt': '1' })
  })

  it('a file tool in the middle of its write is no change of the command that ends meanwhile', async () => {
    const world = aWorld({ 'a.txt': '1' })
    // The file is written, and its call not over, when the command beside it ends.
    const host = await world.start({ before: (ctx) => {
      ctx.on('tools/execute', async (exec: { name: string }, next: () => Promise<unknown>) => {
        const result = await next()
        if (exec.name !== 'write') return result
        say(world, 'go')
        await heard(world, 'ended')
        return result
      })
      ctx.on('tools/result', (exec: { name: string }) => { if (exec.name === 'bash') say(world, 'ended') })
    } })
    const chat = await host.open()
    await chat.turn('first', 'one')
    const [one, two] = [await childOf(host, world, chat.id, 'one'), await childOf(host, world, chat.id, 'two')]
    await busy(world, one, 'work', 'true')
    await two.turn('work', writes('n.txt', 'n'))
    await one.agent.whenIdle()

    expect(await listed(chat, 1)).toEqual([['n.txt', 'delete', undefined]])
    expect(await journalOf(world, chat, 'change')).toEqual([])
  })

  it('a command of over thirty seconds leaves nobody sure', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const real = Date.now
    let laterMs = 0
    vi.spyOn(Date, 'now').mockImplementation(() => real() + laterMs)
    onTestFinished(() => { vi.restoreAllMocks() })
    const chat = await opened(world, { before: (ctx) => {
      ctx.on('tools/execute', async (exec: { name: string }, next: () => Promise<unknown>) => {
        const result = await next()
        if (exec.name === 'bash') laterMs += 30_001
        return result
      })
    } })
    await chat.turn('first', runs('echo 2 > a.txt'))

    expect(await listed(chat, 1)).toEqual([['a.txt', 'keep', 'shared']])
    expect((await journalOf(world, chat, 'change')).map(({ doubt }) => doubt)).toEqual(['long'])
  })
})

describe('a subagent that goes on by itself', () => {
  it('has its changes booked on the turn that was open when its own turn began, though that has ended', async () => {
    const world = aWorld()
    const host = await world.start()
    const chat = await host.open()
    const child = await childOf(host, world, chat.id)
    await chat.turn('first', 'one')
    host.model.script.push({ hang: 'thinking' })
    chat.send('second')
    await expect.poll(() => host.model.requests.length).toBe(2)
    await busy(world, child, 'work', 'echo c > c.txt')
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()
    await chat.turn('third', 'three')
    host.model.script.push(writes('s.txt', 's'))
    say(world, 'go')
    await child.agent.whenIdle()

    expect((await previewOf(chat, 2)).rows.map(({ shown, turns }) => [shown, ...turns])).toEqual([['c.txt', 2], ['s.txt', 2]])
    expect((await previewOf(chat, 3)).rows).toEqual([])
    expect((await previewOf(chat, 2)).gaps).toEqual([])
  })

  it('between the turns has them booked on the last one, and that is said', async () => {
    const world = aWorld()
    const host = await world.start()
    const chat = await host.open()
    const child = await childOf(host, world, chat.id)
    await chat.turn('first', 'one')
    await chat.turn('second', 'two')
    await child.turn('work', writes('s.txt', 's'))

    expect((await previewOf(chat, 2)).rows.map(({ shown, turns }) => [shown, ...turns])).toEqual([['s.txt', 2]])
    expect((await previewOf(chat, 2)).gaps).toEqual([{ reason: 'late', count: 1, names: ['write'] }])
  })

  it('in a second turn of its own has that one’s changes booked where it began', async () => {
    const world = aWorld()
    const host = await world.start()
    const chat = await host.open()
    const child = await childOf(host, world, chat.id)
    await chat.turn('first', 'one')
    await child.turn('work', writes('one.txt', '1'))
    host.model.script.push({ hang: 'thinking' })
    chat.send('second')
    await expect.poll(() => host.model.requests.length).toBe(4)
    await child.turn('more', writes('two.txt', '2'))
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()

    expect((await previewOf(chat, 1)).rows.map(({ shown, turns }) => [shown, ...turns])).toEqual([['one.txt', 1], ['two.txt', 2]])
  })

  it('of a subagent is booked on the person’s session as well', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start()
    const chat = await host.open()
    await childOf(host, world, chat.id)
    const grandchild = await childOf(host, world, 'child', 'grandchild', 2)
    await chat.turn('first', 'one')
    await grandchild.turn('work', ...edits('a.txt', '1', '2'), runs('echo g > g.txt'))

    expect((await previewOf(chat, 1)).rows.map(({ shown, turns }) => [shown, ...turns])).toEqual([['a.txt', 1], ['g.txt', 1]])
    expect(await journalOf(world, grandchild, 'before')).toEqual([])
  })
})

describe('a call that was refused before it ran', () => {
  const denying = (names: readonly string[]): HostOptions => ({ before: (ctx) => {
    ctx.on('tools/pre-execute', (exec: { name: string }, next: () => Promise<unknown>) =>
      names.includes(exec.name) ? Promise.resolve({ kind: 'deny', reason: 'not today' }) : next())
  } })

  it('of a command is noted as such, and is no gap', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, denying(['bash']))
    await chat.turn('first', runs('rm a.txt'))

    expect(await previewOf(chat, 1)).toMatchObject({ rows: [], gaps: [] })
    expect(await journalOf(world, chat, 'seen')).toMatchObject([{ call: { tool: 'bash' }, ran: false }])
  })

  it('of a subagent’s command is no gap either', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, denying(['bash']))
    await chat.turn('first', tool('subagent', { description: 'd', prompt: 'p' }), runs('rm a.txt'), 'child done', 'done')

    expect(await previewOf(chat, 1)).toMatchObject({ rows: [], gaps: [] })
    expect((await journalOf(world, chat, 'seen')).filter(({ call }) => call.tool === 'bash')).toMatchObject([{ ran: false }])
  })

  it('is told from one whose body somebody else took over', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    // Stands before us and answers itself: whatever it did, nobody looked.
    chat.host.ctx.on('tools/execute', (exec: { name: string }, next: () => Promise<unknown>) => {
      if (exec.name !== 'bash') return next()
      world.write('a.txt', '2')
      return Promise.resolve({ content: [{ type: 'text', text: 'done' }], isError: false, value: { kind: 'foreground', exitCode: 0, signal: null, timedOut: false, aborted: false, timeoutMs: 1, stdout: { text: '', truncated: false }, stderr: { text: '', truncated: false } } })
    }, { prepend: true })
    await chat.turn('first', runs('echo 2 > a.txt'))

    expect((await previewOf(chat, 1)).gaps).toEqual([{ reason: 'command', count: 1, names: ['echo 2 > a.txt'] }])
    expect((await journalOf(world, chat, 'seen')).map(({ ran }) => ran)).toEqual([undefined])
  })
})

describe('a command that moves git’s HEAD', () => {
  const git = (world: World, ...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'init.defaultBranch=main', ...args], { cwd: world.ws, encoding: 'utf8' }).trim()

  it('is noted with both ends, by commit and by full branch name, beside its words', async () => {
    const world = aWorld({ 'a.txt': '1' })
    git(world, 'init', '-q')
    git(world, 'add', '-A')
    git(world, 'commit', '-qm', 'start')
    const chat = await opened(world)
    await chat.turn('first', runs('git checkout -qb side'), runs('echo 2 > a.txt && git -c user.name=t -c user.email=t@t commit -qam two'), runs('git checkout -q --detach'), runs('true'))

    const [start, end] = [git(world, 'rev-parse', 'main'), git(world, 'rev-parse', 'side')]
    expect((await journalOf(world, chat, 'bracket')).map(({ words, head }) => [words.split(' ').slice(0, 2).join(' '), head])).toEqual([
      ['git checkout', { from: start, to: start, fromRef: 'refs/heads/main', ref: 'refs/heads/side' }],
      ['echo 2', { from: start, to: end, fromRef: 'refs/heads/side', ref: 'refs/heads/side' }],
      ['git checkout', { from: end, to: end, fromRef: 'refs/heads/side' }],
      ['true', undefined],
    ])
  })
})
