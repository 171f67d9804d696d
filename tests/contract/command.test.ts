import { describe, expect, it, vi } from 'vitest'
import { translate } from '../../locales/translate.ts'
import { aWorld, edits, writes, type Chat, type World } from '../support/in-process-host.ts'

async function twoTurns(): Promise<{ world: World; chat: Chat }> {
  const world = aWorld({ 'a.txt': '1' })
  const chat = await (await world.start()).open()
  await chat.turn('first', ...edits('a.txt', '1', '2'), 'one')
  await chat.turn('second', writes('b.txt', 'b'), 'two')
  return { world, chat }
}

describe('/rollback with words that ask for nothing that can be done', () => {
  it.each([
    ['abc', '“abc” is not something /rollback knows. Give a turn number, for example /rollback 2, or see /rollback help.'],
    ['0', '“0” is no turn number: turns count from 1. /rollback list shows them.'],
    ['-1', '“-1” is no turn number: turns count from 1. /rollback list shows them.'],
    ['1.5', '“1.5” is no turn number: turns count from 1. /rollback list shows them.'],
    ['99', 'There is no turn 99 in this session; the last one is turn 2. Type /rollback list to see the turns.'],
    ['2 extra', 'There is a word too many: “extra”. Nothing was done; see /rollback help.'],
    ['preview', 'Which turn? For example /rollback preview 2; /rollback list shows them.'],
    ['preview 99', 'There is no turn 99 in this session; the last one is turn 2. Type /rollback list to see the turns.'],
    ['--plan', 'A plan id is missing or does not read. Use /rollback <turn> instead.'],
    ['--plan ../../x', 'A plan id is missing or does not read. Use /rollback <turn> instead.'],
    ['--plan bogus0000', 'This preview is too old to be carried out. Nothing was done. Look at the preview again and confirm.'],
    ['undo', 'There is no rollback to undo in this session. Type /rollback list to see what was rolled back.'],
  ])('"%s" says what is wrong and what to do instead', async (words, text) => {
    const { world, chat } = await twoTurns()
    const before = { tree: world.tree(), count: chat.events().length }

    const answer = await chat.command(`/rollback ${words}`)

    expect(answer).toEqual({ kind: 'error', text })
    expect(world.tree()).toEqual(before.tree)
    expect(chat.events().slice(before.count).map(event => event.type)).toEqual(['command/run', 'command/done'])
  })
})

describe('/rollback with words that only ask', () => {
  it.each([
    ['', [/^Turns, newest first/, /\n2 {2}.* {2}second · 1 file\n1 {2}.* {2}first · 1 file\n/, /\/rollback undo/]],
    [' ', [/^Turns, newest first/, /\/rollback undo/]],
    [' list', [/^Turns, newest first/, /\n2 {2}.* {2}second · 1 file\n1 {2}.* {2}first · 1 file$/]],
    [' help', [/^\/rollback <turn>/]],
    [' preview 2', [/^Before turn 2: 1 turn would leave the conversation\.\nWould be deleted: b\.txt\nNothing has been done\. Run \/rollback 2 to do it\.$/]],
    [' preview 1', [/^Before turn 1: 2 turns/, /Would be put back: a\.txt/, /Would be deleted: b\.txt/]],
  ])('"%s" answers and changes nothing', async (words, texts) => {
    const { world, chat } = await twoTurns()
    const before = { tree: world.tree(), count: chat.events().length }

    const { kind, text } = await chat.command(`/rollback${words}`)

    expect(kind).toBe('success')
    for (const expected of texts) expect(text).toMatch(expected)
    expect(world.tree()).toEqual(before.tree)
    expect(chat.events().slice(before.count).map(event => event.type)).toEqual(['command/run', 'command/done'])
  })
})

describe('/rollback that does something', () => {
  it('answers what happened, the marker it wrote and how to take the files back', async () => {
    const { chat } = await twoTurns()

    const { kind, text, sourceEventSeq } = await chat.command('/rollback 1')

    expect(kind).toBe('success')
    expect(text).toBe([
      'Rolled back to before turn 1: 2 turns left the conversation.', 'Put back: a.txt', 'Deleted: b.txt',
      'To undo this: /rollback undo. The files come back in place; the conversation opens as a copy of this session from before the rollback.',
    ].join('\n'))
    expect(chat.events()[sourceEventSeq!]).toMatchObject({ type: 'user/message', data: { source: { plugin: 'dsh-turnback' } } })
  })

  it('keeps the words a person typed out of the log', async () => {
    const { chat } = await twoTurns()

    await chat.command('/rollback 2')

    expect(chat.events().findLast(event => event.type === 'command/run').data).not.toHaveProperty('args')
  })

  it('twice for the same turn is refused the second time', async () => {
    const { world, chat } = await twoTurns()
    await chat.command('/rollback 2')
    const tree = world.tree()

    const answer = await chat.command('/rollback 2')

    expect(answer.kind).toBe('error')
    expect(answer.text).toBe('Turn 2 was already rolled back. Choose an earlier turn, or a later one that is still in the conversation.')
    expect(world.tree()).toEqual(tree)
  })

  it('undo puts the files back, and the conversation in a copy: this one stays as it is', async () => {
    const { world, chat } = await twoTurns()
    const before = world.tree()
    await chat.command('/rollback 1')
    const surface = chat.surface()

    const { kind, text } = await chat.command('/rollback undo')

    expect(kind).toBe('success')
    expect(text).toContain('this session stays as it is')
    expect(world.tree()).toEqual(before)
    expect(chat.surface()).toEqual(surface)
  })

  it('undo works in the next run of the host as well', async () => {
    const { world, chat } = await twoTurns()
    const before = world.tree()
    await chat.command('/rollback 1')
    await chat.host.stop()
    const again = await (await world.start()).open()

    expect((await again.command('/rollback undo')).kind).toBe('success')
    expect(world.tree()).toEqual(before)
  })

  it('speaks the language of the page that said hello', async () => {
    const { chat } = await twoTurns()
    await chat.host.ask('hello', { locale: 'zh', sessionId: chat.id })

    const { text } = await chat.command('/rollback help')

    expect(text).toBe(translate('zh', 'command.usage'))
  })
})

describe('the channel', () => {
  const previewOf = async (chat: Chat, turn: number) => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value

  it.each([
    ['hello', 7], ['hello', { locale: 'fr' }], ['timeline', {}], ['timeline', { sessionId: '' }], ['timeline', null],
    ['preview', { sessionId: 's1' }], ['preview', { sessionId: 's1', turn: 0 }], ['preview', { sessionId: 's1', turn: '2' }],
    ['preview', { sessionId: 's1', turn: 2, scope: 'everything' }], ['plan', { sessionId: 's1', turn: 2 }],
    ['plan', { sessionId: 's1', turn: 2, token: 1 }], ['outcome', { sessionId: 's1', op: '../x' }],
    ['nothing', {}], ['__proto__', {}], ['constructor', {}],
  ])('refuses %s with %j as a bad request', async (endpoint, payload) => {
    const { chat } = await twoTurns()

    expect(await chat.host.ask(endpoint, payload)).toMatchObject({ ok: false, failure: { code: 'bad-request' } })
  })

  it('knows no session that is not open', async () => {
    const { chat } = await twoTurns()

    expect(await chat.host.ask('preview', { sessionId: 'other', turn: 1 })).toMatchObject({ ok: false, failure: { code: 'unknown-session' } })
  })

  it('leaves no trace in the session log', async () => {
    const { chat } = await twoTurns()
    const count = chat.events().length
    const { token } = await previewOf(chat, 2)

    await chat.host.ask('hello', { sessionId: chat.id })
    await chat.host.ask('timeline', { sessionId: chat.id })
    await chat.host.ask('plan', { sessionId: chat.id, turn: 2, token })

    expect(chat.events()).toHaveLength(count)
  })

  it('plans what was seen, and the command carries it out once', async () => {
    const { world, chat } = await twoTurns()
    const { token } = await previewOf(chat, 2)
    const { planId } = (await chat.host.ask('plan', { sessionId: chat.id, turn: 2, token })).value

    const { kind, sourceEventSeq } = await chat.command(`/rollback --plan ${planId}`)

    expect(kind).toBe('success')
    expect(world.tree()).toEqual({ 'a.txt': '2' })
    expect((await chat.host.ask('outcome', { sessionId: chat.id, planId })).value).toMatchObject({ op: { act: 'rollback', markerSeq: sourceEventSeq } })
    expect((await chat.command(`/rollback --plan ${planId}`)).kind).toBe('error')
  })

  it('puts back a conflict only where the plan says so', async () => {
    const { world, chat } = await twoTurns()
    world.write('a.txt', 'mine')
    world.write('b.txt', 'mine too')
    const { token, rows } = await previewOf(chat, 1)
    expect(rows).toMatchObject([{ action: 'keep', putBackAction: 'write' }, { action: 'keep', putBackAction: 'delete' }])
    const plan = { sessionId: chat.id, turn: 1, token, putBack: [`${world.ws}/a.txt`] }
    const { planId } = (await chat.host.ask('plan', plan)).value

    await chat.command(`/rollback --plan ${planId}`)

    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': 'mine too' })
    await chat.command('/rollback undo')
    expect(world.tree()).toEqual({ 'a.txt': 'mine', 'b.txt': 'mine too' })
  })

  it('gives a fresh preview for a token of another state of the world', async () => {
    const { world, chat } = await twoTurns()
    const { token } = await previewOf(chat, 1)
    world.write('a.txt', '5')

    const stale = (await chat.host.ask('plan', { sessionId: chat.id, turn: 1, token })).value

    expect(stale).toMatchObject({ kind: 'stale', preview: { rows: [{ action: 'keep', conflict: 'changed-since' }, { action: 'delete' }] } })
    expect(stale.preview.token).not.toBe(token)
  })

  it.each([
    ['a file', (world: World) => { world.write('a.txt', '5') }],
    ['a mode', (world: World) => { world.remove('b.txt'); world.write('b.txt', 'b', 0o640) }],
  ])('does not carry out a plan after %s changed, and says what is different', async (_what, change) => {
    const { world, chat } = await twoTurns()
    const { token } = await previewOf(chat, 1)
    const { planId } = (await chat.host.ask('plan', { sessionId: chat.id, turn: 1, token })).value
    change(world)
    const before = { tree: world.tree(), surface: chat.surface() }

    const { kind, text } = await chat.command(`/rollback --plan ${planId}`)

    expect(kind).toBe('error')
    expect(text).toContain('Something changed since the preview. Nothing was done.')
    expect(text).toContain('Would be kept, changed since')
    expect({ tree: world.tree(), surface: chat.surface() }).toEqual(before)
  })

  it('does not carry out a plan after another turn was added', async () => {
    const { world, chat } = await twoTurns()
    const { token } = await previewOf(chat, 2)
    const { planId } = (await chat.host.ask('plan', { sessionId: chat.id, turn: 2, token })).value
    await chat.turn('third', 'three')
    const tree = world.tree()

    expect((await chat.command(`/rollback --plan ${planId}`)).kind).toBe('error')
    expect(world.tree()).toEqual(tree)
  })

  it('does not carry out a plan that is older than ten minutes', async () => {
    let late = 0
    const { now } = Date
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + late)
    const { world, chat } = await twoTurns()
    const { token } = await previewOf(chat, 2)
    const { planId } = (await chat.host.ask('plan', { sessionId: chat.id, turn: 2, token })).value
    const tree = world.tree()
    late = 10 * 60_000 + 1

    const { kind, text } = await chat.command(`/rollback --plan ${planId}`)

    expect({ kind, text }).toEqual({ kind: 'error', text: 'This preview is too old to be carried out. Nothing was done. Look at the preview again and confirm.' })
    expect(world.tree()).toEqual(tree)
    clock.mockRestore()
  })

  it('is not there in a host without a connection, and the command works alone', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await (await world.start({ without: ['connection'] })).open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })
})
