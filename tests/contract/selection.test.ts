import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { OpSummary, Preview } from '../../src/protocol/requests.ts'
import { markerTexts } from '../../src/surface/marker.ts'
import { aWorld, edits, writes, type Chat, type World } from '../support/in-process-host.ts'

/** Paths that the operating system refuses to write, with the errno. */
const blocked = vi.hoisted(() => new Map<string, string>())

vi.mock(import('../../host/restore/file-system.ts'), async (load) => {
  const real = await load()
  const check = (path: string): void => {
    const code = blocked.get(path)
    if (code !== undefined) throw Object.assign(new Error(`${code}: injected, ${path}`), { code })
  }
  return {
    ...real,
    nodeFileSystem: {
      ...real.nodeFileSystem,
      rename: async (from, to) => { check(to); await real.nodeFileSystem.rename(from, to) },
      unlink: async (path) => { check(path); await real.nodeFileSystem.unlink(path) },
    },
  }
})

afterEach(() => { blocked.clear() })

const opened = async (world: World, options = {}): Promise<Chat> => (await world.start(options)).open()
const ask = (chat: Chat, endpoint: string, more: object = {}) => chat.host.ask(endpoint, { sessionId: chat.id, ...more })
const previewOf = async (chat: Chat, turn: number, scope = 'both'): Promise<Preview> => (await ask(chat, 'preview', { turn, scope })).value
const opsOf = async (chat: Chat): Promise<readonly OpSummary[]> => (await ask(chat, 'timeline')).value.ops

/** Turn 1 changes `a.txt`, `b.txt` and makes `new/c d.txt`; turn 2 changes `a.txt` again. */
async function twoTurns(options = {}): Promise<{ world: World; chat: Chat }> {
  const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
  const chat = await opened(world, options)
  await chat.turn('first', ...edits('a.txt', '1', '2'), ...edits('b.txt', '1', '2'), writes('new/c d.txt', 'c'))
  await chat.turn('second', ...edits('a.txt', '2', '3'))
  return { world, chat }
}

describe('a typed rollback of some files', () => {
  it('field 65: takes the named files back and leaves the others with their records', async () => {
    const { world, chat } = await twoTurns()

    const { kind, text } = await chat.command('/rollback 1 files --only a.txt "new/c d.txt"')

    expect({ kind, text }).toEqual({ kind: 'success', text: [
      'Put the files back to before turn 1. The conversation stays as it is.', 'Put back: a.txt', 'Deleted: new/c d.txt', 'Empty folders removed: new',
      '1 other file of these turns was not selected and stays as it is.', 'To put the files back as they were before this: /rollback undo',
    ].join('\n') })
    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': '2' })
    expect((await previewOf(chat, 1, 'files')).rows.map(row => [row.shown, row.action])).toEqual([['b.txt', 'write']])
    expect((await opsOf(chat))[0]).toMatchObject({ scope: 'files', leftOut: 1 })
  })

  it('together with the conversation leaves files that can be put back afterwards', async () => {
    const { world, chat } = await twoTurns()

    const first = await chat.command(`/rollback 1 --only ${join(world.ws, 'a.txt')}`)
    const { kind } = await chat.command('/rollback 1 files')

    expect(first.text).toContain('2 turns left the conversation')
    expect(kind).toBe('success')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it('does not tell the model that all files are back', async () => {
    const { chat } = await twoTurns()

    await chat.command('/rollback 1 --only a.txt')

    expect(chat.surface().at(-1)).toContain(markerTexts['some-files'])
  })

  it('takes a folder for everything in it', async () => {
    const { world, chat } = await twoTurns()

    expect((await chat.command('/rollback 1 files --only new')).kind).toBe('success')
    expect(world.tree()).toEqual({ 'a.txt': '3', 'b.txt': '2' })
  })

  it('one file after the other takes the folder along that was made for the first', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', writes('new/a.txt', 'a'), writes('new/b.txt', 'b'))

    await chat.command('/rollback 1 files --only new/a.txt')
    expect(world.tree()).toEqual({ 'new': 'folder', 'new/b.txt': 'b' })
    await chat.command('/rollback 1 files --only new/b.txt')

    expect(world.tree()).toEqual({})
  })

  it('is refused for a name that is none of its files, and says which there are', async () => {
    const { world, chat } = await twoTurns()
    const tree = world.tree()

    const { kind, text } = await chat.command('/rollback 1 --only a.txt --only c.txt ../x')

    expect({ kind, text }).toEqual({ kind: 'error', text: `This rollback would not touch c.txt, ${join(world.ws, '../x')}, so nothing was done. Files it would touch: a.txt, b.txt, new/c d.txt Choose among these. A path is absolute or relative to the workspace.` })
    expect(world.tree()).toEqual(tree)
    expect(chat.events().some(event => event.type === 'user/message' && event.data.source?.plugin === 'dsh-turnback')).toBe(false)
  })

  it('can be undone, and then be done whole', async () => {
    const { world, chat } = await twoTurns()
    const before = world.tree()
    await chat.command('/rollback 1 files --only a.txt')

    await chat.command('/rollback undo')
    expect(world.tree()).toEqual(before)
    await chat.command('/rollback 1 files')

    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it('goes back with one file step by step, to any turn', async () => {
    const { world, chat } = await twoTurns()

    await chat.command('/rollback 2 files --only a.txt')
    expect(world.read('a.txt')).toBe('2')
    await chat.command('/rollback 1 files --only a.txt')
    expect(world.read('a.txt')).toBe('1')

    expect(world.read('b.txt')).toBe('2')
  })
})

describe('one half of a rollback', () => {
  it('field 62: the conversation alone leaves every file as it is', async () => {
    const { world, chat } = await twoTurns()
    const tree = world.tree()

    const { kind, text } = await chat.command('/rollback 1 conversation')

    expect(kind).toBe('success')
    expect(text).toContain('2 turns left the conversation.\nThe files stay as they are.')
    expect(world.tree()).toEqual(tree)
    expect(chat.surface().join('\n')).not.toContain('first')
  })

  it('the files that a rollback of the conversation left can go back later', async () => {
    const { world, chat } = await twoTurns()
    await chat.command('/rollback 1 conversation')

    expect((await chat.command('/rollback 1 files')).kind).toBe('success')

    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it('the files alone leave the conversation as it is', async () => {
    const { world, chat } = await twoTurns()
    const surface = chat.surface()

    expect((await chat.command('/rollback 2 files')).kind).toBe('success')

    expect(world.read('a.txt')).toBe('2')
    expect(chat.surface()).toEqual(surface)
  })

  it('field 47: files can go back to before a turn that is part of a summary, though the conversation cannot', async () => {
    const { world, chat } = await twoTurns()
    await chat.turn('third', 'three')
    chat.host.model.script.push('the summary')
    await chat.command('/compact')

    expect((await chat.command('/rollback 2')).text).toContain('/rollback 2 files')
    expect(world.read('a.txt')).toBe('3')
    expect((await chat.command('/rollback 2 files')).kind).toBe('success')

    expect(world.read('a.txt')).toBe('2')
  })

  it('a compaction afterwards does not keep the rest of the files from going back', async () => {
    const { world, chat } = await twoTurns()
    await chat.command('/rollback 2 --only a.txt')
    await chat.turn('third', writes('c.txt', 'c'))
    chat.host.model.script.push('the summary')
    expect((await chat.command('/compact')).kind).toBe('success')

    expect((await chat.command('/rollback 1 files')).kind).toBe('success')

    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it.each([['files', 'files only: the conversation would stay as it is', 'Would be put back: a.txt'], ['conversation', '1 turn would leave the conversation', 'The files would stay as they are']])(
    'a preview of the %s says so', async (scope, title, files) => {
      const { chat } = await twoTurns()

      const { text } = await chat.command(`/rollback preview 2 ${scope}`)

      expect(text).toContain(title)
      expect(text).toContain(files)
      expect(text).toContain(`Run /rollback 2 ${scope} to do it`)
    })
})

describe('a planned rollback of some files', () => {
  const plan = async (chat: Chat, turn: number, more: object) => {
    const { token } = await previewOf(chat, turn)
    return ask(chat, 'plan', { turn, token, ...more })
  }

  it('is carried out for the selected paths, with the token of the whole', async () => {
    const { world, chat } = await twoTurns()

    const { value } = await plan(chat, 1, { only: [join(world.ws, 'b.txt')] })
    await chat.command(`/rollback --plan ${value.planId}`)

    expect(world.tree()).toEqual({ 'a.txt': '3', 'b.txt': '1', 'new': 'folder', 'new/c d.txt': 'c' })
    expect((await ask(chat, 'outcome', { planId: value.planId })).value.op).toMatchObject({ leftOut: 2, outcomes: [{ path: join(world.ws, 'b.txt'), result: 'restored' }] })
  })

  it('is refused at once for a path that is no row', async () => {
    const { world, chat } = await twoTurns()

    const { failure } = await plan(chat, 1, { only: [join(world.ws, 'new')] })

    expect(failure).toMatchObject({ code: 'unknown-selection', facts: { names: 'new', there: 'a.txt, b.txt, new/c d.txt' } })
  })

  it('names what is different when the world has moved', async () => {
    const { world, chat } = await twoTurns()
    const { value } = await plan(chat, 1, {})
    world.write('b.txt', 'mine')

    const { kind, text } = await chat.command(`/rollback --plan ${value.planId}`)

    expect(kind).toBe('error')
    expect(text).toContain('Different now from what you confirmed: b.txt\n')
    expect(world.read('a.txt')).toBe('3')
  })
})

describe('a rollback that could not put a file back', () => {
  const lockedFiles = ['locked/b.txt', 'locked/new.txt']

  /** `locked/b.txt` and `locked/new.txt` fail at first. */
  async function failed(): Promise<{ world: World; chat: Chat; before: object; first: { text?: string } }> {
    const world = aWorld({ 'a.txt': '1', 'locked/b.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), ...edits('locked/b.txt', '1', '2'), writes('locked/new.txt', 'n'))
    const before = world.tree()
    for (const name of lockedFiles) blocked.set(join(world.ws, name), 'EACCES')
    const first = await chat.command('/rollback 1')
    return { world, chat, before, first }
  }
  const unlock = () => { blocked.clear() }

  it('field 71: names it, and a retry puts it right once it can be written again', async () => {
    const { world, chat, first } = await failed()
    expect(first.text).toContain('FAILED (EACCES), left as it was: locked/b.txt, locked/new.txt')
    expect(first.text).toContain('/rollback retry')
    expect((await opsOf(chat))[0]!.retryable).toEqual(['locked/b.txt', 'locked/new.txt'].map(name => join(world.ws, name)))
    unlock()

    const { kind, text } = await chat.command('/rollback retry')

    expect({ kind, text }).toMatchObject({ kind: 'success', text: expect.stringContaining('Put back: locked/b.txt\nDeleted: locked/new.txt') })
    expect(world.tree()).toEqual({ 'a.txt': '1', 'locked': 'folder', 'locked/b.txt': '1' })
    const [retry, rollback] = await opsOf(chat)
    expect(retry).toMatchObject({ act: 'retry', of: rollback!.op, target: { number: 1 } })
    expect(rollback!.outcomes.map(({ result }) => result)).toEqual(['restored', 'restored', 'restored'])
    expect(rollback).not.toHaveProperty('retryable')
    expect((await previewOf(chat, 1, 'files')).rows).toEqual([])
    expect((await chat.command('/rollback retry')).text).toContain('No file of a rollback is left')
  })

  it('fails again while it is locked, and can be tried once more', async () => {
    const { world, chat } = await failed()

    expect((await chat.command('/rollback retry')).text).toContain('FAILED (EACCES)')
    unlock()
    await chat.command('/rollback retry')

    expect(world.tree()).toEqual({ 'a.txt': '1', 'locked': 'folder', 'locked/b.txt': '1' })
  })

  it('is undone as one with its retry', async () => {
    const { world, chat, before } = await failed()
    unlock()
    await chat.command('/rollback retry')

    await chat.command('/rollback undo')

    expect(world.tree()).toEqual(before)
    expect((await opsOf(chat)).filter(op => op.act !== 'undo').map(op => op.undone)).toEqual([true, true])
    expect((await chat.command('/rollback retry')).kind).toBe('error')
  })

  it('reinstates what it knew of the files when both are undone', async () => {
    const { world, chat } = await failed()
    unlock()
    await chat.command('/rollback retry')
    await chat.command('/rollback undo')

    await chat.command('/rollback 1 files')

    expect(world.tree()).toEqual({ 'a.txt': '1', 'locked': 'folder', 'locked/b.txt': '1' })
  })

  it('keeps a file that somebody changed before the retry', async () => {
    const { world, chat } = await failed()
    unlock()
    world.write('locked/b.txt', 'mine')

    const { text } = await chat.command('/rollback retry')

    expect(text).toContain('Kept, changed since: locked/b.txt')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'locked': 'folder', 'locked/b.txt': 'mine' })
  })

  it('is tried again by a plan, after the next start of the host, too', async () => {
    const { world, chat } = await failed()
    await chat.host.stop()
    unlock()
    const again = await (await world.start()).open()

    const { value } = await ask(again, 'retry')
    expect(value.rows.map((row: { shown: string; action: string }) => [row.shown, row.action])).toEqual([['locked/b.txt', 'write'], ['locked/new.txt', 'delete']])
    expect((await again.command(`/rollback --plan ${value.planId}`)).kind).toBe('success')

    expect(world.tree()).toEqual({ 'a.txt': '1', 'locked': 'folder', 'locked/b.txt': '1' })
    expect((await ask(again, 'outcome', { planId: value.planId })).value.op).toMatchObject({ act: 'retry', of: value.of })
  })
})

describe('a rollback beside work that goes on', () => {
  const job = { tools: [['bash', { command: 'sleep 60', description: 'Wait for a minute', run_in_background: true }]] } as const

  it('is previewed with its name, refused, and carried out when it may go on', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), job as never)

    const preview = await previewOf(chat, 1)
    const refused = await ask(chat, 'plan', { turn: 1, token: preview.token })
    const planned = await ask(chat, 'plan', { turn: 1, token: preview.token, running: 'continue' })
    const typed = await chat.command('/rollback 1')
    const { kind, text } = await chat.command(`/rollback --plan ${planned.value.planId}`)

    expect(preview.running).toEqual([{ kind: 'job', label: expect.stringMatching(/sleep 60|Wait for a minute/) }])
    expect(refused.failure.code).toBe('jobs-running')
    expect(typed).toMatchObject({ kind: 'error', text: expect.stringContaining('add --continue') })
    expect({ kind, text }).toMatchObject({ kind: 'success', text: expect.stringContaining('Went on meanwhile') })
    expect(world.read('a.txt')).toBe('1')
  })

  it('goes on by a word as well', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), job as never)

    expect((await chat.command('/rollback 1 --continue')).kind).toBe('success')
    expect((await chat.command('/rollback undo')).kind).toBe('error')
    expect((await chat.command('/rollback undo --continue')).kind).toBe('success')

    expect(world.read('a.txt')).toBe('2')
  })
})

describe('messages that wait', () => {
  async function waiting(): Promise<{ world: World; chat: Chat }> {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    chat.host.model.script.push({ hang: 'thinking' })
    chat.send('second')
    await expect.poll(() => chat.host.model.requests.length).toBe(4)
    chat.send('waiting prompt')
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await expect.poll(() => chat.agent.status).toBe('idle')
    return { world, chat }
  }

  it('are removed by choice, and only those that were there', async () => {
    const { chat } = await waiting()
    const preview = await previewOf(chat, 1)
    const { value } = await ask(chat, 'plan', { turn: 1, token: preview.token, queued: 'drop' })
    chat.agent.inbox.splice('next-turn', Infinity, 0, [{ id: 'later', role: 'user', source: { kind: 'user' }, content: [{ type: 'text', text: 'a later one' }] }])

    const { kind, text } = await chat.command(`/rollback --plan ${value.planId}`)
    await chat.turn('last')

    expect(preview).toMatchObject({ queued: ['waiting prompt'], canDropQueued: true })
    expect(kind).toBe('success')
    expect(text).toContain('1 queued message was removed: waiting prompt')
    expect(text).toContain('1 queued message will still run: a later one')
    const sent = JSON.stringify(chat.host.model.requests.slice(4))
    expect(sent).not.toContain('waiting prompt')
    expect(sent).toContain('a later one')
  })

  it('are removed by a word as well, and stay when the rollback is refused', async () => {
    const { chat } = await waiting()

    expect((await chat.command('/rollback 9 --drop-queued')).kind).toBe('error')
    expect((await previewOf(chat, 1)).queued).toEqual(['waiting prompt'])
    expect((await chat.command('/rollback 1 --drop-queued')).text).toContain('removed: waiting prompt')

    expect(chat.agent.inbox.hasPending).toBe(false)
  })

  it('stay, and the request is refused, where the host cannot remove them', async () => {
    const { world, chat } = await waiting()
    const { inbox } = chat.agent
    Object.defineProperty(chat.agent, 'inbox', { value: { nextTurn: inbox.nextTurn, nextStep: inbox.nextStep }, configurable: true })

    const preview = await previewOf(chat, 1)
    const { kind, text } = await chat.command('/rollback 1 --drop-queued')
    Object.defineProperty(chat.agent, 'inbox', { value: inbox, configurable: true })

    expect(preview.canDropQueued).toBe(false)
    expect({ kind, text }).toMatchObject({ kind: 'error', text: expect.stringContaining('no way to remove queued messages') })
    expect(world.read('a.txt')).toBe('2')
  })
})

describe('a session that may not write files', () => {
  it('is told by the preview, refused the files and allowed the conversation', async () => {
    const { world, chat } = await twoTurns()
    chat.session.append('sandbox/mode', { mode: 'read-only' })
    const tree = world.tree()

    expect((await previewOf(chat, 1)).isReadOnly).toBe(true)
    expect((await chat.command('/rollback 1')).text).toContain('/rollback 1 conversation')
    expect(await chat.command('/rollback 1 files')).toMatchObject({ kind: 'error', text: expect.stringContaining('may not write files') })
    expect((await chat.command('/rollback 1 conversation')).kind).toBe('success')

    expect(world.tree()).toEqual(tree)
    expect(chat.surface().join('\n')).not.toContain('first')
  })
})
