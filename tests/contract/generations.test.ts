import { describe, expect, it } from 'vitest'
import { appendMarker, inheritedLength, markerSource, readEvents, surfaceGeneration } from '../../host/dsh/session-log.ts'
import { foldMarker, registerProjection } from '../../host/dsh/projection.ts'
import { registerCommand } from '../../host/dsh/commands.ts'
import { openChannel, type Handlers } from '../../host/dsh/channel.ts'
import { makeHealth } from '../../host/dsh/health.ts'
import type { HostContext } from '../../host/dsh/host-types.ts'
import { markerId } from '../../src/surface/marker.ts'
import { opId } from '../../src/ids.ts'
import { judgeTarget, readConversation } from '../../src/turn/rollback-target.ts'
import { fakeSession, withTurns, type FakeSession, type Format } from '../support/generation-fakes.ts'

const formats: readonly Format[] = [0, 1, 2, 3, 4]
const messageId = markerId({ startSeq: 1, turn: 2, op: opId('0123456789abcdef') })

/** Cuts at `turn` the way a rollback does: judged from the log, appended by the adapter. */
function cutAt(session: FakeSession, turn: number, tokens?: number): number {
  const target = judgeTarget(readConversation(readEvents(session)), turn)
  if (!target.ok) throw new Error(target.failure.code)
  return appendMarker(session, { messageId, text: 'gone', nodes: target.value.cut, tokens })
}

describe.each(formats)('a session of log format %i', (format) => {
  it('takes the marker over the last turns, and its writer stores it', () => {
    const session = withTurns(fakeSession(format), 3)

    const seq = cutAt(session, 2)

    expect(session.surface.nodes.at(-1)).toBe(seq)
    expect(session.surface.nodes).toHaveLength(format >= 3 ? 4 : 3)
    expect(session.refusedByWriter()).toEqual([])
  })

  it('takes the marker over the first turn, and keeps a system prompt in node 0', () => {
    const session = withTurns(fakeSession(format), 2)

    const seq = cutAt(session, 1)

    const systemPrompt = session.log.filter(event => event.type === 'system/message').map(event => event.seq)
    expect(session.surface.nodes).toEqual([...systemPrompt, seq])
    expect(session.refusedByWriter()).toEqual([])
  })

  it('takes a marker over an earlier marker', () => {
    const session = withTurns(fakeSession(format), 3)
    cutAt(session, 3)

    const seq = cutAt(session, 2)

    expect(session.surface.nodes.at(-1)).toBe(seq)
    expect(session.refusedByWriter()).toEqual([])
  })

  it('has the price directly before the marker, with its exact span', () => {
    const session = withTurns(fakeSession(format), 3)

    const seq = cutAt(session, 2, 40)

    const [prune, marker] = session.log.slice(-2)
    const nodes = marker!.sourceEventSeqs!
    expect(marker!.seq).toBe(seq)
    expect(prune).toMatchObject({
      type: 'compaction/prune', seq: seq - 1,
      data: { shadowedRange: { start: nodes[0], end: nodes.at(-1) }, shadowedSeqs: nodes, shadowedTokenCount: 40 },
    })
  })

  it('gets a marker that our own projection finds again', () => {
    const session = withTurns(fakeSession(format), 2)

    const seq = cutAt(session, 2)

    expect(session.log.reduce(foldMarker, { markers: [] as never[] })).toMatchObject({ markers: [{ seq, turn: 2 }] })
  })
})

describe('the source of the marker', () => {
  it.each([0, 1, 2, 3])('has exactly the members that the migrations of format %i accept', (format) => {
    expect(markerSource(format)).toStrictEqual({ kind: 'plugin', plugin: 'dsh-turnback' })
  })

  it.each([4, 5])('names its producer in the kind from format 4 on (%i)', (format) => {
    expect(markerSource(format)).toStrictEqual({ kind: 'plugin:dsh-turnback' })
  })

  it('is one that the writer of the other format would refuse', () => {
    const session = withTurns(fakeSession(4), 1)
    session.append('user/message', { id: 'm', role: 'user', source: markerSource(3), content: [] }, { surfaceOp: 'append' })

    expect(session.refusedByWriter()).toEqual(['requires a producer-owned source kind'])
  })
})

describe('the replace op', () => {
  it('is tried in the other spelling when a host of an older format already has the new one', () => {
    const session = withTurns(fakeSession(3), 2)
    const early = { ...session, header: { ...session.header, version: 2 }, surface: session.surface }

    const target = judgeTarget(readConversation(readEvents(session)), 2)
    const nodes = target.ok ? target.value.cut : []
    appendMarker(early, { messageId, text: 'gone', nodes, tokens: undefined })

    expect(session.log.at(-1)?.surfaceOp).toEqual({ op: 'replace', startSeq: nodes[0], endSeq: nodes.at(-1) })
  })

  it('that the host refuses for another reason leaves the surface as it was', () => {
    const session = withTurns(fakeSession(3), 2)
    const nodes = [...session.surface.nodes]

    expect(() => appendMarker(session, { messageId, text: 'gone', nodes, tokens: undefined })).toThrow('node 0 holds the system prompt')
    expect(session.surface.nodes).toEqual(nodes)
  })
})

describe('what differs between the generations of a session', () => {
  it('is read in either spelling', () => {
    expect(readEvents(withTurns(fakeSession(0), 1))).toHaveLength(6)
    expect(readEvents(withTurns(fakeSession(4), 1))).toHaveLength(7)
    expect(surfaceGeneration(fakeSession(0))).toBe(0)
    expect(inheritedLength({ ...fakeSession(0), header: { version: 0, id: 'x', seedLength: 7 } })).toBe(7)
    expect(inheritedLength({ ...fakeSession(4), header: { version: 4, id: 'x', inheritedEventCount: 9 } })).toBe(9)
  })

  it('is said, not guessed, when a session has neither', () => {
    const { snapshotEvents: _gone, ...session } = fakeSession(4)

    expect(() => readEvents(session)).toThrow('neither events nor snapshotEvents')
  })
})

/** A context that keeps what was asked of it; `services` are there at once. */
function fakeContext(services: Readonly<Record<string, unknown>>): HostContext {
  return {
    on: () => () => undefined,
    effect: run => run(),
    inject: (names, run) => { if (names.every(name => name in services)) run(fakeContext(services)) },
    get: name => services[name],
    emit: () => undefined,
  }
}

describe('the channel', () => {
  const handlers = { hello: async () => ({ ok: true as const, value: { protocol: 1, version: '0', command: 'rollback', problems: [] } }) } as unknown as Handlers
  const silent = () => makeHealth(() => undefined)

  it('is an rpc channel with the fence of trusted hosts where there is no fetch.register', async () => {
    const handled: { channel: string; options: unknown; ask: (endpoint: string, payload: unknown) => Promise<unknown> }[] = []
    const connection = { rpc: { handle: (channel: string, ask: never, options: unknown) => handled.push({ channel, ask, options }) } }

    openChannel(fakeContext({ connection, webServer: {} }), silent(), handlers)

    expect(handled).toMatchObject([{ channel: '/turnback', options: { authority: 'trusted-host' } }])
    expect(await handled[0]!.ask('hello', {})).toMatchObject({ ok: true, value: { ok: true, value: { protocol: 1 } } })
  })

  it('is one exact route per endpoint where there is fetch.register, and needs no web server', async () => {
    const routes: { path: string; methods: string[]; requestBody: string; fetch: (request: Request) => Promise<Response> }[] = []
    let rpc = 0
    const connection = { rpc: { handle: () => { rpc += 1 } }, fetch: { register: (route: never) => routes.push(route) } }

    openChannel(fakeContext({ connection }), silent(), handlers)

    expect(routes.map(route => route.path)).toEqual(['hello', 'timeline', 'preview', 'plan', 'retry', 'outcome', 'progress', 'stop', 'diff', 'counts', 'history', 'checkpoint'].map(name => `/api/turnback/${name}`))
    expect(routes.every(route => route.requestBody === 'buffered' && route.methods.join() === 'POST')).toBe(true)
    expect(rpc).toBe(0)
    const body = JSON.stringify({ type: 'client-request', rpcId: 'r1', method: 'turnback/hello', payload: {} })
    const response = await routes[0]!.fetch(new Request('http://localhost/api/turnback/hello', { method: 'POST', body }))
    expect(await response.json()).toMatchObject({ type: 'server-response', rpcId: 'r1', result: { ok: true, value: { ok: true } } })
  })

  it('answers a body that is no JSON instead of failing the route', async () => {
    const routes: { fetch: (request: Request) => Promise<Response> }[] = []
    openChannel(fakeContext({ connection: { fetch: { register: (route: never) => routes.push(route) } } }), silent(), handlers)

    const response = await routes[0]!.fetch(new Request('http://localhost/x', { method: 'POST', body: 'no json' }))

    expect(await response.json()).toMatchObject({ result: { ok: true, value: { ok: false, failure: { code: 'bad-request' } } } })
  })

  it('is reported as missing when the connection has neither', () => {
    const health = silent()

    openChannel(fakeContext({ connection: {}, webServer: {} }), health, handlers)

    expect(health.problems()).toMatchObject([{ contract: 'channel', detail: expect.stringContaining('neither') }])
  })
})

describe('the projection', () => {
  it('carries the members of both definitions', () => {
    const definitions: Record<string, unknown>[] = []

    registerProjection(fakeContext({ sessionProjections: { register: (definition: never) => definitions.push(definition) } }), makeHealth(() => undefined))

    expect(Object.keys(definitions[0]!).sort()).toEqual(['apply', 'init', 'key', 'schema', 'stateSchema', 'stateVersion', 'view', 'wire'])
  })
})

describe('the command', () => {
  it('takes its second name where another plugin has the first, and says so', () => {
    const names: string[] = []
    const health = makeHealth(() => undefined)
    const commands = {
      register: ({ name }: { name: string }) => {
        if (name === 'rollback') throw new Error('command "rollback" is already registered')
        names.push(name)
        return () => undefined
      },
    }

    const name = registerCommand(fakeContext({ commands }), health, { description: 'd', hint: 'h' }, async () => ({ kind: 'success', text: '' }))

    expect(name).toBe('turnback')
    expect(names).toEqual(['turnback'])
    expect(health.problems()).toMatchObject([{ contract: 'command /rollback' }])
  })
})
