import { beforeEach, describe, expect, it, vi } from 'vitest'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { aWorld, edits, reads, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'

/** What is made to fail, looked at by the stand-ins below at each call. */
const broken = vi.hoisted(() => ({
  capture: '' as '' | 'throws' | 'rejects',
  look: '' as '' | 'lookBefore' | 'lookAfter',
  log: false,
  marker: false,
  /** `<call>` of the store's file system, or `every`; with an errno. */
  store: new Map<string, string>(),
}))

beforeEach(() => {
  Object.assign(broken, { capture: '', look: '', log: false, marker: false })
  broken.store.clear()
})

vi.mock(import('../../host/capture/capture.ts'), async (load) => {
  const real = await load()
  return {
    ...real,
    makeCapture: (deps) => {
      const capture = real.makeCapture(deps)
      const faulty = Object.entries(capture).map(([name, member]) => [name, (...args: unknown[]) => {
        if (broken.capture === 'throws') throw new Error(`capture.${name} broke`)
        if (broken.capture === 'rejects') return Promise.reject(new Error(`capture.${name} broke`))
        return (member as (...all: unknown[]) => unknown)(...args)
      }])
      return Object.fromEntries(faulty) as typeof capture
    },
  }
})

vi.mock(import('../../host/capture/workspace-look.ts'), async (load) => {
  const real = await load()
  const unless = <A extends unknown[], R>(name: 'lookBefore' | 'lookAfter', look: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
    if (broken.look === name) throw Object.assign(new Error(`EIO: ${name}`), { code: 'EIO' })
    return look(...args)
  }
  return { ...real, lookBefore: unless('lookBefore', real.lookBefore), lookAfter: unless('lookAfter', real.lookAfter) }
})

vi.mock(import('../../host/dsh/session-log.ts'), async (load) => {
  const real = await load()
  return {
    ...real,
    readEvents: (session) => {
      if (broken.log) throw new Error('the log cannot be read')
      return real.readEvents(session)
    },
  }
})

vi.mock(import('../../src/surface/marker.ts'), async (load) => {
  const real = await load()
  return {
    ...real,
    markerOf: (event) => {
      if (broken.marker) throw new Error('markerOf broke')
      return real.markerOf(event)
    },
  }
})

vi.mock(import('../../host/store/store-fs.ts'), async (load) => {
  const real = await load()
  const fault = (name: string): void => {
    const code = broken.store.get(name) ?? broken.store.get('every')
    if (code !== undefined) throw Object.assign(new Error(`${code}: injected, ${name}`), { code })
  }
  const faulty = <T extends object>(what: T, prefix: string): T => new Proxy(what, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        // Closing always works: a test must not run out of handles.
        if (name !== 'close') fault(`${prefix}${({ writev: 'write', peek: 'stat' } as Record<string, string>)[String(name)] ?? String(name)}`)
        const result: unknown = await member.apply(target, args)
        return name === 'open' ? faulty(result as object, 'file.') : result
      }
    },
  })
  return { ...real, nodeFs: faulty({ ...real.nodeFs }, '') }
})

const opened = async (world: World, options: HostOptions = {}): Promise<Chat> => (await world.start({ complains: true, ...options })).open()
const problems = async (chat: Chat): Promise<readonly { contract: string; detail: string }[]> => (await chat.host.ask('hello', {})).value.problems
const results = (chat: Chat): readonly string[] => chat.surface().filter(line => line.startsWith('user: <result'))

/** A turn with every kind of call; all of it has to work whatever is broken in us. */
async function goesWell(world: World, chat: Chat): Promise<void> {
  await chat.turn('work', ...edits('a.txt', '1', '2'), writes('b.txt', 'b'), runs('echo c > c.txt'), 'done')
  expect(world.tree()).toMatchObject({ 'a.txt': '2', 'b.txt': 'b', 'c.txt': 'c\n' })
  expect(chat.events().findLast(event => event.type === 'turn/end').data.reason).toEqual({ kind: 'completed' })
  expect(results(chat).filter(line => /error|broke|injected/i.test(line))).toEqual([])
}

describe('a fault of ours changes no turn of the user', () => {
  it.each(['throws', 'rejects'] as const)('when capture %s in every listener of a tool call', async (how) => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    broken.capture = how

    await goesWell(world, chat)

    const contracts = (await problems(chat)).map(problem => problem.contract)
    expect(contracts).toEqual(expect.arrayContaining(['capture before a write', 'capture after a call', 'capture of a denied call', 'capture at the end of a turn']))
    expect(new Set(contracts).size).toBe(contracts.length)
    expect(chat.host.complaints).toHaveLength(contracts.length)
  })

  it.each(['lookBefore', 'lookAfter'] as const)('when %s of a command throws; the command is then named as not covered', async (name) => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    broken.look = name

    await goesWell(world, chat)
    broken.look = ''
    await chat.turn('later', runs('echo d > d.txt'))

    expect(await problems(chat)).toHaveLength(1)
    expect((await chat.host.ask('preview', { sessionId: chat.id, turn: 1 })).value.gaps)
      .toEqual([{ reason: 'command', count: 1, names: ['echo c > c.txt'] }])
    expect((await chat.command('/rollback 1')).text).toContain('1 command ran whose changes are not covered: echo c > c.txt')
    expect(world.tree()).toEqual({ 'a.txt': '1', 'c.txt': 'c\n' })
  })

  it('when the session log cannot be read, in any listener, command or request', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ complains: true })
    broken.log = true

    const chat = await host.open()
    await goesWell(world, chat)
    const command = await chat.command('/rollback 1')
    const reply = await host.ask('preview', { sessionId: chat.id, turn: 1 })

    expect(command).toMatchObject({ kind: 'error', text: expect.stringContaining('Something went wrong inside Turnback') })
    expect(reply).toMatchObject({ ok: false, failure: { code: 'internal' } })
  })

  it('when the projection fails on every event', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    broken.marker = true

    await goesWell(world, chat)

    expect(chat.host.ctx.sessionProjections.snapshot(chat.session).values.turnback).toEqual({ markers: [] })
    expect((await problems(chat)).map(problem => problem.contract)).toContain('projection')
  })

  it('when the folder of open ops cannot be listed as a session opens', async () => {
    const world = aWorld({ 'a.txt': '1' })
    mkdirSync(join(world.home, 'data', 'turnback', 'v1'), { recursive: true })
    writeFileSync(join(world.home, 'data', 'turnback', 'v1', 'ops'), 'a file')

    const chat = await opened(world)

    await goesWell(world, chat)
    expect((await problems(chat)).map(problem => problem.contract)).toContain('recovery')
  })

  it('when the host cannot tell the path of a target', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    chat.host.ctx.get('fs').processPath = () => { throw new Error('no path') }

    await goesWell(world, chat)

    expect((await problems(chat)).map(problem => problem.contract)).toContain('capture before a write')
  })

  it('when a listener of another plugin on our phase event throws', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    chat.host.ctx.on('turnback/phase', () => { throw new Error('not my phase') })

    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })

  it('when our settings are nonsense', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const host = await world.start({ plugin: false, complains: true })

    // The loader refuses such a row by `Config`; where nobody asked it, `apply` still does not throw.
    await host.install({ maxFileBytes: 'many' }).catch((error: unknown) => { expect(String(error)).toContain('maxFileBytes') })

    await goesWell(world, await host.open())
  })
})

describe('a store that fails', () => {
  const calls = ['every', 'open', 'mkdir', 'readdir', 'stat', 'file.write', 'file.datasync', 'file.sync'] as const
  const codes = ['ENOSPC', 'EROFS', 'EIO', 'EACCES'] as const

  it.each(calls.flatMap((call, at) => [[call, codes[at % codes.length]!] as const]))('in %s with %s fails no call, is told once, and makes no claim', async (call, code) => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    broken.store.set(call, code)

    await goesWell(world, chat)
    await chat.turn('more', ...edits('b.txt', 'b', 'bb'))

    expect(chat.host.complaints.filter(line => line.includes('store'))).toHaveLength(1)
    expect((await problems(chat)).map(problem => problem.contract)).toEqual(['store'])
    const before = { tree: world.tree(), surface: chat.surface() }
    const answer = await chat.command('/rollback 1')
    if (answer.kind === 'error') expect({ tree: world.tree(), surface: chat.surface() }).toEqual(before)
    expect(world.tree()).toEqual(before.tree)
    expect(answer.text).not.toContain('Put back')
  })

  it('and works again later covers only what came after, and says what did not', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await opened(world)
    broken.store.set('every', 'ENOSPC')
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    expect((await problems(chat)).map(problem => problem.contract)).toEqual(['store'])
    broken.store.clear()
    await chat.turn('second', ...edits('b.txt', '1', '2'))
    expect(await problems(chat)).toEqual([])

    const { kind, text } = await chat.command('/rollback 1')

    expect(kind).toBe('success')
    expect(text).toContain('a.txt')
    expect(text).toContain('not recorded')
    expect(world.tree()).toEqual({ 'a.txt': '2', 'b.txt': '1' })
  })

  it('before a command leaves the command as one that is not covered', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await opened(world)
    broken.store.set('every', 'ENOSPC')
    await chat.turn('first', runs('rm a.txt'))
    broken.store.clear()
    await chat.turn('second', runs('rm b.txt'))

    expect((await chat.host.ask('preview', { sessionId: chat.id, turn: 1 })).value.gaps)
      .toEqual([{ reason: 'command', count: 1, names: ['rm a.txt'] }])
    const { text } = await chat.command('/rollback 1')
    expect(text).toContain('1 command ran whose changes are not covered: rm a.txt')
    expect(world.tree()).toEqual({ 'b.txt': '1' })
  })

  it('between a command and the look after it leaves the command as one that is not covered', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, {
      before: (ctx) => { ctx.on('tools/execute', async (exec: { name: string }, next: () => Promise<unknown>) => {
        const result = await next()
        if (exec.name === 'bash') broken.store.set('every', 'EIO')
        return result
      }) },
    })
    await chat.turn('first', runs('echo 2 > a.txt'))
    broken.store.clear()

    expect((await chat.host.ask('preview', { sessionId: chat.id, turn: 1 })).value).toMatchObject({
      rows: [], gaps: [{ reason: 'command', count: 1, names: ['echo 2 > a.txt'] }],
    })
    await chat.command('/rollback 1')
    expect(world.read('a.txt')).toBe('2\n')
  })

  it('between the looks before and after a call keeps the file and names why', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world, {
      before: (ctx) => { ctx.on('fs/observed', (_target: unknown, seen: { kind: string }, actor: { name: string }) => {
        if (actor.name === 'edit' && seen.kind === 'present') broken.store.set('every', 'EIO')
      }) },
    })
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    broken.store.clear()

    const { kind, text } = await chat.command('/rollback 1')

    expect(kind).toBe('success')
    expect(text).toMatch(/Kept.*a\.txt/)
    expect(world.read('a.txt')).toBe('2')
  })

  it('during a rollback changes neither files nor conversation', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    const before = { tree: world.tree(), surface: chat.surface() }

    for (const call of ['file.write', 'file.datasync', 'mkdir', 'open']) {
      broken.store.clear()
      broken.store.set(call, 'ENOSPC')
      const { kind, text } = await chat.command('/rollback 1')
      expect([call, kind]).toEqual([call, 'error'])
      expect(text).toContain('Free disk space or make')
      expect({ tree: world.tree(), surface: chat.surface() }).toEqual(before)
    }
    broken.store.clear()
    expect((await chat.command('/rollback 1')).kind).toBe('success')
    expect(world.read('a.txt')).toBe('1')
  })

  it('whose folder is a file fails no start and no turn', async () => {
    const world = aWorld({ 'a.txt': '1' })
    writeFileSync(join(world.home, 'data'), 'not a folder')

    const chat = await opened(world)

    await goesWell(world, chat)
    expect((await problems(chat)).map(problem => problem.contract)).toContain('store')
  })

  it('that is removed in the middle loses what was in it, says so, and goes on', async () => {
    const world = aWorld({ 'a.txt': '1' })
    const chat = await opened(world)
    await chat.turn('first', ...edits('a.txt', '1', '2'))
    rmSync(join(world.home, 'data'), { recursive: true })
    await chat.turn('second', reads('a.txt'), ...edits('a.txt', '2', '3'))

    const { text } = await chat.command('/rollback 2')
    expect(text).toContain('Put back: a.txt')
    expect(world.read('a.txt')).toBe('2')
    const first = await chat.command('/rollback 1')
    expect(first.text).toContain('not recorded')
    expect(world.read('a.txt')).toBe('2')
  })
})

describe('field cases of a failing store', () => {
  it('field 6: a file whose bytes could not be saved is neither restored nor deleted, and no success is claimed for it', async () => {
    const world = aWorld({ 'a.txt': '1', 'b.txt': '1' })
    const chat = await opened(world)
    broken.store.set('mkdir', 'EROFS')
    await chat.turn('first', ...edits('a.txt', '1', '2'))

    const preview = await chat.command('/rollback preview 1')
    const done = await chat.command('/rollback 1')

    expect(preview.text).toContain('1 call was not recorded, its changes are not covered: a.txt')
    expect(done).toMatchObject({ kind: 'error', text: expect.stringContaining('EROFS') })
    expect(world.tree()).toEqual({ 'a.txt': '2', 'b.txt': '1' })
  })

  it('field 69: fifty turns on a full disk give one notice, and the tools keep working', async () => {
    const world = aWorld({ 'a.txt': '0' })
    const chat = await opened(world)
    broken.store.set('file.write', 'ENOSPC')
    await chat.turn('first', reads('a.txt'))

    for (let turn = 1; turn <= 50; turn += 1) await chat.turn(`turn ${turn}`, writes('a.txt', String(turn)))

    expect(world.read('a.txt')).toBe('50')
    expect(chat.host.complaints).toHaveLength(1)
  })
})
