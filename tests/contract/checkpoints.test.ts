import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { aWorld, edits, runs, type Chat, type World } from '../support/in-process-host.ts'

/** What the page is told of past turns: their files, the states on both sides, the lines, whatever became of them since. */

async function aStory(): Promise<{ world: World; chat: Chat }> {
  const world = aWorld({ 'a.txt': '1\n', 'gone.txt': 'was\n' })
  const chat = await (await world.start()).open()
  await chat.turn('one', ...edits(join(world.ws, 'a.txt'), '1', '2'))
  await chat.turn('two', runs('echo 3 > a.txt; rm gone.txt; echo new > b.txt'))
  return { world, chat }
}
const ask = (chat: Chat, endpoint: string, more: object) => chat.host.ask(endpoint, { sessionId: chat.id, ...more })
const rowsOf = async (chat: Chat, more: object) => (await ask(chat, 'checkpoint', more)).value.rows
  .map(({ shown, before, after, origins }: Record<string, { kind: string; bytes?: number } & string[]>) => [shown, before!.kind, after!.kind, origins!.join('+')].join(' '))

describe('the files of past turns', () => {
  it('are those the turn changed, with what it found and what it left', async () => {
    const { chat } = await aStory()

    expect(await rowsOf(chat, { turn: 1 })).toEqual(['a.txt file file tool'])
    expect(await rowsOf(chat, { turn: 2 })).toEqual(['a.txt file file shell', 'b.txt absent file shell', 'gone.txt file absent shell'])
    expect((await ask(chat, 'checkpoint', { turn: 2 })).value.rows[0].commands).toEqual(['echo 3 > a.txt; rm gone.txt; echo new > b.txt'])
  })

  it('stay after a rollback, and the list of turns still counts them', async () => {
    const { world, chat } = await aStory()
    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1\n')

    expect(await rowsOf(chat, { turn: 2 })).toEqual(['a.txt file file shell', 'b.txt absent file shell', 'gone.txt file absent shell'])
    expect(await ask(chat, 'diff', { turn: 2, until: 2, path: join(world.ws, 'a.txt') }))
      .toMatchObject({ value: { content: { kind: 'text', before: '2\n', after: '3\n' } } })
    const { turns } = (await ask(chat, 'timeline', {})).value
    expect(turns.map(({ turn, files, changed }: { turn: number; files: number; changed: object }) => ({ turn, files, changed }))).toEqual([
      { turn: 2, files: 0, changed: { tool: 0, shell: 3 } }, { turn: 1, files: 0, changed: { tool: 1, shell: 0 } },
    ])
  })

  it('of several turns are compared from before the first to after the last', async () => {
    const { world, chat } = await aStory()

    expect(await rowsOf(chat, { turn: 1, until: 2 })).toEqual(['a.txt file file tool+shell', 'b.txt absent file shell', 'gone.txt file absent shell'])
    expect(await ask(chat, 'diff', { turn: 1, until: 2, path: join(world.ws, 'a.txt') }))
      .toMatchObject({ value: { content: { kind: 'text', before: '1\n', after: '3\n' } } })
    expect(await ask(chat, 'counts', { turn: 1, until: 2, paths: [join(world.ws, 'a.txt'), join(world.ws, 'gone.txt')] }))
      .toMatchObject({ value: { counts: [{ added: 1, removed: 1 }, { added: 0, removed: 1 }] } })
  })

  it('until now are compared with the disk, edits of the person included', async () => {
    const { world, chat } = await aStory()
    world.write('a.txt', '1\n')
    world.write('b.txt', 'mine\n')

    expect(await rowsOf(chat, { turn: 1, until: 'now' })).toEqual(['b.txt absent file shell+outside', 'gone.txt file absent shell'])
    expect(await ask(chat, 'diff', { turn: 1, until: 'now', path: join(world.ws, 'b.txt') }))
      .toMatchObject({ value: { content: { kind: 'text', before: '', after: 'mine\n' } } })
  })

  it('are found by words of their paths, and each by its own, also in turns that were rolled back', async () => {
    const { world, chat } = await aStory()
    await chat.command('/rollback 2')
    await chat.turn('three', runs('mkdir -p sub; echo 1 > sub/A.TXT'))
    const { turns } = (await ask(chat, 'timeline', {})).value
    const numbers = async (more: object) => (await ask(chat, 'history', more)).value.turns
      .map((startSeq: number) => turns.find((turn: { startSeq: number }) => turn.startSeq === startSeq).turn).sort()

    expect(await numbers({ words: 'a.txt' })).toEqual([1, 2, 3])
    expect(await numbers({ words: 'TXT sub' })).toEqual([3])
    expect(await numbers({ words: 'workspace' })).toEqual([])
    expect(await numbers({ path: join(world.ws, 'a.txt') })).toEqual([1, 2])
    expect(await numbers({})).toEqual([1, 2, 3])
  })

  it('an unknown turn, and a path that no turn of the stretch touched, are refused', async () => {
    const { world, chat } = await aStory()

    expect(await ask(chat, 'checkpoint', { turn: 7 })).toMatchObject({ failure: { code: 'unknown-turn', facts: { turn: 7, last: 2 } } })
    expect(await ask(chat, 'checkpoint', { turn: 1, until: 9 })).toMatchObject({ failure: { code: 'unknown-turn', facts: { turn: 9 } } })
    expect(await ask(chat, 'diff', { turn: 1, until: 1, path: join(world.ws, 'b.txt') })).toMatchObject({ failure: { code: 'unknown-path' } })
    expect(await ask(chat, 'diff', { turn: 1, until: 1, path: '/etc/passwd' })).toMatchObject({ failure: { code: 'unknown-path' } })
  })
})
