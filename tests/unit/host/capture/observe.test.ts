import { execFileSync } from 'node:child_process'
import { link, mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { absentFoldersOf, observePath } from '../../../../host/capture/observe.ts'
import { digestOf } from '../../../../host/digest.ts'
import { sameState, unknown } from '../../../../src/checkpoint/file-state.ts'
import { callsOf, errno, faultyFileSystem } from '../../../support/faulty-fs.ts'
import { absent, anOpWorld, MAX_BYTES, type OpWorld } from '../restore/op-world.ts'

let w: OpWorld
beforeEach(async () => { w = await anOpWorld() })
afterEach(() => w.clean())

const observe = (name: string, more: Partial<Parameters<typeof observePath>[1]> = {}) =>
  observePath(w.at(name), { maxBytes: MAX_BYTES, ...more })

const contents: [string, Buffer][] = [
  ['empty', Buffer.alloc(0)],
  ['CRLF', Buffer.from('a\r\nb\r\n')],
  ['a byte order mark', Buffer.from('\ufeffa\n')],
  ['every byte', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
  ['no text encoding at all', Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0])],
]
test.each(contents)('field 27, 28: reads the raw bytes of a file with %s', async (_what, bytes) => {
  await writeFile(w.at('f'), bytes, { mode: 0o644 })

  const seen = await observe('f')

  expect(seen.bytes?.equals(bytes)).toBe(true)
  expect(seen.state).toEqual({ kind: 'file', digest: digestOf(bytes), bytes: bytes.length, mode: 0o644 })
})

test.each([0o755, 0o600, 0o444, 0o4755])('field 29: takes the permission bits %o', async mode => {
  await w.lay('f', w.file('x', mode))

  expect(await w.stateOf('f')).toEqual(w.file('x', mode))
})

test('puts short reads together', async () => {
  await w.lay('f', w.file('0123456789'))

  const seen = await observe('f', { fs: faultyFileSystem({ chunkBytes: 3 }) })

  expect(seen.bytes?.toString()).toBe('0123456789')
})

test('a path without a file, or below a file, is absent', async () => {
  await w.lay('f', w.file('x'))

  expect(await observe('nothing')).toEqual({ state: absent })
  expect(await observe('no/such/folder/f')).toEqual({ state: absent })
  expect(await observe('f/below')).toEqual({ state: absent })
})

test('a link is its raw target, there or not, and is never followed', async () => {
  await w.lay('secret', w.file('s'))
  await symlink('secret', w.at('good'))
  await symlink('../nowhere/文件', w.at('dangling'))

  const fs = await callsOf(fs => observe('good', { fs }))

  expect(await observe('good')).toEqual({ state: w.link('secret') })
  expect(await observe('dangling')).toEqual({ state: w.link('../nowhere/文件') })
  expect(fs.map(call => call.fn)).toEqual(['lstat', 'readlink'])
})

test('a link whose target is not text cannot be vouched for', async () => {
  await symlink(Buffer.from([0x61, 0xff]), w.at('odd'))

  expect(await observe('odd')).toEqual({ state: unknown('unreadable') })
})

test('a folder is a folder; a pipe and a socket are special and do not block', async () => {
  await mkdir(w.at('d'))
  execFileSync('mkfifo', [w.at('pipe')])
  const server = createServer().listen(w.at('socket'))
  await new Promise(resolve => server.once('listening', resolve))

  expect(await observe('d')).toEqual({ state: { kind: 'folder' } })
  expect(await observe('pipe')).toEqual({ state: unknown('special') })
  expect(await observe('socket')).toEqual({ state: unknown('special') })
  await new Promise(resolve => server.close(resolve))
})

test('a file that turns into a pipe between the two looks does not block', async () => {
  await w.lay('f', w.file('x'))
  const fs = faultyFileSystem({
    after: async ({ fn, nth }) => {
      if (fn !== 'lstat' || nth !== 1) return
      await rm(w.at('f'))
      execFileSync('mkfifo', [w.at('f')])
    },
  })

  expect(await observe('f', { fs })).toEqual({ state: unknown('special') })
})

test('a file that turns into a link between the two looks is a link, not what it points to', async () => {
  await w.lay('f', w.file('x'))
  await w.lay('outside', w.file('secret'))
  const fs = faultyFileSystem({
    after: async ({ fn, nth }) => {
      if (fn !== 'lstat' || nth !== 1) return
      await rm(w.at('f'))
      await symlink('outside', w.at('f'))
    },
  })

  expect(await observe('f', { fs })).toEqual({ state: w.link('outside') })
})

test('a file over the limit is only looked at', async () => {
  await w.lay('f', w.file('12345'))

  expect((await observe('f', { maxBytes: 5 })).state.kind).toBe('file')
  expect(await observe('f', { maxBytes: 4 })).toEqual({ state: unknown('too-large') })
  expect(await callsOf(fs => observe('f', { maxBytes: 4, fs }))).toHaveLength(1)
})

describe('a file that changes while it is read', () => {
  const changes: [string, () => Promise<void>][] = [
    ['grows', () => writeFile(w.at('f'), 'more', { flag: 'a' })],
    ['is overwritten with the same length', () => writeFile(w.at('f'), 'new')],
    ['is truncated', () => writeFile(w.at('f'), '')],
    ['is replaced by another file', async () => {
      await w.lay('g', w.file('new'))
      await rename(w.at('g'), w.at('f'))
    }],
  ]
  test.each(changes)('and %s once is read again', async (_what, change) => {
    await w.lay('f', w.file('old'))
    const fs = faultyFileSystem({ before: ({ fn, nth }) => fn === 'file.read' && nth === 1 ? change() : undefined })

    expect((await observe('f', { fs })).state).toEqual(await w.stateOf('f'))
  })

  test('all the time is unreadable, never a mix of two moments', async () => {
    await w.lay('f', w.file('old'))
    let clock = 1
    const touch = () => utimes(w.at('f'), ++clock, clock)
    const fs = faultyFileSystem({ before: ({ fn }) => fn === 'file.read' ? touch() : undefined })

    expect(await observe('f', { fs })).toEqual({ state: unknown('unreadable') })
  })
})

test.each(['EACCES', 'EIO', 'EPERM', 'EMFILE', 'ELOOP'])('%s at any call is unreadable, never absent', async code => {
  await w.lay('f', w.file('x'))
  const calls = await callsOf(fs => observe('f', { fs }))

  expect(calls.length).toBeGreaterThan(5)
  for (const { fn } of calls) {
    const fs = faultyFileSystem({ before: call => { if (call.fn === fn) throw errno(code) } })
    expect(await observe('f', { fs }), fn).toEqual({ state: unknown('unreadable') })
  }
})

test('names the system does not take are unreadable', async () => {
  expect(await observe('a\0b')).toEqual({ state: unknown('unreadable') })
  expect(await observe('n'.repeat(300))).toEqual({ state: unknown('unreadable') })
})

test('a bug is not hidden', async () => {
  const fs = faultyFileSystem({ before: () => { throw new TypeError('bug') } })

  await expect(observe('f', { fs })).rejects.toThrow('bug')
})

describe('parents that do not exist', () => {
  test('are named outermost first', async () => {
    await mkdir(w.at('src'))

    expect(await absentFoldersOf(w.at('src/n1.txt'))).toEqual([])
    expect(await absentFoldersOf(w.at('lib/deep/n2.txt'))).toEqual([w.at('lib'), w.at('lib/deep')])
  })

  test('do not include a link to nowhere or a file in the way', async () => {
    await symlink('nowhere', w.at('dangling'))
    await w.lay('f', w.file('x'))

    expect(await absentFoldersOf(w.at('dangling/x'))).toEqual([])
    expect(await absentFoldersOf(w.at('f/sub/x'))).toEqual([w.at('f/sub')])
  })

  test('do not include one that could not be looked at', async () => {
    const fs = faultyFileSystem({ before: ({ path }) => { if (path === join(w.root, 'a')) throw errno('EACCES') } })

    expect(await absentFoldersOf(w.at('a/b/f'), fs)).toEqual([w.at('a/b')])
  })
})

test('a file with several names tells how many, and counts as the same file when one is added', async () => {
  await w.lay('f', w.file('x'))
  const alone = await w.stateOf('f')

  await link(w.at('f'), w.at('second'))
  await link(w.at('f'), w.at('third'))

  expect(await w.stateOf('f')).toEqual({ ...w.file('x'), links: 3 })
  expect(sameState(alone, await w.stateOf('f'))).toBe(true)
})
