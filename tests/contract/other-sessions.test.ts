import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, chatOf, edits, runs, writes, type Chat, type Host, type World } from '../support/in-process-host.ts'

/** Two sessions of one host in one folder. */
async function twoSessions(files: Readonly<Record<string, string>>): Promise<{ world: World; host: Host; a: Chat; b: Chat }> {
  const world = aWorld(files)
  const host = await world.start()
  return { world, host, a: await host.open('a'), b: await host.open('b') }
}

const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const rowsOf = async (chat: Chat, turn: number) =>
  (await previewOf(chat, turn)).rows.map(({ shown, action, conflict }) => (conflict === undefined ? [shown, action] : [shown, action, conflict]))

/** Carries out a plan that puts `paths` back though they are kept by default. */
async function rollBackWith(chat: Chat, turn: number, paths: readonly string[]) {
  const { token } = await previewOf(chat, turn)
  const { planId } = (await chat.host.ask('plan', { sessionId: chat.id, turn, token, putBack: paths })).value
  return chat.command(`/rollback --plan ${planId}`)
}

describe('two sessions in one workspace', () => {
  it('field 39: what only the other one wrote is neither listed nor touched', async () => {
    const { world, a, b } = await twoSessions({ a: '1', b: '1' })
    await a.turn('first', ...edits('a', '1', '2'))
    await b.turn('first', ...edits('b', '1', '2'))

    expect(await rowsOf(a, 1)).toEqual([['a', 'write']])
    await a.command('/rollback 1')

    expect(world.tree()).toEqual({ a: '1', b: '2' })
  })

  it('field 40: what the other one wrote later is marked, kept, and can be got back when it is put back all the same', async () => {
    const { world, a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))

    expect(await rowsOf(a, 1)).toEqual([['s.txt', 'keep', 'other-session']])
    expect((await a.command('/rollback preview 1')).text).toContain('Would be kept, another session changed it: s.txt')
    await rollBackWith(a, 1, [`${world.ws}/s.txt`])
    expect(world.read('s.txt')).toBe('1')
    await a.command('/rollback undo')

    expect(world.read('s.txt')).toBe('3')
  })

  it('field 40: the typed command keeps it', async () => {
    const { world, a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))

    const { text } = await a.command('/rollback 1')

    expect(text).toContain('Kept, another session changed it: s.txt')
    expect(world.read('s.txt')).toBe('3')
  })

  it('field 41: what the other one writes while a turn is open is not listed', async () => {
    const { world, a, b } = await twoSessions({})
    let reached!: () => void
    const isOpen = new Promise<void>((resolve) => { reached = resolve })
    let goOn!: () => void
    const mayGoOn = new Promise<void>((resolve) => { goOn = resolve })
    const stop = a.host.ctx.on('tools/execute', async (exec: { agent: { id: string } }, next: () => Promise<unknown>) => {
      if (exec.agent.id === 'a') {
        reached()
        await mayGoOn
      }
      return next()
    }, { prepend: true })

    a.host.model.script.push(writes('a.txt', 'a'))
    a.send('first')
    await isOpen
    await b.turn('first', writes('b.txt', 'b'))
    goOn()
    await a.agent.whenIdle()
    stop()

    expect(await rowsOf(a, 1)).toEqual([['a.txt', 'delete']])
    await a.command('/rollback 1')
    expect(world.tree()).toEqual({ 'b.txt': 'b' })
  })

  it('a later write of the same bytes is the other one’s too', async () => {
    const { a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))
    await b.turn('second', ...edits('s.txt', '3', '2'))

    expect(await rowsOf(a, 1)).toEqual([['s.txt', 'keep', 'other-session']])
  })

  it('a write between two of this session’s own is said to be the other one’s, not the user’s', async () => {
    const { a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))
    await a.turn('second', ...edits('s.txt', '3', '4'))

    expect(await rowsOf(a, 1)).toEqual([['s.txt', 'keep', 'other-session']])
    expect(await rowsOf(a, 2)).toEqual([['s.txt', 'write']])
    expect(await rowsOf(b, 1)).toEqual([['s.txt', 'keep', 'other-session']])
  })

  it('what the other one rolled back is nobody’s conflict any more', async () => {
    const { world, a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))
    await b.command('/rollback 1')

    expect(await rowsOf(a, 1)).toEqual([['s.txt', 'write']])
    await a.command('/rollback 1')
    expect(world.read('s.txt')).toBe('1')
  })

  it('a session whose workspace lies inside this one counts where the paths are the same', async () => {
    const world = aWorld({ 'sub/s.txt': '1', 'sub/t.txt': '1' })
    const host = await world.start()
    const a = await host.open('a')
    const b = await host.open('b', { cwd: join(world.ws, 'sub') })
    await a.turn('first', ...edits('sub/s.txt', '1', '2'), ...edits('sub/t.txt', '1', '2'))
    await b.turn('first', ...edits(join(world.ws, 'sub/s.txt'), '2', '3'))

    expect(await rowsOf(a, 1)).toEqual([['sub/s.txt', 'keep', 'other-session'], ['sub/t.txt', 'write']])
  })

  it('a plan made before the other one wrote is not carried out', async () => {
    const { world, a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    const { token } = await previewOf(a, 1)
    await b.turn('first', ...edits('s.txt', '2', '3'))
    await b.turn('second', ...edits('s.txt', '3', '2'))

    const answer = (await a.host.ask('plan', { sessionId: 'a', turn: 1, token })).value

    expect(answer).toMatchObject({ kind: 'stale', preview: { rows: [{ action: 'keep', conflict: 'other-session' }] } })
    expect(world.read('s.txt')).toBe('2')
  })
})

describe('the other session', () => {
  it('need not be open', async () => {
    const { world, a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))
    await a.host.stop()

    const again = await (await world.start()).open('a')

    expect(await rowsOf(again, 1)).toEqual([['s.txt', 'keep', 'other-session']])
  })

  it('may be one of another host on the same home, and its commands are not taken for this one’s', async () => {
    const world = aWorld({ 's.txt': '1' })
    const a = await (await world.start()).open('a')
    const b = await (await world.start({ complains: true })).open('b')
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', runs('echo 3 > s.txt'))

    expect(await rowsOf(a, 1)).toEqual([['s.txt', 'keep', 'other-session']])
  })

  it('whose file tool wrote in another host while a command of this one ran keeps its file', async () => {
    const world = aWorld({ 'mine.txt': '1' })
    const a = await (await world.start()).open('a')
    const b = await (await world.start({ complains: true })).open('b')
    a.host.model.script.push(runs('until [ -e theirs.txt ]; do sleep 0.05; done; echo 2 > mine.txt; sleep 0.3'))
    a.send('first')
    await b.turn('first', writes('theirs.txt', 'b'))
    await a.agent.whenIdle()

    expect(await rowsOf(a, 1)).toEqual([['mine.txt', 'write'], ['theirs.txt', 'keep', 'other-session']])
    await a.command('/rollback 1')
    expect(world.tree()).toEqual({ 'mine.txt': '1', 'theirs.txt': 'b' })
    expect(await rowsOf(b, 1)).toEqual([['theirs.txt', 'delete']])
  })

  it('that rolled back in another host while a command of this one ran keeps what it put back', async () => {
    const world = aWorld({ 's.txt': '1', 'mine.txt': '1' })
    const a = await (await world.start()).open('a')
    const b = await (await world.start({ complains: true })).open('b')
    await b.turn('first', ...edits('s.txt', '1', '2'))
    a.host.model.script.push(runs('touch begun; until grep -q 1 s.txt; do sleep 0.05; done; echo 2 > mine.txt; rm begun; sleep 0.2'))
    a.send('first')
    await expect.poll(() => world.exists('begun')).toBe(true)
    await b.command('/rollback 1')
    await a.agent.whenIdle()

    expect(await rowsOf(a, 1)).toEqual([['mine.txt', 'write'], ['s.txt', 'keep', 'other-session']])
    await a.command('/rollback 1')
    expect(world.tree()).toEqual({ 'mine.txt': '1', 's.txt': '1' })
  })

  it('with damaged records is no error', async () => {
    const { world, a, b } = await twoSessions({ 's.txt': '1' })
    await a.turn('first', ...edits('s.txt', '1', '2'))
    await b.turn('first', ...edits('s.txt', '2', '3'))
    await a.host.stop()
    const packs = join(world.home, 'data', 'turnback', 'v1', 'packs')
    for (const name of readdirSync(packs).filter(file => file.startsWith('b-'))) writeFileSync(join(packs, name), 'damaged')

    const again = await (await world.start()).open('a')

    expect(await rowsOf(again, 1)).toEqual([['s.txt', 'keep', 'changed-since']])
  })
})

describe('a fork and the session it came from', () => {
  async function forkOf(parent: Chat, id: string): Promise<Chat> {
    const { length } = parent.events()
    const handle = await parent.host.ctx.agents.create({
      sessionId: id, seed: parent.events().slice(0, length),
      meta: { cwd: parent.session.header.cwd, parentSession: parent.id, seedLength: length },
      agentOptions: { provider: 'scripted', model: 'm' },
    })
    return chatOf(parent.host, handle)
  }

  it('are others to each other from the fork on, and not before', async () => {
    const world = aWorld({ 's.txt': '1', 't.txt': '1' })
    const parent = await (await world.start()).open('parent')
    await parent.turn('first', ...edits('s.txt', '1', '2'), ...edits('t.txt', '1', '2'))
    const fork = await forkOf(parent, 'fork')
    expect(await rowsOf(fork, 1)).toEqual([['s.txt', 'write'], ['t.txt', 'write']])

    await parent.turn('second', ...edits('s.txt', '2', '3'))
    await fork.turn('other', ...edits('t.txt', '2', '4'))

    expect(await rowsOf(fork, 1)).toEqual([['s.txt', 'keep', 'other-session'], ['t.txt', 'write']])
    expect(await rowsOf(parent, 1)).toEqual([['s.txt', 'write'], ['t.txt', 'keep', 'other-session']])
  })
})
