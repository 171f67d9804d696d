import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import type { Preview } from '../../src/protocol/requests.ts'
import { aWorld, edits, runs, type Chat, type World } from '../support/in-process-host.ts'

const asSomebody = ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'init.defaultBranch=main']
const git = (world: World, ...args: string[]): string => execFileSync('git', [...asSomebody, ...args], { cwd: world.ws, encoding: 'utf8' }).trim()
/** A git command of the agent's. */
const runsGit = (line: string) => runs(`git ${asSomebody.join(' ')} ${line}`)
/** Carries out what the preview advises, as a person would paste it. */
const follow = (world: World, advice: string): void => { execFileSync('sh', ['-c', advice], { cwd: world.ws, stdio: 'pipe' }) }
const headOf = (world: World): string[] => [git(world, 'rev-parse', '--abbrev-ref', 'HEAD'), git(world, 'rev-parse', 'HEAD')]

/** On `main`, where `a.txt` is `main`; on `side` it is `side`, and `b.txt` is there. */
function aRepository(): World {
  const world = aWorld({ 'a.txt': 'main' })
  git(world, 'init', '-q')
  git(world, 'add', '-A')
  git(world, 'commit', '-qm', 'start')
  git(world, 'switch', '-qc', 'side')
  world.write('a.txt', 'side')
  world.write('b.txt', 'b')
  git(world, 'add', '-A')
  git(world, 'commit', '-qm', 'side')
  git(world, 'switch', '-q', 'main')
  return world
}

const previewOf = async (chat: Chat, turn = 1): Promise<Preview> => (await chat.host.ask('preview', { sessionId: chat.id, turn })).value
const adviceOf = ({ gitMoves }: Preview): string | undefined => gitMoves.at(-1)?.advice
const opened = async (world: World): Promise<Chat> => (await world.start()).open()

describe('a command that moved HEAD', () => {
  it('to another branch is told with the way back, which brings back the files that are kept', async () => {
    const world = aRepository()
    const [, from] = headOf(world)
    const chat = await opened(world)
    await chat.turn('first', runs('git switch -q side'))

    const preview = await previewOf(chat)
    expect(preview.gitMoves).toEqual([{
      turn: 1, words: 'git switch -q side', from, to: git(world, 'rev-parse', 'side'), fromRef: 'main', toRef: 'side', advice: 'git switch main',
    }])
    expect(preview.rows).toMatchObject([{ shown: 'a.txt', action: 'keep', conflict: 'git-moved' }, { shown: 'b.txt', action: 'keep', conflict: 'git-moved' }])
    await chat.command('/rollback 1')
    expect([headOf(world)[0], world.read('a.txt')]).toEqual(['side', 'side'])

    follow(world, adviceOf(preview)!)

    expect([...headOf(world), world.read('a.txt'), world.read('b.txt')]).toEqual(['main', from, 'main', undefined])
  })

  it('to a commit, and from a commit, is told as detached', async () => {
    const world = aRepository()
    git(world, 'switch', '-q', '--detach', 'main')
    const chat = await opened(world)
    await chat.turn('first', runs('git switch -q side'))
    const preview = await previewOf(chat)
    expect(preview.gitMoves[0]).not.toHaveProperty('fromRef')

    follow(world, adviceOf(preview)!)

    expect([headOf(world)[0], world.read('a.txt')]).toEqual(['HEAD', 'main'])
  })

  it('by a commit: the way back takes no file, and the edit is put back by the rollback', async () => {
    const world = aRepository()
    const [, from] = headOf(world)
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', 'main', 'edited'), runsGit('commit -qam edited'))

    const preview = await previewOf(chat)
    expect(preview.rows).toMatchObject([{ shown: 'a.txt', action: 'write' }])
    await chat.command('/rollback 1')
    expect(world.read('a.txt')).toBe('main')
    follow(world, adviceOf(preview)!)

    expect([...headOf(world), world.read('a.txt'), git(world, 'status', '--porcelain')]).toEqual(['main', from, 'main', ''])
  })

  it('by a merge: the way back brings the files of the move back and no other', async () => {
    const world = aRepository()
    const [, from] = headOf(world)
    world.write('mine.txt', 'mine')
    const chat = await opened(world)
    await chat.turn('first', runs('git merge -q side'))

    const preview = await previewOf(chat)
    expect(preview.rows.map(({ shown, conflict }) => [shown, conflict])).toEqual([['a.txt', 'git-moved'], ['b.txt', 'git-moved']])
    follow(world, adviceOf(preview)!)

    expect([...headOf(world), world.read('a.txt'), world.read('b.txt'), world.read('mine.txt')]).toEqual(['main', from, 'main', undefined, 'mine'])
  })

  it('by the first commit of all: the way back leaves index and files', async () => {
    const world = aWorld({ 'a.txt': '1' })
    git(world, 'init', '-q')
    const chat = await opened(world)
    await chat.turn('first', runsGit('add -A'), runsGit('commit -qm first'))

    follow(world, adviceOf(await previewOf(chat))!)

    expect([git(world, 'status', '--porcelain'), world.read('a.txt')]).toEqual(['A  a.txt', '1'])
  })

  it('several times has one way back for all of it', async () => {
    const world = aRepository()
    const before = headOf(world)
    const chat = await opened(world)
    await chat.turn('first', runsGit('commit -q --allow-empty -m one'))
    await chat.turn('second', runs('git switch -q side'), runsGit('commit -q --allow-empty -m two'))

    const preview = await previewOf(chat)
    expect(preview.gitMoves.map(({ turn, advice }) => [turn, advice === undefined])).toEqual([[1, true], [2, true], [2, false]])
    follow(world, adviceOf(preview)!)

    expect([...headOf(world), world.read('a.txt')]).toEqual([...before, 'main'])
  })

  it('and whose HEAD somebody has moved since, is told without a way back', async () => {
    const world = aRepository()
    const chat = await opened(world)
    await chat.turn('first', runs('git switch -q side'))
    git(world, 'commit', '-q', '--allow-empty', '-m', 'of the user')

    const preview = await previewOf(chat)

    expect(preview.gitMoves).toHaveLength(1)
    expect(adviceOf(preview)).toBeUndefined()
    expect((await chat.command('/rollback preview 1')).text).toContain('Git stays where it is')
  })

  it('in a repository inside the workspace gets no advice that would move the outer one', async () => {
    const world = aRepository()
    git(world, 'init', '-q', 'inner')
    git(world, '-C', 'inner', 'commit', '-q', '--allow-empty', '-m', 'one')
    const chat = await opened(world)
    await chat.turn('first', runsGit('-C inner commit -q --allow-empty -m two'))

    const preview = await previewOf(chat)

    expect(preview.gitMoves).toHaveLength(1)
    expect(adviceOf(preview)).toBeUndefined()
  })

  it('is told in the command’s answers too, and never done by us', async () => {
    const world = aRepository()
    const chat = await opened(world)
    await chat.turn('first', runs('git switch -q side'))
    const [from, to] = [git(world, 'rev-parse', '--short=7', 'main'), git(world, 'rev-parse', '--short=7', 'side')]
    const lines = `git switch -q side moved HEAD from main (${from}) to side (${to}).\nBranches and commits are never rolled back. To take this back in git yourself: git switch main`
    const before = git(world, 'reflog')

    expect((await chat.command('/rollback preview 1')).text).toContain(lines)
    const { text } = await chat.command('/rollback 1')

    expect(text).toContain(lines)
    expect(text).toContain('Kept, changed by git when a command moved HEAD: a.txt, b.txt')
    expect(git(world, 'reflog')).toBe(before)
    const opOf = async () => (await chat.host.ask('timeline', { sessionId: chat.id })).value.ops[0]
    expect((await opOf()).gitMoves).toMatchObject([{ words: 'git switch -q side', advice: 'git switch main' }])
    git(world, 'switch', '-q', 'main')
    expect((await opOf()).gitMoves[0]).not.toHaveProperty('advice')
  })

  it('is no move of the turns after it', async () => {
    const world = aRepository()
    const chat = await opened(world)
    await chat.turn('first', runs('git switch -q side'))
    await chat.turn('second', runs('echo x > x.txt'))

    expect((await previewOf(chat, 2)).gitMoves).toEqual([])
  })
})
