import { execFileSync } from 'node:child_process'
import { chmod, link, mkdir, rename, symlink, utimes, writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fingerprintOf, isRacy, makeStateCache, sameFingerprint } from '../../../../host/capture/fingerprint.ts'
import { unknown } from '../../../../src/checkpoint/file-state.ts'
import type { Digest } from '../../../../src/ids.ts'
import { errno, faultyFileSystem, type FsHooks } from '../../../support/faulty-fs.ts'
import { absent, anOpWorld, MAX_BYTES, type OpWorld } from '../restore/op-world.ts'

let w: OpWorld
beforeEach(async () => { w = await anOpWorld() })
afterEach(() => w.clean())

/** A cache whose clock is a minute ahead, so that nothing is racy, and what it did. */
function aCache({ aheadMs = 60_000, maxPaths = 100, hooks = {} as FsHooks } = {}) {
  const read: string[] = []
  const kept: [Digest, string][] = []
  const fs = faultyFileSystem({
    ...hooks,
    before: (call) => {
      if (call.fn === 'open') read.push(call.path)
      return hooks.before?.(call)
    },
  })
  const cache = makeStateCache({ maxPaths, fs, now: () => Date.now() + aheadMs })
  const keep = (digest: Digest, bytes: Buffer): void => { kept.push([digest, bytes.toString()]) }
  return { read, kept, cache, stateOf: (name: string, maxBytes = MAX_BYTES) => cache.stateOf(w.at(name), { maxBytes, keep }) }
}

test('a fingerprint tells the kinds apart and does not follow a link', async () => {
  await w.lay('f', w.file('x'))
  await mkdir(w.at('d'))
  await symlink('d', w.at('l'))
  execFileSync('mkfifo', [w.at('p')])

  const kinds = await Promise.all(['f', 'd', 'l', 'p'].map(async name => (await fingerprintOf(w.at(name)))?.kind))

  expect(kinds).toEqual(['file', 'folder', 'link', 'special'])
})

test('only an absent path has no fingerprint', async () => {
  await w.lay('f', w.file('x'))
  const denied = faultyFileSystem({ before: () => { throw errno('EACCES') } })

  expect(await fingerprintOf(w.at('nothing'))).toBeUndefined()
  expect(await fingerprintOf(w.at('f/below'))).toBeUndefined()
  await expect(fingerprintOf(w.at('f'), denied)).rejects.toThrow('EACCES')
})

const changes: [string, () => Promise<void>][] = [
  ['another text of the same size and the old mtime', async () => {
    await writeFile(w.at('f'), 'b')
    await utimes(w.at('f'), 1, 1)
  }],
  ['permission bits', () => chmod(w.at('f'), 0o600)],
  ['another file in its place', async () => {
    await w.lay('g', w.file('a'))
    await utimes(w.at('g'), 1, 1)
    await rename(w.at('g'), w.at('f'))
  }],
  ['a second name', () => link(w.at('f'), w.at('g'))],
]
test.each(changes)('%s changes the fingerprint', async (_what, change) => {
  await w.lay('f', w.file('a'))
  await utimes(w.at('f'), 1, 1)
  const before = await fingerprintOf(w.at('f'))
  await new Promise(resolve => setTimeout(resolve, 20))

  await change()

  expect(sameFingerprint(before!, (await fingerprintOf(w.at('f')))!)).toBe(false)
})

test('racy is what was written less than two seconds before the look, or after it', async () => {
  await w.lay('f', w.file('a'))
  await utimes(w.at('f'), 4e9, 4e9)
  const seen = (await fingerprintOf(w.at('f')))!
  const writtenMs = Number(seen.ctimeNs / 1_000_000n)

  expect([-5000, 0, 1900, 2100].map(laterMs => isRacy(seen, writtenMs + laterMs))).toEqual([true, true, true, false])
})

test('a file is read and kept once while it stays as it is', async () => {
  await w.lay('f', w.file('one'))
  const { stateOf, read, kept } = aCache()

  const states = [await stateOf('f'), await stateOf('f'), await stateOf('f')]

  expect(states).toEqual(Array(3).fill(w.file('one')))
  expect(read).toHaveLength(1)
  expect(kept.map(([, text]) => text)).toEqual(['one'])
})

test('a changed file is read again', async () => {
  await w.lay('f', w.file('one'))
  const { stateOf, kept } = aCache()
  await stateOf('f')
  await new Promise(resolve => setTimeout(resolve, 20))

  await writeFile(w.at('f'), 'two')

  expect(await stateOf('f')).toEqual(w.file('two'))
  expect(kept.map(([, text]) => text)).toEqual(['one', 'two'])
})

test('a file written just now is read each time, so that a second write in the same tick is seen', async () => {
  await w.lay('f', w.file('0'))
  const { stateOf } = aCache({ aheadMs: 0 })

  for (let round = 0; round < 100; round += 1) {
    const text = String(round % 10)
    await writeFile(w.at('f'), text)
    expect(await stateOf('f'), `round ${round}`).toEqual(w.file(text))
  }
})

test('a link is remembered; absent, folder and special paths are told without reading', async () => {
  await symlink('nowhere', w.at('l'))
  await mkdir(w.at('d'))
  execFileSync('mkfifo', [w.at('p')])
  const { stateOf, read, cache } = aCache()

  const states = [await stateOf('l'), await stateOf('nothing'), await stateOf('d'), await stateOf('p')]

  expect(states).toEqual([w.link('nowhere'), absent, { kind: 'folder' }, unknown('special')])
  expect(read).toEqual([])
  expect(cache.known(w.at('l'), (await fingerprintOf(w.at('l')))!)).toEqual(w.link('nowhere'))
  expect(cache.known(w.at('d'), (await fingerprintOf(w.at('d')))!)).toBeUndefined()
})

test('a lower limit holds for a remembered file too', async () => {
  await w.lay('f', w.file('12345'))
  const { stateOf } = aCache()
  await stateOf('f', 5)

  expect(await stateOf('f', 4)).toEqual(unknown('too-large'))
})

test('a path that could not be read is tried again', async () => {
  await w.lay('f', w.file('x'))
  let denied = true
  const { stateOf } = aCache({ hooks: { before: ({ fn }) => { if (denied && fn !== 'file.close') throw errno('EACCES') } } })

  expect(await stateOf('f')).toEqual(unknown('unreadable'))
  denied = false
  expect(await stateOf('f')).toEqual(w.file('x'))
})

test('a file that changes right after it is read is not remembered under the new fingerprint', async () => {
  await w.lay('f', w.file('old'))
  const { stateOf } = aCache({
    hooks: { before: ({ fn, nth }) => (fn === 'file.close' && nth === 1 ? writeFile(w.at('f'), 'newer') : undefined) },
  })

  expect(await stateOf('f')).toEqual(w.file('old'))
  expect(await stateOf('f')).toEqual(w.file('newer'))
})

test('a state whose bytes could not be kept is not remembered', async () => {
  await w.lay('f', w.file('x'))
  const { cache, stateOf, kept } = aCache()
  const full = cache.stateOf(w.at('f'), { maxBytes: MAX_BYTES, keep: () => Promise.reject(new Error('disk full')) })

  await expect(full).rejects.toThrow('disk full')
  await stateOf('f')

  expect(kept).toHaveLength(1)
})

test('the path used longest ago is forgotten first, and all of them on demand', async () => {
  for (const name of ['a', 'b', 'c']) await w.lay(name, w.file(name))
  const { cache, stateOf, read } = aCache({ maxPaths: 2 })
  for (const name of ['a', 'b', 'a', 'c']) await stateOf(name)
  read.length = 0

  await stateOf('a')
  await stateOf('c')
  await stateOf('b')
  cache.clear()
  await stateOf('b')

  expect(read).toEqual([w.at('b'), w.at('b')])
})
