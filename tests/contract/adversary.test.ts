import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, chatOf, edits, reads, writes, type Chat, type World } from '../support/in-process-host.ts'
import type { Step } from './support/scripted-model.ts'

const opened = async (world: World, options = {}): Promise<Chat> => (await world.start(options)).open()

async function previewOf(chat: Chat, turn: number): Promise<Preview> {
  const reply = await chat.host.ask('preview', { sessionId: chat.id, turn })
  expect(reply).toMatchObject({ ok: true })
  return reply.value
}

describe('one path that cannot be looked at', () => {
  it('does not stop the others from going back', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/e/x.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), ...edits('d/e/x.txt', '1', '2'))
    rmSync(join(world.ws, 'd'), { recursive: true })
    symlinkSync('d', join(world.ws, 'd'))

    const preview = await previewOf(chat, 1)
    const done = await chat.command('/rollback 1')

    expect(preview.rows.map(row => [row.shown, row.action])).toEqual([['a.txt', 'write'], ['d/e/x.txt', 'skip']])
    expect(done.kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })
})

describe('a workspace that is a link', () => {
  it('is restored like any other', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const link = join(world.home, '..', 'link')
    symlinkSync(world.ws, link)
    const host = await world.start()
    const chat = await host.open('s1', { cwd: link })
    await chat.turn('first', ...edits('a.txt', '1', '2'), writes('new/n.txt', 'n'))

    const preview = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(preview.rows.map(row => [row.shown, row.action])).toEqual([['a.txt', 'write'], ['new/n.txt', 'delete']])
    expect(world.tree()).toEqual({ 'a.txt': '1' })
  })
})

describe('a rollback that the host refuses', () => {
  it('makes no folder that was not there', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, { complains: true })
    await chat.turn('first', writes('deep/down/x.txt', 'x'), ...edits('a.txt', '1', '2'))
    world.remove('deep')
    const { append } = chat.session
    chat.session.append = (type: string, ...rest: unknown[]) => {
      if (type === 'user/message') throw new Error('no marker now')
      return append.call(chat.session, type, ...rest)
    }

    expect((await chat.command('/rollback 1')).kind).toBe('error')

    expect(world.tree()).toEqual({ 'a.txt': '2' })
  })
})

describe('a fork', () => {
  /** A session with the first `length` events of `parent`, as the host's Branch makes it. */
  async function forkOf(parent: Chat, id: string, length: number): Promise<Chat> {
    const { ctx } = parent.host
    const handle = await ctx.agents.create({
      sessionId: id, seed: parent.events().slice(0, length),
      meta: { cwd: parent.session.header.cwd, parentSession: parent.id, seedLength: length },
      agentOptions: { provider: 'scripted', model: 'm' },
    })
    return chatOf(parent.host, handle)
  }
  const endOfTurn = (chat: Chat, turn: number): number =>
    chat.events().find(event => event.type === 'turn/end' && event.data.turn === turn).seq + 1

  it('of a fork, cut before what that one inherited, has no file of turns that it does not hold', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const first = await opened(world)
    await first.turn('one', ...edits('a.txt', '1', '2'))
    await first.turn('two', ...edits('b.txt', '1', '2'))
    const second = await forkOf(first, 's2', first.events().length)
    const third = await forkOf(second, 's3', endOfTurn(second, 1))
    await third.turn('another', writes('c.txt', 'c'))

    const { rows } = await previewOf(third, 1)

    expect(rows.map(row => [row.shown, row.action])).toEqual([['a.txt', 'write'], ['c.txt', 'delete']])
  })

  it('knows of an undo that its parent made before it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const parent = await opened(world)
    await parent.turn('only words')
    await parent.turn('a change', ...edits('a.txt', '1', '2'))
    await parent.command('/rollback 2')
    await parent.command('/rollback undo')
    const fork = await forkOf(parent, 's2', parent.events().length)

    const { rows } = await previewOf(fork, 1)

    expect(rows.map(row => [row.shown, row.action])).toEqual([['a.txt', 'write']])
  })

  it('does not go back to a state of its parent that lost records may have come before', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const parent = await opened(world)
    await parent.turn('one', ...edits('a.txt', '1', '2'))
    await parent.turn('two', ...edits('a.txt', '2', '3'))
    const fork = await forkOf(parent, 's2', parent.events().length)
    const pack = join(world.home, 'data', 'turnback', 'v1', 'packs', 's1-1.pack')
    const bytes = readFileSync(pack)
    bytes.write('X', bytes.indexOf('"kind":"before"'))
    writeFileSync(pack, bytes)
    await fork.host.stop()
    const again = await (await world.start()).open('s2')

    const { rows, gaps } = await previewOf(again, 1)

    expect(rows).toMatchObject([{ shown: 'a.txt', action: 'skip', skip: 'record-lost' }])
    expect(gaps.map(gap => gap.reason)).toContain('store-hole')
  })
})

describe('a store whose bytes were damaged', () => {
  it('is not trusted with the only copy of what a rollback replaces', async () => {
    const world = aWorld({ 'a.txt': 'as it was' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', 'as it was', 'of the agent'))
    const packs = join(world.home, 'data', 'turnback', 'v1', 'packs')
    for (const name of readdirSync(packs)) {
      const bytes = readFileSync(join(packs, name))
      bytes.write('X', bytes.indexOf('of the agent'))
      writeFileSync(join(packs, name), bytes)
    }

    await chat.command('/rollback 1')
    expect(world.read('a.txt')).toBe('as it was')
    await chat.command('/rollback undo')

    expect(world.read('a.txt')).toBe('of the agent')
  })
})

describe('after a rollback the model', () => {
  it('may not overwrite a text of the user that it saw in withdrawn turns only', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    const chat = await opened(world)
    await chat.turn('first', reads('a.txt'))
    world.write('a.txt', 'of the user')
    await chat.turn('second', ...edits('a.txt', 'of the user', 'of the model'))
    await chat.command('/rollback 2')
    expect(world.read('a.txt')).toBe('of the user')

    await chat.turn('third', writes('a.txt', 'old and more'))

    expect(world.read('a.txt')).toBe('of the user')
  })

  it('may not either when its first try in those turns was refused', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    const chat = await opened(world)
    await chat.turn('first', reads('a.txt'))
    world.write('a.txt', 'of the user')
    const edit: Step = { tools: [['edit', { file_path: 'a.txt', old_string: 'of the user', new_string: 'of the model' }]] }
    await chat.turn('second', edit, reads('a.txt'), edit)
    await chat.command('/rollback 2')
    expect(world.read('a.txt')).toBe('of the user')

    await chat.turn('third', writes('a.txt', 'old and more'))

    expect(world.read('a.txt')).toBe('of the user')
  })

  it('may overwrite at once what it had read before them, though it read it again in them', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    const chat = await opened(world)
    await chat.turn('first', reads('a.txt'))
    await chat.turn('second', ...edits('a.txt', 'old', 'new'))
    await chat.command('/rollback 2')

    await chat.turn('third', writes('a.txt', 'old and more'))

    expect(world.read('a.txt')).toBe('old and more')
  })
})

describe('files and conversation stay in step', () => {
  const isCut = (chat: Chat): boolean => chat.surface().some(line => line.includes('rolled back the turns'))

  it.each(['op-begin', 'file', 'op-applied', 'marker'])('when the session is closed at %s', async (moment) => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    let closing: Promise<void> | undefined
    chat.host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => { if (phase === moment) closing ??= chat.close() })

    const { kind } = await chat.command('/rollback 1')
    await closing
    const again = await chat.host.open()
    await again.agent.whenIdle()

    expect(closing).toBeDefined()
    expect([kind, isCut(again), world.read('a.txt')]).toEqual(kind === 'success' ? [kind, true, '1'] : [kind, false, '2'])
  })

  it.each(['op-begin', 'file', 'op-applied', 'marker', 'flushed'])('when the plugin is unloaded at %s, also after a restart', async (moment) => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false, complains: true })
    const row = await host.install()
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    let unloading: Promise<void> | undefined
    host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => { if (phase === moment) unloading ??= row.dispose() })

    const { kind } = await chat.command('/rollback 1')
    await unloading
    await host.install()
    await chat.turn('second', writes('b.txt', 'b'))
    await chat.command('/rollback 2')
    await host.stop()
    const again = await (await world.start()).open()
    await again.agent.whenIdle()

    expect(unloading).toBeDefined()
    expect([kind, isCut(again), world.tree()]).toEqual(['success', true, { 'a.txt': '1' }])
  })
})
