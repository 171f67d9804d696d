import { describe, expect, test } from 'vitest'
import type { LogEvent } from '../../../../src/turn/log-event.ts'
import { foldSurface } from '../../../../src/surface/origin-span.ts'
import { aLog, type LogFormat } from '../../../support/a-log.ts'

const formats: readonly LogFormat[] = [0, 4]
const logOf = (...events: readonly Omit<LogEvent, 'seq' | 'time'>[]): readonly LogEvent[] => events.map((event, seq) => ({ seq, time: 0, ...event }))
const says = { type: 'user/message', data: {}, surfaceOp: 'append' } as const
const system = { type: 'system/message', data: {}, surfaceOp: 'append' } as const
const over = (start: number, end: number, type = 'user/message') => ({ type, data: {}, surfaceOp: { op: 'replace', start, end } })

describe.each(formats)('in a log of format %i', format => {
  test('a replacement stands in the place of its range for what the range stood for', () => {
    const log = aLog(format).turn('1').says('a').turn('2').turn('3').compacts(1, 2).rollsBack(3)
    const { nodes } = foldSurface(log.done())

    expect(nodes.map(node => node.seq)).toEqual(log.surfaceSeqs())
    expect(nodes.filter(node => node.by !== 'system').map(node => node.by)).toEqual(['replacement', 'marker'])
    const [compaction, marker] = nodes.slice(-2)
    expect(compaction!.max).toBeLessThan(log.startOf(3))
    expect(marker!.min).toBeGreaterThan(log.startOf(3))
  })
})

test('a marker over an older marker stands for what both took', () => {
  const log = aLog().turn('1').turn('2').turn('3').rollsBack(3).turn('4').rollsBack(2)
  const { nodes, replacements } = foldSurface(log.done())

  expect(nodes.at(-1)).toMatchObject({ by: 'marker', min: log.startOf(2) + 2, max: log.startOf(4) + 2 })
  expect(replacements.map(({ by }) => by)).toEqual(['marker', 'marker'])
})

test.each([
  ['ends that are not on the surface', over(7, 9)],
  ['ends in the wrong order', over(1, 0)],
  ['an end that was replaced', over(0, 99)],
  ['no numbers', { ...says, surfaceOp: { op: 'replace', start: '0', end: '1' } }],
  ['no range', { ...says, surfaceOp: { op: 'replace' } }],
  ['another operation', { ...says, surfaceOp: { op: 'move', start: 0, end: 1 } }],
  ['null', { ...says, surfaceOp: null }],
  ['another word', { ...says, surfaceOp: 'prepend' }],
])('an operation with %s changes nothing', (_name, event) => {
  const { nodes, replacements } = foldSurface(logOf(says, says, event, says))

  expect(nodes.map(node => node.seq)).toEqual([0, 1, 3])
  expect(replacements).toEqual([])
})

test('a new system prompt is still the system prompt', () => {
  const { nodes, replacements } = foldSurface(logOf(system, says, over(0, 0, 'system/message')))

  expect(nodes).toEqual([{ seq: 2, min: 0, max: 0, by: 'system' }, { seq: 1, min: 1, max: 1, by: 'message' }])
  expect(replacements).toEqual([])
})

// It hid the messages it covers from every cut.
test('a system message over more than the system prompt is a replacement', () => {
  expect(foldSurface(logOf(system, says, says, over(0, 1, 'system/message'))).nodes[0]).toMatchObject({ by: 'replacement', min: 0, max: 1 })
})

test('a replacement of a very long range folds', () => {
  const many = Array.from({ length: 200_000 }, () => says)
  const events = [...many, over(0, 199_999)].map((event, seq) => ({ seq, time: 0, ...event }))

  expect(foldSurface(events).nodes).toEqual([{ seq: 200_000, min: 0, max: 199_999, by: 'replacement' }])
})
