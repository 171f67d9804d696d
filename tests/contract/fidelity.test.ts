import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { markerTexts } from '../../src/surface/marker.ts'
import { aWorld, edits, reads, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'
import type { Foreign } from './support/dsh-packages.ts'
import type { Step } from './support/scripted-model.ts'

/** Calls that go well, badly, twice, at once and half: what a path was before the turn is what comes back, to the byte. */

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start(options)).open()
const previewOf = async (chat: Chat, turn: number): Promise<Preview> => {
  const reply = await chat.host.ask('preview', { sessionId: chat.id, turn })
  expect(reply).toMatchObject({ ok: true })
  return reply.value
}
const rowsOf = async (chat: Chat, turn: number) => (await previewOf(chat, turn)).rows.map(({ shown, action }) => `${action} ${shown}`)
const tool = (name: string, args: object): Step => ({ tools: [[name, args]] })
const write = (file_path: string, content: string) => ['write', { file_path, content }] as const
const edit = (file_path: string, old_string: string, new_string: string) => ['edit', { file_path, old_string, new_string }] as const
/** All 256 bytes, then what no text has. */
const binary = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, at) => at)), Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0x0d, 0x0a, 0x0d])])
/** The observation policy would refuse to overwrite what was not read; a host without it does not. */
const unguarded: HostOptions = { before: (ctx: Foreign) => { ctx.on('fs/write-intent', async () => undefined, { prepend: true }) } }

describe('several calls of one turn', () => {
  it('in one step and over many steps on the same paths go back to what the first of them found', async () => {
    const world = aWorld({ 'a.txt': '0', 'b.txt': '0', 'c/d.txt': '0' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', { tools: [['read', { file_path: 'a.txt' }], ['read', { file_path: 'b.txt' }], ['read', { file_path: 'c/d.txt' }]] },
      { tools: [edit('a.txt', '0', '1'), edit('b.txt', '0', '1'), edit('a.txt', '1', '2'), write('n.txt', '1')] },
      { tools: [edit('c/d.txt', '0', '1'), edit('a.txt', '2', '3'), write('n.txt', '2'), write('c/n.txt', '1')] })
    expect(world.tree()).toEqual({ 'a.txt': '3', 'b.txt': '1', c: 'folder', 'c/d.txt': '1', 'c/n.txt': '1', 'n.txt': '2' })

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [] })
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it('that end where they began leave nothing to do, and the file keeps its inode and times', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '0', '1'), tool('edit', { file_path: 'a.txt', old_string: '1', new_string: '0' }))
    const { ino, mtimeNs } = statSync(join(world.ws, 'a.txt'), { bigint: true })

    expect(await rowsOf(chat, 1)).toEqual(['none a.txt'])
    await chat.command('/rollback 1')

    const now = statSync(join(world.ws, 'a.txt'), { bigint: true })
    expect([now.ino, now.mtimeNs, world.read('a.txt')]).toEqual([ino, mtimeNs, '0'])
  })

  it('over a binary file: every byte is back, also after a restart', async () => {
    const world = aWorld()
    world.write('b.bin', binary, 0o640)
    const first = await opened(world, unguarded)
    await first.turn('first', writes('b.bin', 'now a text'), writes('b.bin', ''), writes('b.bin', '\u0000'))
    await first.host.stop()
    const chat = await opened(world)

    await chat.command('/rollback 1')

    expect(world.bytes('b.bin').equals(binary)).toBe(true)
    expect(statSync(join(world.ws, 'b.bin')).mode & 0o7777).toBe(0o640)
  })
})

describe('a call that is tried again', () => {
  it('after it was refused for an unread file is one change', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    const chat = await opened(world)
    await chat.turn('first', writes('a.txt', 'new'), reads('a.txt'), writes('a.txt', 'new'))
    expect(world.read('a.txt')).toBe('new')

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ shown: 'a.txt', action: 'write' }] })
    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('old')
  })

  it('after the user changed the file in between goes back to the user’s text', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    let isFirst = true
    const chat = await opened(world, {
      before: (ctx) => {
        // The user saves between the read and the edit, so that the edit is refused and tried again.
        ctx.on('tools/pre-execute', (exec: Foreign, next: () => unknown) => {
          if (exec.name === 'edit' && isFirst) {
            isFirst = false
            world.write('a.txt', 'old, mine')
          }
          return next()
        })
      },
    })
    await chat.turn('first', ...edits('a.txt', 'old', 'new'), ...edits('a.txt', 'old', 'new'))
    expect(world.read('a.txt')).toBe('new, mine')

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('old, mine')
  })

  it('after the model’s request failed in the middle of the turn goes back to the start of the turn', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '0', '1'), { fail: 'no connection' })
    await chat.turn('go on', ...edits('a.txt', '1', '2'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('0')
  })
})

describe('a call whose result says that it failed, although it wrote,', () => {
  const breaks: readonly (readonly [string, (ctx: Foreign) => void])[] = [
    ['because a later stage threw', (ctx) => {
      ctx.on('tools/execute', async (_exec: Foreign, next: () => Promise<unknown>) => {
        await next()
        throw new Error('after the write')
      })
    }],
    ['because a later stage blocked its result', (ctx) => {
      ctx.on('tools/post-execute', (exec: Foreign, _result: unknown, next: () => unknown) =>
        exec.name === 'write' ? { kind: 'block', feedback: 'not like this' } : next())
    }],
    ['because a listener of what was written threw', (ctx) => {
      ctx.on('fs/observed', (_target: unknown, seen: Foreign, exec: Foreign) => {
        if (exec?.name === 'write' && seen.kind === 'present') throw new Error('while it was told')
      })
    }],
  ]
  it.each(breaks)('%s, is taken back like any other', async (_why, breakIt) => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world, { ...unguarded, before: (ctx) => { void unguarded.before!(ctx); breakIt(ctx) } })
    await chat.turn('first', writes('a.txt', '1'), writes('n.txt', 'n'))
    expect(world.tree()).toEqual({ 'a.txt': '1', 'n.txt': 'n' })
    // Otherwise the test shows nothing.
    expect(chat.events().filter(event => event.type === 'tool/result').map(event => JSON.stringify(event.data))).toEqual([
      expect.stringMatching(/isError":true|not like this/), expect.stringMatching(/isError":true|not like this/)])

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ action: 'write' }, { action: 'delete' }] })
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '0' })
  })
})

describe('a turn that the user stops', () => {
  it('while a file tool has just written: the write is taken back, and the call that did not start is no gap', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat: Chat = await opened(world, {
      before: (ctx) => {
        ctx.on('fs/observed', (_target: unknown, seen: Foreign, exec: Foreign) => {
          if (exec?.name === 'edit' && seen.kind === 'present') chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
        })
      },
    })
    chat.host.model.script.push(reads('a.txt'), { tools: [edit('a.txt', '0', '1'), write('never.txt', 'n')] })
    chat.send('first')
    await expect.poll(() => world.read('a.txt')).toBe('1')
    await chat.agent.whenIdle()
    expect(world.exists('never.txt')).toBe(false)

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ shown: 'a.txt', action: 'write' }] })
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '0' })
  })

  it('while a write is held up: whatever it still does is known at the rollback', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world)
    let goOn = (): void => {}
    const held = new Promise<void>((resolve) => { goOn = resolve })
    let isHeld = false
    chat.host.ctx.on('fs/edit-intent', async (_target: unknown, _exec: unknown, next: () => Promise<unknown>) => {
      const answer = await next()
      isHeld = true
      await held
      return answer
    }, { prepend: true })
    chat.host.model.script.push(...edits('a.txt', '0', '1'))
    chat.send('first')
    await expect.poll(() => isHeld).toBe(true)
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    goOn()
    await chat.agent.whenIdle()
    const left = world.read('a.txt')

    const rows = await rowsOf(chat, 1)
    await chat.command('/rollback 1')

    expect(rows.filter(row => !row.startsWith('none'))).toEqual(left === '0' ? [] : ['write a.txt'])
    expect(world.read('a.txt')).toBe('0')
  })

  it('whose program of the code mode goes on writing has every write back', async () => {
    const world = aWorld({ 'a.txt': '0', 'b.txt': '0' })
    const chat = await opened(world, { tools: 'code' })
    const code = `
      await tools.read({ file_path: 'a.txt' }); await tools.edit({ file_path: 'a.txt', old_string: '0', new_string: '1' })
      await new Promise(done => setTimeout(done, 300))
      await tools.read({ file_path: 'b.txt' }); await tools.edit({ file_path: 'b.txt', old_string: '0', new_string: '1' })`
    chat.host.model.script.push(tool('run_code', { code, description: 'Change files' }))
    chat.send('first')
    await expect.poll(() => world.read('a.txt')).toBe('1')
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '0', 'b.txt': '0' })
  })
})

describe('a program of the code mode', () => {
  const program = (code: string): Step => tool('run_code', { code, description: 'Change files' })
  const bash = (command: string): string => `await tools.bash(${JSON.stringify({ command, description: 'Run a command' })})`

  it('that runs commands and writes files in turns goes back to the bytes and modes before it', async () => {
    const world = aWorld({ 'a.txt': '0', 'gone.txt': 'g', 'd/x.txt': 'x' })
    world.write('b.bin', binary, 0o750)
    const before = world.tree()
    const chat = await opened(world, { tools: 'code' })
    await chat.turn('first', program(`
      ${bash('rm gone.txt; printf 1 > b.bin; chmod 600 b.bin')}
      await tools.read({ file_path: 'a.txt' }); await tools.edit({ file_path: 'a.txt', old_string: '0', new_string: '1' })
      ${bash('echo 2 >> a.txt; mv d e')}
      await tools.write({ file_path: 'gone.txt', content: 'again' })
      ${bash('rm a.txt')}`))
    expect(world.tree()).toMatchObject({ 'b.bin': '1', 'gone.txt': 'again', 'e/x.txt': 'x' })

    expect((await previewOf(chat, 1)).gaps).toEqual([])
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
    expect(statSync(join(world.ws, 'b.bin')).mode & 0o7777).toBe(0o750)
  })

  it('that fails halfway, and whose inner calls fail, is taken back as far as it came', async () => {
    const world = aWorld({ 'a.txt': '0', 'b.txt': '0' })
    const chat = await opened(world, { tools: 'code' })
    await chat.turn('first', program(`
      ${bash('echo 1 > a.txt; exit 3')}
      await tools.edit({ file_path: 'b.txt', old_string: 'not there', new_string: 'x' }).catch(() => {})
      await tools.write({ file_path: 'n.txt', content: 'n' })
      throw new Error('halfway')
      await tools.write({ file_path: 'never.txt', content: 'n' })`))
    expect(world.tree()).toEqual({ 'a.txt': '1\n', 'b.txt': '0', 'n.txt': 'n' })

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [] })
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '0', 'b.txt': '0' })
  })
})

describe('agents that write one path at the same time', () => {
  /** Holds the edits of one session between our look and the write. */
  function gate(chat: Chat) {
    let open = (): void => {}
    const opens = new Promise<void>((resolve) => { open = resolve })
    const state = { isHeld: false, open }
    chat.host.ctx.on('fs/edit-intent', async (_target: unknown, exec: Foreign, next: () => Promise<unknown>) => {
      const answer = await next()
      if (exec.agent.session.id !== chat.id) return answer
      state.isHeld = true
      await opens
      return answer
    }, { prepend: true })
    return state
  }

  it('of two sessions: the one whose write was refused does not take the other’s change back', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const host = await world.start()
    const [slow, quick] = [await host.open('slow'), await host.open('quick')]
    const held = gate(slow)
    host.model.script.push(...edits('a.txt', '0', 'slow'))
    slow.send('first')
    await expect.poll(() => held.isHeld).toBe(true)
    await quick.turn('first', ...edits('a.txt', '0', 'quick'))
    held.open()
    await slow.agent.whenIdle()
    expect(world.read('a.txt')).toBe('quick')

    await slow.command('/rollback 1')
    expect(world.read('a.txt')).toBe('quick')
    await quick.command('/rollback 1')
    expect(world.read('a.txt')).toBe('0')
  })

  it('of one program, all at once: the path is as it was before the first of them', async () => {
    const world = aWorld({ 'a.txt': '0'.repeat(10) })
    const chat = await opened(world, { tools: 'code' })
    const code = `
      await tools.read({ file_path: 'a.txt' })
      await Promise.allSettled(Array.from({ length: 10 }, (_, at) => tools.write({ file_path: 'a.txt', content: 'text ' + at })))
      await Promise.allSettled(Array.from({ length: 10 }, (_, at) => tools.write({ file_path: 'n/' + at % 3 + '.txt', content: 'n' + at })))`
    await chat.turn('first', tool('run_code', { code, description: 'Race' }))
    expect(world.read('a.txt')).toMatch(/^text \d$/)
    expect(world.exists('n/2.txt')).toBe(true)

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [] })
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': '0'.repeat(10) })
  })

  it('of two subagents of one turn: the turn takes back what both did', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world, { tools: 'both' })
    const call = `tools.subagent({ description: 'd', prompt: 'p' })`
    chat.host.model.script.push(tool('run_code', { code: `await Promise.allSettled([${call}, ${call}])`, description: 'Two' }),
      // Whoever asks next gets the next step; both read before either writes.
      reads('a.txt'), reads('a.txt'), { tools: [edit('a.txt', '0', '1'), write('x.txt', 'x')] }, { tools: [edit('a.txt', '0', '2'), write('y.txt', 'y')] })
    chat.send('first')
    await chat.agent.whenIdle()
    expect(Object.keys(world.tree())).toEqual(['a.txt', 'x.txt', 'y.txt'])
    expect(world.read('a.txt')).not.toBe('0')

    const { rows, gaps } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect({ gaps, actions: rows.map(row => row.action) }).toEqual({ gaps: [], actions: ['write', 'delete', 'delete'] })
    expect(world.tree()).toEqual({ 'a.txt': '0' })
  })
})

describe('a file with several names (hard links)', () => {
  it('that a command writes in place has its bytes back under each of them in the workspace', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    linkSync(join(world.ws, 'a.txt'), join(world.ws, 'same.txt'))
    const chat = await opened(world)
    await chat.turn('first', runs('echo new > a.txt'))
    expect(world.tree()).toEqual({ 'a.txt': 'new\n', 'same.txt': 'new\n' })

    expect(await rowsOf(chat, 1)).toEqual(['write a.txt', 'write same.txt'])
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': 'old', 'same.txt': 'old' })
  })

  it('tells the preview that it has others, and a name that a command adds is all that is listed', async () => {
    const world = aWorld({ 'a.txt': 'old', 'b.txt': 'old' })
    const outside = join(world.home, '..', 'outside.txt')
    linkSync(join(world.ws, 'a.txt'), outside)
    const chat = await opened(world)
    await chat.turn('first', runs('echo new > a.txt'))
    await chat.turn('second', runs('ln b.txt c.txt'))

    const { rows } = await previewOf(chat, 1)
    expect((await chat.command('/rollback preview 1')).text).toContain('Has other names (hard links), which stay as they are: a.txt\n')
    expect((await chat.command('/rollback 1')).text).toContain('Has other names (hard links), which stay as they are: a.txt\n')

    expect(rows.map(({ shown, action, current }) => [shown, action, current.kind === 'file' ? current.links : undefined]))
      .toEqual([['a.txt', 'write', 2], ['c.txt', 'delete', 2]])
    expect(world.tree()).toEqual({ 'a.txt': 'old', 'b.txt': 'old' })
    // Nobody looked there; that there is such a name is what the preview can tell.
    expect(readFileSync(outside, 'utf8')).toBe('new\n')
  })

  it('of which a command removes one has that one back, and the others are not touched', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    linkSync(join(world.ws, 'a.txt'), join(world.ws, 'same.txt'))
    const { ino } = statSync(join(world.ws, 'same.txt'))
    const chat = await opened(world)
    await chat.turn('first', runs('rm a.txt'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': 'old', 'same.txt': 'old' })
    expect(statSync(join(world.ws, 'same.txt')).ino).toBe(ino)
  })

  it('that a file tool wrote and somebody then gave a second name: putting it back leaves that name with the agent’s bytes', async () => {
    const world = aWorld({ 'a.txt': 'old' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', 'old', 'new'))
    linkSync(join(world.ws, 'a.txt'), join(world.ws, 'mine.txt'))

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ 'a.txt': 'old', 'mine.txt': 'new' })
  })
})

describe('names that only a command can make', () => {
  it.each([
    ['255 bytes', 'n'.repeat(255)],
    ['255 bytes, most of them in characters of three', `${'漢'.repeat(84)}abc`],
    ['characters of four bytes where a shortened name is cut', `a${'😀'.repeat(60)}`],
  ])('of %s: one that was there is back, one that was made is gone', async (_what, name) => {
    const world = aWorld({ [`old/${name}`]: 'o' })
    mkdirSync(join(world.ws, 'new'))
    const chat = await opened(world)
    await chat.turn('first', runs('for f in old/*; do cp "$f" new/; echo changed > "$f"; done'))
    expect(world.read(`new/${name}`)).toBe('o')
    await chat.turn('second', runs('rm old/*'))

    await chat.command('/rollback 2')
    expect(world.read(`old/${name}`)).toBe('changed\n')
    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ old: 'folder', [`old/${name}`]: 'o', new: 'folder' })
  })
})

describe('names and places that change between capture and rollback', () => {
  it('a rename by a command to the same letters in another case is taken back', async () => {
    const world = aWorld({ 'readme.md': 'r', 'src/Main.ts': 'm' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', runs('mv readme.md README.md && mv src/Main.ts src/main.ts'), ...edits('README.md', 'r', 'R'))
    expect(Object.keys(world.tree())).toEqual(['README.md', 'src', 'src/main.ts'])

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual(before)
  })

  it.each([['one that is there', true], ['one that is gone', false]])('a parent folder that became a link to %s: nothing is written behind it', async (_what, isThere) => {
    const world = aWorld({ 'd/e/a.txt': '0', 'b.txt': '0' })
    const elsewhere = join(world.home, '..', 'elsewhere')
    mkdirSync(join(elsewhere, 'e'), { recursive: true })
    writeFileSync(join(elsewhere, 'e/a.txt'), '1')
    const chat = await opened(world)
    await chat.turn('first', ...edits('d/e/a.txt', '0', '1'), writes('d/e/n.txt', 'n'), ...edits('b.txt', '0', '1'))
    renameSync(join(world.ws, 'd'), join(world.home, '..', 'moved'))
    symlinkSync(isThere ? elsewhere : join(elsewhere, 'nowhere'), join(world.ws, 'd'))

    const rows = await rowsOf(chat, 1)
    const { text } = await chat.command('/rollback 1')

    expect(rows).toEqual(['write b.txt', 'skip d/e/a.txt', 'skip d/e/n.txt'])
    expect(text).toContain('a link stands in its path')
    expect(world.tree()).toEqual({ 'b.txt': '0', d: `-> ${isThere ? elsewhere : join(elsewhere, 'nowhere')}` })
    expect(execFileSync('find', [elsewhere, '-type', 'f', '-exec', 'cat', '{}', '+'], { encoding: 'utf8' })).toBe('1')
  })

  it('a file that became a folder, and a folder made by the call that became a file, are named and left', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '0', '1'), writes('d/n.txt', 'n'))
    rmSync(join(world.ws, 'a.txt'))
    world.write('a.txt/mine.txt', 'mine')
    rmSync(join(world.ws, 'd'), { recursive: true })
    world.write('d', 'mine')

    const { rows } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(rows.map(row => [row.shown, row.action, row.skip])).toEqual([['a.txt', 'skip', 'is-folder'], ['d/n.txt', 'none', undefined]])
    expect(world.tree()).toEqual({ 'a.txt': 'folder', 'a.txt/mine.txt': 'mine', d: 'mine' })
  })

  it('a file that became a pipe is named, left, and does not hang the rollback', async () => {
    const world = aWorld({ 'a.txt': '0', 'b.txt': '0' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '0', '1'), ...edits('b.txt', '0', '1'))
    rmSync(join(world.ws, 'a.txt'))
    execFileSync('mkfifo', [join(world.ws, 'a.txt')])

    const { text } = await chat.command('/rollback 1')

    expect(text).toContain('Not restorable (not a regular file): a.txt')
    expect(statSync(join(world.ws, 'a.txt')).isFIFO()).toBe(true)
    expect(world.read('b.txt')).toBe('0')
  })

  it('a folder that lets nobody write stays as it was, and the file in it is back', async () => {
    const world = aWorld({ 'd/a.txt': '0' })
    chmodSync(join(world.ws, 'd'), 0o500)
    const chat = await opened(world)
    await chat.turn('first', ...edits('d/a.txt', '0', '1'))
    const written = world.read('d/a.txt')

    await chat.command('/rollback 1')

    expect([written === '0' || written === '1', world.read('d/a.txt'), statSync(join(world.ws, 'd')).mode & 0o777]).toEqual([true, '0', 0o500])
  })
})

describe('a session that may only read', () => {
  it('may take its conversation back where it wrote files before, and they stay as they are', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '0', '1'))
    chat.session.append('sandbox/mode', { mode: 'read-only' })
    const ask = { sessionId: chat.id, turn: 1, scope: 'conversation' }

    expect((await chat.command('/rollback 1')).kind).toBe('error')
    const { token, rows } = (await chat.host.ask('preview', ask)).value
    const { planId } = (await chat.host.ask('plan', { ...ask, token })).value
    const done = await chat.command(`/rollback --plan ${planId}`)

    expect([rows, done.kind, world.read('a.txt')]).toEqual([[], 'success', '1'])
    expect(chat.surface()).toEqual([`user: ${markerTexts['conversation-only']}`])
  })

  it('whose commands cannot write has nothing listed and nothing called uncovered', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world, { sandbox: 'read-only' })
    await chat.turn('first', runs('cat a.txt'), writes('n.txt', 'n'))

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [] })
    expect((await chat.command('/rollback 1')).kind).toBe('success')
  })
})
