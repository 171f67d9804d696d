import { expect, test } from 'vitest'
import { makeProgress } from '../../../host/rollback/progress.ts'
import { sessionId } from '../../../src/ids.ts'

const [a, b] = [sessionId('a'), sessionId('b')]

test('tells of each session’s op alone, and of none when it has ended', () => {
  const progress = makeProgress()
  expect(progress.of(a)).toEqual({ done: 0, total: 0 })
  const op = progress.begin(a)
  progress.at(a, 'saving', 2, 9)
  progress.at(b, 'saving', 1, 1)

  expect(progress.of(a)).toEqual({ stage: 'saving', done: 2, total: 9 })
  expect(progress.of(b)).toEqual({ done: 0, total: 0 })
  op.end()
  expect(progress.of(a)).toEqual({ done: 0, total: 0 })
})

test('an op can be stopped until it writes', () => {
  const progress = makeProgress()
  expect(progress.stop(a)).toBe(false)
  const first = progress.begin(a)
  expect(progress.stop(a)).toBe(true)
  expect(first.signal.aborted).toBe(true)

  const second = progress.begin(a)
  progress.at(a, 'writing', 0, 3)
  expect(progress.stop(a)).toBe(false)
  expect(second.signal.aborted).toBe(false)
  // The end of an older one is not the end of this one.
  first.end()
  expect(progress.of(a).stage).toBe('writing')
})
