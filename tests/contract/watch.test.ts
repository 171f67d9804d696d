import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, runs, writes, type Chat, type World } from '../support/in-process-host.ts'
import { journalOf, stored } from './support/journal.ts'

/** Paths the watch list took a fingerprint of; its own module asks through this one. */
const asked = vi.hoisted(() => ({ paths: [] as string[] }))

vi.mock(import('../../host/capture/fingerprint.ts'), async (load) => {
  const real = await load()
  return {
    ...real,
    fingerprintOf: (path, ...rest) => {
      asked.paths.push(path)
      return real.fingerprintOf(path, ...rest)
    },
  }
})

beforeEach(() => { asked.paths.length = 0 })

const opened = async (world: World, settings = {}): Promise<Chat> => (await world.start({ settings })).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const outside = async (world: World, chat: Chat) => journalOf(world, chat, 'outside')
const contents = async (world: World, chat: Chat) =>
  Promise.all((await outside(world, chat)).map(async ({ state }) => (state.kind === 'file' ? stored(world, chat, state) : state.kind)))

describe('what a person does to the session’s files between turns', () => {
  it('is never the session’s: the turn after it found it so, and the turn before it is in conflict', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    await chat.turn('second', ...edits('a.txt', '3', '4'))

    expect(await contents(world, chat)).toEqual(['3'])
    expect((await previewOf(chat, 1)).rows).toMatchObject([{ action: 'keep', conflict: 'edited-between' }])
    await chat.command('/rollback 2')
    expect(world.read('a.txt')).toBe('3')
    await chat.command('/rollback 1')
    expect(world.read('a.txt')).toBe('3')
    expect(await contents(world, chat)).toEqual(['3'])
  })

  it('is kept in the store at each prompt, though no call ever looks at it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    await chat.turn('second', 'just talk')
    world.write('a.txt', '5')
    await chat.turn('third', ...edits('a.txt', '5', '6'))

    expect(await contents(world, chat)).toEqual(['3', '5'])
    expect(world.read('a.txt')).toBe('6')
  })

  it('is noted once, at a preview too, and again only when it changes', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    for (let times = 0; times < 3; times++) await previewOf(chat, 1)
    await chat.turn('second', 'talk')
    expect(await contents(world, chat)).toEqual(['3'])

    world.write('a.txt', '2')
    await previewOf(chat, 1)
    await previewOf(chat, 1)

    expect(await contents(world, chat)).toEqual(['3', '2'])
  })

  it('may be a removal, a mode or a file in place of a folder', async () => {
    const world = aWorld({ 'gone.txt': '1', 'mode.txt': '1', 'd/in.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('gone.txt', '1', '2'), ...edits('mode.txt', '1', '2'), ...edits('d/in.txt', '1', '2'))
    world.remove('gone.txt')
    chmodSync(join(world.ws, 'mode.txt'), 0o600)
    world.remove('d')
    world.write('d', 'file')
    await previewOf(chat, 1)

    expect((await outside(world, chat)).map(({ path, state }) => [path.slice(world.ws.length + 1), state.kind === 'file' ? state.mode.toString(8) : state.kind]))
      .toEqual([['gone.txt', 'absent'], ['mode.txt', '600'], ['d/in.txt', 'absent']])
  })

  it('over the size limit is noted and not kept', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, { maxFileBytes: 10 })
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', 'x'.repeat(11))
    await previewOf(chat, 1)
    world.write('a.txt', 'x'.repeat(12))
    await previewOf(chat, 1)

    expect((await outside(world, chat)).map(({ state }) => state)).toEqual([{ kind: 'unknown', reason: 'too-large' }])
  })

  it('is not looked for behind a link that was put in the way', async () => {
    const world = aWorld({ 'd/a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('d/a.txt', '1', '2'))
    const elsewhere = join(world.ws, '..', 'elsewhere')
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'a.txt'), 'secret')
    renameSync(join(world.ws, 'd'), join(world.ws, 'old'))
    symlinkSync(elsewhere, join(world.ws, 'd'))
    await previewOf(chat, 1)
    await previewOf(chat, 1)

    expect((await outside(world, chat)).map(({ state }) => state)).toEqual([{ kind: 'unknown', reason: 'behind-link' }])
  })

  it('to a path that a rollback gave back is no longer watched', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', writes('x.txt', 'x'), ...edits('a.txt', '1', '2'))
    await chat.command('/rollback 1')
    world.write('x.txt', 'u')
    await chat.turn('second', ...edits('a.txt', '1', '7'))
    await previewOf(chat, 2)

    expect(await outside(world, chat)).toEqual([])
    expect((await previewOf(chat, 2)).rows.map(({ shown }) => shown)).toEqual(['a.txt'])
  })

  it('before a restart of the host is seen after it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const first = await world.start()
    await (await first.open()).turn('first', ...edits('a.txt', '1', '2'))
    await first.stop()
    world.write('a.txt', '3')
    const chat = await opened(world)
    await chat.turn('second', 'talk')

    expect(await contents(world, chat)).toEqual(['3'])
  })
})

describe('what others leave in the session’s files', () => {
  it('a program that a command left behind is nobody’s call', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'),
      runs('nohup sh -c "until [ -e go ]; do sleep 0.02; done; echo 9 > a.txt; rm go" >/dev/null 2>&1 &'))
    world.write('go', '')
    await expect.poll(() => world.exists('go'), { timeout: 10_000 }).toBe(false)

    const { rows } = await previewOf(chat, 1)

    expect(rows).toMatchObject([{ shown: 'a.txt', action: 'keep', conflict: 'changed-since', origin: 'tool' }])
    expect(await contents(world, chat)).toEqual(['9\n'])
    expect(await journalOf(world, chat, 'change')).toEqual([])
  })

  it('another session’s write is kept apart from the session’s own', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start()
    const [mine, other] = [await host.open('mine'), await host.open('other')]
    await mine.turn('first', ...edits('a.txt', '1', '2'))
    await other.turn('first', ...edits('a.txt', '2', '3'))
    await mine.turn('second', 'talk')

    expect(await contents(world, mine)).toEqual(['3'])
    expect(await outside(world, other)).toEqual([])
    await other.command('/rollback 1')
    expect(world.read('a.txt')).toBe('2')
    await previewOf(mine, 1)
    expect(await contents(world, mine)).toEqual(['3', '2'])
  })

  it('the changes of a command are the command’s, and not noted beside it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), runs('echo 3 > a.txt'), ...edits('a.txt', '3', '4'))
    await chat.turn('second', runs('rm a.txt'), runs('echo 5 > a.txt'))
    await previewOf(chat, 1)

    expect(await outside(world, chat)).toEqual([])
  })
})

describe('the cost of it', () => {
  it('is no look at the disk for a session that changed nothing', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    for (const prompt of ['one', 'two', 'three']) await chat.turn(prompt, 'talk')
    await previewOf(chat, 1)

    expect(asked.paths).toEqual([])
  })

  it('is a look at each path of the ledger and at nothing else, however large the workspace', async () => {
    const world = aWorld({ 'a.txt': '1' })
    for (let at = 0; at < 300; at++) world.write(`many/${at}.txt`, 'x')
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    asked.paths.length = 0
    await chat.turn('second', 'talk')
    await previewOf(chat, 1)

    expect(new Set(asked.paths)).toEqual(new Set([join(world.ws, 'a.txt')]))
    // At the prompt, at the end of the turn, and at the preview; each once, and twice where it is read as well.
    expect(asked.paths.length).toBeLessThanOrEqual(3 * 3)
  })

  it('is never a turn: a check that fails is told and the turn goes on', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ complains: true })
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    world.write('a.txt', '3')
    const packs = join(world.home, 'data/turnback/v1/packs')
    rmSync(packs, { recursive: true })
    writeFileSync(packs, 'no folder')

    await chat.turn('second', 'talk')

    expect(chat.lastRequest().messages.at(-1)!.content[0].text).toBe('second')
    expect(world.read('a.txt')).toBe('3')
  })
})
