import { describe, expect, it } from 'vitest'
import { markerTexts } from '../../src/surface/marker.ts'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, lineOf, reads, writes, type Chat, type World } from '../support/in-process-host.ts'
import type { Step } from './support/scripted-model.ts'

const opened = async (world: World, options = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const edit = (file_path: string, old_string: string, new_string: string): Step => ({ tools: [['edit', { file_path, old_string, new_string }]] })
const lastResult = (chat: Chat): string => chat.surface().findLast(line => line.startsWith('user: <result'))!

/** Disk and log as a refused rollback has to leave them; the command's own two events aside. */
const standing = (world: World, chat: Chat) =>
  ({ tree: world.tree(), types: chat.events().filter(event => !event.type.startsWith('command/')).map(event => event.type), surface: chat.surface() })

describe('after a rollback the model', () => {
  it('may edit at once a file that it had read before the target turn', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', reads('a.txt'))
    await chat.turn('second', edit('a.txt', '1', '2'))
    await chat.command('/rollback 2')

    await chat.turn('third', edit('a.txt', '1', '3'))

    expect(world.read('a.txt')).toBe('3')
  })

  it('has to read again a file that it first saw in the withdrawn turns', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', 'one')
    await chat.turn('second', reads('a.txt'), edit('a.txt', '1', '2'))
    await chat.command('/rollback 2')

    await chat.turn('third', edit('a.txt', '1', '3'))
    expect(lastResult(chat)).toContain('re-read')
    expect(world.read('a.txt')).toBe('1')
    await chat.turn('fourth', reads('a.txt'), edit('a.txt', '1', '3'))
    expect(world.read('a.txt')).toBe('3')
  })

  it('may create anew a file that the rollback deleted', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', 'one')
    await chat.turn('second', writes('n.txt', 'n'))
    await chat.command('/rollback 2')

    await chat.turn('third', writes('n.txt', 'again'))

    expect(world.read('n.txt')).toBe('again')
  })

  it('keeps its knowledge of a file across two rollbacks', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', reads('a.txt'))
    await chat.turn('second', edit('a.txt', '1', '2'))
    await chat.command('/rollback 2')
    await chat.turn('third', edit('a.txt', '1', '3'))
    await chat.command('/rollback 3')

    await chat.turn('fourth', edit('a.txt', '1', '4'))

    expect(world.read('a.txt')).toBe('4')
  })
})

describe('a session that may not write files', () => {
  it('is refused a rollback of files, and nothing is changed', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    chat.session.append('sandbox/mode', { mode: 'read-only' })
    const before = standing(world, chat)

    const { kind, text } = await chat.command('/rollback 1')

    expect({ kind, text }).toEqual({ kind: 'error', text: 'This session may not write files. Change the access mode of the session, then roll back. The conversation alone can go back as it is: /rollback 1 conversation' })
    expect(standing(world, chat)).toEqual(before)
  })

  it('is refused the undo of a rollback', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    await chat.command('/rollback 1')
    chat.session.append('sandbox/mode', { mode: 'read-only' })

    const { kind, text } = await chat.command('/rollback undo')

    expect(kind).toBe('error')
    expect(text).toContain('may not write files')
    expect(world.read('a.txt')).toBe('1')
  })

  it('may roll back a conversation that changed no file', async () => {
    const world = aWorld()
    const chat = await opened(world, { sandbox: 'read-only' })
    await chat.turn('first', 'one')

    expect((await chat.command('/rollback 1')).kind).toBe('success')
  })
})

describe('while something is under way a rollback', () => {
  it('is refused for a running turn, and works after it was stopped', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    chat.host.model.script.push({ hang: 'thinking' })
    chat.send('second')
    await expect.poll(() => chat.host.model.requests.length).toBe(4)
    const before = standing(world, chat)

    const refused = await chat.command('/rollback 1')

    expect(refused).toEqual({ kind: 'error', text: 'A turn is still running. Stop it or wait for it to end, then roll back.' })
    expect(standing(world, chat)).toEqual(before)
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()
    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })

  it('is refused for a background job of this session, by its name', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', { tools: [['bash', { command: 'sleep 60', description: 'Wait for a minute', run_in_background: true }]] })
    const before = standing(world, chat)

    const { kind, text } = await chat.command('/rollback 1')

    expect(kind).toBe('error')
    expect(text).toMatch(/Background work of this session is still running: .*(sleep 60|Wait for a minute)/)
    expect(standing(world, chat)).toEqual(before)
  })

  it('is refused for a job that a subagent of this session left running', async () => {
    const world = aWorld()
    const chat = await opened(world)
    const jobs = chat.host.ctx.get('jobs')
    const child = await chat.host.ctx.agents.create({
      sessionId: 'child', meta: { cwd: world.ws, parentSession: chat.id, origin: 'subagent', delegationDepth: 1 },
      agentOptions: { provider: 'scripted', model: 'm' },
    })
    await chat.turn('first', 'one')
    let finish!: (outcome: { status: string }) => void
    const done = new Promise<{ status: string }>((resolve) => { finish = resolve })
    jobs.start({ kind: 'bash', label: 'child build', owner: child.agent, run: () => ({ done, cancel: () => { finish({ status: 'killed' }) } }) })

    const { kind, text } = await chat.command('/rollback 1')

    finish({ status: 'completed' })
    expect(kind).toBe('error')
    expect(text).toContain('child build')
  })

  it('is not refused for the work of another session', async () => {
    const world = aWorld()
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await mine.turn('first', 'one')
    await other.turn('first', { tools: [['bash', { command: 'sleep 60', description: 'Wait', run_in_background: true }]] })
    host.model.script.push({ hang: 'busy' })
    other.send('second')
    await expect.poll(() => other.agent.status).toBe('running')

    expect((await mine.command('/rollback 1')).kind).toBe('success')
  })

  it('names prompts that wait, keeps them, and they run after it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    chat.host.model.script.push({ hang: 'thinking' })
    chat.send('second')
    await expect.poll(() => chat.host.model.requests.length).toBe(4)
    chat.send('waiting prompt')
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await expect.poll(() => chat.agent.status).toBe('idle')

    const { queued } = await previewOf(chat, 1)
    const { kind, text } = await chat.command('/rollback 1')
    await chat.turn('last')

    expect(queued).toEqual(['waiting prompt'])
    expect(kind).toBe('success')
    expect(text).toContain('waiting prompt')
    const sent = chat.host.model.requests.slice(4).flatMap(request => request.messages.map(lineOf))
    expect(sent).toContain('user: waiting prompt')
    expect(sent.join('\n')).not.toContain('first')
  })

  it('makes a prompt that is sent meanwhile wait for its end', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    const sentAt: string[] = []
    chat.host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => {
      if (phase === 'op-begin') chat.send('too early')
      sentAt.push(`${phase} ${chat.host.model.requests.length}`)
    })

    await chat.command('/rollback 1')
    await chat.agent.whenIdle()

    expect(new Set(sentAt.map(line => line.split(' ')[1]))).toEqual(new Set(['3']))
    expect(chat.lastRequest().messages.map(lineOf).filter(line => !line.includes('runtime context')))
      .toEqual([`user: ${markerTexts['all-files']}`, 'user: too early'])
  })

  it('is refused to a second one of the same session, and only one is carried out', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', 'one')
    await chat.turn('second', ...edits('a.txt', '1', '2'))

    const both = await Promise.all([chat.command('/rollback 2'), chat.command('/rollback 1')])

    expect(both.map(done => done.kind).sort()).toEqual(['error', 'success'])
    expect(world.read('a.txt')).toBe('1')
  })
})
