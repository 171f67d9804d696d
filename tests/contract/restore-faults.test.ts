import { basename, join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { aWorld, edits, runs, writes } from '../support/in-process-host.ts'
import { journalOf, stored } from './support/journal.ts'

/** The call that fails: its function, and whether it is one on that path. */
const broken = vi.hoisted(() => ({ fails: undefined as undefined | ((fn: string, path: string) => string | undefined) }))
beforeEach(() => { broken.fails = undefined })

vi.mock(import('../../host/restore/file-system.ts'), async (load) => {
  const real = await load()
  const tried = <A extends unknown[], T>(fn: string, path: string, run: (...args: A) => Promise<T>) => async (...args: A): Promise<T> => {
    const code = broken.fails?.(fn, path)
    if (code !== undefined) throw Object.assign(new Error(`${code}: injected, ${fn}`), { code })
    return run(...args)
  }
  const { nodeFileSystem: disk } = real
  return {
    ...real,
    nodeFileSystem: {
      ...disk,
      open: async (path, flags, mode) => {
        const file = await tried('open', path, () => disk.open(path, flags, mode))()
        return { ...file, write: tried('write', path, file.write), sync: tried('sync', path, file.sync), chmod: tried('chmod', path, file.chmod) }
      },
      rename: (from, to) => tried('rename', to, () => disk.rename(from, to))(),
      unlink: path => tried('unlink', path, () => disk.unlink(path))(),
      symlink: (target, path) => tried('symlink', path, () => disk.symlink(target, path))(),
      mkdir: (path, mode) => tried('mkdir', path, () => disk.mkdir(path, mode))(),
      rmdir: path => tried('rmdir', path, () => disk.rmdir(path))(),
    },
  }
})

/** A turn that changes files in every way; the name of what each row is about. */
async function aTurnWithAllActions() {
  const world = aWorld({ 'edited.txt': '1', 'other.txt': '1', 'lib/back/gone.txt': 'gone', 'run.sh': 'echo' })
  const host = await world.start({ complains: true })
  const chat = await host.open()
  const goal = world.tree()
  await chat.turn(
    'all of it', ...edits('edited.txt', '1', '2'), ...edits('other.txt', '1', '2'), writes('made/sub/new.txt', 'n'),
    runs('rm -r lib/back && chmod 755 run.sh && ln -s edited.txt link'), 'done',
  )
  return { world, chat, goal, start: world.tree() }
}

const isTempOf = (path: string, name: string): boolean => basename(path).startsWith(`.${name}.turnback-`)

interface Fault {
  readonly what: string
  readonly code: string
  readonly hit: string
  fails(fn: string, path: string): boolean
}

const faults: readonly Fault[] = [
  { what: 'no room for the new bytes', code: 'ENOSPC', hit: 'edited.txt', fails: (fn, path) => fn === 'write' && isTempOf(path, 'edited.txt') },
  { what: 'a disk that does not take them', code: 'EIO', hit: 'edited.txt', fails: (fn, path) => fn === 'sync' && isTempOf(path, 'edited.txt') },
  { what: 'a file that is in use', code: 'EBUSY', hit: 'edited.txt', fails: (fn, path) => fn === 'rename' && basename(path) === 'edited.txt' },
  { what: 'a mode that cannot be set', code: 'EACCES', hit: 'run.sh', fails: (fn, path) => fn === 'chmod' && isTempOf(path, 'run.sh') },
  { what: 'a folder that cannot be made again', code: 'EACCES', hit: 'lib/back/gone.txt', fails: (fn, path) => fn === 'mkdir' && basename(path) === 'back' },
  { what: 'a folder that takes no new file', code: 'ENOSPC', hit: 'lib/back/gone.txt', fails: (fn, path) => fn === 'open' && isTempOf(path, 'gone.txt') },
  { what: 'a file that cannot be removed', code: 'EBUSY', hit: 'made/sub/new.txt', fails: (fn, path) => fn === 'unlink' && basename(path) === 'new.txt' },
  { what: 'a link that cannot be removed', code: 'EIO', hit: 'link', fails: (fn, path) => fn === 'unlink' && basename(path) === 'link' },
]

describe.each(faults)('a rollback that meets $what ($code at $hit)', ({ code, hit, fails }) => {
  it('does all the rest, says what the disk says, keeps the rescue, and can be undone', async () => {
    const { world, chat, goal, start } = await aTurnWithAllActions()
    broken.fails = (fn, path) => (fails(fn, path) ? code : undefined)

    const { kind, text = '' } = await chat.command('/rollback 1')

    broken.fails = undefined
    const isPart = (name: string): boolean => name === hit || hit.startsWith(`${name}/`)
    const after = world.tree()
    expect(kind).toBe('success')
    for (const name of new Set([...Object.keys(start), ...Object.keys(goal)])) {
      if (!isPart(name)) expect([name, after[name]]).toEqual([name, goal[name]])
    }
    expect(after[hit]).toBe(start[hit])
    expect(Object.keys(after).filter(name => name.includes('turnback-'))).toEqual([])
    // The one that failed has a line of its own with the reason; no line claims it.
    const lines = text.split('\n').filter(line => line.includes(hit))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/could not|not be|failed/i)
    const [done] = await journalOf(world, chat, 'op-done')
    const [begin] = await journalOf(world, chat, 'op-begin')
    expect(done!.outcomes.filter(({ result }) => result === 'failed').map(({ path, reason }) => [path, reason])).toEqual([[join(world.ws, hit), code]])
    for (const { path, result } of done!.outcomes.filter(outcome => outcome.action !== undefined && outcome.path !== join(world.ws, hit))) expect([path, result]).toEqual([path, 'restored'])
    for (const { was } of begin!.rows) if (was.kind === 'file') expect(await stored(world, chat, was)).toBeDefined()

    expect((await chat.command('/rollback undo')).kind).toBe('success')
    expect(world.tree()).toEqual(start)
  })
})
