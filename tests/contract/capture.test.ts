import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, reads, runs, writes, type Chat, type World } from '../support/in-process-host.ts'
import type { Step } from './support/scripted-model.ts'

const opened = async (world: World, options = {}): Promise<Chat> => (await world.start(options)).open()

async function previewOf(chat: Chat, turn: number): Promise<Preview> {
  const reply = await chat.host.ask('preview', { sessionId: chat.id, turn })
  expect(reply).toMatchObject({ ok: true })
  return reply.value
}

const modeOf = (world: World, path: string): number => statSync(join(world.ws, path)).mode & 0o7777
const tool = (name: string, args: object): Step => ({ tools: [[name, args]] })

describe('files written by the tools of the real host', () => {
  it('are created, changed and recreated, and a rollback brings each back to what it was', async () => {
    const world = aWorld({ 'a.txt': '1', 'gone.txt': 'was here' })
    const before = world.tree()
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), writes('new/deep/n.txt', 'n'))
    world.remove('gone.txt')
    await chat.turn('second', writes('gone.txt', 'other'), ...edits('new/deep/n.txt', 'n', 'm'), ...edits('a.txt', '2', '3'))

    await chat.command('/rollback 2')
    expect(world.tree()).toEqual({ 'a.txt': '2', new: 'folder', 'new/deep': 'folder', 'new/deep/n.txt': 'n' })
    await chat.command('/rollback 1')
    const { 'gone.txt': _removedByHand, ...rest } = before
    expect(world.tree()).toEqual(rest)
  })

  it.each([
    ['CRLF line ends', Buffer.from('one\r\ntwo\r\nthree\r\n'), ['two', 'TWO']],
    ['mixed line ends, which the edit tool makes all alike', Buffer.from('one\r\ntwo\nthree\r\nfour\n'), ['two', 'TWO']],
    ['a byte order mark', Buffer.from('\ufeffone two\n'), ['two', 'TWO']],
    ['no line end at the end', Buffer.from('one two'), ['two', 'TWO']],
    ['names and text that are not ASCII', Buffer.from('函数 一 😀'), ['一', '二']],
  ])('with %s come back byte for byte', async (_what, bytes, [from, to]) => {
    const world = aWorld()
    world.write('f.txt', bytes)
    const chat = await opened(world)
    await chat.turn('first', ...edits('f.txt', from!, to!))
    expect(world.bytes('f.txt')).not.toEqual(bytes)

    await chat.command('/rollback 1')

    expect(world.bytes('f.txt')).toEqual(bytes)
  })

  it('that were binary come back byte for byte when the model overwrote them', async () => {
    const world = aWorld()
    const bytes = Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919) % 256))
    world.write('blob.bin', bytes)
    // The policy lets a write over a file pass that the session has not read only where it was observed.
    const chat = await opened(world, {
      before: (ctx: { on: (event: string, listener: unknown, options: object) => void }) => {
        ctx.on('fs/write-intent', async () => undefined, { prepend: true })
      },
    })
    await chat.turn('first', writes('blob.bin', 'text now'))
    expect(world.read('blob.bin')).toBe('text now')

    await chat.command('/rollback 1')

    expect(world.bytes('blob.bin')).toEqual(bytes)
  })

  it('that were empty are empty files again, not absent', async () => {
    const world = aWorld({ '__init__.py': '' })
    const chat = await opened(world)
    await chat.turn('first', reads('__init__.py'), writes('__init__.py', 'x = 1\n'))
    expect(world.read('__init__.py')).toBe('x = 1\n')

    await chat.command('/rollback 1')

    expect(world.read('__init__.py')).toBe('')
  })

  it('keep the mode they had before', async () => {
    const world = aWorld({ 'run.sh': 'echo 1\n', key: 'secret\n' })
    chmodSync(join(world.ws, 'run.sh'), 0o755)
    chmodSync(join(world.ws, 'key'), 0o600)
    const chat = await opened(world)
    await chat.turn('first', ...edits('run.sh', '1', '2'), ...edits('key', 'secret', 'public'))

    await chat.command('/rollback 1')

    expect([world.read('run.sh'), modeOf(world, 'run.sh')]).toEqual(['echo 1\n', 0o755])
    expect([world.read('key'), modeOf(world, 'key')]).toEqual(['secret\n', 0o600])
  })

  it('whose mode somebody else changed since are kept', async () => {
    const world = aWorld({ 'run.sh': 'echo 1\n' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('run.sh', '1', '2'))
    chmodSync(join(world.ws, 'run.sh'), 0o700)

    const { rows } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(rows).toMatchObject([{ action: 'keep', conflict: 'changed-since', putBackAction: 'write' }])
    expect([world.read('run.sh'), modeOf(world, 'run.sh')]).toEqual(['echo 2\n', 0o700])
  })

  it('come back through str_replace_editor as well', async () => {
    const world = aWorld({ 'a.txt': 'one\ntwo\n' })
    const path = (name: string) => join(world.ws, name)
    const chat = await opened(world)
    await chat.turn('first',
      tool('str_replace_editor', { command: 'view', path: path('a.txt') }),
      tool('str_replace_editor', { command: 'str_replace', path: path('a.txt'), old_str: 'one', new_str: 'ONE' }),
      tool('str_replace_editor', { command: 'insert', path: path('a.txt'), insert_line: 2, new_str: 'three' }),
      tool('str_replace_editor', { command: 'create', path: path('b.txt'), file_text: 'b' }))
    expect(world.read('a.txt')).toContain('ONE')
    expect(world.read('b.txt')).toBe('b')

    const { gaps } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(gaps).toEqual([])
    expect(world.tree()).toEqual({ 'a.txt': 'one\ntwo\n' })
  })

  it('come back when a program of the code mode wrote them', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, { tools: 'code' })
    const code = `
      await tools.read({ file_path: 'a.txt' })
      await tools.edit({ file_path: 'a.txt', old_string: '1', new_string: '2' })
      await tools.write({ file_path: 'b.txt', content: 'b' })`
    await chat.turn('first', tool('run_code', { code, description: 'Change files' }))
    expect(world.tree()).toEqual({ 'a.txt': '2', 'b.txt': 'b' })

    const { gaps } = await previewOf(chat, 1)
    await chat.command('/rollback 1')

    expect(gaps).toEqual([])
    expect(world.tree()).toEqual({ 'a.txt': '1' })
  })

  it('come back when a subagent wrote them, on the turn that started it', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', 'one')
    await chat.turn('second',
      tool('subagent', { description: 'change', prompt: 'change a.txt' }), ...edits('a.txt', '1', '2'), writes('s.txt', 's'), 'child done', 'two')
    expect(world.tree()).toEqual({ 'a.txt': '2', 's.txt': 's' })

    const { gaps } = await previewOf(chat, 2)
    await chat.command('/rollback 2')

    expect(gaps).toEqual([])
    expect(world.tree()).toEqual({ 'a.txt': '1' })
  })

  it('that a link points to are put back in their place, and the link stays', async () => {
    const world = aWorld({ 'real/target.txt': '1' })
    symlinkSync('real/target.txt', join(world.ws, 'link.txt'))
    const chat = await opened(world)
    await chat.turn('first', ...edits('link.txt', '1', '2'))
    expect(world.read('real/target.txt')).toBe('2')

    await chat.command('/rollback 1')

    expect(world.tree()).toEqual({ real: 'folder', 'real/target.txt': '1', 'link.txt': '-> real/target.txt' })
  })

  it('under the DSH home are never copied into the store, and are named as not restorable', async () => {
    const world = aWorld()
    const chat = await opened(world, { sandbox: 'danger-full-access' })
    const path = join(world.home, 'settings.yaml')
    await chat.turn('first', writes(path, 'key: sk-very-secret'))

    const { rows } = await previewOf(chat, 1)

    expect(rows).toMatchObject([{ path, action: 'skip', skip: 'dsh-home' }])
    expect(storeText(world).join('')).toContain(path)
    expect(storeText(world).join('')).not.toContain('sk-very-secret')
  })
})

const storeText = (world: World): readonly string[] => {
  const packs = join(world.home, 'data', 'turnback', 'v1', 'packs')
  return readdirSync(packs).map(name => readFileSync(join(packs, name), 'latin1'))
}

describe('what the preview says is not covered', () => {
  it('is nothing for a turn of reads and file tools', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), reads('a.txt'))

    expect((await previewOf(chat, 1)).gaps).toEqual([])
  })

  it('is nothing for calls that failed or were denied before they wrote', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await opened(world, {
      before: (ctx: { on: (event: string, listener: (exec: { arguments: { file_path?: string } }, next: () => unknown) => unknown) => void }) => {
        ctx.on('tools/pre-execute', (exec, next) => exec.arguments.file_path === 'denied.txt' ? { kind: 'deny', reason: 'not today' } : next())
      },
    })
    await chat.turn('first',
      writes('denied.txt', 'x'),
      tool('edit', { file_path: 'a.txt', old_string: '1', new_string: '2' }),
      reads('b.txt'), tool('edit', { file_path: 'b.txt', old_string: 'no such text', new_string: '2' }),
      tool('write', { file_path: 'nothing.txt' }),
      tool('no_such_tool', {}))

    const { gaps, rows } = await previewOf(chat, 1)

    expect(gaps).toEqual([])
    expect(rows.filter(row => row.action !== 'none')).toEqual([])
    expect(world.tree()).toEqual({ 'a.txt': '1', 'b.txt': '1' })
  })

  it('is nothing for calls that never started because the turn was stopped', async () => {
    const world = aWorld()
    const chat = await opened(world)
    chat.host.model.script.push({ tools: [['bash', { command: 'sleep 30', description: 'Wait' }], ['write', { file_path: 'n.txt', content: 'n' }]] })
    chat.send('first')
    await expect.poll(() => chat.events().some(event => event.type === 'tool/call')).toBe(true)
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()

    const { gaps } = await previewOf(chat, 1)

    expect(gaps).toEqual([])
    expect(world.tree()).toEqual({})
  })

  it('is nothing for commands that were looked at; what they changed is listed as theirs', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', runs('sed -i s/1/2/ a.txt'), runs('echo no file'))

    const { gaps, rows } = await previewOf(chat, 1)

    expect(rows).toMatchObject([{ shown: 'a.txt', action: 'write', origin: 'shell', turns: [1] }])
    expect(gaps).toEqual([])
  })

  it('is each command from before the plugin was installed, by its first words', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false })
    const chat = await host.open()
    await chat.turn('first', runs('sed -i s/1/2/ a.txt'), runs(`echo ${'long '.repeat(40)}`))
    await host.install()
    await chat.turn('second', runs('echo s > second.txt'))

    const { gaps, rows } = await previewOf(chat, 1)
    const { text } = await chat.command('/rollback preview 1')

    expect(rows).toMatchObject([{ shown: 'second.txt', action: 'delete', origin: 'shell' }])
    expect(gaps).toMatchObject([{ reason: 'command', count: 2, names: ['sed -i s/1/2/ a.txt', expect.stringMatching(/^echo long .{60,}…$/)] }])
    expect(text).toContain('sed -i s/1/2/ a.txt')
    expect(text).not.toContain('No file change')
    expect((await previewOf(chat, 2)).gaps).toEqual([])
  })

  it('is nothing for a command of a subagent that was looked at', async () => {
    const world = aWorld()
    const chat = await opened(world)
    await chat.turn('first', tool('subagent', { description: 'run', prompt: 'run' }), runs('touch x'), 'child done', 'one')

    expect(await previewOf(chat, 1)).toMatchObject({ gaps: [], rows: [{ shown: 'x', action: 'delete', origin: 'shell', turns: [1] }] })
  })

  it('is each command in a workspace over the budget, of the session and of a subagent', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1', 'c.txt': '1' })
    const chat = await opened(world, { settings: { maxBracketFiles: 1 } })
    await chat.turn('first', runs('sed -i s/1/2/ a.txt'),
      tool('subagent', { description: 'run', prompt: 'run' }), runs('rm b.txt'), 'child done', 'one')

    const { gaps, rows } = await previewOf(chat, 1)
    const { text } = await chat.command('/rollback 1')

    expect(gaps).toEqual([{ reason: 'over-budget', count: 2, names: ['sed -i s/1/2/ a.txt', 'rm b.txt'] }])
    expect(rows.filter(({ action }) => action !== 'none').every(({ action }) => action === 'skip')).toBe(true)
    expect(text).toContain('2 commands ran in a workspace that could not be looked at whole: sed -i s/1/2/ a.txt, rm b.txt')
    expect(world.tree()).toEqual({ 'a.txt': '2', 'c.txt': '1' })
  })

  it('is every call from before the plugin was installed', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const host = await world.start({ plugin: false })
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    await host.install()
    await chat.turn('second', ...edits('b.txt', '1', '2'))

    expect((await previewOf(chat, 1)).gaps).toEqual([{ reason: 'no-record', count: 1, names: ['a.txt'] }])
    expect((await previewOf(chat, 2)).gaps).toEqual([])
    await chat.command('/rollback 1')
    expect(world.tree()).toEqual({ 'a.txt': '2', 'b.txt': '1' })
  })
})
