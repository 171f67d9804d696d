import { chmod } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { applyFiles } from '../../../../host/restore/apply.ts'
import type { FileSystem } from '../../../../host/restore/file-system.ts'
import type { Step } from '../../../../host/restore/steps.ts'
import { settleFiles, takeBackFiles } from '../../../../host/restore/take-back.ts'
import { sameState } from '../../../../src/checkpoint/file-state.ts'
import type { OpBeginEntry, OpRow } from '../../../../src/checkpoint/journal-entry.ts'
import { callsOf, Crash, dyingFileSystem, errno, faultyFileSystem, type FsCall } from '../../../support/faulty-fs.ts'
import { absent, anOpWorld, type OpWorld } from './op-world.ts'

/** One op with every kind of row. The disk is laid anew for each place where it is interrupted. */
let w: OpWorld
let begin: OpBeginEntry
let start: Record<string, string>
let goal: Record<string, string>
const quick = { syncs: false }

/** All of `calls` in the long run; else every n-th, so that tests with other offsets share the calls among them. */
function share(calls: readonly FsCall[], n: number, offset: number): readonly FsCall[] {
  return process.env.TURNBACK_LONG ? calls : calls.filter(({ number }) => number % n === offset % n)
}

const names = [
  'edited.txt', 'run.sh', 'link', 'gone/deep/back.txt', 'gone/again.txt', 'made/sub/new.txt', 'new.txt',
  'bare', 'bare/inner', 'was-file', 'was-file/new.txt', 'was-folder', 'was-folder/back.txt', 'in-the-way', 'in-the-way/back.txt', 'linked', 'linked/sub/back.txt',
]
const rows = (): OpRow[] => [
  w.row('new.txt', w.file('new'), absent),
  w.row('made/sub/new.txt', w.file('new'), absent),
  w.row('edited.txt', w.file('agent\r\n'), w.file('mine\r\n')),
  w.row('run.sh', w.file('agent', 0o644), w.file('mine', 0o755)),
  w.row('link', w.link('agent'), w.link('mine')),
  w.row('gone/deep/back.txt', absent, w.file('back', 0o600), ['gone', 'gone/deep']),
  w.row('gone/again.txt', absent, w.file(''), ['gone']),
  w.row('bare/inner', absent, { kind: 'folder', mode: 0o700 }, ['bare']),
  w.row('bare', absent, { kind: 'folder', mode: 0o750 }),
  w.row('was-file', { kind: 'folder', mode: 0o755 }, w.file('mine')),
  w.row('was-file/new.txt', w.file('new'), absent),
  w.row('was-folder/back.txt', absent, w.file('back')),
  w.row('was-folder', w.file('agent'), { kind: 'folder', mode: 0o700 }),
  w.row('in-the-way/back.txt', absent, w.file('back'), ['in-the-way']),
  w.row('in-the-way', w.file('agent'), absent),
  w.row('linked', w.link('nowhere'), absent),
  w.row('linked/sub/back.txt', absent, w.file('back'), ['linked', 'linked/sub']),
]

async function lay(): Promise<void> {
  for (const name of ['gone', 'made', 'bare', 'was-file', 'was-folder', 'in-the-way', 'linked', 'empty']) await w.lay(name, absent)
  for (const { path, was } of begin.rows) if (was.kind !== 'absent') await w.lay(nameOf(path), was)
  await w.lay('empty/inner', { kind: 'folder' })
}
const nameOf = (path: string): string => path.slice(w.root.length + 1)

beforeEach(async () => {
  w = await anOpWorld()
  begin = w.begin(rows(), ['made', 'made/sub', 'empty', 'empty/inner'])
  await w.lay('user.txt', w.file('u'))
  await lay()
  start = await w.snapshot()
  await apply()
  goal = await w.snapshot()
  await lay()
})
afterEach(() => w.clean())

/** Rows one by one, so that the n-th call is always the same one. */
const apply = (fs: FileSystem = faultyFileSystem(quick)) => applyFiles(begin, { ...w.deps, fs, rowsAtATime: 1 })
const applyTogether = (fs: FileSystem) => applyFiles(begin, { ...w.deps, fs })
const takeBack = (fs: FileSystem = faultyFileSystem(quick)) => takeBackFiles(begin, { ...w.deps, fs })

test('the op goes from its start to its goal and back', async () => {
  expect(await w.snapshot()).toEqual(start)
  expect(Object.keys(goal)).toEqual([
    'bare', 'bare/inner', 'edited.txt', 'gone', 'gone/again.txt', 'gone/deep', 'gone/deep/back.txt', 'in-the-way', 'in-the-way/back.txt',
    'link', 'linked', 'linked/sub', 'linked/sub/back.txt', 'run.sh', 'user.txt', 'was-file', 'was-folder', 'was-folder/back.txt',
  ])
  expect(goal).toMatchObject({ bare: 'folder 750', 'bare/inner': 'folder 700', 'was-folder': 'folder 700', 'was-file': 'file 644 mine' })

  const { outcomes, removedFolders } = await applyFiles(begin, w.deps)
  expect(await w.snapshot()).toEqual(goal)
  expect(outcomes.every(({ result, reason }) => result === 'restored' && reason === undefined)).toBe(true)
  expect(removedFolders.map(({ path }) => path)).toEqual(['empty/inner', 'made/sub', 'empty', 'made'].map(w.at))

  const back = await takeBackFiles(begin, { ...w.deps, removedFolders })
  expect(await w.snapshot()).toEqual(start)
  expect(back.map(({ result }) => result)).toEqual(names.map(() => 'restored'))
})

describe('one call fails', () => {
  const codes = ['EACCES', 'ENOSPC', 'EIO', 'EBUSY']
  test.each(codes)('%s at any call of apply: named, the rest done, no third state', async code => {
    const calls = await callsOf(apply, quick)
    const folderPhase = calls.find(({ fn }) => fn === 'rmdir')!.number - 3
    expect(calls.length).toBeGreaterThan(100)

    for (const { number, fn, path } of share(calls, codes.length, codes.indexOf(code))) {
      const at = `${code} at call ${number}: ${fn} ${path}`
      await lay()
      const before = ({ number: now }: FsCall) => { if (now === number) throw errno(code) }

      const { outcomes } = await apply(faultyFileSystem({ ...quick, before }))

      const failures = outcomes.filter(({ result }) => result === 'failed')
      // Where a folder is missing or still there, what depends on it fails too.
      const failed = failures.filter(({ path: one, reason }) => reason !== 'is-folder' && !failures.some(other => one.startsWith(`${other.path}/`)))
      expect(failed.length, at).toBeLessThanOrEqual(1)
      expect(failed.every(({ reason }) => [code, 'unreadable', 'verify'].includes(reason ?? '')), at).toBe(true)
      if (number < folderPhase) expect(outcomes.some(({ reason }) => reason !== undefined), at).toBe(true)
      for (const row of begin.rows) {
        const state = await w.stateOf(nameOf(row.path))
        const outcome = outcomes.find(one => one.path === row.path)
        const isMade = state.kind === 'folder' && begin.rows.some(other => other.absentFolders.includes(row.path))
        if (sameState(state, row.goal) || isMade) continue
        expect(sameState(state, row.was), `${at}, ${row.path} is ${JSON.stringify(state)}`).toBe(true)
        expect(outcome?.result, at).toBe('failed')
      }
      const named = outcomes.map(one => one.path)
      const temps = Object.keys(await w.snapshot()).filter(name => name.includes('.turnback-'))
      expect(temps.filter(temp => !named.includes(w.at(temp))), at).toEqual([])

      await apply()
      expect(await w.snapshot(), at).toEqual(goal)
    }
  }, 60_000)

  test.each(codes)('%s at any call while rows go several at a time: no third state, and the next try ends it', async code => {
    const calls = await callsOf(apply, quick)
    for (const { number } of share(calls, 2 * codes.length, codes.indexOf(code))) {
      await lay()
      const before = ({ number: now }: FsCall) => { if (now === number) throw errno(code) }

      const { outcomes } = await applyTogether(faultyFileSystem({ ...quick, before }))

      for (const row of begin.rows) {
        const state = await w.stateOf(nameOf(row.path))
        const isMade = state.kind === 'folder' && begin.rows.some(other => other.absentFolders.includes(row.path))
        if (sameState(state, row.goal) || isMade) continue
        expect(sameState(state, row.was), `${code} at call ${number}, ${row.path} is ${JSON.stringify(state)}`).toBe(true)
        expect(outcomes.find(one => one.path === row.path)?.result).toBe('failed')
      }
      await applyTogether(faultyFileSystem(quick))
      expect(await w.snapshot(), `call ${number}`).toEqual(goal)
    }
  }, 60_000)

  test('what fails can be taken back as well', async () => {
    for (const { number } of share(await callsOf(apply, quick), 6, 0)) {
      await lay()
      const before = ({ number: now }: FsCall) => { if (now === number) throw errno('EIO') }
      await apply(faultyFileSystem({ ...quick, before }))

      await takeBack()

      expect(await w.snapshot(), `call ${number}`).toEqual(start)
    }
  }, 60_000)

  test('a call that fails for good takes only its own row down', async () => {
    const before = ({ path }: FsCall) => { if (path.startsWith(w.at('run.sh'))) throw errno('EACCES') }

    const { outcomes } = await apply(faultyFileSystem({ before }))

    expect(outcomes.filter(({ result }) => result === 'failed'))
      .toEqual([{ path: w.at('run.sh'), action: 'write', result: 'failed', reason: 'unreadable' }])
    expect(await w.snapshot()).toEqual({ ...goal, 'run.sh': start['run.sh'] })
  })

  test('an error after the change is told with the path restored', async () => {
    const calls = await callsOf(apply)
    const rename = calls.findLast(({ fn, path }) => fn === 'rename' && path === w.at('link'))!
    const sync = calls.find(({ number, fn, path }) => number > rename.number && fn === 'file.sync' && path === w.root)!
    await lay()
    const before = ({ number }: FsCall) => { if (number === sync.number) throw errno('EIO') }

    const { outcomes } = await apply(faultyFileSystem({ before }))

    // Their names are in the folder that could not be synced.
    expect(outcomes.filter(({ reason }) => reason !== undefined))
      .toEqual(['edited.txt', 'run.sh', 'link'].map(name => ({ path: w.at(name), action: 'write', result: 'restored', reason: 'EIO' })))
    expect(await w.snapshot()).toEqual(goal)
  })
})

describe('the process dies', () => {
  const moments = [['before', 1], ['after', 4]] as const

  test('at any step of apply: take back leads to the start', async () => {
    const steps: Step[] = []
    await applyFiles(begin, { ...w.deps, onStep: step => { steps.push(step) } })
    expect(steps.length).toBeGreaterThan(40)

    for (const { number, when, act, path } of steps) {
      await lay()
      const onStep = (now: Step) => { if (now.number === number && now.when === when) throw new Crash('died') }
      await expect(applyFiles(begin, { ...w.deps, onStep })).rejects.toThrow(Crash)

      const outcomes = await takeBack()

      expect(await w.snapshot(), `${when} ${number}: ${act} ${path}`).toEqual(start)
      expect(outcomes.map(({ result }) => result)).toEqual(names.map(() => 'restored'))
    }
  }, 60_000)

  test.each(moments)('%s any call of apply: take back leads to the start', async (when, offset) => {
    for (const { number, fn, path } of share(await callsOf(apply, quick), 6, offset)) {
      await lay()
      await expect(apply(dyingFileSystem(number, when, quick))).rejects.toThrow(Crash)

      await takeBack()

      expect(await w.snapshot(), `${when} ${number}: ${fn} ${path}`).toEqual(start)
    }
  }, 60_000)

  test.each(moments)('%s any call of apply, rows going several at a time: take back leads to the start, and nothing goes on behind it', async (when, offset) => {
    for (const { number, fn, path } of share(await callsOf(apply, quick), 6, offset)) {
      await lay()
      await expect(applyTogether(dyingFileSystem(number, when, quick))).rejects.toThrow(Crash)

      await takeBack()

      expect(await w.snapshot(), `${when} ${number}: ${fn} ${path}`).toEqual(start)
    }
  }, 60_000)

  test.each(moments)('%s any call of apply: the op can also be carried on', async (when, offset) => {
    for (const { number, fn, path } of share(await callsOf(apply, quick), 6, offset)) {
      await lay()
      await expect(apply(dyingFileSystem(number, when, quick))).rejects.toThrow(Crash)

      await apply()

      expect(await w.snapshot(), `${when} ${number}: ${fn} ${path}`).toEqual(goal)
    }
  }, 60_000)

  test.each(moments)('%s any call of take-back: the next one leads to the start', async (when, offset) => {
    await apply()
    for (const { number, fn, path } of share(await callsOf(takeBack, quick), 6, offset)) {
      await lay()
      await apply()
      await expect(takeBack(dyingFileSystem(number, when, quick))).rejects.toThrow(Crash)

      await takeBack()

      expect(await w.snapshot(), `${when} ${number}: ${fn} ${path}`).toEqual(start)
    }
  }, 60_000)
})

describe('take back', () => {
  /** Collects the changes that were really made. */
  const changes = (steps: Step[]) => (step: Step) => { if (step.when === 'after') steps.push(step) }

  test('twice is the same as once, and touches nothing the second time', async () => {
    await apply()

    const once = await takeBack()
    const steps: Step[] = []
    const twice = await takeBackFiles(begin, { ...w.deps, onStep: changes(steps) })

    expect(twice).toEqual(once)
    expect(steps).toEqual([])
    expect(await w.snapshot()).toEqual(start)
  })

  test('of an op that never began to write changes nothing', async () => {
    const steps: Step[] = []

    await takeBackFiles(begin, { ...w.deps, onStep: changes(steps) })

    expect(steps).toEqual([])
    expect(await w.snapshot()).toEqual(start)
  })

  test('keeps and names what somebody changed meanwhile', async () => {
    await apply()
    for (const name of ['edited.txt', 'gone/again.txt', 'new.txt', 'link']) await w.lay(name, w.file('user'))

    const outcomes = await takeBack()

    const kept = outcomes.filter(({ result }) => result !== 'restored')
    expect(kept.map(({ path, result, reason }) => [path, result, reason])).toEqual(
      ['new.txt', 'gone/again.txt', 'link', 'edited.txt'].map(name => [w.at(name), 'kept', 'changed-meanwhile']),
    )
    expect(await w.snapshot()).toEqual({
      ...start, gone: 'folder 755', 'gone/again.txt': 'file 644 user',
      'edited.txt': 'file 644 user', 'new.txt': 'file 644 user', link: 'file 644 user',
    })
  })

  test('makes removed folders again with the mode they had', async () => {
    await chmod(w.at('made/sub'), 0o2775)
    const { removedFolders } = await apply()

    await takeBackFiles(begin, { ...w.deps, removedFolders })

    expect(await w.snapshot()).toEqual({ ...start, 'made/sub': 'folder 2775' })
  })

  test('does not write behind a link that took a folder\'s place', async () => {
    await apply()
    await w.lay('outside/sub', { kind: 'folder' })
    await w.lay('made', w.link('outside'))

    const outcomes = await takeBack()

    expect(outcomes).toContainEqual({ path: w.at('made'), result: 'failed', reason: 'EEXIST' })
    expect(outcomes)
      .toContainEqual({ path: w.at('made/sub/new.txt'), action: 'delete', result: 'failed', reason: 'behind-link' })
    expect(await w.snapshot()).toMatchObject({ made: 'link outside', 'outside/sub': 'folder 755' })
    expect(Object.keys(await w.snapshot())).not.toContain('outside/sub/new.txt')
  })

  test('names a path whose rescue bytes are gone', async () => {
    await apply()

    const outcomes = await takeBackFiles(begin, { ...w.deps, readBlob: async () => undefined })

    expect(outcomes)
      .toContainEqual({ path: w.at('edited.txt'), action: 'write', result: 'failed', reason: 'object-gone' })
    expect((await w.snapshot())['edited.txt']).toBe(goal['edited.txt'])
  })
})

describe('settle', () => {
  test('says what the disk says and only removes leftover temps', async () => {
    const rename = (await callsOf(apply)).find(({ fn, path }) => fn === 'rename' && path === w.at('link'))!
    await lay()
    await expect(apply(dyingFileSystem(rename.number, 'before'))).rejects.toThrow(Crash)
    await w.lay('run.sh', w.file('user'))
    const temps = async () => Object.keys(await w.snapshot()).filter(name => name.includes('.turnback-'))
    expect(await temps()).toHaveLength(1)

    const outcomes = await settleFiles(begin, w.deps)

    expect(Object.fromEntries(outcomes.map(({ path, result, reason }) => [nameOf(path), reason ?? result]))).toEqual({
      ...Object.fromEntries(names.map(name => [name, 'not-applied'])),
      'in-the-way': 'restored',
      linked: 'restored',
      'was-folder': 'restored',
      'edited.txt': 'restored',
      'run.sh': 'changed-meanwhile',
    })
    expect(await temps()).toEqual([])
    const { 'in-the-way': _file, linked: _link, ...rest } = start
    expect(await w.snapshot()).toEqual({ ...rest, 'was-folder': 'folder 700', 'edited.txt': goal['edited.txt'], 'run.sh': 'file 644 user' })
  })

  test('names a path behind a link, one it cannot read, and a temp it cannot remove', async () => {
    await apply()
    await w.lay('elsewhere', { kind: 'folder' })
    await w.lay('gone', w.link('elsewhere'))
    await w.lay('.new.txt.turnback-op00000001', w.file('half'))
    const fs = faultyFileSystem({
      before: ({ fn, path }) => {
        if (fn === 'unlink') throw errno('EPERM')
        if (path === w.at('run.sh')) throw errno('EIO')
      },
    })

    const outcomes = await settleFiles(begin, { ...w.deps, fs })

    const named = outcomes.filter(({ reason }) => reason !== undefined)
    expect(named.map(({ path, reason }) => [nameOf(path), reason])).toEqual([
      ['.new.txt.turnback-op00000001', 'EPERM'],
      ['run.sh', 'unreadable'],
      ['gone/deep/back.txt', 'behind-link'],
      ['gone/again.txt', 'behind-link'],
    ])
  })
})
