import { describe, expect, it } from 'vitest'
import { markerTexts } from '../../src/surface/marker.ts'
import { aWorld, edits, lineOf, writes, type Chat, type World } from '../support/in-process-host.ts'

const isCut = (chat: Chat): boolean => chat.surface().some(line => Object.values(markerTexts).some(text => line.includes(text)))

async function oneTurn(options = {}): Promise<{ world: World; chat: Chat }> {
  const world = aWorld({ 'a.txt': '1' })
  const chat = await (await world.start(options)).open()
  await chat.turn('first', ...edits('a.txt', '1', '2'), writes('n.txt', 'n'))
  return { world, chat }
}

const goal = { 'a.txt': '1' }
const start = { 'a.txt': '2', 'n.txt': 'n' }

describe('something that comes between', () => {
  it('a prompt sent in the same moment either waits or wins; files and conversation stay in step', async () => {
    const { world, chat } = await oneTurn()

    const done = chat.command('/rollback 1')
    chat.send('second')
    const { kind } = await done

    await expect.poll(() => chat.host.model.requests.flatMap(request => request.messages.map(lineOf))).toContain('user: second')
    await chat.agent.whenIdle()
    expect(isCut(chat)).toBe(kind === 'success')
    expect(world.tree()).toEqual(kind === 'success' ? goal : start)
  })

  it('a Stop by the user after the op has begun comes too late for it', async () => {
    const { world, chat } = await oneTurn()
    chat.host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => { if (phase === 'op-begin') chat.agent.cancel({ kind: 'user' }, { keepInbox: true }) })

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual(goal)
    expect(isCut(chat)).toBe(true)
  })

  it('a Stop by the user before the op has begun is obeyed, and nothing is changed', async () => {
    const { world, chat } = await oneTurn()
    const { ctx } = chat.host
    const policy = ctx.get('sandboxPolicy')
    const { resolve } = Object.getPrototypeOf(policy)
    // Asked in maintenance, right before the op begins.
    policy.resolve = (request: unknown) => {
      chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
      return resolve.call(policy, request)
    }

    const { kind, text } = await chat.command('/rollback 1')

    expect({ kind, text }).toEqual({ kind: 'error', text: 'The rollback was stopped before anything was changed. Try again when you are ready.' })
    expect(world.tree()).toEqual(start)
    expect(isCut(chat)).toBe(false)
  })

  it.each(['op-begin', 'op-applied', 'marker'])('the session being closed at %s leaves both in step at the next opening', async (at) => {
    const { world, chat } = await oneTurn()
    let closed: Promise<unknown> | undefined
    chat.host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => { if (phase === at) closed ??= chat.close() })

    await chat.command('/rollback 1').catch(() => undefined)
    await closed
    const again = await chat.host.open()
    await again.turn('second')

    expect(world.tree()).toMatchObject(isCut(again) ? goal : start)
    expect(Object.keys(world.tree())).toHaveLength(isCut(again) ? 1 : 2)
  })
})

describe('a fault of the host or of another plugin during a rollback', () => {
  it('in the token meter costs the price event only', async () => {
    const { world, chat } = await oneTurn({ complains: true })
    chat.host.ctx.get('tokenMeter').measure = () => { throw new Error('no scales') }

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual(goal)
    expect(isCut(chat)).toBe(true)
    expect(chat.events().some(event => event.type === 'compaction/prune')).toBe(false)
  })

  it('in a listener of what the model has seen does not turn a rollback that happened into an error', async () => {
    const { world, chat } = await oneTurn({ complains: true })
    chat.host.ctx.on('fs/observed', () => { throw new Error('I saw nothing') })

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual(goal)
    expect((await chat.command('/rollback undo')).kind).toBe('success')
    expect(world.tree()).toEqual(start)
  })

  it('in the append of the marker takes the files back', async () => {
    const { world, chat } = await oneTurn({ complains: true })
    const { append } = chat.session
    chat.session.append = (type: string, ...rest: unknown[]) => {
      if (type === 'user/message') throw new Error('not now')
      return append.call(chat.session, type, ...rest)
    }
    const before = world.tree()

    const { kind, text } = await chat.command('/rollback 1')
    delete chat.session.append

    expect(kind).toBe('error')
    expect(text).toContain('not now')
    expect(world.tree()).toEqual(before)
    expect(isCut(chat)).toBe(false)
    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual(goal)
  })

  it('in a job registry that answers nonsense refuses, and nothing is changed', async () => {
    const { world, chat } = await oneTurn({ complains: true })
    chat.host.ctx.get('jobs').list = () => { throw new Error('no jobs today') }

    expect((await chat.command('/rollback 1')).kind).toBe('error')
    expect(world.tree()).toEqual(start)
    expect(isCut(chat)).toBe(false)
  })
})

describe('a session log that cannot be flushed', () => {
  /** The next flush after a marker fails, as it does for a full disk or for a fault of any other listener. */
  function failsOnce(chat: Chat, how: string): { readonly failures: number } {
    const seen = { failures: 0 }
    const sessions = Object.getPrototypeOf(chat.host.ctx.get('sessions'))
    const { flush } = sessions
    chat.host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => {
      if (phase !== 'marker' || seen.failures > 0) return
      sessions.flush = async () => {
        seen.failures += 1
        sessions.flush = flush
        if (how === 'rejects') throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
        return false
      }
    })
    return seen
  }

  it.each(['rejects', 'is not durable'])('at the marker (%s) leaves the conversation cut, the files back, and the next rollback right', async (how) => {
    const { world, chat } = await oneTurn({ complains: true })
    await chat.turn('second', ...edits('a.txt', '2', '3'))
    const seen = failsOnce(chat, how)

    const { kind } = await chat.command('/rollback 2')

    expect(seen.failures).toBe(1)
    expect(kind).toBe('success')
    expect(world.tree()).toEqual(start)
    expect(isCut(chat)).toBe(true)
    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual(goal)
    await chat.host.stop()
    const again = await (await world.start()).open()
    await again.turn('third')
    expect(world.tree()).toEqual(goal)
    expect(isCut(again)).toBe(true)
  })

  it('at the marker does not withdraw the turns that come after it', async () => {
    const { world, chat } = await oneTurn({ complains: true })
    await chat.turn('second', ...edits('a.txt', '2', '3'))
    failsOnce(chat, 'rejects')
    await chat.command('/rollback 2')
    await chat.turn('third', ...edits('a.txt', '2', '9'))

    await chat.command('/rollback 3')
    expect(world.tree()).toEqual(start)
    await chat.command('/rollback 1')
    expect(world.tree()).toEqual(goal)
  })

  it('at the marker can be undone', async () => {
    const { world, chat } = await oneTurn({ complains: true })
    failsOnce(chat, 'rejects')
    await chat.command('/rollback 1')

    expect((await chat.command('/rollback undo')).kind).toBe('success')
    expect(world.tree()).toEqual(start)
  })
})

describe('a rollback after an undo', () => {
  it('starts from the files as the undo left them', async () => {
    const { world, chat } = await oneTurn()
    await chat.turn('second', ...edits('a.txt', '2', '3'))
    await chat.command('/rollback 2')
    await chat.command('/rollback undo')
    expect(world.read('a.txt')).toBe('3')

    const { text } = await chat.command('/rollback 1')

    expect(text).not.toContain('Kept')
    expect(world.tree()).toEqual(goal)
  })

  it('can be undone in its turn, and there is nothing more to undo then', async () => {
    const { world, chat } = await oneTurn()
    await chat.command('/rollback 1')
    await chat.command('/rollback undo')

    const again = await chat.command('/rollback undo')

    expect(again.kind).toBe('error')
    expect(world.tree()).toEqual(start)
  })
})

describe('a fork', () => {
  it('whose parent is not open goes back with the records of the parent', async () => {
    const { world, chat } = await oneTurn()
    const seed = [...chat.events()]
    const { host } = chat
    const handle = await host.ctx.agents.create({
      sessionId: 'child', seed, meta: { cwd: world.ws, parentSession: 's1', seedLength: seed.length },
      agentOptions: { provider: 'scripted', model: 'm' },
    })
    await host.ctx.sessions.flush(handle.agent.session)
    await host.stop()
    const child = await (await world.start()).open('child')

    expect((await child.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual(goal)
  })
})

describe('a turn that nobody wrote a prompt for', () => {
  it('can be gone back to like any other', async () => {
    const world = aWorld()
    const chat = await (await world.start()).open()
    chat.host.model.script.push({ tools: [['bash', { command: 'sleep 0.4', description: 'Sleep a little', run_in_background: true }]] }, 'started', writes('late.txt', 'l'), 'seen')
    chat.send('first')
    await expect.poll(() => chat.events().filter(event => event.type === 'turn/end').length, { timeout: 10_000 }).toBe(2)
    await chat.agent.whenIdle()
    expect(world.read('late.txt')).toBe('l')

    const { text } = await chat.command('/rollback list')
    const { kind } = await chat.command('/rollback 2')

    expect(text).toContain('(no text)')
    expect(kind).toBe('success')
    expect(world.exists('late.txt')).toBe(false)
    expect(chat.surface().at(-2)).toBe('assistant: started')
  })
})

describe('a message that joins a running turn', () => {
  it('leaves with the turn', async () => {
    const world = aWorld()
    const chat = await (await world.start()).open()
    await chat.turn('first', 'one')
    let steered = false
    chat.host.model.onRequest = () => {
      if (steered) return
      steered = true
      chat.agent.steer({ id: 'steer-1', role: 'user', source: { kind: 'user' }, content: [{ type: 'text', text: 'and quickly' }] })
    }
    await chat.turn('second', writes('a.txt', 'a'), 'two')
    expect(chat.surface()).toContain('user: and quickly')

    await chat.command('/rollback 2')
    await chat.turn('third')

    expect(chat.lastRequest().messages.map(lineOf)).not.toContain('user: and quickly')
    expect(world.exists('a.txt')).toBe(false)
  })
})

describe('the plugin taken out of a running host', () => {
  it('leaves nothing behind, and works again when it is put back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false })
    const chat = await host.open()
    const fiber = await host.install()
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    await fiber.dispose()
    expect(host.ctx.commands.list(chat.agent).map((command: { name: string }) => command.name)).not.toContain('rollback')
    await chat.turn('second', writes('b.txt', 'b'))
    await host.install()

    expect((await host.ask('preview', { sessionId: chat.id, turn: 1 })).value.gaps).toMatchObject([{ reason: 'no-record', names: ['b.txt'] }])
    await chat.command('/rollback 1')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': 'b' })
  })
})
