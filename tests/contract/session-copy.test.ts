import { describe, expect, it } from 'vitest'
import { sessionId } from '../../src/ids.ts'
import { makeHealth } from '../../host/dsh/health.ts'
import { makeSessionCopies } from '../../host/dsh/session-copy.ts'
import { aWorld, chatOf, edits, writes, type Chat, type Host, type World } from '../support/in-process-host.ts'
import { mountWebServices } from '../support/web-services.ts'

/** The ways a copy is made: with the web host's API, with its services alone, and on a host that has neither. */
const hosts = [['the API of the web host', { api: true }], ['agents and workspaces alone', { api: false }]] as const

async function twoTurns(services: { api: boolean } | undefined): Promise<{ world: World; host: Host; chat: Chat; attached: () => readonly string[] }> {
  const world = aWorld({ 'a.txt': '1' })
  const host = await world.start(services === undefined ? {} : { before: ctx => mountWebServices(ctx, world, services) })
  const chat = await host.open()
  const workspace = host.ctx.get('workspaceRegistry')?.list()[0]
  await workspace?.attachSession(chat.id)
  await chat.turn('first', ...edits('a.txt', '1', '2'), 'one')
  await chat.turn('second', writes('b.txt', 'b'), 'two')
  return { world, host, chat, attached: () => host.ctx.get('workspaceRegistry').list()[0].sessionIds }
}

const copiesOf = ({ ctx }: Host) => makeSessionCopies(ctx, ctx.sessions, makeHealth(() => {}))
const startOf = (chat: Chat, turn: number): number => chat.events().find(event => event.type === 'turn/start' && event.data.turn === turn)!.seq
const agentOf = (host: Host, id: string): Chat => chatOf(host, { agent: host.ctx.agents.get(id) })

describe.each(hosts)('a copy of a session, made with %s', (_name, services) => {
  it('is live, in the list, named, and holds exactly the prefix', async () => {
    const { host, chat, attached } = await twoTurns(services)
    const cut = startOf(chat, 2)

    const made = await copiesOf(host).make({ source: chat.session, cut, title: 'A copy' })

    expect(made).toMatchObject({ ok: true })
    const copy = agentOf(host, (made as { value: string }).value)
    expect(copy.session.header).toMatchObject({ parentSession: chat.id, seedLength: cut, cwd: chat.session.header.cwd })
    expect(copy.events().slice(0, cut)).toEqual(chat.events().slice(0, cut))
    expect(copy.events().slice(cut).map(event => event.type)).not.toContain('turn/start')
    expect(attached()).toContain(copy.id)
    expect(copiesOf(host).titleOf(copy.session)).toBe('A copy')
  })

  it('goes on from there, with the conversation and the tools, also in the next run of the host', async () => {
    const { world, host, chat } = await twoTurns(services)
    const made = await copiesOf(host).make({ source: chat.session, cut: startOf(chat, 2), title: 'A copy' })
    const id = (made as { value: string }).value
    const events = chat.events().length

    await agentOf(host, id).turn('in the copy', 'yes')
    const texts = JSON.stringify(host.model.requests.at(-1)!.messages)
    expect([texts.includes('first'), texts.includes('in the copy'), texts.includes('second')]).toEqual([true, true, false])
    expect(host.model.requests.at(-1)!.tools.length).toBe(chat.lastRequest().tools.length)
    expect(chat.events().length).toBe(events)

    await host.stop()
    const again = await (await world.start()).open(id)
    await again.turn('after the restart', 'yes')
    expect(again.surface().filter(line => /^user: (first|second|in the copy|after)/.test(line))).toEqual(['user: first', 'user: in the copy', 'user: after the restart'])
  })

  it('of nothing is a new session', async () => {
    const { host, chat, attached } = await twoTurns(services)

    const made = await copiesOf(host).make({ source: chat.session, cut: 0, title: 'Nothing' })

    const copy = agentOf(host, (made as { value: string }).value)
    expect(copy.surface()).toEqual([])
    expect(attached()).toContain(copy.id)
  })

  it('goes out of the list when it is archived', async () => {
    const { host, chat } = await twoTurns(services)
    const copies = copiesOf(host)
    const made = await copies.make({ source: chat.session, cut: startOf(chat, 2), title: 'A copy' })
    if (!made.ok) throw new Error(made.failure.code)
    const { value } = made

    expect([await copies.archive(value), await copies.archive(sessionId('nobody'))]).toEqual([true, false])
    expect(JSON.stringify(host.ctx.workspaceRegistry.archivedSessionIds ?? host.ctx.workspaceRegistry.requireState().archivedSessionIds)).toContain(value)
  })
})
