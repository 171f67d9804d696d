import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fingerprintNow } from '../../../../host/capture/fingerprint.ts'
import { changedFolders, factsOfLook, factsOfWalk } from '../../../../host/capture/folder-changes.ts'
import { lookAtFolders, makeFolderMemory, type FolderDisk, type FolderLook, type FolderMemory } from '../../../../host/capture/folder-look.ts'
import { walkFolder } from '../../../../host/capture/folder-walk.ts'
import { parentsOf } from '../../../../host/capture/look.ts'
import { changedMounts } from '../../../../host/capture/workspace-look.ts'
import { errno } from '../../../support/watched-disk.ts'
import { aLookWorld, type LookWorld } from './look-world.ts'

let base: string
let ws: string
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-folders-')))
  ws = join(base, 'ws')
  mkdirSync(ws)
  vi.stubEnv('HOME', base)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(base, { recursive: true, force: true })
})

const git = (...args: string[]): string => execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@x', ...args], { cwd: ws, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

function lay(paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(join(ws, path.endsWith('/') ? path : dirname(path)), { recursive: true })
    if (!path.endsWith('/')) writeFileSync(join(ws, path), 'x')
  }
}

/** A workspace with these paths; those that end with a slash are folders. */
function looks(isGit: boolean, paths: readonly string[] = []): LookWorld {
  lay(paths)
  if (isGit) {
    git('init', '-q', '-b', 'main')
    git('add', '-A')
    git('commit', '-q', '--allow-empty', '-m', 'start')
  }
  return aLookWorld({ workspace: ws, indexFolder: join(base, 'store') })
}

describe.each([['a plain folder', false], ['a git work tree', true]])('folders in %s', (_name, isGit) => {
  it('that are made and hold nothing are named once, with the parents made for them', async () => {
    expect(await looks(isGit, ['f']).around('umask 022; mkdir -p a/b/c d; mkdir -m 700 e')).toEqual([
      'a/b/c: absent -> folder 755 (a a/b)', 'd: absent -> folder 755', 'e: absent -> folder 700',
    ])
  })

  it('that are removed with their files and are not open to all are named with their mode', async () => {
    const world = looks(isGit, ['d/f', 'p/f'])
    chmodSync(join(ws, 'p'), 0o700)

    expect((await world.around('rm -r d p')).filter(change => change.includes('folder'))).toEqual(['p: folder 700 -> absent'])
  })

  it('that are made for a file are named by the file', async () => {
    expect(await looks(isGit).around('mkdir -p a/b && echo 1 > a/b/f && mkdir a/c')).toEqual([
      'a/b/f: absent -> "1\\n" 644 (a a/b)', 'a/c: absent -> folder 755 (a)',
    ])
  })

  it('that are removed and held nothing are named with their mode, the inmost alone', async () => {
    const at = looks(isGit, ['f', 'e/', 'p/q/r/', 'p/s/'])
    execFileSync('chmod', ['700', join(ws, 'e')])

    expect(await at.around('rm -r e p')).toEqual(['e: folder 700 -> absent', 'p/q/r: folder 755 -> absent', 'p/s: folder 755 -> absent'])
  })

  it('that are removed with their files come back with those, and an empty one in them by itself', async () => {
    expect(await looks(isGit, ['d/x', 'd/e/']).around('rm -r d')).toEqual(['d/e: folder 755 -> absent', 'd/x: "x" 644 -> absent'])
  })

  it('that are moved: gone under the old name, made under the new one, however old they are', async () => {
    const at = looks(isGit, ['d/x', 'e/'])

    expect(await at.around('mv d n && mv e m')).toEqual([
      'd/x: "x" 644 -> absent', 'e: folder 755 -> absent', 'm: absent -> folder 755', 'n/x: absent -> "x" 644 (n)',
    ])
  })

  it('are seen again after many commands', async () => {
    const at = looks(isGit, ['d/x'])
    expect(await at.around('mkdir d/e')).toEqual(['d/e: absent -> folder 755'])
    expect(await at.around('true')).toEqual([])
    expect(await at.around('mkdir d/e/f')).toEqual(['d/e/f: absent -> folder 755'])
    expect(await at.around('rmdir d/e/f')).toEqual(['d/e/f: folder 755 -> absent'])
    expect(await at.around('rm -r d')).toEqual(['d/e: folder 755 -> absent', 'd/x: "x" 644 -> absent'])
  })

  it('that become files and files that become folders are one row each', async () => {
    expect(await looks(isGit, ['e/', 'f']).around('rmdir e && echo 1 > e && rm f && mkdir f')).toEqual([
      'e: folder 755 -> "1\\n" 644', 'f: "x" 644 -> folder',
    ])
  })

  it('that nobody looks into are not spoken of', async () => {
    const at = looks(isGit, ['.gitignore', 'node_modules/old/'])
    writeFileSync(join(ws, '.gitignore'), 'node_modules/\n')
    if (isGit) git('commit', '-qam', 'rules')

    expect(await at.around('mkdir node_modules/new && rmdir node_modules/old && git init -q repo && mkdir repo/inner && mkdir .git/x 2>/dev/null || true')).toEqual(
      // Where git is not asked, a repository is a folder like any other, but for its .git.
      isGit ? [] : ['repo/inner: absent -> folder 755 (repo)'])
  })

  it('pipes that come and go are named, and one that became a file is never taken for new', async () => {
    const at = looks(isGit, ['f'])
    execFileSync('mkfifo', [join(ws, 'old'), join(ws, 'was')])

    expect(await at.around('mkfifo new && rm old && rm was && echo 1 > was')).toEqual([
      'new: absent -> special', 'old: special -> absent', 'was: special -> "1\\n" 644',
    ])
  })

  it('with nothing but ignored files in it is not empty', async () => {
    const at = looks(isGit, ['f'])
    writeFileSync(join(ws, '.gitignore'), '*.log\n')
    const rows = await at.around('mkdir d && echo 1 > d/a.log')

    expect(rows).toEqual(isGit ? [] : ['d/a.log: absent -> "1\\n" 644 (d)'])
  })
})

it('an old folder that rules hid until now is never taken for made', async () => {
  lay(['.gitignore'])
  writeFileSync(join(ws, '.gitignore'), 'old/\n')
  const at = looks(true, ['old/'])

  expect(await at.around('mkdir new; : > .gitignore')).toEqual(['.gitignore: "old/\\n" 644 -> "" 644', 'new: absent -> folder 755'])
})

describe('a look at folders', () => {
  const options = (memory: FolderMemory) => ({
    top: ws, memory, rules: '', isKnown: () => true, ignoredOf: async () => new Set<string>(), keepOut: [], maxFolders: 1_000, maxMs: 60_000,
  })
  const counting = (denied?: string): FolderDisk & { lists: number } => {
    const io = {
      lists: 0,
      lstat: fingerprintNow,
      readdir: (path: string) => {
        io.lists += 1
        if (path === denied) throw errno('EACCES', path)
        return readdirSync(path, { withFileTypes: true })
      },
    }
    return io
  }
  const old = (): void => {
    // Only the ctime counts, and nobody can set that: what is said of it is said of a minute from now.
    const soon = Date.now() + 60_000
    vi.spyOn(Date, 'now').mockReturnValue(soon)
  }
  const namesOf = ({ folders }: FolderLook): string[] => [...folders.keys()].map(path => path.slice(ws.length + 1)).sort()

  it('lists a folder once, and again when something came or went in it', async () => {
    lay(['a/b/', 'c/'])
    const memory = makeFolderMemory()
    old()
    const io = counting()

    await lookAtFolders(options(memory), io)
    expect(io.lists).toBe(4)
    await lookAtFolders(options(memory), io)
    expect(io.lists).toBe(4)
    mkdirSync(join(ws, 'a/b/n'))
    utimesSync(join(ws, 'a/b'), 1, 1)
    expect(namesOf(await lookAtFolders(options(memory), io))).toEqual(['a', 'a/b', 'a/b/n', 'c'])
    expect(io.lists).toBe(6)
  })

  it('asks which folders are ignored once, and again when a rule on the way to them is another', async () => {
    lay(['.gitignore', 'a/b/', 'c/'])
    const memory = makeFolderMemory()
    const asked: string[][] = []
    const ask = { ...options(memory), isKnown: () => false, ignoredOf: async (paths: readonly string[]) => {
      asked.push(paths.map(path => path.slice(ws.length + 1)))
      return new Set([join(ws, 'c')])
    } }

    expect(namesOf(await lookAtFolders(ask))).toEqual(['a', 'a/b'])
    await lookAtFolders(ask)
    expect(asked).toEqual([['a', 'c'], ['a/b']])
    writeFileSync(join(ws, '.gitignore'), 'other')
    await lookAtFolders(ask)
    expect(asked.slice(2)).toEqual([['a', 'c'], ['a/b']])
  })

  it('stops at its budget, and then nothing counts as made or gone', async () => {
    lay(['a/', 'b/', 'c/'])
    const before = await lookAtFolders({ ...options(makeFolderMemory()), maxFolders: 2 })
    const after = await lookAtFolders(options(makeFolderMemory()))

    expect(before.isComplete).toBe(false)
    const sinceMs = Date.now() + 60_000
    expect(changedFolders({ before: factsOfLook(before), after: factsOfLook(after), seen: [], sinceMs, parentsOf: () => [] })).toEqual([])
    expect(changedFolders({ before: factsOfLook(after), after: factsOfLook(before), seen: [], sinceMs, parentsOf: () => [] })).toEqual([])
  })

  it.each([
    ['to itself', 'd'], ['to a folder with one of that name', 'other'], ['to nowhere', 'nowhere'],
  ])('names an empty folder whose parent became a link %s as gone', async (_what, target) => {
    lay(['d/e/', 'other/e/'])
    const before = await lookAtFolders(options(makeFolderMemory()))
    rmSync(join(ws, 'd'), { recursive: true })
    symlinkSync(target, join(ws, 'd'))
    const after = await lookAtFolders(options(makeFolderMemory()))

    const found = changedFolders({ before: factsOfLook(before), after: factsOfLook(after), seen: [], sinceMs: Date.now(), parentsOf: path => parentsOf(path, ws) })

    expect(found).toEqual([{ path: join(ws, 'd/e'), before: { kind: 'folder', mode: 0o755 }, after: { kind: 'absent' }, absentFolders: [], byGit: false }])
  })

  it('names a folder that became unreadable, and takes nothing in it for gone', async () => {
    lay(['d/e/', 'f/'])
    const before = await lookAtFolders(options(makeFolderMemory()))
    const after = await lookAtFolders(options(makeFolderMemory()), counting(join(ws, 'd')))
    const walk = (denied: boolean) => walkFolder(ws, { budget: { maxFiles: 100, maxMs: 60_000 }, ignore: new Set(), home: '/nowhere' }, {
      lstat: async path => (await import('node:fs/promises')).lstat(path, { bigint: true }),
      realpath: async path => path,
      readdir: async (path) => {
        if (denied && path === join(ws, 'd')) throw errno('EACCES', path)
        return readdirSync(path)
      },
    })
    const how = { seen: [], sinceMs: Date.now(), parentsOf: () => [] }
    const row = { path: join(ws, 'd'), before: { kind: 'folder', mode: 0o755 }, after: { kind: 'unknown', reason: 'unreadable' }, absentFolders: [], byGit: false }

    expect(changedFolders({ before: factsOfLook(before), after: factsOfLook(after), ...how })).toEqual([row])
    expect(changedFolders({ before: factsOfWalk(await walk(false)), after: factsOfWalk(await walk(true)), ...how })).toEqual([row])
    // And one that was so before says nothing.
    expect(changedFolders({ before: factsOfLook(after), after: factsOfLook(after), ...how })).toEqual([])
  })
})

it('a folder on another file system is named when its top has changed, and only then', async () => {
  lay(['mnt/', 'd/'])
  const walk = () => walkFolder(ws, { budget: { maxFiles: 100, maxMs: 60_000 }, ignore: new Set(), home: '/nowhere' }, {
    lstat: async (path) => {
      const stat = await (await import('node:fs/promises')).lstat(path, { bigint: true })
      return path.endsWith('/mnt') ? Object.assign(Object.create(Object.getPrototypeOf(stat)), stat, { dev: stat.dev + 1n }) : stat
    },
    realpath: async path => path,
    readdir: async path => readdirSync(path),
  })
  const before = await walk()
  expect([...before.mounts.keys()]).toEqual([join(ws, 'mnt')])

  lay(['d/n'])
  expect(changedMounts(before, await walk())).toEqual([])
  lay(['mnt/n'])
  expect(changedMounts(before, await walk())).toMatchObject([{ path: join(ws, 'mnt'), before: { reason: 'not-saved' }, after: { reason: 'not-saved' } }])
})
