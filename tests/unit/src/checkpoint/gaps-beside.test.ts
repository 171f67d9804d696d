import { expect, test } from 'vitest'
import type { Gap } from '../../../../src/checkpoint/gap.ts'
import { gapsBeside } from '../../../../src/checkpoint/gaps-beside.ts'

const large = (count: number, names: readonly string[]): Gap => ({ reason: 'too-large', count, names: [...names] })
const listed = (...names: string[]) => names.map(name => ({ name, reason: 'too-large' }))

test('a file that is listed with the same reason is not said again', () => {
  expect(gapsBeside([large(1, ['a'])], listed('a'))).toEqual([])
  expect(gapsBeside([large(2, ['a', 'b'])], listed('a'))).toEqual([large(1, ['b'])])
})

test('a file that is listed with another reason, or only elsewhere, is said', () => {
  expect(gapsBeside([large(1, ['a'])], [{ name: 'a', reason: 'unreadable' }])).toEqual([large(1, ['a'])])
  expect(gapsBeside([large(1, ['a'])], listed('b'))).toEqual([large(1, ['a'])])
})

test('of a gap with more files than names the listed ones are taken off', () => {
  const names = Array.from({ length: 20 }, (_, at) => `f${at}`)

  expect(gapsBeside([large(30, names)], listed(...names, 'f20'))).toEqual([large(9, [])])
  expect(gapsBeside([large(30, names)], listed(...names, ...Array.from({ length: 10 }, (_, at) => `g${at}`)))).toEqual([])
})

test('what names no files is left as it is', () => {
  const gaps: Gap[] = [{ reason: 'command', count: 2, names: ['make'] }, { reason: 'store-hole', count: 1, names: [] }]

  expect(gapsBeside(gaps, listed('make'))).toEqual(gaps)
})
