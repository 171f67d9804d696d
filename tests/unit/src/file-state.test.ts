import { expect, test } from 'vitest'
import { absent, sameState, unknown } from '../../../src/checkpoint/file-state.ts'
import { digest } from '../../../src/ids.ts'

const file = (mode: number) => ({ kind: 'file', digest: digest('a'.repeat(64)), bytes: 1, mode }) as const

test('an unknown state equals nothing, itself included', () => {
  expect(sameState(unknown('special'), unknown('special'))).toBe(false)
  expect(sameState(unknown('special'), absent)).toBe(false)
})

test('the same bytes with another mode are another state', () => {
  expect(sameState(file(0o644), file(0o755))).toBe(false)
  expect(sameState(file(0o644), file(0o644))).toBe(true)
})
