import { execFileSync } from 'node:child_process'
import { chmod, lstat, mkdir, readFile, rename, rmdir, symlink, unlink, utimes, writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { applyFiles } from '../../../../host/restore/apply.ts'
import { nodeFileSystem, type FileSystem } from '../../../../host/restore/file-system.ts'
import { unknown, type FileState } from '../../../../src/checkpoint/file-state.ts'
import { errno, faultyFileSystem, type FsCall } from '../../../support/faulty-fs.ts'
import { absent, anOpWorld, type OpWorld } from './op-world.ts'

let w: OpWorld
beforeEach(async () => { w = await anOpWorld() })
afterEach(() => w.clean())

/** Lays `was` down and goes to `goal`. */
async function go(name: string, was: FileState, goal: FileState) {
  await w.lay(name, was)
  const { outcomes } = await applyFiles(w.begin([w.row(name, was, goal)]), w.deps)
  return outcomes.map(({ result, reason }) => reason === undefined ? result : `${result} ${reason}`).join()
}

describe('puts back', () => {
  const goals: [string, Buffer][] = [
    ['CRLF', Buffer.from('a\r\nb\r\n')],
    ['LF and no last line end', Buffer.from('a\nb')],
    ['a byte order mark', Buffer.from('\ufeffa\r\n')],
    ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256))],
    ['no bytes (field 23)', Buffer.alloc(0)],
  ]
  test.each(goals)('field 27, 28: the very bytes: %s', async (_what, bytes) => {
    expect(await go('f', w.file('agent'), w.file(bytes))).toBe('restored')

    expect((await readFile(w.at('f'))).equals(bytes)).toBe(true)
  })

  test.each([0o755, 0o600, 0o444, 0o2755, 0o666])('field 29: content and mode %o', async mode => {
    expect(await go('run.sh', w.file('agent', 0o640), w.file('mine', mode))).toBe('restored')

    expect(await w.stateOf('run.sh')).toEqual(w.file('mine', mode))
  })

  test('field 29: the mode alone', async () => {
    expect(await go('run.sh', w.file('same', 0o644), w.file('same', 0o755))).toBe('restored')

    expect(await w.stateOf('run.sh')).toEqual(w.file('same', 0o755))
  })

  test('a file that only its owner may ever read is never wider open, not even its temp', async () => {
    await w.lay('key', w.file('agent', 0o600))
    const row = w.row('key', w.file('agent', 0o600), w.file('secret', 0o600))
    const modes: number[] = []
    const onStep = async () => {
      const temp = await lstat(row.temp).catch(() => undefined)
      if (temp) modes.push(temp.mode & 0o777)
    }

    await applyFiles(w.begin([row]), { ...w.deps, onStep })

    expect(new Set(modes)).toEqual(new Set([0o600]))
  })

  const kinds: [string, (w: OpWorld) => [FileState, FileState]][] = [
    ['a file where a link is', w => [w.link('elsewhere'), w.file('mine')]],
    ['a link where a file is', w => [w.file('agent'), w.link('../somewhere/文件')]],
    ['another link', w => [w.link('a'), w.link('b')]],
    ['a deleted file', w => [absent, w.file('mine')]],
    ['a deleted link', w => [absent, w.link('nowhere')]],
    ['the absence of a file', w => [w.file('agent'), absent]],
    ['the absence of a link', w => [w.link('nowhere'), absent]],
    ['an empty folder', () => [absent, { kind: 'folder' }]],
    ['the absence of an empty folder', () => [{ kind: 'folder' }, absent]],
    ['a file where an empty folder is', w => [{ kind: 'folder' }, w.file('mine')]],
    ['a link where an empty folder is', w => [{ kind: 'folder' }, w.link('nowhere')]],
    ['an empty folder where a file is', w => [w.file('agent'), { kind: 'folder' }]],
    ['an empty folder where a link is', w => [w.link('elsewhere'), { kind: 'folder' }]],
  ]
  test.each(kinds)('%s', async (_what, states) => {
    const [was, goal] = states(w)

    expect(await go('p', was, goal)).toBe('restored')

    expect(await w.stateOf('p')).toEqual(goal)
  })

  const oddNames = [
    '公共函数.cpp', '日本語 ノート.txt', '🙂 é.md', 'e\u0301.md', ' lead', 'new\nline', '-rf', 'a\\b"\'$*', '.hidden',
  ]
  test.each(oddNames)('field 33: a file named %j', async name => {
    expect(await go(name, w.file('2'), w.file('1'))).toBe('restored')

    expect(await w.snapshot()).toEqual({ [name]: 'file 644 1' })
  })

  test('through short writes', async () => {
    await w.lay('f', w.file('agent'))
    const fs = faultyFileSystem({ chunkBytes: 3 })

    await applyFiles(w.begin([w.row('f', w.file('agent'), w.file('0123456789'))]), { ...w.deps, fs })

    expect(await readFile(w.at('f'), 'utf8')).toBe('0123456789')
  })

  test('a file over today\'s limit that the store has', async () => {
    await w.lay('f', w.file('agent'))

    const begin = w.begin([w.row('f', w.file('agent'), w.file('mine'))])

    const { outcomes } = await applyFiles(begin, { ...w.deps, maxBytes: 1 })

    expect(outcomes).toEqual([{ path: w.at('f'), action: 'write', result: 'restored' }])
  })
})

describe('folders', () => {
  test('field 22: new files go, and the folders made for them; older folders stay', async () => {
    await w.lay('src/n1.txt', w.file('1'))
    await w.lay('lib/deep/n2.txt', w.file('2'))
    const rows = [w.row('src/n1.txt', w.file('1'), absent), w.row('lib/deep/n2.txt', w.file('2'), absent)]

    const { removedFolders } = await applyFiles(w.begin(rows, ['lib', 'lib/deep']), w.deps)

    expect(await w.snapshot()).toEqual({ src: 'folder 755' })
    expect(removedFolders).toEqual([{ path: w.at('lib/deep'), mode: 0o755 }, { path: w.at('lib'), mode: 0o755 }])
  })

  test('a folder that is not empty, is a link or is gone stays as it is', async () => {
    await w.lay('full/user.txt', w.file('u'))
    await mkdir(w.at('real'))
    await symlink('real', w.at('linked'))
    const before = await w.snapshot()

    const done = await applyFiles(w.begin([], ['full', 'linked', 'gone', 'full/user.txt']), w.deps)

    expect(done).toEqual({ outcomes: [], removedFolders: [] })
    expect(await w.snapshot()).toEqual(before)
  })

  test('a folder that cannot be removed is named', async () => {
    await mkdir(w.at('d'))
    const fs = faultyFileSystem({ before: ({ fn }) => { if (fn === 'rmdir') throw errno('EBUSY') } })

    const done = await applyFiles(w.begin([], ['d']), { ...w.deps, fs })

    expect(done).toEqual({ outcomes: [{ path: w.at('d'), result: 'failed', reason: 'EBUSY' }], removedFolders: [] })
  })

  test('files come back into folders that are gone', async () => {
    const rows = [
      w.row('d/e/one', absent, w.file('1'), ['d', 'd/e']),
      w.row('d/e/two', absent, w.file('2'), ['d', 'd/e']),
    ]

    const { outcomes } = await applyFiles(w.begin(rows), w.deps)

    expect(outcomes.map(({ result }) => result)).toEqual(['restored', 'restored'])
    expect(await w.snapshot()).toMatchObject({ 'd/e/one': 'file 644 1', 'd/e/two': 'file 644 2' })
  })

  test('folders made for a file that then failed are gone again', async () => {
    const fs = faultyFileSystem({ before: ({ fn }) => { if (fn === 'rename') throw errno('EACCES') } })

    const begin = w.begin([w.row('d/e/f', absent, w.file('1'), ['d', 'd/e'])])

    const { outcomes } = await applyFiles(begin, { ...w.deps, fs })

    expect(outcomes).toEqual([{ path: w.at('d/e/f'), action: 'recreate', result: 'failed', reason: 'EACCES' }])
    expect(await w.snapshot()).toEqual({})
  })
})

describe('folders as paths of their own', () => {
  const private_: FileState = { kind: 'folder', mode: 0o2770 }

  test('come back with their mode, parents before what is in them', async () => {
    const rows = [
      w.row('d/e/f', absent, w.file('1'), ['d', 'd/e']), w.row('d/e', absent, { kind: 'folder', mode: 0o700 }, ['d']), w.row('d', absent, private_),
    ]

    const { outcomes } = await applyFiles(w.begin(rows), w.deps)

    expect(outcomes.map(({ path, result }) => `${result} ${path.slice(w.root.length + 1)}`)).toEqual(['restored d', 'restored d/e', 'restored d/e/f'])
    expect(await w.snapshot()).toEqual({ d: 'folder 2770', 'd/e': 'folder 700', 'd/e/f': 'file 644 1' })
  })

  test('one that somebody made meanwhile stays as it is', async () => {
    await w.lay('d/user.txt', w.file('u'))

    const { outcomes } = await applyFiles(w.begin([w.row('d', absent, private_)]), w.deps)

    expect(outcomes).toEqual([{ path: w.at('d'), action: 'recreate', result: 'restored' }])
    expect(await w.snapshot()).toEqual({ d: 'folder 755', 'd/user.txt': 'file 644 u' })
  })

  test('a file where the turn made a folder comes back once the folder is empty', async () => {
    await w.lay('p/sub/new.txt', w.file('agent'))
    const rows = [w.row('p', { kind: 'folder' }, w.file('mine')), w.row('p/sub/new.txt', w.file('agent'), absent)]

    await applyFiles(w.begin(rows, ['p/sub']), w.deps)

    expect(await w.snapshot()).toEqual({ p: 'file 644 mine' })
  })

  test.each([['known', { kind: 'folder', mode: 0o750 } as const], ['not known', absent]])('a file that took a folder\'s place makes way for what was in it, mode %s', async (_what, goal) => {
    await w.lay('d', w.file('agent'))
    const rows = [w.row('d/f', absent, w.file('1'), goal.kind === 'absent' ? ['d'] : []), w.row('d', w.file('agent'), goal)]

    const { outcomes } = await applyFiles(w.begin(rows), w.deps)

    expect(outcomes.map(({ result }) => result)).toEqual(['restored', 'restored'])
    expect(await w.snapshot()).toEqual({ d: goal.kind === 'absent' ? 'folder 755' : 'folder 750', 'd/f': 'file 644 1' })
  })

  test('a file the user saves while it is taken out of a folder\'s way stays', async () => {
    await w.lay('p', w.file('agent'))
    const onStep = async ({ act, when }: { act: string; when: string }) => {
      if (act === 'rename' && when === 'before') await writeFile(w.at('p'), 'user')
    }

    const { outcomes } = await applyFiles(w.begin([w.row('p', w.file('agent'), { kind: 'folder' })]), { ...w.deps, onStep })

    expect(outcomes).toEqual([{ path: w.at('p'), action: 'write', result: 'failed', reason: 'changed-meanwhile' }])
    expect(await w.snapshot()).toEqual({ p: 'file 644 user' })
  })
})

describe('leaves alone', () => {
  test('field 32: a file that is as wanted keeps inode and times', async () => {
    await w.lay('f', w.file('mine'))
    await utimes(w.at('f'), 1_000_000, 1_000_000)
    const before = await lstat(w.at('f'), { bigint: true })

    const { outcomes } = await applyFiles(w.begin([w.row('f', w.file('agent'), w.file('mine'))]), w.deps)

    const after = await lstat(w.at('f'), { bigint: true })
    expect(outcomes).toEqual([{ path: w.at('f'), action: 'write', result: 'restored' }])
    expect([after.ino, after.mtimeNs, after.ctimeNs]).toEqual([before.ino, before.mtimeNs, before.ctimeNs])
  })

  test('field 32: the other files of the folder', async () => {
    for (let i = 0; i < 50; i += 1) await w.lay(`f${i}`, w.file(`${i}`))
    const look = async () => Promise.all(
      Array.from({ length: 49 }, async (_, i) => {
        const { ino, mtimeNs, ctimeNs } = await lstat(w.at(`f${i + 1}`), { bigint: true })
        return [ino, mtimeNs, ctimeNs]
      }),
    )
    const before = await look()

    await applyFiles(w.begin([w.row('f0', w.file('0'), w.file('mine'))]), w.deps)

    expect(await look()).toEqual(before)
    expect(Object.keys(await w.snapshot())).toHaveLength(50)
  })

  const changes: [string, () => Promise<void>, string][] = [
    ['edited', () => writeFile(w.at('f'), 'user'), 'changed-meanwhile'],
    ['given another mode', () => chmod(w.at('f'), 0o600), 'changed-meanwhile'],
    ['deleted', () => unlink(w.at('f')), 'changed-meanwhile'],
    ['replaced by a link', async () => { await unlink(w.at('f')); await symlink('x', w.at('f')) }, 'changed-meanwhile'],
    ['replaced by a folder', async () => { await unlink(w.at('f')); await mkdir(w.at('f')) }, 'changed-meanwhile'],
    ['replaced by a pipe', async () => { await unlink(w.at('f')); execFileSync('mkfifo', [w.at('f')]) }, 'special'],
    ['grown over every limit', () => writeFile(w.at('f'), Buffer.alloc(2_000_000)), 'too-large'],
  ]
  test.each(changes)('a path that was %s since the plan', async (_what, change, reason) => {
    await w.lay('f', w.file('agent'))
    await change()
    const before = await w.stateOf('f')

    const { outcomes } = await applyFiles(w.begin([w.row('f', w.file('agent'), w.file('mine'))]), w.deps)

    expect(outcomes).toEqual([{ path: w.at('f'), action: 'write', result: 'failed', reason }])
    expect(await w.stateOf('f')).toEqual(before)
  })

  test('a file the user saves while its new content is being written beside it', async () => {
    await w.lay('f', w.file('agent'))
    const onStep = ({ act, when }: { act: string; when: string }) =>
      act === 'chmod' && when === 'after' ? writeFile(w.at('f'), 'user') : undefined

    const { outcomes } = await applyFiles(w.begin([w.row('f', w.file('agent'), w.file('mine'))]), { ...w.deps, onStep })

    expect(outcomes).toMatchObject([{ result: 'failed', reason: 'changed-meanwhile' }])
    expect(await w.snapshot()).toEqual({ f: 'file 644 user' })
  })

  test('a new file of the user where a deleted one should come back', async () => {
    await w.lay('f', w.file('user'))

    const { outcomes } = await applyFiles(w.begin([w.row('f', absent, w.file('mine'))]), w.deps)

    expect(outcomes).toMatchObject([{ result: 'failed', reason: 'changed-meanwhile' }])
    expect(await w.snapshot()).toEqual({ f: 'file 644 user' })
  })

  test('a folder where a file should be, and what is in it', async () => {
    await w.lay('p/user.txt', w.file('u'))

    const { outcomes } = await applyFiles(w.begin([w.row('p', { kind: 'folder' }, w.file('mine'))]), w.deps)

    expect(outcomes).toEqual([{ path: w.at('p'), action: 'write', result: 'failed', reason: 'is-folder' }])
    expect(await w.snapshot()).toEqual({ p: 'folder 755', 'p/user.txt': 'file 644 u' })
  })

  test('a folder that should go but is not empty', async () => {
    await w.lay('d/user.txt', w.file('u'))
    const { outcomes } = await applyFiles(w.begin([w.row('d', { kind: 'folder' }, absent)]), w.deps)

    expect(outcomes).toMatchObject([{ result: 'failed', reason: 'ENOTEMPTY' }])
    expect(await w.snapshot()).toEqual({ d: 'folder 755', 'd/user.txt': 'file 644 u' })
  })

  test('a path whose stored bytes are missing, wrong, or were never stored', async () => {
    await w.lay('f', w.file('agent'))
    const begin = w.begin([w.row('f', w.file('agent'), w.file('mine'))])
    const missing = await applyFiles(begin, { ...w.deps, readBlob: async () => undefined })
    const wrong = await applyFiles(begin, { ...w.deps, readBlob: async () => Buffer.from('damaged') })
    const never = await applyFiles(w.begin([w.row('f', w.file('agent'), unknown('too-large'))]), w.deps)

    expect([missing, wrong, never].map(({ outcomes }) => outcomes[0]?.reason))
      .toEqual(['object-gone', 'object-gone', 'too-large'])
    expect(await w.snapshot()).toEqual({ f: 'file 644 agent' })
  })
})

describe('links in the way', () => {
  test('field 31: a file replaced by a link: refused and named, the outside file unchanged', async () => {
    await w.lay('outside/x', w.file('outside'))
    await symlink(w.at('outside/x'), w.at('cfg.txt'))

    const { outcomes } = await applyFiles(w.begin([w.row('cfg.txt', w.file('2'), w.file('1'))]), w.deps)

    expect(outcomes)
      .toEqual([{ path: w.at('cfg.txt'), action: 'write', result: 'failed', reason: 'changed-meanwhile' }])
    expect(await w.snapshot()).toMatchObject({
      'cfg.txt': `link ${w.at('outside/x')}`,
      'outside/x': 'file 644 outside',
    })
  })

  test('field 31: even a link to a file that looks just like the agent\'s', async () => {
    await w.lay('outside/x', w.file('2'))
    await symlink(w.at('outside/x'), w.at('cfg.txt'))

    const { outcomes } = await applyFiles(w.begin([w.row('cfg.txt', w.file('2'), w.file('1'))]), w.deps)

    expect(outcomes).toMatchObject([{ result: 'failed', reason: 'changed-meanwhile' }])
    expect(await readFile(w.at('outside/x'), 'utf8')).toBe('2')
  })

  const actions = ['write', 'delete', 'recreate'] as const
  test.each(actions)('field 31: a parent replaced by a link: %s is refused', async action => {
    const was = action === 'recreate' ? absent : w.file('2')
    const goal = action === 'delete' ? absent : w.file('1')
    await w.lay('outside/keep', w.file('k'))
    if (was.kind === 'file') await w.lay('outside/f', was)
    await symlink(w.at('outside'), w.at('d'))
    const before = await w.snapshot()

    const { outcomes } = await applyFiles(w.begin([w.row('d/f', was, goal)], ['d', 'd/sub']), w.deps)

    expect(outcomes).toEqual([{ path: w.at('d/f'), action, result: 'failed', reason: 'behind-link' }])
    expect(await w.snapshot()).toEqual(before)
  })

  test('field 31: a parent replaced by a link while the new content is being written', async () => {
    await w.lay('d/f', w.file('2'))
    await w.lay('outside/f', w.file('2'))
    const onStep = async ({ act, when }: { act: string; when: string }) => {
      if (act !== 'chmod' || when !== 'after') return
      await rename(w.at('d'), w.at('moved'))
      await symlink(w.at('outside'), w.at('d'))
    }

    const { outcomes } = await applyFiles(w.begin([w.row('d/f', w.file('2'), w.file('1'))]), { ...w.deps, onStep })

    expect(outcomes).toMatchObject([{ result: 'failed', reason: 'behind-link' }])
    expect(await w.snapshot()).toMatchObject({ 'outside/f': 'file 644 2', 'moved/f': 'file 644 2' })
  })

  test('field 30: the folder behind a link that became a real folder is not touched', async () => {
    await w.lay('outside/dir/keep.txt', w.file('k'))
    await w.lay('ext/keep.txt', w.file('agent'))

    await applyFiles(w.begin([w.row('ext/keep.txt', w.file('agent'), absent)], ['ext']), w.deps)

    expect(await w.snapshot()).toEqual({
      outside: 'folder 755', 'outside/dir': 'folder 755', 'outside/dir/keep.txt': 'file 644 k',
    })
  })
})

describe('a temp of an earlier try', () => {
  const row = () => w.row('f', w.file('agent'), w.file('mine'))

  test.each(['file', 'link'] as const)('is removed when it is a %s', async kind => {
    await w.lay('f', w.file('agent'))
    await w.lay('victim', w.file('v'))
    await (kind === 'file' ? writeFile(row().temp, 'half') : symlink('victim', row().temp))

    const { outcomes } = await applyFiles(w.begin([row()]), w.deps)

    expect(outcomes).toMatchObject([{ result: 'restored' }])
    expect(await w.snapshot()).toEqual({ f: 'file 644 mine', victim: 'file 644 v' })
  })

  test('is left and the row fails when it is a folder', async () => {
    await w.lay('f', w.file('agent'))
    await mkdir(row().temp)

    const { outcomes } = await applyFiles(w.begin([row()]), w.deps)

    expect(outcomes).toMatchObject([{ result: 'failed', reason: 'EEXIST' }])
    await rmdir(row().temp)
    expect(await w.snapshot()).toEqual({ f: 'file 644 agent' })
  })

  test('that cannot be removed is named', async () => {
    await w.lay('f', w.file('agent'))
    const fs = faultyFileSystem({
      before: ({ fn }) => {
        if (fn === 'rename') throw errno('EBUSY')
        if (fn === 'unlink') throw errno('EPERM')
      },
    })

    const { outcomes } = await applyFiles(w.begin([row()]), { ...w.deps, fs })

    expect(outcomes).toEqual([
      { path: w.at('f'), action: 'write', result: 'failed', reason: 'EBUSY' },
      { path: row().temp, result: 'failed', reason: 'EPERM' },
    ])
  })

  test('a temp in another folder is a bug and is thrown', async () => {
    await w.lay('f', w.file('agent'))

    await expect(applyFiles(w.begin([{ ...row(), temp: w.at('d/temp') }]), w.deps)).rejects.toThrow('no sibling')
  })
})

test('writes first, then recreates, then deletes', async () => {
  await w.lay('new', w.file('n'))
  await w.lay('edited', w.file('agent'))
  const rows = [
    w.row('new', w.file('n'), absent),
    w.row('gone', absent, w.file('g')),
    w.row('edited', w.file('agent'), w.file('mine')),
  ]

  const { outcomes } = await applyFiles(w.begin(rows), w.deps)

  expect(outcomes.map(({ action, result }) => `${action} ${result}`))
    .toEqual(['write restored', 'recreate restored', 'delete restored'])
})

test('tells every change before and after, numbered', async () => {
  await w.lay('f', w.file('agent'))
  const told: string[] = []

  await applyFiles(w.begin([w.row('f', w.file('agent'), w.file('mine'))]), {
    ...w.deps, onStep: ({ number, when, act }) => { told.push(`${number} ${when} ${act}`) },
  })

  expect(told).toEqual([
    '1 before create', '1 after create', '2 before write', '2 after write',
    '3 before chmod', '3 after chmod', '4 before rename', '4 after rename',
  ])
})

test('stops between two rows when told to, and throws the reason', async () => {
  await w.lay('a', w.file('agent'))
  await w.lay('b', w.file('agent'))
  const stop = new AbortController()
  const rows = [w.row('a', w.file('agent'), w.file('mine')), w.row('b', w.file('agent'), w.file('mine'))]

  const done = applyFiles(w.begin(rows), {
    ...w.deps, rowsAtATime: 1, signal: stop.signal, onStep: ({ act }) => { if (act === 'rename') stop.abort(new Error('stopped')) },
  })

  await expect(done).rejects.toThrow('stopped')
  expect(await w.snapshot()).toEqual({ a: 'file 644 mine', b: 'file 644 agent' })
})

test.each([undefined, 'EPERM'])('gives a file to the owner of the one it replaces, as far as it may (%s)', async code => {
  await w.lay('f', w.file('agent'))
  const given: number[][] = []
  const fs: FileSystem = {
    ...nodeFileSystem,
    lstat: async path => Object.assign(await nodeFileSystem.lstat(path), { uid: 4321n, gid: 8765n }),
    open: async (...args) => ({
      ...await nodeFileSystem.open(...args),
      chown: async (uid, gid) => {
        given.push([uid, gid])
        if (code) throw errno(code)
      },
    }),
  }

  const { outcomes } = await applyFiles(w.begin([w.row('f', w.file('agent'), w.file('mine'))]), { ...w.deps, fs })

  expect(given).toEqual([[4321, 8765]])
  expect(outcomes).toEqual([{ path: w.at('f'), action: 'write', result: 'restored' }])
})

test('field 71: a locked file is named, the others are done, and the next try completes', async () => {
  for (const name of ['a', 'b', 'c']) await w.lay(name, w.file('agent'))
  const begin = w.begin(['a', 'b', 'c'].map(name => w.row(name, w.file('agent'), w.file('mine'))))
  const lock = (call: FsCall) => { if (call.fn === 'rename' && call.path === w.at('b')) throw errno('EBUSY') }
  const fs = faultyFileSystem({ before: lock })

  const first = await applyFiles(begin, { ...w.deps, fs })
  const second = await applyFiles(begin, w.deps)

  expect(first.outcomes.map(({ result, reason }) => [result, reason]))
    .toEqual([['restored', undefined], ['failed', 'EBUSY'], ['restored', undefined]])
  expect(second.outcomes.map(({ result }) => result)).toEqual(['restored', 'restored', 'restored'])
  expect(await w.snapshot()).toEqual({ a: 'file 644 mine', b: 'file 644 mine', c: 'file 644 mine' })
})
