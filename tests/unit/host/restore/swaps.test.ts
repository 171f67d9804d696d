import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { applyFiles } from '../../../../host/restore/apply.ts'
import { sameState, type FileState } from '../../../../src/checkpoint/file-state.ts'
import type { OpBeginEntry, OpRow } from '../../../../src/checkpoint/journal-entry.ts'
import { callsOf, faultyFileSystem, type FsCall } from '../../../support/faulty-fs.ts'
import { absent, anOpWorld, type OpWorld } from './op-world.ts'

/** Somebody changes the disk between two calls of apply. All actions are in the plan; each swap hits the folder `box` of one of its rows. */
let w: OpWorld
let begin: OpBeginEntry
const quick = { syncs: false }
beforeEach(async () => {
  w = await anOpWorld()
  begin = w.begin(rows(), ['made', 'made/sub'])
})
afterEach(() => w.clean())

const rows = (): OpRow[] => [
  w.row('box/edited.txt', w.file('agent'), w.file('mine')),
  w.row('box/run.sh', w.file('same', 0o644), w.file('same', 0o755)),
  w.row('box/link', w.link('agent'), w.link('mine')),
  w.row('box/new.txt', w.file('new'), absent),
  w.row('box/gone/back.txt', absent, w.file('back'), ['box/gone']),
  w.row('made/sub/new.txt', w.file('new'), absent),
  w.row('other/edited.txt', w.file('agent'), w.file('mine')),
]

async function lay(): Promise<void> {
  for (const name of ['box', 'box-aside', 'made', 'other', 'elsewhere']) await w.lay(name, absent)
  for (const { path, was } of begin.rows) if (was.kind !== 'absent') await w.lay(nameOf(path), was)
  await w.lay('elsewhere/user.txt', w.file('user'))
}
const nameOf = (path: string): string => path.slice(w.root.length + 1)
const temps = async (): Promise<string[]> => Object.keys(await w.snapshot()).filter(name => name.includes('.turnback-'))

/** Between the last of these and the change itself nobody can tell any more; that is a call or two. */
const LOOKS = ['lstat', 'readlink', 'file.stat']
const isTheChange = ({ fn, path }: FsCall, at: string): boolean => (fn === 'rename' || fn === 'unlink' || fn === 'rmdir') && path === at

interface Swap {
  readonly what: string
  /** The row that is hit. */
  readonly hit: string
  swap(path: string): Promise<void>
}

const swaps: readonly Swap[] = [
  ...['box/edited.txt', 'box/new.txt', 'box/link', 'box/run.sh'].flatMap((hit): Swap[] => [
    { what: 'gets other bytes', hit, swap: async (path) => { await rm(path, { force: true }); await writeFile(path, 'user') } },
    { what: 'becomes a folder with something in it', hit, swap: async (path) => { await rm(path, { force: true }); await mkdir(path); await writeFile(`${path}/user.txt`, 'user') } },
    { what: 'becomes a link', hit, swap: async (path) => { await rm(path, { force: true }); await symlink('elsewhere-of-the-user', path) } },
  ]),
  { what: 'gets another mode', hit: 'box/edited.txt', swap: path => chmod(path, 0o600) },
  { what: 'appears', hit: 'box/gone/back.txt', swap: async (path) => { await mkdir(dirname(path), { recursive: true }); await writeFile(path, 'user') } },
]

describe.each(swaps)('while $hit $what', ({ hit, swap }) => {
  test('at any call: what the user put there stays or was never under the change, and all other rows are done', async () => {
    const calls = await lay().then(() => callsOf(fs => applyFiles(begin, { ...w.deps, fs, rowsAtATime: 1 }), quick))
    const path = w.at(hit)
    const changed = calls.findIndex(call => isTheChange(call, path))
    expect(changed).toBeGreaterThan(0)
    const lastLook = calls.findLastIndex((call, index) => index < changed && call.path === path && LOOKS.includes(call.fn))
    const moments = calls.slice(0, lastLook + 1)
    expect(moments.length).toBeGreaterThan(3)
    for (const { number, fn, path: at } of process.env.TURNBACK_LONG === '1' ? moments : moments.filter((_call, index) => index % 4 === 0 || index > moments.length - 6)) {
      await lay()
      let user: FileState | undefined
      const before = async ({ number: now }: FsCall): Promise<void> => {
        if (now !== number) return
        await swap(path)
        user = await w.stateOf(hit)
      }

      const { outcomes } = await applyFiles(begin, { ...w.deps, fs: faultyFileSystem({ ...quick, before }), rowsAtATime: 1 })

      const what = `before call ${number}: ${fn} ${at}`
      expect(await w.stateOf(hit), what).toEqual(user)
      expect(outcomes.find(outcome => outcome.path === path), what).toMatchObject({ result: 'failed', reason: expect.any(String) })
      for (const row of begin.rows) {
        if (row.path === path) continue
        expect(sameState(await w.stateOf(nameOf(row.path)), row.goal), `${what}: ${row.path}`).toBe(true)
        expect(outcomes.find(outcome => outcome.path === row.path), what).toMatchObject({ result: 'restored' })
      }
      expect(await temps(), what).toEqual([])
    }
  }, 60_000)
})

test('while a link takes the place of the folder, at any call: nothing is written behind it, and what was done is told', async () => {
  const calls = await lay().then(() => callsOf(fs => applyFiles(begin, { ...w.deps, fs, rowsAtATime: 1 }), quick))
  const outside = await lay().then(() => w.snapshot())
  for (const { number, fn, path } of process.env.TURNBACK_LONG === '1' ? calls : calls.filter(call => call.number % 3 === 0)) {
    await lay()
    const before = async (call: FsCall): Promise<void> => {
      if (call.number !== number) return
      await rename(w.at('box'), w.at('box-aside'))
      await symlink('elsewhere', w.at('box'))
    }

    const { outcomes } = await applyFiles(begin, { ...w.deps, fs: faultyFileSystem({ ...quick, before }), rowsAtATime: 1 })

    const what = `before call ${number}: ${fn} ${path}`
    // A call that was on its way already goes through the link, as nothing in user space can keep it from; then it is only a sibling of ours.
    const behind = Object.entries(await w.snapshot()).filter(([name]) => name.startsWith('elsewhere'))
    const isOnItsWay = ['open', 'symlink', 'mkdir', 'rename'].includes(fn)
    if (!isOnItsWay) expect(Object.fromEntries(behind), what).toEqual({ elsewhere: outside.elsewhere, 'elsewhere/user.txt': outside['elsewhere/user.txt'] })
    expect(behind.find(([name]) => name === 'elsewhere/user.txt')?.[1], what).toBe(outside['elsewhere/user.txt'])
    for (const row of begin.rows.filter(({ path: one }) => one.startsWith(w.at('box/')))) {
      const aside = await w.stateOf(nameOf(row.path).replace('box/', 'box-aside/'))
      const outcome = outcomes.find(one => one.path === row.path)
      if (!sameState(aside, row.goal)) expect([what, outcome?.result]).toEqual([what, 'failed'])
      if (!sameState(aside, row.goal)) expect(sameState(aside, row.was), `${what}: ${row.path}`).toBe(true)
    }
    expect(await w.stateOf('other/edited.txt'), what).toEqual(w.file('mine'))
  }
}, 60_000)
