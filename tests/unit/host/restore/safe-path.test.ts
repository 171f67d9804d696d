import { mkdir, rename, symlink } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parentsAreReal } from '../../../../host/restore/safe-path.ts'
import { errno, faultyFileSystem } from '../../../support/faulty-fs.ts'
import { anOpWorld, type OpWorld } from './op-world.ts'

let w: OpWorld
beforeEach(async () => { w = await anOpWorld() })
afterEach(() => w.clean())

test('real parents are safe, missing ones too', async () => {
  await mkdir(w.at('a/b'), { recursive: true })

  expect(await parentsAreReal(w.at('a/b/f'))).toBe(true)
  expect(await parentsAreReal(w.at('a/b/c/d/f'))).toBe(true)
  expect(await parentsAreReal('/f')).toBe(true)
})

test('a link at the last name is not a parent', async () => {
  await symlink('/', w.at('f'))

  expect(await parentsAreReal(w.at('f'))).toBe(true)
})

test.each(['a', 'a/b'])('a link in the place of %s is not safe, wherever it leads', async folder => {
  await mkdir(w.at('a/b/c'), { recursive: true })
  await rename(w.at(folder), w.at('elsewhere'))
  await symlink(w.at('elsewhere'), w.at(folder))

  expect(await parentsAreReal(w.at('a/b/c/f'))).toBe(false)
  expect(await parentsAreReal(w.at('a/b/new/f'))).toBe(false)
})

test('a link to nowhere or to itself is not safe', async () => {
  await symlink('nowhere', w.at('dangling'))
  await symlink('loop', w.at('loop'))

  expect(await parentsAreReal(w.at('dangling/f'))).toBe(false)
  expect(await parentsAreReal(w.at('loop/f'))).toBe(false)
})

test.each(['a/../f', 'a/./f', 'a//f', 'a/..'])('a path that is not written out is not safe: %s', async name => {
  await mkdir(w.at('a'))

  expect(await parentsAreReal(`${w.root}/${name}`)).toBe(false)
})

test('an error of the system is no answer', async () => {
  const fs = faultyFileSystem({ before: () => { throw errno('EACCES') } })

  await expect(parentsAreReal(w.at('f'), fs)).rejects.toThrow('EACCES')
})
