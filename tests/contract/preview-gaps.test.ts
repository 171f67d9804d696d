import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Preview, TurnRow } from '../../src/protocol/requests.ts'
import { sessionId } from '../../src/ids.ts'
import { openStore } from '../../host/store/store.ts'
import { file } from '../support/a-journal.ts'
import { aWorld, edits, reads, runs, writes, type Chat, type World } from '../support/in-process-host.ts'
import type { DiskHooks } from '../support/watched-disk.ts'

const disk = vi.hoisted((): DiskHooks => ({ calls: [], bytesRead: new Map() }))
vi.mock('node:fs/promises', async (load) => {
  const { watchedDisk } = await import('../support/watched-disk.ts')
  return watchedDisk(await load(), disk)
})

const previewOf = async (chat: Chat, turn = 1): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const turnsOf = async (chat: Chat): Promise<TurnRow[]> => (await chat.host.ask('timeline', { sessionId: chat.id })).value.turns
const textOf = async (chat: Chat, line: string): Promise<string> => (await chat.command(line)).text!

/** Adds to a session's journal while no host runs. */
async function note(world: World, entries: readonly JournalEntry[]): Promise<void> {
  const store = openStore({ root: join(world.home, 'data', 'turnback', 'v1') })
  expect(await store.journal(sessionId('s1'), world.ws).append({ entries })).toMatchObject({ ok: true })
  await store.close()
}

/** A session of one turn of words, whose journal then says that the turn changed `paths` from bytes that nobody has. */
async function withoutBytes(paths: readonly string[]): Promise<{ world: World; chat: Chat }> {
  const world = aWorld(Object.fromEntries(paths.map(path => [path, 'now'])))
  const first = await (await world.start()).open()
  await first.turn('only words')
  const startSeq = first.events().find(event => event.type === 'turn/start').seq
  await first.host.stop()
  await note(world, paths.flatMap((path): JournalEntry[] => [
    {
      kind: 'before', id: path, turn: { startSeq, number: 1 }, call: { callId: path, tool: 'write', sessionId: sessionId('s1') }, origin: 'tool',
      path: join(world.ws, path), state: file('gone'), absentFolders: [], atMs: 1,
    },
    { kind: 'after', of: path, state: file('now'), atMs: 1 },
  ]))
  return { world, chat: await (await world.start()).open() }
}

describe('a file whose saved bytes are gone', () => {
  it('is a skip before anybody agrees to the rollback, and one gap', async () => {
    const { world, chat } = await withoutBytes(['a.txt', 'd/b.txt'])

    const { rows, gaps } = await previewOf(chat)
    expect(rows).toMatchObject([{ shown: 'a.txt', action: 'skip', skip: 'object-gone' }, { shown: 'd/b.txt', action: 'skip', skip: 'object-gone' }])
    expect(gaps).toEqual([{ reason: 'object-gone', count: 2, names: ['a.txt', 'd/b.txt'] }])
    const { text } = await chat.command('/rollback 1')

    expect(text).toContain('Not restorable (its saved bytes are gone): a.txt, d/b.txt')
    expect(world.tree()).toMatchObject({ 'a.txt': 'now', 'd/b.txt': 'now' })
  })

  it('that is as it was needs no bytes', async () => {
    const { world, chat } = await withoutBytes(['a.txt'])
    world.write('a.txt', 'gone')

    const { rows, gaps } = await previewOf(chat)

    expect([rows.map(({ action }) => action), gaps]).toEqual([['none'], []])
  })

  it('is told once in the command’s answers', async () => {
    const { chat } = await withoutBytes(['a.txt'])

    for (const line of ['/rollback preview 1', '/rollback 1']) {
      const lines = (await textOf(chat, line)).split('\n').filter(text => text.includes('a.txt'))
      expect(lines).toEqual(['Not restorable (its saved bytes are gone): a.txt'])
    }
  })
})

describe('a file that could not be saved', () => {
  it('is told as a row with its reason, not as a gap as well', async () => {
    const world = aWorld({ 'big.txt': 'x'.repeat(2000), 'a.txt': '1' })
    const chat = await (await world.start({ settings: { maxFileBytes: 1024 } })).open()
    await chat.turn('first', runs('echo more >> big.txt; echo 2 > a.txt'))

    const preview = await previewOf(chat)
    expect(preview.rows).toMatchObject([{ shown: 'a.txt', action: 'write' }, { shown: 'big.txt', action: 'skip', skip: 'too-large' }])
    expect(preview.gaps).toEqual([{ reason: 'too-large', count: 1, names: ['big.txt'] }])

    expect((await textOf(chat, '/rollback preview 1')).match(/big\.txt/g)).toHaveLength(1)
  })
})

describe('the list of turns', () => {
  it('says in short words what of each turn nobody can vouch for', async () => {
    const world = aWorld({ 'big.txt': 'x'.repeat(2000) })
    const chat = await (await world.start({ settings: { maxFileBytes: 1024 } })).open()
    await chat.turn('small', writes('n.txt', 'n'))
    await chat.turn('large', runs('echo more >> big.txt'))

    const [large, small] = await turnsOf(chat)
    expect([large!.gaps, small!.gaps]).toEqual([[{ reason: 'too-large', count: 1, names: [`${world.ws}/big.txt`] }], []])

    const lines = (await textOf(chat, '/rollback list')).split('\n')
    expect(lines[1]).toMatch(/large · 1 file · 1 large file not covered$/)
    expect(lines[2]).toMatch(/small · 1 file$/)
  })
})

describe('what commands did', () => {
  it('is told with the words of the commands during which a file changed, each once', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await (await world.start()).open()
    await chat.turn('first', runs('echo 2 > a.txt'), runs('echo 3 | tee a.txt b.txt'), runs('echo 2 > a.txt'), ...edits('b.txt', '3', '4'))

    const { rows } = await previewOf(chat)

    expect(rows.map(({ shown, origin, commands }) => [shown, origin, commands])).toEqual([
      ['a.txt', 'shell', ['echo 2 > a.txt', 'echo 3 | tee a.txt b.txt']], ['b.txt', 'tool', undefined],
    ])
  })

  it('names a few commands when there were many', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await (await world.start()).open()
    await chat.turn('first', ...Array.from({ length: 6 }, (_, at) => runs(`echo ${at + 1} > a.txt`)))

    expect((await previewOf(chat)).rows[0]!.commands).toEqual(['echo 1 > a.txt', 'echo 2 > a.txt', 'echo 3 > a.txt'])
  })

  it('has one line on what is never looked at, and only where commands ran', async () => {
    const line = 'Files that git ignores, and folders such as node_modules, are not looked at around commands.'
    const world = aWorld({ 'a.txt': '1' })
    const chat = await (await world.start()).open()
    await chat.turn('a command', runs('true'))
    await chat.turn('no command', reads('a.txt'))

    expect([(await previewOf(chat, 1)).hasCommands, (await previewOf(chat, 2)).hasCommands]).toEqual([true, false])
    expect((await textOf(chat, '/rollback preview 1')).split(line)).toHaveLength(2)
    expect(await textOf(chat, '/rollback preview 2')).not.toContain(line)
    expect((await previewOf(chat, 1)).gaps).toEqual([])
  })
})

describe('a state that was found and that no call had left', () => {
  it('marks its row when it was found in these turns', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const first = await (await world.start()).open()
    await first.turn('one', ...edits('a.txt', '1', '2'))
    await first.turn('two')
    await first.host.stop()
    await note(world, [{ kind: 'outside', path: `${world.ws}/a.txt`, state: file('3'), atMs: first.events().find(event => event.type === 'turn/end').time + 1 }])
    world.write('a.txt', '3')
    const chat = await (await world.start()).open()

    expect((await previewOf(chat, 1)).rows).toMatchObject([{ shown: 'a.txt', action: 'keep', conflict: 'changed-since', isOutside: true }])
  })
})

describe('a preview of many files', () => {
  it('looks at each of them a few times, and lists the store once', async () => {
    const world = aWorld()
    const chat = await (await world.start()).open()
    await chat.turn('first', runs('mkdir d; for i in $(seq 2000); do echo $i > d/$i.txt; done'))
    disk.calls = []

    const { rows, gaps } = await previewOf(chat)

    expect([rows.length, rows.every(({ action }) => action === 'delete'), gaps]).toEqual([2000, true, []])
    expect(disk.calls.filter(({ path }) => path.startsWith(world.ws)).length).toBeLessThan(2000 * 15)
    expect(disk.calls.filter(({ fn, path }) => fn === 'readdir' && path.includes('turnback')).length).toBeLessThan(5)
  })
})
