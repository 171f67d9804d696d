import { execFileSync } from 'node:child_process'
import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  compareWalks, nodeWalkFileSystem, walkFolder, type WalkFileSystem, type WalkOptions,
} from '../../../../host/capture/folder-walk.ts'
import { defaultIgnore } from '../../../../src/checkpoint/ignore-list.ts'
import { errno } from '../../../support/faulty-fs.ts'
import { anOpWorld, type OpWorld } from '../restore/op-world.ts'

let w: OpWorld
beforeEach(async () => { w = await anOpWorld() })
afterEach(() => w.clean())

const budget = { maxFiles: 10_000, maxMs: 60_000 }
const walk = (more: Partial<WalkOptions> = {}, fs?: WalkFileSystem, root = w.root) =>
  walkFolder(root, { budget, ignore: defaultIgnore, ...more }, fs)
const name = (path: string): string => path.slice(w.root.length + 1)
const names = (paths: Iterable<string>): string[] => [...paths].map(name).sort()
const lay = async (...paths: string[]): Promise<void> => { for (const path of paths) await w.lay(path, w.file(path)) }
/** The clock of the file system counts in ticks of up to 10 ms. */
const tick = () => new Promise(resolve => setTimeout(resolve, 20))

/** What is different after `change`, without the root and without empty lists. */
async function differences(change: () => Promise<unknown>): Promise<Record<string, string[]>> {
  const before = await walk()
  await tick()
  await change()
  const { racy: _, ...changes } = compareWalks(before, await walk())
  return Object.fromEntries(Object.entries(changes).map(([kind, paths]) => [kind, names(paths)]).filter(([, paths]) => paths!.length > 0))
}

test('finds files and folders with any names, links as links, and special files', async () => {
  const odd = ['a b', '-n', '*', '文件/ñ', 'new\nline', '"q"', 'back\\slash', '.hidden/.x', '\ufffd']
  await lay(...odd)
  await mkdir(w.at('empty'))
  await symlink('/', w.at('top'))
  await symlink('nowhere', w.at('dangling'))
  execFileSync('mkfifo', [w.at('pipe')])

  const { files, folders, complete, unreadable } = await walk()

  expect(names(files.keys())).toEqual([...odd, 'top', 'dangling', 'pipe'].sort())
  expect(names(folders.keys())).toEqual(['.hidden', 'empty', '文件'].sort())
  expect(['top', 'dangling', 'pipe', 'a b'].map(path => files.get(w.at(path))?.kind)).toEqual(['link', 'link', 'special', 'file'])
  expect({ complete, unreadable: unreadable.size }).toEqual({ complete: true, unreadable: 0 })
})

test('a name that is no text is told as unreadable', async () => {
  await writeFile(Buffer.concat([Buffer.from(`${w.root}/bad`), Buffer.from([0xff])]), 'x')

  const { files, unreadable } = await walk()

  expect(names(files.keys())).toEqual([])
  expect(names(unreadable)).toEqual(['bad\ufffd'])
})

describe('does not enter', () => {
  test('ignored folders at any depth; a file or a link of that name is a file', async () => {
    await lay('node_modules/p/i.js', 'a/b/__pycache__/c.pyc', 'c/.venv', 'dist/kept.js')
    await symlink('../node_modules', w.at('a/node_modules'))

    const { files, folders, skipped } = await walk()

    expect(names(files.keys())).toEqual(['a/node_modules', 'c/.venv', 'dist/kept.js'])
    expect(names(folders.keys())).toEqual(['a', 'a/b', 'c', 'dist'])
    expect([...skipped].map(([path, why]) => [name(path), why]).sort()).toEqual([['a/b/__pycache__', 'ignored'], ['node_modules', 'ignored']])
  })

  test('a repository’s own folder, whatever the ignore list says; the files beside it are ordinary', async () => {
    execFileSync('git', ['init', '-q', w.at('repo')])
    execFileSync('git', ['init', '-q', '--bare', w.at('bare.git')])
    await lay('repo/src/a.txt', 'worktree/.git')

    const { files, folders, skipped } = await walk({ ignore: new Set() })

    expect(names(files.keys())).toEqual(['repo/src/a.txt', 'worktree/.git'])
    expect(names(folders.keys())).toEqual(['repo', 'repo/src', 'worktree'])
    expect(skipped.get(w.at('bare.git'))).toBe('repository')
  })

  test('a folder with a cache tag, unless it is the workspace', async () => {
    await lay('target/CACHEDIR.TAG', 'target/debug/x', 'src/main.rs')

    expect(names((await walk()).files.keys())).toEqual(['src/main.rs'])
    expect((await walk({}, undefined, w.at('target'))).files.size).toBe(2)
  })

  test('the DSH home and our store', async () => {
    await lay('dsh/data/x', 'a')

    const { files, skipped } = await walk({ keepOut: [w.at('dsh')] })

    expect(names(files.keys())).toEqual(['a'])
    expect([...skipped.values()]).toEqual(['keep-out'])
  })

  test('another file system', async () => {
    await lay('mnt/x', 'a')
    const fs: WalkFileSystem = {
      ...nodeWalkFileSystem,
      lstat: async path => Object.assign(await nodeWalkFileSystem.lstat(path), path.startsWith(w.at('mnt')) ? { dev: 999n } : {}),
    }

    const { files, skipped } = await walk({}, fs)

    expect(names(files.keys())).toEqual(['a'])
    expect([...skipped.values()]).toEqual(['other-file-system'])
  })
})

describe('refuses', () => {
  const refused = { complete: false, why: 'refused-root' }

  test('the top of the disk, the home folder and folders above it, before it looks at anything', async () => {
    await lay('home/me/project/a')
    const home = w.at('home/me')
    const fs: WalkFileSystem = { ...nodeWalkFileSystem, readdir: () => { throw new Error('listed') } }

    for (const root of ['/', home, w.at('home'), w.root]) expect(await walk({ home }, fs, root), root).toMatchObject(refused)
    expect((await walk({ home }, undefined, w.at('home/me/project'))).files.size).toBe(1)
  })

  test('a home folder under its other name', async () => {
    await lay('data/me/a')
    await symlink('data', w.at('home'))

    expect(await walk({ home: w.at('home/me') }, undefined, w.at('data/me'))).toMatchObject(refused)
    expect(await walk({ home: w.at('data/me') }, undefined, w.at('home/me'))).toMatchObject(refused)
  })

  test('a folder inside the DSH home, a file, a link', async () => {
    await lay('dsh/ws/a')
    await symlink('dsh', w.at('l'))

    expect(await walk({ keepOut: [w.at('dsh')] }, undefined, w.at('dsh/ws'))).toMatchObject(refused)
    expect(await walk({}, undefined, w.at('dsh/ws/a'))).toMatchObject(refused)
    expect(await walk({}, undefined, w.at('l'))).toMatchObject(refused)
  })
})

test('an absent root is a complete walk that found nothing: a command may remove the workspace', async () => {
  await lay('ws/a')
  const before = await walk({}, undefined, w.at('ws'))
  await rm(w.at('ws'), { recursive: true })

  const after = await walk({}, undefined, w.at('ws'))

  expect(after).toMatchObject({ complete: true })
  expect(names(compareWalks(before, after).deleted)).toEqual(['ws/a'])
})

describe('stops at its budget', () => {
  test('of entries, folders counted', async () => {
    await lay('a', 'b', 'd/c')

    expect(await walk({ budget: { ...budget, maxFiles: 4 } })).toMatchObject({ complete: true })
    expect(await walk({ budget: { ...budget, maxFiles: 3 } })).toMatchObject({ complete: false, why: 'too-many-files' })
    expect(await walk({ budget: { ...budget, maxEntriesPerFolder: 2 } })).toMatchObject({ complete: false, why: 'too-many-files' })
  })

  test('of time', async () => {
    await lay('a')

    expect(await walk({ budget: { ...budget, maxMs: 0 } })).toMatchObject({ complete: false, why: 'too-slow' })
  })

  test('and what it did not reach is neither created nor deleted', async () => {
    await lay('a', 'd/b')
    const whole = await walk()
    const cut = await walk({ budget: { ...budget, maxFiles: 2 } })

    const { deleted, deletedFolders } = compareWalks(whole, cut)
    const { created, createdFolders } = compareWalks(cut, whole)

    expect(cut.complete).toBe(false)
    expect([deleted, deletedFolders, created, createdFolders]).toEqual([[], [], [], []])
  })
})

describe('a folder that cannot be read', () => {
  const failing = (fn: 'lstat' | 'readdir', at: string, code = 'EACCES'): WalkFileSystem => ({
    ...nodeWalkFileSystem,
    [fn]: async (path: string) => {
      if (path === w.at(at)) throw errno(code)
      return nodeWalkFileSystem[fn](path)
    },
  })

  test.each(['readdir', 'lstat'] as const)('by %s is named, and what is below it is never taken for deleted', async (fn) => {
    await lay('d/e/a', 'b')
    const before = await walk()

    const after = await walk({}, failing(fn, 'd'))

    expect(names(after.files.keys())).toEqual(['b'])
    expect(names(after.unreadable)).toEqual(['d'])
    expect(compareWalks(before, after)).toMatchObject({ deleted: [], deletedFolders: [] })
    expect(compareWalks(after, before)).toMatchObject({ created: [], createdFolders: [] })
  })

  test('because it is gone since is gone', async () => {
    await lay('d/a', 'b')

    const { folders, unreadable } = await walk({}, failing('readdir', 'd', 'ENOENT'))

    expect([folders.size, unreadable.size]).toEqual([0, 0])
  })

  test('because it became a file since is not taken for deleted', async () => {
    await lay('d/a', 'b')
    const before = await walk()

    const after = await walk({}, failing('readdir', 'd', 'ENOTDIR'))

    expect(compareWalks(before, after).deleted).toEqual([])
  })

  test('for a bug is a bug', async () => {
    await expect(walk({}, { ...nodeWalkFileSystem, readdir: () => { throw new TypeError('bug') } })).rejects.toThrow('bug')
  })
})

describe('two walks differ by', () => {
  const moved = { created: ['z/e/b'], deleted: ['d/e/b'], createdFolders: ['z', 'z/e'], deletedFolders: ['d', 'd/e'] }
  const cases: [string, () => Promise<unknown>, Record<string, string[]>][] = [
    ['nothing', async () => {}, {}],
    ['a text of the same size', () => writeFile(w.at('a'), 'b'), { changed: ['a'] }],
    ['permission bits only', () => chmod(w.at('a'), 0o755), { changed: ['a'] }],
    ['a new file in a new folder', () => lay('n/m/x'), { created: ['n/m/x'], createdFolders: ['n', 'n/m'] }],
    ['an empty folder', () => mkdir(w.at('n')), { createdFolders: ['n'] }],
    ['a deleted folder', () => rm(w.at('d'), { recursive: true }), { deleted: ['d/e/b'], deletedFolders: ['d', 'd/e'] }],
    ['a renamed file', () => rename(w.at('a'), w.at('z')), { created: ['z'], deleted: ['a'] }],
    ['a case-only rename', () => rename(w.at('a'), w.at('A')), { created: ['A'], deleted: ['a'] }],
    ['a renamed folder', () => rename(w.at('d'), w.at('z')), moved],
    ['a file that became a folder', () => w.lay('a', { kind: 'folder' }), { deleted: ['a'], createdFolders: ['a'] }],
    ['a file that became an ignored folder', async () => { await rm(w.at('c/.venv')); await lay('c/.venv/x') }, { deleted: ['c/.venv'] }],
    ['a folder that became a file', () => lay('d'), { created: ['d'], deleted: ['d/e/b'], deletedFolders: ['d', 'd/e'] }],
    ['a folder that became a link', async () => {
      await rename(w.at('d'), w.at('z'))
      await symlink('z', w.at('d'))
    }, { ...moved, created: ['d', 'z/e/b'] }],
    ['another target of a link', async () => { await rm(w.at('l')); await symlink('c', w.at('l')) }, { changed: ['l'] }],
    ['a write through a link', () => writeFile(w.at('l'), 'b'), { changed: ['a'] }],
    ['a folder that became a repository of its own', async () => { execFileSync('git', ['init', '-q', w.at('d')]) }, {}],
    ['a folder that turned into a bare repository', async () => { await lay('d/HEAD', 'd/refs/x', 'd/objects/x') }, {}],
  ]
  test.each(cases)('%s', async (_what, change, expected) => {
    await lay('a', 'd/e/b', 'c/.venv')
    await symlink('a', w.at('l'))

    expect(await differences(change)).toEqual(expected)
  })
})

test('a second write in the tick of the first walk is in `changed` or in `racy`, never missed', async () => {
  await lay('f')

  for (let round = 0; round < 50; round += 1) {
    await writeFile(w.at('f'), 'a')
    const before = await walk()
    await writeFile(w.at('f'), 'b')
    const { changed, racy } = compareWalks(before, await walk())
    expect(names([...changed, ...racy]), `round ${round}`).toEqual(['f'])
  }
})

test('a file written long before the walk is not racy', async () => {
  const { startedAtMs: _, ...seen } = await walk({}, undefined, dirname(import.meta.dirname))
  const before = { ...seen, startedAtMs: Date.now() + 60_000 }

  expect(seen.files.size).toBeGreaterThan(0)
  expect(compareWalks(before, before).racy).toEqual([])
})
