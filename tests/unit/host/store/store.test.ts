import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { opId, sessionId } from '../../../../src/ids.ts'
import { parseSegmentName, segmentPath, sessionFileName, storeLayout } from '../../../../host/store/store-layout.ts'
import { nodeFs, type StoreFs } from '../../../../host/store/store-fs.ts'
import { faultyFs } from './store-faults.ts'
import { aSession, aStore, before, positionOf, readAll, workspace } from './store-world.ts'

test('the store lies under DSH_HOME, else under ~/.dsh, else where it is told', () => {
  expect(storeLayout({ env: { DSH_HOME: '/h' } }).root).toBe('/h/data/turnback/v1')
  expect(storeLayout({ env: { DSH_HOME: '' } }).root).toMatch(/\/\.dsh\/data\/turnback\/v1$/)
  expect(storeLayout({ env: {} }).packs).toMatch(/\/\.dsh\/data\/turnback\/v1\/packs$/)
  expect(storeLayout({ env: { DSH_HOME: '/h' }, root: '/r' }).ops).toBe('/r/ops')
})

test('opening a store touches no disk', async () => {
  const world = await aStore()

  world.open().journal(aSession, workspace)

  await expect(stat(world.root)).rejects.toThrow('ENOENT')
})

test('gives the same journal for the same session', async () => {
  const store = (await aStore()).open()

  expect(store.journal(aSession, workspace)).toBe(store.journal(aSession, workspace))
  expect(store.journal(sessionId('other'), workspace)).not.toBe(store.journal(aSession, workspace))
})

const oddIds = ['../../etc/passwd', 'a/b', '.', '..', '', 'CON', 'é 日本 \u{1f600}', 'x'.repeat(500), `${'x'.repeat(500)}y`, 'a%2fb', 'a\0b', '\ud800', '\ud801', 'a-1', 'A', 'a']

test.each(oddIds)('keeps a session with the odd id %j', async (id) => {
  const world = await aStore()
  await positionOf(world.open().journal(sessionId(id), workspace), { entries: [before('a')] })

  const restarted = world.open()

  expect(await restarted.sessions()).toEqual([id])
  expect((await readAll(restarted.journal(sessionId(id), workspace))).names).toEqual(['a'])
  expect((await world.packs()).length).toBe(1)
})

test('different ids give different names, also when case is ignored; a name is one plain path part', () => {
  expect(new Set(oddIds.map((id) => sessionFileName(sessionId(id)).toLowerCase())).size).toBe(oddIds.length)
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 1e6 }), (a, b, n) => {
    const name = sessionFileName(sessionId(a))
    expect(name).toMatch(/^[a-z0-9_%~-]{1,120}$/)
    expect(name === sessionFileName(sessionId(b))).toBe(a === b)
    expect(parseSegmentName(segmentPath(storeLayout({ root: '/r' }), sessionId(a), n).slice('/r/packs/'.length))).toEqual({ session: name, segment: n })
  }))
})

test('one lock per session: a second take is busy, also from another store, until it is released', async () => {
  const world = await aStore()
  const store = world.open()
  const taken = await store.lock(aSession)

  expect(taken.ok).toBe(true)
  expect(await store.lock(aSession)).toMatchObject({ ok: false, failure: { code: 'busy' } })
  expect(await world.open().lock(aSession)).toMatchObject({ ok: false, failure: { code: 'busy' } })
  expect((await store.lock(sessionId('other'))).ok).toBe(true)

  if (taken.ok) await Promise.all([taken.value(), taken.value()])
  expect((await world.open().lock(aSession)).ok).toBe(true)
})

test('close gives locks back', async () => {
  const world = await aStore()
  const store = world.open()
  await store.lock(aSession)

  await store.close()

  expect((await world.open().lock(aSession)).ok).toBe(true)
})

/** The pid of a process that has just ended. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  return child.pid!
}

async function aLockOf(root: string, content: object | string): Promise<string> {
  await mkdir(join(root, 'locks'), { recursive: true })
  const path = join(root, 'locks', 'session-1.lock')
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const holder = { pid: process.pid, started: 'an earlier boot', host: hostname(), token: 'aaaa', atMs: Date.now() }

test('takes over the lock of a dead process, and of an ended one whose pid is used again', async () => {
  const dead = await aStore()
  await aLockOf(dead.root, { ...holder, pid: await deadPid() })
  const reused = await aStore()
  await aLockOf(reused.root, holder)

  for (const world of [dead, reused]) {
    expect((await world.open().lock(aSession)).ok).toBe(true)
    expect(await readdir(join(world.root, 'locks'))).toEqual(['session-1.lock'])
  }
})

test('of many who find a dead lock only one gets it', async () => {
  const world = await aStore()
  const pid = await deadPid()

  for (let round = 0; round < 10; round += 1) {
    await aLockOf(world.root, { ...holder, pid, token: `dead${round}` })
    const takes = await Promise.all(Array.from({ length: 8 }, () => world.open().lock(aSession)))
    expect(takes.filter(({ ok }) => ok).length).toBe(1)
  }
})

test('who saw a dead lock too late leaves the new one alone', async () => {
  const world = await aStore()
  const path = await aLockOf(world.root, { ...holder, pid: await deadPid() })
  const faster = world.open()
  let fasterGotIt = false
  const fs: StoreFs = {
    ...nodeFs,
    async open(file, flags, mode) {
      // Between the slower one's look at the dead lock and its own step, the faster one takes it over.
      if (file === `${path}.aaaa`) fasterGotIt = (await faster.lock(aSession)).ok
      return nodeFs.open(file, flags, mode)
    },
  }

  const late = await world.open({ fs }).lock(aSession)

  expect(fasterGotIt).toBe(true)
  expect(late).toMatchObject({ ok: false, failure: { code: 'busy' } })
  expect((await world.open().lock(aSession)).ok).toBe(false)
})

test('a take-over that died itself is taken over', async () => {
  const world = await aStore()
  const pid = await deadPid()
  const path = await aLockOf(world.root, { ...holder, pid })
  await writeFile(`${path}.aaaa`, JSON.stringify({ ...holder, pid, token: 'bbbb' }))

  expect((await world.open().lock(aSession)).ok).toBe(true)
  expect(await readdir(join(world.root, 'locks'))).toEqual(['session-1.lock'])
})

test('a lock of another machine holds until it is too old; a lock just being written holds', async () => {
  const world = await aStore()
  const take = async (content: object | string): Promise<boolean> => {
    await aLockOf(world.root, content)
    const taken = await world.open().lock(aSession)
    if (taken.ok) await taken.value()
    return taken.ok
  }

  expect(await take({ ...holder, host: 'elsewhere' })).toBe(false)
  expect(await take({ ...holder, host: 'elsewhere', atMs: Date.now() - 3_600_000 })).toBe(true)
  expect(await take('')).toBe(false)
  await utimes(join(world.root, 'locks', 'session-1.lock'), 1, 1)
  expect((await world.open().lock(aSession)).ok).toBe(true)
})

test('does not give back a lock that somebody else holds by now', async () => {
  const world = await aStore()
  const taken = await world.open().lock(aSession)
  const path = await aLockOf(world.root, holder)

  if (taken.ok) await taken.value()

  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(holder)
})

test('a lock that cannot be written is a failure of the store', async () => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const store = world.open({ fs })
  faults.set('mkdir', 'EROFS')

  expect(await store.lock(aSession)).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
  faults.clear()
  faults.set('file.write', 'ENOSPC')
  expect(await store.lock(aSession)).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
  faults.clear()
  expect((await store.lock(aSession)).ok).toBe(true)
})

test('open ops are found after a restart until they are cleared', async () => {
  const world = await aStore()
  const [one, two] = [opId('op000001'), opId('op000002')]
  const store = world.open()
  store.journal(aSession, workspace)
  await store.markOpenOp(aSession, one)
  await store.markOpenOp(aSession, two)

  const restarted = world.open()
  const open = await restarted.openOps()
  const cleared = [await restarted.clearOpenOp(aSession, one), await restarted.clearOpenOp(aSession, one)]

  expect(open).toHaveLength(2)
  expect(open).toContainEqual({ session: aSession, workspace, op: one })
  expect(cleared.every(({ ok }) => ok)).toBe(true)
  expect(await restarted.openOps()).toEqual([{ session: aSession, workspace, op: two }])
})

test('a flag that could not be written is not there, and is a failure', async () => {
  const world = await aStore()
  const { fs, faults } = faultyFs()
  const store = world.open({ fs })
  store.journal(aSession, workspace)

  for (const point of ['file.write', 'file.sync'] as const) {
    faults.set(point, 'ENOSPC')
    expect(await store.markOpenOp(aSession, opId('op000001'))).toMatchObject({ ok: false, failure: { code: 'store-unavailable' } })
    faults.clear()
  }

  expect(await store.openOps()).toEqual([])
  expect(await readdir(join(world.root, 'ops'))).toEqual([])
})

test('a flag that does not read is left out', async () => {
  const world = await aStore()
  await mkdir(join(world.root, 'ops'), { recursive: true })
  await writeFile(join(world.root, 'ops', 'session-1.op000001.json'), '{"session":')
  await writeFile(join(world.root, 'ops', 'session-1.op000002.json'), '{"session":"a"}')

  expect(await world.open().openOps()).toEqual([])
})
