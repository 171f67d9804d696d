import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { aWorld, edits, type Chat, type Host, type World } from '../support/in-process-host.ts'

/** Errno that every write to the store fails with. */
const broken = vi.hoisted(() => ({ write: undefined as string | undefined }))
beforeEach(() => { broken.write = undefined })

vi.mock(import('../../host/store/store-fs.ts'), async (load) => {
  const real = await load()
  const open: typeof real.nodeFs.open = async (...args) => {
    const file = await real.nodeFs.open(...args)
    const unlessBroken = <T>(work: () => Promise<T>): Promise<T> => broken.write === undefined
      ? work()
      : Promise.reject(Object.assign(new Error(`${broken.write}: injected, write`), { code: broken.write }))
    return {
      write: (...bytes) => unlessBroken(() => file.write(...bytes)),
      writev: (...parts) => unlessBroken(() => file.writev(...parts)),
      read: (...more) => file.read(...more), truncate: length => file.truncate(length),
      datasync: () => file.datasync(), sync: () => file.sync(), close: () => file.close(),
    }
  }
  return { ...real, nodeFs: { ...real.nodeFs, open } }
})

const store = (world: World, folder: string): string => join(world.home, 'data', 'turnback', 'v1', folder)
const openOps = (world: World): readonly string[] => readdirSync(store(world, 'ops'))

/** Runs `/rollback 1` in session `id` and keeps the disk as it was at `phase`; the host is stopped then. */
async function killedAt(phase: string, world: World, id = 's1'): Promise<void> {
  const host = await world.start()
  const chat = await host.open(id)
  await chat.turn('first', ...edits('a.txt', '1', '2'))
  let snapshot: ReturnType<World['snapshot']> | undefined
  host.ctx.on('turnback/phase', (now: { phase: string }) => { if (now.phase === phase) snapshot ??= world.snapshot() })
  await chat.command('/rollback 1')
  await host.stop()
  snapshot!.restore()
}

const lockOf = (world: World): string => join(store(world, 'locks'), 's1.lock')
const holdElsewhere = (world: World): void => {
  const holder = JSON.parse(readFileSync(lockOf(world), 'utf8'))
  writeFileSync(lockOf(world), JSON.stringify({ ...holder, host: 'another machine', atMs: Date.now() }))
}

/** Stops the host, starts the next one and lets it look at what is open. */
async function restarted(world: World, host: Host): Promise<Chat> {
  await host.stop()
  const chat = await (await world.start({ complains: true })).open()
  await chat.agent.whenIdle()
  await expect.poll(() => openOps(world)).toEqual([])
  return chat
}

describe('an op that a dead host left open and no start could end', () => {
  it('is ended before the next one of the session, so that no later start takes the next one back', async () => {
    const world = aWorld({ 'a.txt': '1' })
    await killedAt('op-applied', world)
    holdElsewhere(world)
    const host = await world.start()
    const chat = await host.open()
    await chat.agent.whenIdle()
    expect(openOps(world)).toHaveLength(1)
    rmSync(lockOf(world))

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
    await restarted(world, host)

    expect(world.read('a.txt')).toBe('1')
  })

  it('of a session that is no more keeps no other session from its recovery', async () => {
    const world = aWorld({ 'a.txt': '1' })
    await killedAt('op-applied', world)
    rmSync(lockOf(world))
    mkdirSync(store(world, 'ops'), { recursive: true })
    for (const gone of ['a-gone', 'z-gone']) {
      writeFileSync(join(store(world, 'ops'), `${gone}.0123456789abcdef.json`), JSON.stringify({ session: gone, workspace: world.ws, op: '0123456789abcdef' }))
    }

    await world.start({ complains: true })

    await expect.poll(() => world.read('a.txt')).toBe('2')
  })
})

describe('an op whose marker is in memory alone', () => {
  it('is not counted as done by a plugin that was loaded anew, as long as the log cannot be flushed', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false, complains: true })
    const row = await host.install()
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    const { sessions } = host.ctx
    const { flush } = sessions
    sessions.flush = () => Promise.reject(new Error('no log now'))
    await chat.command('/rollback 1')
    await row.dispose()
    await host.install()

    expect((await chat.command('/rollback undo')).kind).toBe('error')
    expect([openOps(world).length, world.read('a.txt')]).toEqual([1, '1'])
    sessions.flush = flush
    expect((await chat.command('/rollback undo')).kind).toBe('success')

    expect([openOps(world).length, world.read('a.txt')]).toEqual([0, '2'])
  })
})

describe('an undo whose end cannot be noted', () => {
  it('is refused and puts the files back, and a later start agrees', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ complains: true })
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    await chat.command('/rollback 1')
    const stop = host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => { if (phase === 'file') broken.write = 'ENOSPC' })

    const undone = await chat.command('/rollback undo')
    stop()
    broken.write = undefined
    const told = world.read('a.txt')
    await restarted(world, host)

    expect([undone.kind, told]).toEqual(['error', '1'])
    expect(world.read('a.txt')).toBe('1')
  })
})

describe('a rollback that was taken back while the store failed', () => {
  it('is not taken back a second time after the next one succeeded', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ complains: true })
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    const stop = host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => { if (phase === 'file') broken.write = 'ENOSPC' })
    const { append } = chat.session
    chat.session.append = (type: string, ...rest: unknown[]) => {
      if (type === 'user/message') throw new Error('no marker now')
      return append.call(chat.session, type, ...rest)
    }
    expect((await chat.command('/rollback 1')).kind).toBe('error')
    expect(world.read('a.txt')).toBe('2')
    stop()
    broken.write = undefined
    delete chat.session.append

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
    await restarted(world, host)

    expect(world.read('a.txt')).toBe('1')
  })
})
