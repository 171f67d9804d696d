import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, runs, writes, type Chat, type World } from '../support/in-process-host.ts'

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'init.defaultBranch=main', ...args], { cwd: folder, encoding: 'utf8' })

/** The same workspace as a plain folder and as a git work tree with everything committed. */
const kinds: readonly (readonly [string, (world: World) => void])[] = [
  ['a plain folder', () => {}],
  ['a git work tree', (world) => {
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
  }],
]

const opened = async (world: World): Promise<Chat> => (await world.start()).open()

describe.each(kinds)('commands in %s', (_name, prepare) => {
  it('field 19: a file changed by sed is back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('sed -i s/1/2/ a.txt'))
    expect(world.read('a.txt')).toBe('2')

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
  })

  it('field 20: a file removed by rm is back, with its mode', async () => {
    const world = aWorld({ 'go.mod': 'module x\n'.repeat(37) })
    chmodSync(join(world.ws, 'go.mod'), 0o755)
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm go.mod'))

    await chat.command('/rollback 1')

    expect(world.read('go.mod')).toBe('module x\n'.repeat(37))
    expect(statSync(join(world.ws, 'go.mod')).mode & 0o777).toBe(0o755)
  })

  it('field 21: a file overwritten and a folder removed are back', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/1': 'one', 'd/2': 'two', 'd/3': 'three' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('echo 9 > a.txt; rm -r d'))

    await chat.command('/rollback 1')

    expect(world.tree()).toMatchObject({ 'a.txt': '1', 'd/1': 'one', 'd/2': 'two', 'd/3': 'three' })
  })

  it('field 24: a file removed in an earlier turn stays away', async () => {
    const world = aWorld({ 'd.txt': 'd', 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('rm d.txt'))
    await chat.turn('second', ...edits('a.txt', '1', '2'))

    await chat.command('/rollback 2')

    expect(world.read('a.txt')).toBe('1')
    expect(world.read('d.txt')).toBeUndefined()
  })

  it('field 26: an edited and moved file is back under its old name alone', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'), runs('mv a.txt b.txt'))

    await chat.command('/rollback 1')

    expect(world.read('a.txt')).toBe('1')
    expect(world.read('b.txt')).toBeUndefined()
  })

  it('field 28: a binary file overwritten by a command has its bytes again', async () => {
    const world = aWorld({ 'blob.bin': '' })
    const bytes = Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919) % 256))
    world.write('blob.bin', bytes as never)
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('head -c 100 /dev/zero > blob.bin'))

    await chat.command('/rollback 1')

    expect(readFileSync(join(world.ws, 'blob.bin'))).toEqual(bytes)
  })

  it('files and folders that a command made go, and what the user left between turns is never booked as ours', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('echo 1 > seen.txt'))
    world.write('mine.txt', 'mine')
    await chat.turn('second', runs('mkdir -p made/deep && echo x > made/deep/x.txt && chmod 600 a.txt'))
    const preview = await previewOf(chat, 2)
    expect(preview.rows.map(({ shown, action, origin }) => [shown, action, origin])).toEqual([
      ['a.txt', 'write', 'shell'], ['made/deep/x.txt', 'delete', 'shell'],
    ])
    expect(preview.gaps).toEqual([])

    await chat.command('/rollback 2')

    expect(world.tree()).toMatchObject({ 'a.txt': '1', 'seen.txt': '1\n', 'mine.txt': 'mine' })
    expect(world.read('made/deep/x.txt')).toBeUndefined()
    expect(Object.keys(world.tree()).some(path => path.startsWith('made'))).toBe(false)
    expect(statSync(join(world.ws, 'a.txt')).mode & 0o777).toBe(0o644)
  })

  it('a file that a file tool wrote while nothing else ran has its exact record alone', async () => {
    const world = aWorld({ 'a.txt': '1' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('true'), writes('n.txt', 'n'), runs('true'))

    expect((await previewOf(chat, 1)).rows).toMatchObject([{ shown: 'n.txt', action: 'delete', origin: 'tool' }])
  })

  it('the undo gives back what the command had done', async () => {
    const world = aWorld({ 'a.txt': '1', 'd/1': 'one' })
    prepare(world)
    const chat = await opened(world)
    await chat.turn('first', runs('echo 9 > a.txt; rm -r d; echo n > n.txt'))
    await chat.command('/rollback 1')

    await chat.command('/rollback undo')

    expect(world.tree()).toMatchObject({ 'a.txt': '9\n', 'n.txt': 'n\n' })
    expect(world.read('d/1')).toBeUndefined()
  })
})

describe('commands and git', () => {
  it('field 1: a file that only an ignore rule brings to light is neither listed nor deleted', async () => {
    const world = aWorld({ '.gitignore': 'notes/\n', 'notes/private.txt': 'private' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    const chat = await opened(world)
    await chat.turn('first', runs('echo dist/ > .gitignore'))

    await chat.command('/rollback 1')

    expect(world.tree()).toMatchObject({ '.gitignore': 'notes/\n', 'notes/private.txt': 'private' })
  })

  it('what a switch of branches changed is kept by default and said to be git’s', async () => {
    const world = aWorld({ 'a.txt': 'main' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    git(world.ws, 'checkout', '-qb', 'side')
    world.write('a.txt', 'side')
    git(world.ws, 'commit', '-qam', 'side')
    git(world.ws, 'checkout', '-q', 'main')
    const chat = await opened(world)
    await chat.turn('first', runs('git checkout -q side; echo x > x.txt'))

    expect((await previewOf(chat, 1)).rows).toMatchObject([
      { shown: 'a.txt', action: 'keep', conflict: 'git-moved' }, { shown: 'x.txt', action: 'delete' },
    ])
    await chat.command('/rollback 1')
    expect([world.read('a.txt'), world.read('x.txt')]).toEqual(['side', undefined])
  })

  it('the user’s index and objects are as they were', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    world.write('b.txt', 'staged')
    git(world.ws, 'add', 'b.txt')
    mkdirSync(join(world.ws, 'empty'))
    const index = readFileSync(join(world.ws, '.git/index'))
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 > a.txt'))

    await chat.command('/rollback 1')

    expect(readFileSync(join(world.ws, '.git/index'))).toEqual(index)
    expect(git(world.ws, '--no-optional-locks', 'diff', '--cached', '--name-only')).toBe('b.txt\n')
  })
})

describe('what a look cannot see is said', () => {
  it('a repository that a command made inside the work tree', async () => {
    const world = aWorld({ 'a.txt': '1' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    const chat = await opened(world)
    await chat.turn('first', runs('git init -q sub && echo x > sub/x.txt'))

    expect((await previewOf(chat, 1)).gaps).toMatchObject([{ reason: 'over-budget', count: 1 }])
    await chat.command('/rollback 1')
    expect(world.read('sub/x.txt')).toBe('x\n')
  })

  it('more repositories inside the work tree than are looked at', async () => {
    const world = aWorld({ 'a.txt': '1' })
    git(world.ws, 'init', '-q')
    for (let at = 0; at < 21; at++) {
      mkdirSync(join(world.ws, `r${at}`))
      git(join(world.ws, `r${at}`), 'init', '-q')
    }
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 > a.txt; for d in r*; do echo x > $d/x.txt; done'))

    expect((await previewOf(chat, 1)).gaps).toMatchObject([{ reason: 'over-budget', count: 1 }])
  })

  it('a repository in a repository in the work tree is looked at, and gives no gap', async () => {
    const world = aWorld({ 'a.txt': '1', 'r/b.txt': '1', 'r/s/c.txt': '1' })
    for (const folder of ['', 'r', 'r/s']) git(join(world.ws, folder), 'init', '-q')
    const chat = await opened(world)
    await chat.turn('first', runs('echo 2 | tee a.txt r/b.txt r/s/c.txt'))

    const { gaps, rows } = await previewOf(chat, 1)
    expect(gaps).toEqual([])
    expect(rows.map(({ shown, action }) => [shown, action])).toEqual([['a.txt', 'write'], ['r/b.txt', 'write'], ['r/s/c.txt', 'write']])
  })

  it('a file whose name is no text', async () => {
    const world = aWorld({ 'a.txt': '1' })
    git(world.ws, 'init', '-q')
    git(world.ws, 'add', '-A')
    git(world.ws, 'commit', '-qm', 'start')
    const chat = await opened(world)
    await chat.turn('first', runs("printf x > \"$(printf 'n\\377')\""))

    expect((await previewOf(chat, 1)).gaps).toMatchObject([{ reason: 'over-budget', count: 1 }])
  })
})

const previewOf = async (chat: Chat, turn: number): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
