import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { changedIndexPaths, lookAtTree } from '../../../../host/capture/git-index.ts'
import { readBlobs } from '../../../../host/capture/git-objects.ts'
import { closeGitTree, openGitTree } from '../../../../host/capture/git-tree.ts'
import { GitFailure, runGit, type GitRunner } from '../../../../host/capture/git-run.ts'
import { makeGitWorld, printOf, type GitWorld } from './git-world.ts'

let world: GitWorld
beforeEach(() => {
  world = makeGitWorld()
  vi.stubEnv('HOME', world.base)
})
afterEach(() => {
  vi.unstubAllEnvs()
  world.remove()
})

/** So that no stat data of the index are of the second in which it was written. */
function age(): void {
  const old = new Date(Date.now() - 100_000)
  for (const path of world.git('ls-files', '-z').split('\0').filter(Boolean)) {
    if (existsSync(join(world.root, path))) utimesSync(join(world.root, path), old, old)
  }
  world.git('update-index', '-q', '--refresh')
}

describe('a look', () => {
  it('finds nothing in a clean tree', async () => {
    age()
    const look = await lookAtTree(await world.open())
    expect(look).toMatchObject({ ref: 'refs/heads/main', unmerged: [], dirty: [], unwatched: [], untracked: [], nested: [], unreadableNames: 0 })
    expect(look.head).toBe(world.git('rev-parse', 'HEAD').trim())
    expect([...look.index].map(([path, { mode, oid, size }]) => [path, { mode, oid, size }])).toEqual([
      ['a.txt', { mode: '100644', oid: world.git('rev-parse', 'HEAD:a.txt').trim(), size: 2 }],
      ['sub/b.txt', { mode: '100644', oid: world.git('rev-parse', 'HEAD:sub/b.txt').trim(), size: 2 }],
      ['sub/run.sh', { mode: '100644', oid: world.git('rev-parse', 'HEAD:sub/run.sh').trim(), size: 5 }],
    ])
  })

  it('finds what is modified, deleted, renamed, of another mode or kind, untracked; not what is ignored', async () => {
    world.write('link', 'x')
    world.write('moved', 'm')
    world.write('.gitignore', '*.log\n')
    world.git('add', '.')
    age()
    const tree = await world.open()
    await lookAtTree(tree)
    world.write('a.txt', 'A\n')
    rmSync(join(world.root, 'sub/b.txt'))
    chmodSync(join(world.root, 'sub/run.sh'), 0o755)
    rmSync(join(world.root, 'link'))
    symlinkSync('a.txt', join(world.root, 'link'))
    renameSync(join(world.root, 'moved'), join(world.root, 'moved to'))
    world.write('deep/er/new', '')
    world.write('noise.log', '')
    const look = await lookAtTree(tree)
    expect([...look.dirty].sort()).toEqual(['a.txt', 'link', 'moved', 'sub/b.txt', 'sub/run.sh'])
    expect(look.untracked).toEqual(['deep/er/new', 'moved to'])
  })

  it('finds a change of the same size made in the second in which the index was written', async () => {
    const tree = await world.open()
    for (const content of ['1\n', '2\n', '3\n']) {
      world.write('a.txt', content)
      world.git('add', 'a.txt')
      world.write('a.txt', content.replace(/\d/, 'x'))
      expect((await lookAtTree(tree)).dirty).toContain('a.txt')
    }
  })

  it('works before the first commit, with and without an index', async () => {
    const empty = makeGitWorld({ isEmpty: true })
    try {
      empty.write('n', '')
      const tree = await empty.open()
      expect(await lookAtTree(tree)).toMatchObject({ head: undefined, ref: 'refs/heads/main', untracked: ['n'], dirty: [] })
      empty.git('add', 'n')
      const staged = await lookAtTree(tree)
      expect([...staged.index.keys()]).toEqual(['n'])
      expect(staged).toMatchObject({ head: undefined, untracked: [] })
      rmSync(join(empty.root, '.git/index'))
      expect(await lookAtTree(tree)).toMatchObject({ untracked: ['n'], index: new Map() })
    } finally {
      empty.remove()
    }
  })

  it('tells a detached HEAD', async () => {
    world.git('checkout', '-q', '--detach')
    expect(await lookAtTree(await world.open())).toMatchObject({ head: world.git('rev-parse', 'HEAD').trim(), ref: undefined })
  })

  it('shows a switch of branches by the index, where the status is the same', async () => {
    world.git('switch', '-q', '-c', 'other')
    world.write('a.txt', 'other\n')
    world.write('only-there', '')
    world.git('add', '.')
    world.git('rm', '-q', 'sub/b.txt')
    world.git('commit', '-q', '-m', 'second')
    const tree = await world.open()
    const before = await lookAtTree(tree)
    const status = world.git('status', '--porcelain')
    world.git('switch', '-q', 'main')
    const after = await lookAtTree(tree)
    expect(world.git('status', '--porcelain')).toBe(status)
    expect([...changedIndexPaths(before, after)].sort()).toEqual(['a.txt', 'only-there', 'sub/b.txt'])
    expect([before.ref, after.ref]).toEqual(['refs/heads/other', 'refs/heads/main'])
    expect(changedIndexPaths(after, await lookAtTree(tree))).toEqual([])
  })

  it('names unmerged paths apart', async () => {
    world.git('switch', '-q', '-c', 'other')
    world.write('a.txt', 'other\n')
    world.git('commit', '-q', '-a', '-m', 'theirs')
    world.git('switch', '-q', 'main')
    const tree = await world.open()
    const before = await lookAtTree(tree)
    world.write('a.txt', 'main\n')
    world.git('commit', '-q', '-a', '-m', 'ours')
    expect(() => world.git('merge', 'other')).toThrow()
    const look = await lookAtTree(tree)
    expect(look.unmerged).toEqual(['a.txt'])
    expect(look.dirty).not.toContain('a.txt')
    expect(look.index.has('a.txt')).toBe(false)
    expect(changedIndexPaths(before, look)).toEqual(['a.txt'])
  })

  it('keeps nested repositories and submodules apart', async () => {
    mkdirSync(join(world.root, 'inner'))
    world.gitIn(join(world.root, 'inner'), 'init', '-q')
    world.write('inner/x', '1')
    world.gitIn(join(world.root, 'inner'), 'add', '.')
    world.gitIn(join(world.root, 'inner'), 'commit', '-q', '-m', 'inner')
    const other = makeGitWorld()
    try {
      world.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other.root, 'module')
    } finally {
      other.remove()
    }
    world.write('module/a.txt', 'changed in the submodule\n')
    const look = await lookAtTree(await world.open())
    expect(look.nested).toEqual(['inner'])
    expect(look.untracked).toEqual([])
    expect(look.index.get('module')?.mode).toBe('160000')
    expect(look.dirty.some(path => path.startsWith('module'))).toBe(false)

    const inside = await lookAtTree(await world.open(join(world.root, 'module')))
    expect(inside.dirty).toContain('a.txt')
  })

  it('works in a linked work tree', async () => {
    const linked = join(world.base, 'linked')
    world.git('worktree', 'add', '-q', linked, '-b', 'side')
    const tree = await world.open(linked)
    writeFileSync(join(linked, 'a.txt'), 'linked\n')
    const look = await lookAtTree(tree)
    expect(tree.root).toBe(linked)
    expect(look.ref).toBe('refs/heads/side')
    expect(look.dirty).toContain('a.txt')
  })

  it('does not take what a sparse checkout leaves out for deleted, and names it', async () => {
    world.git('sparse-checkout', 'set', 'nothing')
    expect(existsSync(join(world.root, 'sub/b.txt'))).toBe(false)
    const look = await lookAtTree(await world.open())
    expect(look.dirty.filter(path => path.startsWith('sub/'))).toEqual([])
    expect(look.unwatched).toEqual(['sub/b.txt', 'sub/run.sh'])
    expect(look.index.has('sub/b.txt')).toBe(true)
  })

  it('reads a sparse, a split and a compressed index', async () => {
    world.git('update-index', '--index-version', '4')
    const tree = await world.open()
    expect([...(await lookAtTree(tree)).index.keys()]).toEqual(['a.txt', 'sub/b.txt', 'sub/run.sh'])
    world.git('update-index', '--split-index')
    expect([...(await lookAtTree(tree)).index.keys()]).toEqual(['a.txt', 'sub/b.txt', 'sub/run.sh'])
    world.git('update-index', '--no-split-index')
    world.git('sparse-checkout', 'set', '--cone', '--sparse-index', 'nothing')
    expect([...(await lookAtTree(tree)).index.keys()]).toEqual(['a.txt', 'sub/b.txt', 'sub/run.sh'])
  })

  it('names files that git was told to take as unchanged', async () => {
    world.git('update-index', '--assume-unchanged', 'a.txt')
    world.write('a.txt', 'changed all the same\n')
    expect((await lookAtTree(await world.open())).unwatched).toEqual(['a.txt'])
  })

  it('keeps names in any script, with line breaks, quotes, colons and leading spaces; counts those that are not UTF-8', async () => {
    const names = ['文件 名.txt', 'имя', 'e\u0301', 'a\nb', '"quoted"\t', ':colon', ' space', '🙂']
    for (const name of names) world.write(name, name)
    world.git('add', '.')
    age()
    for (const name of names) {
      world.write(name, `${name} changed`)
      world.write(`new/${name}`, '')
    }
    const bad = Buffer.concat([Buffer.from(`${world.root}/`), Buffer.from([0x62, 0xff, 0xfe])])
    writeFileSync(bad, '')
    const tree = await world.open()
    const look = await lookAtTree(tree)
    expect([...look.dirty].sort()).toEqual([...names].sort())
    expect([...look.untracked].sort()).toEqual(names.map(name => `new/${name}`).sort())
    expect(look.unreadableNames).toBe(1)
    world.git('add', '.')
    expect((await lookAtTree(tree)).unreadableNames).toBe(1)
  })

  it('is limited to the workspace when that is a folder of the tree', async () => {
    world.write('a.txt', 'outside\n')
    world.write('sub/b.txt', 'changed\n')
    world.write('sub/new', '')
    world.write('new', '')
    const tree = await world.open(join(world.root, 'sub'))
    const look = await lookAtTree(tree)
    expect(tree.root).toBe(world.root)
    expect([...look.index.keys()]).toEqual(['sub/b.txt', 'sub/run.sh'])
    expect(look.dirty).toContain('sub/b.txt')
    expect(look.dirty).not.toContain('a.txt')
    expect(look.untracked).toEqual(['sub/new'])
  })

  it('gives every one of several looks at once a whole answer', async () => {
    world.write('a.txt', 'b')
    const tree = await world.open()
    const looks = await Promise.all([1, 2, 3].map(() => lookAtTree(tree)))
    for (const look of looks) expect([look.index.size, look.dirty.includes('a.txt')]).toEqual([3, true])
  })

  it('does not take a repository further up when its own is deleted', async () => {
    world.write('project/x', '1')
    const inner = join(world.root, 'project')
    world.gitIn(inner, 'init', '-q')
    const tree = await world.open(inner)
    expect(await lookAtTree(tree)).toMatchObject({ untracked: ['x'] })
    rmSync(join(inner, '.git'), { recursive: true })
    await expect(lookAtTree(tree)).rejects.toThrow(GitFailure)
  })
})

describe('a refresh of the copy', () => {
  const MANY = 1_100

  it('makes stale stat data good again, in the copy only', async () => {
    for (let i = 0; i < MANY; i += 1) world.write(`many/${i}`, `${i}`)
    world.git('add', '.')
    const copy = join(world.base, 'copy')
    // Copied like a person does: other inodes and times, the same bytes.
    execFileSync('cp', ['-r', world.root, copy])
    writeFileSync(join(copy, 'a.txt'), 'really changed\n')
    const tree = await world.open(copy)
    const print = printOf(join(copy, '.git'))
    const ran: string[] = []
    const counting = { ...tree, copy: { ...tree.copy, refresh: () => (ran.push('refresh'), tree.copy.refresh()) } }
    await lookAtTree(counting)
    const old = new Date(Date.now() - 100_000)
    for (const path of world.git('ls-files').trim().split('\n')) if (path !== 'a.txt') utimesSync(join(copy, path), old, old)
    expect((await lookAtTree(counting)).dirty).toEqual(['a.txt'])
    const runs = ran.length
    expect((await lookAtTree(counting)).dirty).toEqual(['a.txt'])
    expect(ran).toHaveLength(runs)
    expect(printOf(join(copy, '.git'))).toBe(print)
    expect(readdirSync(world.indexFolder)).toHaveLength(1)
  })

  it('never runs a filter, neither in a look nor in a refresh nor for attributes', async () => {
    const marker = join(world.base, 'ran')
    world.write('.gitattributes', '*.f filter=mark\n*.g filter=long\n')
    for (let i = 0; i < 5; i += 1) world.write(`many/${i}.f`, `${i}`)
    world.write('x.g', '1')
    world.git('add', '.')
    world.git('commit', '-q', '-m', 'with filters')
    for (const [key, value] of [
      ['mark.clean', `touch ${marker}; cat`], ['mark.smudge', `touch ${marker}; cat`], ['mark.required', 'true'],
      ['long.process', `touch ${marker}`], ['long.required', 'true'],
    ] as const) world.git('config', `filter.${key}`, value)
    const tree = await world.open()
    // Written in the same second, then stale: both are cases in which git compares contents.
    for (let i = 0; i < 5; i += 1) world.write(`many/${i}.f`, `${i}`)
    world.write('x.g', '2')
    const old = new Date(Date.now() - 100_000)
    await lookAtTree(tree)
    for (let i = 0; i < 5; i += 1) utimesSync(join(world.root, `many/${i}.f`), old, old)
    await lookAtTree(tree)
    expect(await tree.copy.refresh()).toBe(true)
    const { converted } = await lookAtTree(tree)
    expect([converted.has('many/1.f'), converted.has('x.g'), converted.has('a.txt')]).toEqual([true, true, false])
    expect(existsSync(marker)).toBe(false)
    // The same tree asked by git itself does run it: the marker would have been seen.
    world.git('config', '--remove-section', 'filter.long')
    world.git('status')
    expect(existsSync(marker)).toBe(true)
  })
})

describe('the person\'s repository', () => {
  it('is byte and time equal after all looks, and nothing configured in it is started', async () => {
    const marker = join(world.base, 'started')
    const hook = join(world.base, 'hook')
    writeFileSync(hook, `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    mkdirSync(join(world.base, 'hooks'))
    for (const name of ['post-index-change', 'fsmonitor-watchman', 'reference-transaction']) {
      writeFileSync(join(world.base, 'hooks', name), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    }
    world.write('a.txt', 'dirty\n')
    world.write('new', '')
    world.git('config', 'core.hooksPath', join(world.base, 'hooks'))
    world.git('config', 'core.fsmonitor', hook)
    world.git('config', 'core.untrackedCache', 'true')
    world.git('config', 'core.splitIndex', 'false')
    const before = printOf(join(world.root, '.git'))
    vi.stubEnv('GIT_DIR', '/nowhere')
    vi.stubEnv('GIT_INDEX_FILE', join(world.root, '.git/index'))
    vi.stubEnv('GIT_WORK_TREE', '/')
    const tree = await world.open()
    const look = await lookAtTree(tree)
    await tree.copy.refresh()
    await lookAtTree(tree)
    await readBlobs(tree, [...look.index.values()].map(entry => entry.oid))
    expect(look).toMatchObject({ untracked: ['new'] })
    expect(printOf(join(world.root, '.git'))).toBe(before)
    expect(existsSync(marker)).toBe(false)
  })

  it('leaves one copy per open tree in our folder, none after it is closed or its process ended', async () => {
    const dead = join(world.indexFolder, '0123456789abcdef-999999999-0')
    mkdirSync(world.indexFolder, { recursive: true })
    writeFileSync(dead, '')
    const tree = await world.open()
    await lookAtTree(tree)
    expect(existsSync(dead)).toBe(false)
    expect(readdirSync(world.indexFolder)).toHaveLength(1)
    expect(statSync(tree.copy.file).mode & 0o777).toBe(0o600)
    await closeGitTree(tree)
    expect(readdirSync(world.indexFolder)).toEqual([])
  })
})

describe('blobs', () => {
  it('are the raw bytes, also binary and empty ones; a missing one is left out', async () => {
    const bytes = Buffer.from([0, 10, 255, 10, 10])
    world.write('bin', bytes)
    world.write('empty', '')
    world.git('add', '.')
    const tree = await world.open()
    const { index } = await lookAtTree(tree)
    const [bin, empty, a] = ['bin', 'empty', 'a.txt'].map(path => index.get(path)!.oid)
    const missing = '1'.repeat(40)
    const blobs = await readBlobs(tree, [bin!, missing, empty!, a!, bin!])
    expect([...blobs.keys()].sort()).toEqual([bin, empty, a].sort())
    expect(blobs.get(bin!)).toEqual(bytes)
    expect(blobs.get(empty!)).toEqual(Buffer.alloc(0))
    expect(blobs.get(a!)?.toString()).toBe('a\n')
    expect(await readBlobs(tree, [])).toEqual(new Map())
  })

  it('do not stand for files with another line end, an ident, an encoding or a filter, nor for submodules and unknown paths', async () => {
    world.write('.gitattributes', '*.crlf text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16\n*.lfs filter=lfs\n*.plain -filter -ident\n')
    world.write('x.crlf', 'one\ntwo\n')
    world.write('x.id', '$Id$\n')
    world.write('x.u16', Buffer.from('\ufeffabc\n', 'utf16le'))
    world.write('x.lfs', 'version\n')
    world.write('x.plain', 'p\n')
    world.git('add', '.')
    world.git('commit', '-q', '-m', 'attributes')
    for (const name of ['x.crlf', 'x.id', 'x.u16']) rmSync(join(world.root, name))
    world.git('checkout', '-q', '--', '.')
    expect(world.read('x.crlf')).toBe('one\r\ntwo\r\n')
    const tree = await world.open()
    expect([...(await lookAtTree(tree)).converted].sort()).toEqual(['x.crlf', 'x.id', 'x.lfs', 'x.u16'])
    // A command that deletes the attributes does not make the blobs good.
    rmSync(join(world.root, '.gitattributes'))
    expect([...(await lookAtTree(tree)).converted].sort()).toEqual(['x.crlf', 'x.id', 'x.lfs', 'x.u16'])
  })

  it('do not stand for files under core.autocrlf, also after a refresh', async () => {
    world.git('config', 'core.autocrlf', 'true')
    rmSync(join(world.root, 'a.txt'))
    world.git('checkout', '-q', '--', 'a.txt')
    expect(world.read('a.txt')).toBe('a\r\n')
    const tree = await world.open()
    expect([...(await lookAtTree(tree)).converted]).toEqual(['a.txt'])
    const old = new Date(Date.now() - 100_000)
    utimesSync(join(world.root, 'a.txt'), old, old)
    expect(await tree.copy.refresh()).toBe(true)
    const look = await lookAtTree(tree)
    expect(look.dirty).not.toContain('a.txt')
    expect([...look.converted]).toEqual(['a.txt'])
  })
})

describe('opening', () => {
  const options = () => ({ indexFolder: world.indexFolder })
  const failing = (on: string, exit: { code: number, stderr: string }): GitRunner => (args, call) =>
    args.includes(on) ? Promise.resolve({ ...exit, stdout: Buffer.alloc(0) }) : runGit(args, call)

  it('finds no tree in a plain folder, without a git, in .git itself and in an ignored folder', async () => {
    const never: GitRunner = () => Promise.reject(new Error('git was started'))
    expect(await openGitTree(world.base, { ...options(), run: never })).toEqual({ kind: 'none' })
    expect(await openGitTree(join(world.root, '.git/hooks'), { ...options(), run: never })).toEqual({ kind: 'none' })
    world.write('.gitignore', 'out/\n')
    world.write('out/deep/x', '')
    expect(await openGitTree(join(world.root, 'out/deep'), options())).toEqual({ kind: 'none' })
  })

  it('gives the same tree again while its .git is the same, and a new one after a failure or another git init', async () => {
    const tree = await world.open()
    expect(await world.open()).toBe(tree)
    expect(await world.open(join(world.root, 'sub'))).not.toBe(tree)
    renameSync(join(world.root, '.git'), join(world.base, 'old-git'))
    world.git('init', '-q')
    const fresh = await world.open()
    expect(fresh).not.toBe(tree)
    expect((await lookAtTree(fresh)).untracked).toEqual(['a.txt', 'sub/b.txt', 'sub/run.sh'])
    writeFileSync(join(world.root, '.git/index'), 'not an index')
    await expect(lookAtTree(fresh)).rejects.toThrow(GitFailure)
    rmSync(join(world.root, '.git/index'))
    expect(await world.open()).not.toBe(fresh)
    expect(readdirSync(world.indexFolder)).toEqual([])
  })

  it('sees rules that ignore the workspace from now on', async () => {
    const sub = join(world.root, 'new:folder')
    world.write('new:folder/x', '')
    await world.open(sub)
    world.write('.gitignore', 'new*/\n')
    expect(await openGitTree(sub, options())).toEqual({ kind: 'none' })
  })

  it('says why a repository is broken', async () => {
    rmSync(join(world.root, '.git/HEAD'))
    expect(await openGitTree(world.root, options())).toMatchObject({ kind: 'broken', why: expect.stringContaining('not a git repository') })
    rmSync(join(world.root, '.git'), { recursive: true })
    writeFileSync(join(world.root, '.git'), 'gitdir: /no/such/folder\n')
    expect(await openGitTree(world.root, options())).toMatchObject({ kind: 'broken', why: expect.stringContaining('/no/such/folder') })
  })

  it('does not take an outer repository for a broken inner one', async () => {
    world.write('inner/.git/config', 'no repository\n')
    expect(await openGitTree(join(world.root, 'inner'), options())).toMatchObject({ kind: 'broken' })
  })

  it('finds a tree whose own name has a line break', async () => {
    const odd = join(world.base, 'line\nbreak')
    world.gitIn(world.base, 'clone', '-q', world.root, odd)

    expect(await lookAtTree(await world.open(odd))).toMatchObject({ ref: 'refs/heads/main', untracked: [] })
  })

  it('says that a work tree is elsewhere', async () => {
    const elsewhere = join(world.base, 'elsewhere')
    mkdirSync(elsewhere)
    world.git('config', 'core.worktree', elsewhere)
    expect(await openGitTree(realpathSync(world.root), options())).toMatchObject({ kind: 'broken' })
  })

  it('says that git is missing, refuses, or is too old', async () => {
    const missing: GitRunner = (args, call) => runGit(args, { ...call, env: { PATH: '' } })
    expect(await openGitTree(world.root, { ...options(), run: missing })).toMatchObject({ kind: 'broken', why: expect.stringContaining('cannot be started') })
    const stderr = `fatal: detected dubious ownership in repository at '/x'\nTo add an exception for this directory, call:\n`
    const refusing = failing('rev-parse', { code: 128, stderr })
    expect(await openGitTree(world.root, { ...options(), run: refusing }))
      .toEqual({ kind: 'broken', why: `detected dubious ownership in repository at '/x'` })
    const old: GitRunner = (args, call) => args.includes('version')
      ? Promise.resolve({ code: 0, stdout: Buffer.from('git version 2.19.9\n'), stderr: '' })
      : runGit(args, call)
    expect(await openGitTree(world.root, { ...options(), run: old })).toEqual({ kind: 'broken', why: 'git version 2.19.9 is too old' })
  })

  it('tells a look that git did not answer', async () => {
    const opened = await openGitTree(world.root, { ...options(), run: failing('diff-files', { code: 128, stderr: 'fatal: index file corrupt\n' }) })
    if (opened.kind !== 'tree') throw new Error(opened.kind)
    await expect(lookAtTree(opened.tree)).rejects.toThrow(new GitFailure('index file corrupt'))
    writeFileSync(join(world.root, '.git/index'), 'not an index')
    await expect(lookAtTree(await world.open())).rejects.toThrow(GitFailure)
  })

  it('ends a git that does not end', async () => {
    const waiting = runGit(['-c', 'alias.wait=!sleep 3', 'wait'], { cwd: world.root, env: process.env, timeoutMs: 50 })
    await expect(waiting).rejects.toThrow('took over 50 ms')
  })
})
