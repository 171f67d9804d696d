import { chmodSync, existsSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { headOf } from '../../../../host/capture/git-head.ts'
import { aLookWorld, type LookWorld } from './look-world.ts'
import { makeGitWorld, type GitWorld } from './git-world.ts'

let world: GitWorld
beforeEach(() => {
  world = makeGitWorld()
  vi.stubEnv('HOME', world.base)
  vi.stubEnv('XDG_CONFIG_HOME', join(world.base, 'xdg'))
  vi.stubEnv('GIT_CONFIG_NOSYSTEM', '1')
  world.git('config', 'user.name', 'a')
  world.git('config', 'user.email', 'a@example.org')
})
afterEach(() => {
  vi.unstubAllEnvs()
  world.remove()
})

const looks = (more: Partial<Parameters<typeof aLookWorld>[0]> = {}): LookWorld =>
  aLookWorld({ workspace: world.root, indexFolder: world.indexFolder, ...more })
const at = (path: string): string => join(world.root, path)

/** Commits everything; files and index are then old, so that stat data alone tell what is unchanged. */
function commit(): void {
  world.git('add', '-A')
  world.git('commit', '-q', '-m', 'more', '--allow-empty')
  settle()
}

function settle(): void {
  const old = new Date(Date.now() - 100_000)
  for (const path of world.git('ls-files', '-z').split('\0').filter(Boolean)) if (existsSync(at(path))) utimesSync(at(path), old, old)
  world.git('update-index', '-q', '--refresh')
}

/** Attributes for files that are then checked out, with what they are in the work tree. */
function checkedOut(attributes: string, files: Readonly<Record<string, string | Buffer>>): void {
  world.write('.gitattributes', attributes)
  for (const [path, content] of Object.entries(files)) world.write(path, content)
  commit()
  for (const path of Object.keys(files)) rmSync(at(path))
  world.git('checkout', '-q', '--', '.')
  settle()
}

describe('a tracked file that git keeps in another form', () => {
  it.each([
    ['line ends', 'x text eol=crlf\n', 'one\ntwo\n', 'one\r\ntwo\r\n'],
    ['an ident', 'x ident\n', '$Id$\n', '$Id: 055c8729cdcc372500a08db659c045e16c4409fb $\n'],
    ['an encoding', 'x text working-tree-encoding=UTF-16BE\n', Buffer.from('\0a\0\n', 'latin1'), '\0a\0\n'],
  ])('by %s comes back in the form it had', async (_name, attributes, content, form) => {
    checkedOut(attributes, { x: content })

    expect(await looks().around('rm x')).toEqual([`x: ${JSON.stringify(form)} 644 -> absent`])
  })

  it('by core.autocrlf comes back in the form it had, and so after the setting is made between two commands', async () => {
    const at = looks()
    expect(await at.around('true')).toEqual([])
    world.git('config', 'core.autocrlf', 'true')
    rmSync(join(world.root, 'a.txt'))
    world.git('checkout', '-q', '--', 'a.txt')
    settle()

    expect(await at.around('echo new > a.txt')).toEqual(['a.txt: "a\\r\\n" 644 -> "new\\n" 644'])
  })

  it.each([
    ['.gitattributes that is tracked', '.gitattributes'],
    ['.gitattributes that is not tracked', 'sub/.gitattributes'],
    ['info/attributes', '.git/info/attributes'],
  ])('by a filter that %s names comes back, and the filter is not run', async (_name, place) => {
    const marker = join(world.base, 'ran')
    world.git('config', 'filter.up.clean', `touch ${marker}; tr a-z A-Z`)
    world.git('config', 'filter.up.smudge', `touch ${marker}; tr A-Z a-z`)
    world.write(place, '*.up filter=up\n')
    world.write('sub/x.up', 'text\n')
    world.git('add', 'sub/x.up', ...(place === '.gitattributes' ? [place] : []))
    world.git('commit', '-q', '-m', 'filtered')
    settle()
    rmSync(marker)
    expect(world.git('show', 'HEAD:sub/x.up')).toBe('TEXT\n')

    // The blob has the very size of the file: no more than the attribute tells that it is not its bytes.
    expect(await looks().around('echo other > sub/x.up')).toEqual(['sub/x.up: "text\\n" 644 -> "other\\n" 644'])
    expect(existsSync(marker)).toBe(false)
  })

  it('comes back after a command that also deletes and commits the rules', async () => {
    checkedOut('x text eol=crlf\n', { x: 'one\n' })

    const rows = await looks().around('git rm -q .gitattributes && git commit -qm gone && rm x')

    expect(rows).toContain('x: "one\\r\\n" 644 -> absent')
  })

  it('is only what a budget leaves out: not saved then, a gap, and new files are still known to be new', async () => {
    checkedOut('*.x text eol=crlf\n', { 'a.x': 'a\n', 'b.x': 'b\n', 'c.x': 'c\n' })
    const at = looks({ budget: { maxNewBytes: 2 } })

    expect(await at.around('rm *.x; echo n > n')).toEqual([
      'a.x: "a\\r\\n" 644 -> absent', 'b.x: not-saved -> absent', 'c.x: not-saved -> absent', 'n: absent -> "n\\n" 644',
    ])
    expect(at.wasComplete()).toBe(false)
  })

  it('over the size limit is watched: nothing is said while it stays, and too large when it goes', async () => {
    world.git('config', 'filter.lfs.clean', 'cut -c -3')
    checkedOut('*.big filter=lfs\n', { 'x.big': 'b'.repeat(3000) })
    world.write('x.big', 'b'.repeat(3000))
    settle()
    const at = looks({ maxFileBytes: 1000 })

    expect(await at.around('echo n > n')).toEqual(['n: absent -> "n\\n" 644'])
    expect(await at.around('rm x.big')).toEqual(['x.big: too-large -> absent'])
  })

  it('costs no question without rules, and none with the rules and the index of the look before', async () => {
    const asked = (commands: string[]) => commands.filter(name => ['check-attr', 'cat-file', 'config'].includes(name)).sort()
    const plain = looks()
    await plain.around('true')
    expect(asked(plain.gitCommands())).toEqual(['config'])

    checkedOut('x text eol=crlf\n', { x: 'one\n' })
    await plain.around('true')
    expect(asked(plain.gitCommands())).toEqual(['cat-file', 'check-attr'])
    await plain.around('true')
    expect(asked(plain.gitCommands())).toEqual([])
  })

  it('that a switch of branches rewrote is git’s own move', async () => {
    checkedOut('x text eol=crlf\n', { x: 'one\n' })
    world.git('switch', '-q', '-c', 'side')
    world.write('x', 'two\r\n')
    commit()
    const at = looks()

    expect(await at.around('git switch -q main')).toEqual(['x: "two\\r\\n" 644 -> "one\\r\\n" 644'])
    expect(at.last().seen.map(({ byGit }) => byGit)).toEqual([true])
  })
})

describe('permission bits of a committed file', () => {
  beforeEach(() => {
    world.write('key', 'secret\n')
    chmodSync(at('key'), 0o600)
    commit()
  })

  it('are those it had, whether the command removes it, replaces it or changes no more than them', async () => {
    const at = looks()

    expect(await at.around('rm key')).toEqual(['key: "secret\\n" 600 -> absent'])
    world.git('checkout', '-q', '--', 'key')
    chmodSync(join(world.root, 'key'), 0o600)
    settle()
    expect(await at.around('echo new > n && chmod 644 n && mv n key')).toEqual(['key: "secret\\n" 600 -> "new\\n" 644'])
    world.git('checkout', '-q', '--', 'key')
    chmodSync(join(world.root, 'key'), 0o600)
    settle()
    expect(await at.around('chmod 640 key')).toEqual(['key: "secret\\n" 600 -> "secret\\n" 640'])
  })

  it('are known after the index has changed for other files, and are looked up anew for this one', async () => {
    const at = looks()
    await at.around('echo 2 > a.txt && git add a.txt')
    expect(await at.around('chmod 640 key')).toEqual(['key: "secret\\n" 600 -> "secret\\n" 640'])
    settle()

    expect(await at.around('rm key')).toEqual(['key: "secret\\n" 640 -> absent'])
  })

  it('are known in a copy of the tree, whose stat data are all stale', async () => {
    for (let n = 0; n < 1_100; n += 1) world.write(`many/${n}`, `${n}\n`)
    commit()
    const copy = join(world.base, 'copy')
    world.gitIn(world.base, 'clone', '-q', world.root, 'other')
    rmSync(join(world.base, 'other'), { recursive: true })
    const { cpSync } = await import('node:fs')
    cpSync(world.root, copy, { recursive: true, preserveTimestamps: true })
    chmodSync(join(copy, 'key'), 0o600)
    const at = aLookWorld({ workspace: copy, indexFolder: world.indexFolder })
    await at.around('true')

    expect(await at.around('chmod 640 key')).toEqual(['key: "secret\\n" 600 -> "secret\\n" 640'])
  })
})

describe('a repository that the command deletes', () => {
  it('names what it touched and nothing else, even when all of it was written a moment ago', async () => {
    world.git('add', '-A')
    world.git('commit', '-q', '-m', 'now', '--allow-empty')

    const at = looks()
    const rows = await at.around('rm -rf .git; echo 2 > sub/b.txt')

    expect(rows.filter(row => !row.startsWith('sub/b.txt: '))).toEqual([])
    expect(at.last().isComplete).toBe(false)
  })

  it('has clean files that it changed named as not saved', async () => {
    settle()

    expect(await looks().around('rm -rf .git; echo 2 > a.txt')).toEqual(['a.txt: not-saved -> "2\\n" 644'])
  })
})

describe('where HEAD is', () => {
  it.each<[string, string[][]]>([
    ['a branch', []],
    ['a branch in packed refs', [['pack-refs', '--all']]],
    ['a branch with a slash', [['switch', '-q', '-c', 'a/b']]],
    ['detached', [['checkout', '-q', '--detach']]],
    ['a branch without a commit', [['checkout', '-q', '--orphan', 'new']]],
    ['a branch that stands for another', [['symbolic-ref', 'refs/heads/alias', 'refs/heads/main'], ['symbolic-ref', 'HEAD', 'refs/heads/alias']]],
  ])('is what git says: %s', async (_name, commands) => {
    for (const command of commands) world.git(...command)
    const truth = (): unknown => {
      const ask = (...args: string[]): string | undefined => {
        try {
          return world.git(...args).trim()
        } catch {
          return undefined
        }
      }
      const head = ask('rev-parse', '--verify', '-q', 'HEAD')
      const ref = head === undefined ? ask('symbolic-ref', '-q', 'HEAD') : ask('rev-parse', '--symbolic-full-name', 'HEAD')
      return { head, ref: ref === 'HEAD' ? undefined : ref }
    }
    const tree = await world.open()

    expect(await headOf(tree)).toEqual(truth())
    // And again, from what was learned, also after a commit.
    expect(await headOf(tree)).toEqual(truth())
    world.git('commit', '-q', '-m', 'next', '--allow-empty')
    expect(await headOf(tree)).toEqual(truth())
  })

  it('is read in a linked work tree', async () => {
    const linked = join(world.base, 'linked')
    world.git('worktree', 'add', '-q', linked, '-b', 'side')

    expect(await headOf(await world.open(linked))).toEqual({ head: world.git('rev-parse', 'HEAD').trim(), ref: 'refs/heads/side' })
  })

  it('costs no process while it has the plain form', async () => {
    const at = looks()
    await at.around('true')
    at.gitCommands()
    await at.around('true')

    expect(at.gitCommands().sort()).toEqual(['diff-files', 'diff-files', 'ls-files', 'ls-files'])
  })
})

it('a link and a submodule that is not there are no reason to stumble', async () => {
  symlinkSync('a.txt', at('l'))
  world.git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},module`)
  world.git('add', 'l')
  world.git('commit', '-q', '-m', 'odd')
  settle()
  writeFileSync(at('n'), 'n')

  expect(await looks().around('rm l; rm n')).toEqual(['l: link a.txt -> absent', 'n: "n" 644 -> absent'])
})
