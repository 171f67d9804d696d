import { describe, expect, it } from 'vitest'
import { aWorld, chatOf, edits, runs, writes, type Chat, type Host, type World } from '../support/in-process-host.ts'
import { mountWebServices } from '../support/web-services.ts'
import type { Foreign } from './support/dsh-packages.ts'
import { journalOf } from './support/journal.ts'

const hosts = [['the API of the web host', { api: true }], ['agents and workspaces alone', { api: false }]] as const

interface Place {
  readonly world: World
  readonly host: Host
  readonly chat: Chat
}

async function threeTurns(services: { api: boolean } = { api: true }, complains = false): Promise<Place> {
  const world = aWorld({ 'a.txt': '1', 'gone.txt': 'old' })
  const host = await world.start({ before: ctx => mountWebServices(ctx, world, services), complains })
  const chat = await host.open()
  await host.ctx.workspaceRegistry.list()[0].attachSession(chat.id)
  await chat.turn('first', ...edits('a.txt', '1', '2'), 'one')
  await chat.turn('second', ...edits('a.txt', '2', '3'), writes('b.txt', 'b'), 'two')
  await chat.turn('third', runs('rm gone.txt; echo x > c.txt'), 'three')
  return { world, host, chat }
}

const lastOp = async ({ host }: Place, id: string): Promise<Foreign> => (await host.ask('outcome', { sessionId: id })).value.op
const live = (host: Host, id: string): Chat => chatOf(host, { agent: host.ctx.agents.get(id) })
const listed = (host: Host): readonly string[] => host.ctx.workspaceRegistry.list()[0].sessionIds
/** Puts something else in the place of a member of a host's service; what is returned takes it back. */
function spoil({ ctx }: Host, service: string, member: string, instead: Foreign): () => void {
  const owner = service === 'apiProxy' ? ctx.get(service).sessions : ctx.get(service)
  const before = owner[member]
  owner[member] = instead
  return () => { owner[member] = before }
}
const prompts = (chat: Chat): readonly string[] => chat.surface().filter(line => /^user: (?!\[The user|Current runtime|<)/.test(line))
const withoutOwn = (events: readonly Foreign[]) => events.filter(event => !/^(command\/|session\/(end-seed|title))/.test(event.type))

describe.each(hosts)('the undo of a rollback of both, with %s', (_name, services) => {
  it('field 59: gives all files back in place and the conversation as a copy that holds everything before the rollback', async () => {
    const place = await threeTurns(services)
    const { world, host, chat } = place
    const before = { tree: world.tree(), surface: chat.surface(), events: withoutOwn(chat.events()) }
    await chat.command('/rollback 2')

    const { kind, text } = await chat.command('/rollback undo')

    expect(kind).toBe('success')
    expect(world.tree()).toEqual(before.tree)
    const { copy } = await lastOp(place, chat.id)
    const made = live(host, copy)
    expect(made.surface()).toEqual(before.surface)
    expect(withoutOwn(made.events())).toEqual(before.events)
    expect(made.events().filter(event => event.type.startsWith('command/'))).toEqual([])
    expect(text).toMatch(/^The rollback is undone\. The whole conversation is in “first \(before rollback\)”/)
    expect(listed(host)).toContain(copy)
    expect(prompts(chat)).toEqual(['user: first'])
    expect((await journalOf(world, chat, 'op-done')).at(-1)).toMatchObject({ copy })
  })

  it('lets the copy go on: the model reads the whole conversation, and every turn of it can be rolled back', async () => {
    const place = await threeTurns(services)
    const { world, host, chat } = place
    await chat.command('/rollback 2')
    await chat.command('/rollback undo')
    const copy = live(host, (await lastOp(place, chat.id)).copy)

    await copy.turn('fourth', ...edits('a.txt', '3', '4'), 'four')
    expect(prompts(copy)).toEqual(['user: first', 'user: second', 'user: third', 'user: fourth'])
    expect(copy.lastRequest().tools.length).toBe(chat.lastRequest().tools.length)
    const { value: preview } = await host.ask('preview', { sessionId: copy.id, turn: 1 })
    expect(preview.gaps).toEqual([])
    expect(preview.rows.map((row: Foreign) => [row.shown, row.action])).toEqual([['a.txt', 'write'], ['b.txt', 'delete'], ['c.txt', 'delete'], ['gone.txt', 'recreate']])
    expect((await copy.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'gone.txt': 'old' })
  })

  it('works in the next run of the host, after a later turn: files by the usual rules, the later turn stays in the original', async () => {
    const { world, chat } = await threeTurns(services)
    await chat.command('/rollback 2')
    await chat.turn('instead', writes('b.txt', 'other'), 'done')
    await chat.host.stop()
    const host = await world.start({ before: ctx => mountWebServices(ctx, world, services) })
    const again = await host.open()

    const { text } = await again.command('/rollback undo')

    expect(text).toContain('Kept, changed since: b.txt')
    expect([world.read('a.txt'), world.read('b.txt'), world.read('c.txt')]).toEqual(['3', 'other', 'x\n'])
    const copy = live(host, (await lastOp({ world, host, chat }, again.id)).copy)
    expect(prompts(copy)).toEqual(['user: first', 'user: second', 'user: third'])
    expect(prompts(again)).toEqual(['user: first', 'user: instead'])
    await host.stop()

    const third = await (await world.start()).open(copy.id)
    await third.turn('in the copy', 'yes')
    expect(prompts(third)).toEqual(['user: first', 'user: second', 'user: third', 'user: in the copy'])
    expect((await third.command('/rollback preview 1')).text).toContain('Would be put back: a.txt')
  })

  it('taken back from the copy puts the files where the rollback had left them and names the original', async () => {
    const place = await threeTurns(services)
    const { world, host, chat } = place
    await chat.command('/rollback 2')
    const rolledBack = world.tree()
    await chat.command('/rollback undo')
    const { copy } = await lastOp(place, chat.id)

    const { kind, text } = await live(host, copy).command('/rollback undo')

    expect([kind, world.tree()]).toEqual(['success', rolledBack])
    expect(text).toMatch(/^The undo is taken back.*\nThe conversation goes on in the original session\./)
    expect((await lastOp(place, copy)).copy).toBe(chat.id)
    const { value: timeline } = await host.ask('timeline', { sessionId: chat.id })
    expect(timeline.ops.map((op: Foreign) => [op.act, op.undone])).toEqual([['undo', false], ['undo', true], ['rollback', false]])
    expect((await chat.command('/rollback undo')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('3')
  })
})

describe('an undo by its name', () => {
  it('is taken back in the original, again and again', async () => {
    const { world, host, chat } = await threeTurns()
    const before = world.tree()
    await chat.command('/rollback 2')
    const rolledBack = world.tree()
    const { op } = await lastOp({ world, host, chat }, chat.id)
    await chat.command('/rollback undo')
    const undo = await lastOp({ world, host, chat }, chat.id)

    expect((await chat.command(`/rollback undo ${undo.op}`)).kind).toBe('success')
    expect(world.tree()).toEqual(rolledBack)
    expect((await lastOp({ world, host, chat }, chat.id)).copy).toBe(chat.id)
    expect((await chat.command(`/rollback undo ${op}`)).kind).toBe('success')
    expect(world.tree()).toEqual(before)
    expect((await chat.command(`/rollback undo ${op}`)).kind).toBe('error')
    expect((await chat.command('/rollback undo 0123456789abcdef')).kind).toBe('error')
  })
})

describe('the undo of a rollback that changed no file', () => {
  it('still brings the conversation back', async () => {
    const place = await threeTurns()
    const { host, chat } = place
    await chat.turn('a question', 'an answer')
    await chat.command('/rollback 4')

    expect((await chat.command('/rollback undo')).kind).toBe('success')

    expect(prompts(live(host, (await lastOp(place, chat.id)).copy)).at(-1)).toBe('user: a question')
  })
})

describe('a copy', () => {
  it('of a copy after a restart knows the files of every turn, also those of the first original', async () => {
    const { world, host, chat } = await threeTurns()
    await chat.command('/rollback 3')
    await chat.command('/rollback undo')
    const first = live(host, (await lastOp({ world, host, chat }, chat.id)).copy)
    await first.turn('fourth', writes('d.txt', 'd'), 'four')
    await first.command('/rollback 4')
    await first.command('/rollback undo')
    const { copy } = await lastOp({ world, host, chat }, first.id)
    await host.stop()

    const again = await world.start({ before: ctx => mountWebServices(ctx, world) })
    const second = await again.open(copy)
    const { value: preview } = await again.ask('preview', { sessionId: copy, turn: 1 })
    expect(preview.rows.map((row: Foreign) => [row.shown, row.action])).toEqual([
      ['a.txt', 'write'], ['b.txt', 'delete'], ['c.txt', 'delete'], ['d.txt', 'delete'], ['gone.txt', 'recreate'],
    ])
    expect(preview.gaps).toEqual([])
    expect((await second.command('/rollback 1')).kind).toBe('success')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'gone.txt': 'old' })
    await again.open(first.id)
    await again.open(chat.id)
  })

  it('leaves out every command that had not answered before the rollback', async () => {
    const { world, host, chat } = await threeTurns()
    await chat.command('/rollback list')
    await Promise.all([chat.command('/rollback 3'), chat.command('/rollback help')])
    await chat.command('/rollback undo')

    const copy = live(host, (await lastOp({ world, host, chat }, chat.id)).copy)
    const commands = copy.events().filter(event => event.type.startsWith('command/')).map(event => event.type)
    expect(commands).toEqual(['command/run', 'command/done'])
  })
})

describe('a host that cannot make a copy', () => {
  const throws = (): never => { throw new Error('not today') }
  const unable: readonly [string, string, string, Foreign, boolean][] = [
    ['does not open it', 'apiProxy', 'create', async () => ({ result: { ok: false, error: { message: 'not today' } } }), true],
    ['throws at it', 'apiProxy', 'create', throws, true],
    ['cannot store it', 'sessionPersistence', 'append', throws, false],
  ]

  it.each(unable)('and %s: the files are undone, the reason is said, nothing of it stays in the list', async (_what, service, member, instead, isStored) => {
    const { world, host, chat } = await threeTurns({ api: true }, true)
    const before = { tree: world.tree(), sessions: listed(host).length }
    await chat.command('/rollback 2')
    const restore = spoil(host, service, member, instead)

    const { kind, text } = await chat.command('/rollback undo')
    restore()

    expect([kind, world.tree()]).toEqual(['success', before.tree])
    expect(text).toMatch(/^The files are back as they were before the rollback\. The conversation stays as it is\.\nA copy of the session could not be made: not today /)
    const archived: readonly string[] = host.ctx.workspaceRegistry.archivedSessionIds ?? host.ctx.workspaceRegistry.requireState().archivedSessionIds
    expect(listed(host).filter(id => !archived.includes(id)).length).toBe(before.sessions)
    if (isStored) expect(archived).toHaveLength(1)
    // The next try names the op.
    expect((await chat.command(/\/rollback undo [0-9a-f]+/.exec(text!)![0])).text).toMatch(/^The rollback is undone\./)
    expect(host.complaints.join()).toContain('session copy: Error: not today')
  })

  it('has neither of the services: files only, said plainly, and never promised', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await (await world.start()).open()
    await chat.turn('first', ...edits('a.txt', '1', '2'), 'one')
    Object.defineProperty(chat.session, 'requestHeader', { value: () => undefined })

    const done = await chat.command('/rollback 1')
    const undone = await chat.command('/rollback undo')

    expect(done.text).toContain('To put the files back as they were before this: /rollback undo')
    expect(world.read('a.txt')).toBe('2')
    expect(undone.text).toMatch(/^The files are back .* The conversation stays as it is\.\nThis version of DSH does not offer what a rollback needs: session copy/)
  })
})

describe('a branch', () => {
  it.each(hosts)('goes on before the turn in a session of its own, with %s; the log of this one gets no marker', async (_name, services) => {
    const place = await threeTurns(services)
    const { world, host, chat } = place
    const surface = chat.surface()

    const { kind, text } = await chat.command('/rollback 2 branch')

    expect(kind).toBe('success')
    expect(text).toMatch(/^The conversation up to before turn 2 goes on in a new session, “first \(branch before turn 2\)”\. This session stays as it is\./)
    expect(chat.surface()).toEqual(surface)
    expect(world.tree()).toEqual({ 'a.txt': '2', 'gone.txt': 'old' })
    const { copy, act, scope } = await lastOp(place, chat.id)
    expect([act, scope]).toEqual(['rollback', 'files'])
    const branch = live(host, copy)
    expect(prompts(branch)).toEqual(['user: first'])
    expect(branch.events().filter(event => event.type !== 'request/header' && JSON.stringify(event).includes('second'))).toEqual([])
    expect(listed(host)).toContain(copy)

    await branch.turn('other second', writes('e.txt', 'e'), 'two')
    const { value: preview } = await host.ask('preview', { sessionId: copy, turn: 1 })
    expect(preview.rows.map((row: Foreign) => [row.shown, row.action, row.conflict])).toEqual([['a.txt', 'write', undefined], ['e.txt', 'delete', undefined]])
    await branch.command('/rollback 1')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'gone.txt': 'old' })
  })

  it('from the dialog: the plan is made of a preview of the files', async () => {
    const place = await threeTurns()
    const { world, host, chat } = place
    const { value: preview } = await host.ask('preview', { sessionId: chat.id, turn: 3, scope: 'files' })
    const { value: plan } = await host.ask('plan', { sessionId: chat.id, turn: 3, token: preview.token, branch: true })

    expect((await chat.command(`/rollback --plan ${plan.planId}`)).kind).toBe('success')

    const { op } = (await host.ask('outcome', { sessionId: chat.id, planId: plan.planId })).value
    expect(prompts(live(host, op.copy))).toEqual(['user: first', 'user: second'])
    expect(world.tree()).toEqual({ 'a.txt': '3', 'b.txt': 'b', 'gone.txt': 'old' })
  })

  it('before the first turn is a new session, and the files are as they were at the start', async () => {
    const place = await threeTurns()
    await place.chat.command('/rollback 1 branch')

    expect(prompts(live(place.host, (await lastOp(place, place.chat.id)).copy))).toEqual([])
    expect(place.world.tree()).toEqual({ 'a.txt': '1', 'gone.txt': 'old' })
  })

  it('is undone in place: the files come back, and the branch stays what it is', async () => {
    const place = await threeTurns()
    const { world, host, chat } = place
    const before = world.tree()
    await chat.command('/rollback 2 branch')
    const sessions = listed(host).length

    const { text } = await chat.command('/rollback undo')

    expect(text).toMatch(/^The files are back as they were before the rollback\.\n/)
    expect(world.tree()).toEqual(before)
    expect([(await lastOp(place, chat.id)).copy, listed(host).length]).toEqual([undefined, sessions])
  })

  it('without a copy does nothing at all', async () => {
    const { world, host, chat } = await threeTurns({ api: true }, true)
    const before = { tree: world.tree(), events: withoutOwn(chat.events()) }
    const restore = spoil(host, 'apiProxy', 'create', async () => ({ result: { ok: false, error: { message: 'not today' } } }))

    const { kind, text } = await chat.command('/rollback 2 branch')
    restore()

    expect([kind, text]).toEqual(['error', 'A copy of the session could not be made: not today Try again. The session itself is as it was.'])
    expect(world.tree()).toEqual(before.tree)
    expect(withoutOwn(chat.events())).toEqual(before.events)
    expect((await host.ask('timeline', { sessionId: chat.id })).value.ops).toEqual([])
  })
})

describe('what the last run of the command carried out', () => {
  it('is nothing once another one has only asked', async () => {
    const place = await threeTurns()
    await place.chat.command('/rollback 3')
    expect((await lastOp(place, place.chat.id)).act).toBe('rollback')

    await place.chat.command('/rollback list')

    expect(await lastOp(place, place.chat.id)).toBeUndefined()
  })
})
