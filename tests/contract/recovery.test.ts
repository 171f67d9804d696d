import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { markerTexts } from '../../src/surface/marker.ts'
import { journalOf } from './support/journal.ts'
import { aWorld, edits, writes, type Chat, type Host, type World } from '../support/in-process-host.ts'

/** Paths that the operating system refuses to write. */
const blocked = vi.hoisted(() => new Set<string>())
beforeEach(() => { blocked.clear() })

vi.mock(import('../../host/restore/file-system.ts'), async (load) => {
  const real = await load()
  const check = (path: string): void => {
    if (blocked.has(path)) throw Object.assign(new Error(`EBUSY: injected, ${path}`), { code: 'EBUSY' })
  }
  return {
    ...real,
    nodeFileSystem: {
      ...real.nodeFileSystem,
      rename: async (from, to) => { check(to); await real.nodeFileSystem.rename(from, to) },
      unlink: async (path) => { check(path); await real.nodeFileSystem.unlink(path) },
    },
  }
})

/** The disk as a process leaves it that is killed at this phase of an op. */
interface Crash {
  readonly phase: string
  restore(): void
}

/** The long run dies between every two changes of the disk, the short one at some of them. */
const stride = process.env.TURNBACK_LONG === '1' ? 1 : 4
const deadPid = spawnSync('true').pid

/** The holder of each lock is a process that is gone. */
function killHolders(world: World): void {
  const locks = join(world.home, 'data', 'turnback', 'v1', 'locks')
  for (const name of readdirSync(locks)) {
    const path = join(locks, name)
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), pid: deadPid }))
  }
}

/** Every moment at which the process could die while `act` runs, as copies of the disk. */
async function crashesDuring(world: World, host: Host, act: () => Promise<unknown>): Promise<readonly Crash[]> {
  const crashes: Crash[] = []
  let steps = 0
  host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => {
    if (phase === 'file' && steps++ % stride !== 0) return
    const { restore } = world.snapshot()
    crashes.push({ phase, restore: () => { restore(); killHolders(world) } })
  })
  await act()
  return crashes
}

const openOps = (world: World): readonly string[] => readdirSync(join(world.home, 'data', 'turnback', 'v1', 'ops'))
const temps = (world: World): readonly string[] => Object.keys(world.tree()).filter(name => name.includes('turnback-'))
const isCut = (chat: Chat): boolean => chat.surface().some(line => Object.values(markerTexts).some(text => line.includes(text)))

async function aRollbackToCome() {
  const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
  const host = await world.start()
  const chat = await host.open()
  const goal = world.tree()
  await chat.turn('first', ...edits('a.txt', '1', '2'), ...edits('b.txt', '1', '2'), writes('new/deep/n.txt', 'n'), 'one')
  return { world, host, chat, goal, start: world.tree() }
}

/** What every start after a crash has to show: the session opens, nothing is open or left over, and a second start changes nothing. */
async function recovers(world: World, look: (chat: Chat) => void): Promise<void> {
  const host = await world.start()
  const atRequest: (readonly string[])[] = []
  host.model.onRequest = () => { atRequest.push(openOps(world)) }
  const chat = await host.open()
  await chat.turn('after the crash', 'ok then')
  look(chat)
  // The prompt had to wait: a request in the middle of it would work on files that still move.
  expect(atRequest).toEqual([[]])
  expect(openOps(world)).toEqual([])
  expect(temps(world)).toEqual([])
  const [tree, surface] = [world.tree(), chat.surface()]
  await host.stop()

  const second = await world.start()
  const again = await second.open()
  await again.agent.whenIdle()
  expect(world.tree()).toEqual(tree)
  expect(again.surface()).toEqual(surface)
  await second.stop()
}

describe('a host killed in the middle of a rollback', () => {
  it('comes back with files and conversation in step, whatever the moment', async () => {
    const { world, host, chat, goal, start } = await aRollbackToCome()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback 1'))
    await host.stop()

    expect([...new Set(crashes.map(crash => crash.phase))]).toEqual(['op-begin', 'file', 'op-applied', 'marker', 'flushed', 'op-done'])
    const ends: string[] = []
    for (const { phase, restore } of crashes) {
      restore()
      await recovers(world, (chat) => {
        expect([phase, isCut(chat), world.tree()]).toEqual([phase, isCut(chat), isCut(chat) ? goal : start])
        ends.push(`${phase} ${isCut(chat) ? 'finished' : 'taken back'}`)
      })
    }
    expect([...new Set(ends)]).toEqual([
      'op-begin taken back', 'file taken back', 'op-applied taken back', 'marker taken back', 'flushed finished', 'op-done finished',
    ])
  })

  it('can be rolled back again after that, and undone', async () => {
    const { world, host, chat, goal, start } = await aRollbackToCome()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback 1'))
    await host.stop()

    for (const phase of ['op-applied', 'flushed']) {
      crashes.find(crash => crash.phase === phase)!.restore()
      const again = await (await world.start()).open()
      await again.agent.whenIdle()
      if (!isCut(again)) expect((await again.command('/rollback 1')).kind).toBe('success')
      expect([phase, world.tree()]).toEqual([phase, goal])
      expect((await again.command('/rollback undo')).kind).toBe('success')
      expect([phase, world.tree()]).toEqual([phase, start])
      await again.host.stop()
    }
  })

  it('takes files back at the start, before anybody opens the session', async () => {
    const { world, host, chat, start } = await aRollbackToCome()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback 1'))
    await host.stop()

    crashes.findLast(crash => crash.phase === 'file')!.restore()
    await world.start()

    await expect.poll(() => openOps(world)).toEqual([])
    expect(world.tree()).toEqual(start)
  })

  it('keeps what a person changed between the crash and the next start, and names nothing as done', async () => {
    const { world, host, chat } = await aRollbackToCome()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback 1'))
    await host.stop()
    crashes.findLast(crash => crash.phase === 'file')!.restore()
    world.write('a.txt', 'mine')

    await recovers(world, (chat) => {
      expect(isCut(chat)).toBe(false)
      expect(world.tree()).toMatchObject({ 'a.txt': 'mine', 'b.txt': '2', 'new/deep/n.txt': 'n' })
    })
  })

  it('is ended once by two hosts that start together, whatever the moment', async () => {
    const { world, host, chat, goal, start } = await aRollbackToCome()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback 1'))
    await host.stop()

    for (const phase of ['op-begin', 'file', 'op-applied', 'flushed']) {
      crashes.findLast(crash => crash.phase === phase)!.restore()
      const hosts = await Promise.all([world.start(), world.start()])

      await expect.poll(() => openOps(world)).toEqual([])
      expect([phase, world.tree()]).toEqual([phase, phase === 'flushed' ? goal : start])
      const ends = [...await journalOf(world, chat, 'op-done'), ...await journalOf(world, chat, 'op-taken-back')]
      expect([phase, ends.map(({ kind }) => kind)]).toEqual([phase, [phase === 'flushed' ? 'op-done' : 'op-taken-back']])
      for (const one of hosts) await one.stop()
    }
  })

  it('lets prompts that come during the recovery wait, and loses none', async () => {
    const { world, host, chat, start } = await aRollbackToCome()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback 1'))
    await host.stop()
    crashes.findLast(crash => crash.phase === 'file')!.restore()

    const again = await world.start()
    const seen: unknown[] = []
    again.model.onRequest = () => { seen.push([openOps(world), world.tree()]) }
    const opened = await again.open()
    for (const prompt of ['one', 'two', 'three']) opened.send(prompt)
    await opened.agent.whenIdle()

    expect(seen.length).toBeGreaterThan(0)
    for (const state of seen) expect(state).toEqual([[], start])
    const said = opened.surface().join('\n')
    for (const prompt of ['one', 'two', 'three']) expect(said).toContain(`user: ${prompt}`)
  })

  it('is not taken back by a second host that finds the first one alive', async () => {
    const { world, host, chat, goal } = await aRollbackToCome()
    let other: Host | undefined
    const starts: Promise<unknown>[] = []
    host.ctx.on('turnback/phase', ({ phase }: { phase: string }) => {
      if (phase === 'op-applied') starts.push(world.start().then((started) => { other = started }))
    })

    await chat.command('/rollback 1')
    await Promise.all(starts)

    expect(other).toBeDefined()
    expect(world.tree()).toEqual(goal)
    expect(isCut(chat)).toBe(true)
  })
})

describe('a host killed in the middle of an undo', () => {
  it('comes back with all files of one side, whatever the moment', async () => {
    const { world, host, chat, goal, start } = await aRollbackToCome()
    await chat.command('/rollback 1')
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback undo'))
    await host.stop()

    expect([...new Set(crashes.map(crash => crash.phase))]).toEqual(['op-begin', 'file', 'op-applied', 'op-done'])
    for (const { phase, restore } of crashes) {
      restore()
      const isCommitted = phase === 'op-applied' || phase === 'op-done'
      await recovers(world, (chat) => {
        expect([phase, world.tree()]).toEqual([phase, isCommitted ? start : goal])
        expect(isCut(chat)).toBe(true)
      })
    }
  })
})

describe('a host killed in the middle of a rollback of files alone', () => {
  it('comes back with all files of one side and the conversation as it was', async () => {
    const { world, host, chat, goal, start } = await aRollbackToCome()
    const { token } = (await host.ask('preview', { sessionId: chat.id, turn: 1, scope: 'files' })).value
    const { planId } = (await host.ask('plan', { sessionId: chat.id, turn: 1, scope: 'files', token })).value
    const crashes = await crashesDuring(world, host, () => chat.command(`/rollback --plan ${planId}`))
    expect(world.tree()).toEqual(goal)
    expect(isCut(chat)).toBe(false)
    await host.stop()

    for (const { phase, restore } of crashes) {
      restore()
      const isCommitted = phase === 'op-applied' || phase === 'op-done'
      await recovers(world, (chat) => {
        expect([phase, world.tree()]).toEqual([phase, isCommitted ? goal : start])
        expect(isCut(chat)).toBe(false)
      })
    }
  })
})

describe('a host killed while a tool writes', () => {
  it('keeps the file, because nobody saw how the call ended, and says so', async () => {
    const world = aWorld({ 'a.txt': '1' })
    let dead: { restore(): void } | undefined
    const host = await world.start({
      before: (ctx) => { ctx.on('fs/observed', (_target: unknown, _seen: unknown, actor: { name: string }) => {
        if (actor.name === 'edit') dead = world.snapshot()
      }) },
    })
    const chat = await host.open()
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    await host.ctx.sessions.flush(chat.session)
    const log = join(world.home, 'sessions')
    expect(existsSync(log)).toBe(true)
    await host.stop()
    dead!.restore()
    expect(world.read('a.txt')).toBe('2')

    const again = await (await world.start()).open()
    const { rows } = (await again.host.ask('preview', { sessionId: 's1', turn: 1 })).value

    expect(rows).toMatchObject([{ action: 'keep', conflict: 'cut-off', putBackAction: 'write' }])
    await again.command('/rollback 1')
    expect(world.read('a.txt')).toBe('2')
  })
})

describe('a host killed in the middle of a retry', () => {
  it('has done it or not, and what is left can be tried again, whatever the moment', async () => {
    const { world, host, chat, goal } = await aRollbackToCome()
    for (const name of ['b.txt', 'new/deep/n.txt']) blocked.add(join(world.ws, name))
    await chat.command('/rollback 1')
    const half = world.tree()
    expect(half).toMatchObject({ 'a.txt': '1', 'b.txt': '2', 'new/deep/n.txt': 'n' })
    blocked.clear()
    const crashes = await crashesDuring(world, host, () => chat.command('/rollback retry'))
    await host.stop()
    expect(world.tree()).toEqual(goal)
    expect(new Set(crashes.map(({ phase }) => phase))).toEqual(new Set(['op-begin', 'file', 'op-applied', 'op-done']))

    for (const { phase, restore } of crashes) {
      restore()
      const isDone = ['op-applied', 'op-done'].includes(phase)
      await recovers(world, () => { expect(world.tree()).toEqual(isDone ? goal : half) })
      const again = await (await world.start()).open()
      expect((await again.command('/rollback retry')).kind).toBe(isDone ? 'error' : 'success')
      expect(world.tree()).toEqual(goal)
      await again.host.stop()
    }
  })
})
