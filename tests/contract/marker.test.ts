import { describe, expect, it } from 'vitest'
import { markerTexts } from '../../src/surface/marker.ts'
import { aWorld, edits, lineOf, runs, writes, type Chat } from '../support/in-process-host.ts'
import { ourAppends } from './support/appends.ts'

const marker = `user: ${markerTexts['all-files']}`

/** Surface lines without the runtime context, which the host words. */
const talk = (lines: readonly string[]): readonly string[] => lines.filter(line => !line.includes('Current runtime context'))
const asked = (chat: Chat): readonly string[] => talk(chat.lastRequest().messages.map(lineOf))

async function threeTurns(): Promise<Chat> {
  const world = aWorld()
  const chat = await (await world.start()).open()
  await chat.turn('first', 'one')
  await chat.turn('second', 'two')
  await chat.turn('third', 'three')
  return chat
}

describe('the marker in a session of the real host', () => {
  it.each([
    [3, ['user: first', 'assistant: one', 'user: second', 'assistant: two', marker]],
    [2, ['user: first', 'assistant: one', marker]],
    [1, [marker]],
  ])('takes the place of everything from turn %i on', async (turn, expected) => {
    const chat = await threeTurns()

    const { kind, sourceEventSeq } = await chat.command(`/rollback ${turn}`)

    expect(kind).toBe('success')
    expect(chat.session.surface.nodes.at(-1)).toBe(sourceEventSeq)
    expect(talk(chat.surface())).toEqual(expected)
  })

  it('is followed by the new prompt in the model request, with nothing of the withdrawn turns', async () => {
    const chat = await threeTurns()

    await chat.command('/rollback 2')
    await chat.turn('instead', 'sure')

    expect(asked(chat)).toEqual(['user: first', 'assistant: one', marker, 'user: instead'])
    expect(chat.lastRequest().messages.every(message => message.content.length > 0)).toBe(true)
  })

  it('of the first turn keeps the system prompt and brings the runtime context back once', async () => {
    const chat = await threeTurns()
    const before = chat.lastRequest()

    await chat.command('/rollback 1')
    await chat.turn('again', 'sure')

    expect(chat.lastRequest().system).toBe(before.system)
    expect(asked(chat)).toEqual([marker, 'user: again'])
    const contexts = chat.lastRequest().messages.map(lineOf).filter(line => line.includes('Current runtime context'))
    expect(contexts).toHaveLength(1)
  })

  it('takes calls and their results together', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await (await world.start()).open()
    await chat.turn('first', 'one')
    await chat.turn('second', ...edits('a.txt', '1', '2'), writes('b.txt', 'b'), 'two')

    await chat.command('/rollback 2')
    await chat.turn('third', 'three')

    expect(asked(chat)).toEqual(['user: first', 'assistant: one', marker, 'user: third'])
  })

  it('withdraws a turn that was stopped in the middle of its answer', async () => {
    const world = aWorld()
    const chat = await (await world.start()).open()
    await chat.turn('first', 'one')
    chat.host.model.script.push({ hang: 'half an ans' })
    chat.send('second')
    await expect.poll(() => chat.host.model.requests.length).toBe(2)
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()

    const { kind } = await chat.command('/rollback 2')
    await chat.turn('third', 'three')

    expect(kind).toBe('success')
    expect(asked(chat)).toEqual(['user: first', 'assistant: one', marker, 'user: third'])
  })

  it('withdraws a turn that ended in an error of the model', async () => {
    const world = aWorld()
    const chat = await (await world.start()).open()
    await chat.turn('first', 'one')
    await chat.turn('second', writes('a.txt', '1'), { fail: 'provider down' })

    const { kind } = await chat.command('/rollback 2')

    expect(kind).toBe('success')
    expect(world.exists('a.txt')).toBe(false)
    expect(talk(chat.surface())).toEqual(['user: first', 'assistant: one', marker])
  })

  it('withdraws a turn that the host closed after it was killed', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const killed = await world.start()
    const before = await killed.open()
    await before.turn('first', 'one')
    killed.model.script.push(...edits('a.txt', '1', '2'), { hang: 'half' })
    before.send('second')
    await expect.poll(() => killed.model.requests.length).toBe(4)
    await killed.ctx.sessions.flush(before.session)
    const dead = world.snapshot()
    await killed.stop()
    dead.restore()
    const chat = await (await world.start()).open()

    const { kind } = await chat.command('/rollback 2')
    await chat.turn('third', 'three')

    expect(chat.events().find(event => event.type === 'turn/end' && event.data.turn === 2)?.data.reason.kind).toBe('interrupted')
    expect(kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
    expect(asked(chat)).toEqual(['user: first', 'assistant: one', marker, 'user: third'])
  })

  // What is seen here is held to the allowed types and members after every test; a guard that sees nothing would pass.
  it('is with its price all that the plugin appends to a log', async () => {
    const chat = await threeTurns()
    const count = ourAppends.length

    const { sourceEventSeq } = await chat.command('/rollback 2')

    expect(ourAppends.slice(count).map(({ type, event }) => [type, event.seq]))
      .toEqual([['compaction/prune', sourceEventSeq! - 1], ['user/message', sourceEventSeq]])
  })

  it('folds the same from the stored log', async () => {
    const chat = await threeTurns()
    await chat.command('/rollback 2')
    await chat.turn('instead', 'sure')
    const [nodes, lines] = [[...chat.session.surface.nodes], chat.surface()]

    await chat.close()
    const again = await chat.host.open()

    expect([...again.session.surface.nodes]).toEqual(nodes)
    expect(again.surface()).toEqual(lines)
  })

  it('swallows earlier markers when a later rollback goes further back, each time to before its turn', async () => {
    const chat = await threeTurns()
    await chat.turn('fourth', 'four')
    await chat.turn('fifth', 'five')

    await chat.command('/rollback 5')
    expect(talk(chat.surface()).slice(-2)).toEqual(['assistant: four', marker])
    await chat.turn('sixth', 'six')
    await chat.command('/rollback 3')
    expect(talk(chat.surface())).toEqual(['user: first', 'assistant: one', 'user: second', 'assistant: two', marker])
    await chat.command('/rollback 1')
    expect(talk(chat.surface())).toEqual([marker])
    await chat.turn('seventh', 'seven')
    expect(asked(chat)).toEqual([marker, 'user: seventh'])
  })

  it('is not written a second time for the same turn', async () => {
    const chat = await threeTurns()
    await chat.command('/rollback 2')
    const nodes = [...chat.session.surface.nodes]

    const second = await chat.command('/rollback 2')

    expect(second).toMatchObject({ kind: 'error', text: expect.stringContaining('already rolled back') })
    expect([...chat.session.surface.nodes]).toEqual(nodes)
  })

  it('is not in a fork that ends right before the rollback', async () => {
    const chat = await threeTurns()
    const before = chat.surface()
    const { sourceEventSeq } = await chat.command('/rollback 2')
    const run = chat.events().findLast(event => event.seq < sourceEventSeq! && event.type === 'command/run')!

    const child = chat.host.ctx.sessions.fork(chat.session, run.seq - 1, 'child')

    expect(child.deriveMessages().map(lineOf)).toEqual(before)
  })

  it('of a fork withdraws turns and files that the parent recorded', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start()
    const parent = await host.open('parent')
    await parent.turn('first', 'one')
    await parent.turn('second', ...edits('a.txt', '1', '2'), runs('echo n > n.txt'), 'two')
    const seed = [...parent.events()]
    const handle = await host.ctx.agents.create({
      sessionId: 'child', seed, meta: { cwd: world.ws, parentSession: 'parent', seedLength: seed.length },
      agentOptions: { provider: 'scripted', model: 'm' },
    })
    await handle.dispose()
    const child = await host.open('child')
    await child.turn('third', ...edits('a.txt', '2', '3'), 'three')

    const { gaps } = (await host.ask('preview', { sessionId: 'child', turn: 2 })).value
    const { kind } = await child.command('/rollback 2')

    expect(gaps).toEqual([])
    expect(kind).toBe('success')
    expect(world.tree()).toEqual({ 'a.txt': '1' })
    expect(talk(child.surface())).toEqual(['user: first', 'assistant: one', `user: ${markerTexts['all-files']}`])
    expect(talk(parent.surface()).at(-1)).toBe('assistant: two')
  })
})

describe('a rollback and the compaction of the real host', () => {
  const compacted = async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await (await world.start()).open()
    for (const turn of ['first', 'second', 'third']) await chat.turn(turn, ...edits('a.txt', '1', '1 '), 'x'.repeat(2000))
    await chat.turn('fourth', ...edits('a.txt', '1', '4'), 'four')
    chat.host.model.script.push('They talked.')
    const { kind } = await chat.command('/compact')
    expect(kind).toBe('success')
    return { world, chat }
  }

  it('is refused inside the summary, and nothing is changed', async () => {
    const { world, chat } = await compacted()
    const before = { tree: world.tree(), surface: chat.surface() }

    const { kind, text } = await chat.command('/rollback 2')

    expect(kind).toBe('error')
    expect(text).toContain('compacted')
    expect({ tree: world.tree(), surface: chat.surface() }).toEqual(before)
  })

  it('is allowed behind the summary, which stays', async () => {
    const { chat } = await compacted()
    await chat.turn('fifth', 'five')

    const { kind } = await chat.command('/rollback 5')

    expect(kind).toBe('success')
    expect(talk(chat.surface()).at(-1)).toBe(marker)
    expect(chat.surface().join('\n')).toContain('They talked.')
  })

  it('is allowed before everything the summary stands for, and takes the summary along', async () => {
    const { world, chat } = await compacted()

    const { kind } = await chat.command('/rollback 1')

    expect(kind).toBe('success')
    expect(talk(chat.surface())).toEqual([marker])
    expect(world.read('a.txt')).toBe('1')
  })

  it('is refused while a compaction is open', async () => {
    const chat = await threeTurns()
    chat.session.append('compaction/start', { compactionId: 'c1', turn: null })
    const nodes = [...chat.session.surface.nodes]

    const { kind, text } = await chat.command('/rollback 2')

    expect(kind).toBe('error')
    expect(text).toContain('being compacted')
    expect([...chat.session.surface.nodes]).toEqual(nodes)
  })
})

describe('what the host counts right after a rollback', () => {
  it('is the surface that is left, in its meter and in its projections', async () => {
    const chat = await threeTurns()
    await chat.turn('fourth', 'x'.repeat(4000))

    const { sourceEventSeq } = await chat.command('/rollback 4')

    const measured = chat.host.ctx.tokenMeter.measure(chat.session)
    const { contextBreakdown, turnback } = chat.host.ctx.sessionProjections.snapshot(chat.session).values
    expect(measured.nodes.map((node: { seq: number }) => node.seq)).toEqual([...chat.session.surface.nodes])
    expect(measured.surfaceTokens).toBeLessThan(1000)
    expect(contextBreakdown.messageTokens).toBe(measured.surfaceTokens)
    expect(turnback.markers).toMatchObject([{ turn: 4, seq: sourceEventSeq }])
  })

  it('needs no token meter and no projections', async () => {
    const world = aWorld()
    const chat = await (await world.start({ without: ['tokenMeter', 'sessionProjections'] })).open()
    await chat.turn('first', 'one')
    await chat.turn('second', 'two')

    await chat.command('/rollback 2')

    expect(chat.events().some(event => event.type === 'compaction/prune')).toBe(false)
    expect(talk(chat.surface())).toEqual(['user: first', 'assistant: one', marker])
  })
})

describe('a session after rollbacks, in a host without the plugin', () => {
  it('opens, goes on, and opens again', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const first = await (await world.start()).open()
    await first.turn('first', ...edits('a.txt', '1', '2'), 'one')
    await first.turn('second', 'two')
    await first.command('/rollback 2')
    await first.turn('third', 'three')
    await first.command('/rollback 1')
    await first.host.stop()

    const bare = await (await world.start({ plugin: false })).open()
    await bare.turn('fourth', writes('b.txt', 'b'), 'four')
    const lines = bare.surface()
    await bare.host.stop()
    const again = await (await world.start({ plugin: false })).open()

    expect(talk(lines)[0]).toBe(marker)
    expect(again.surface()).toEqual(lines)
    expect(world.read('b.txt')).toBe('b')
  })
})
