import { expect, test } from 'vitest'
import { opId } from '../../../../src/ids.ts'
import { markerId, markerOf, markerTexts, parseMarkerId } from '../../../../src/surface/marker.ts'

const id = 'turnback:1:12:3:abcdefgh'
const event = (data: unknown, surfaceOp: unknown = { op: 'replace', start: 1, end: 2 }) => ({ seq: 40, type: 'user/message', time: 1, data, surfaceOp })

test('a marker id reads back as it was written', () => {
  const parts = { startSeq: 1234, turn: 5, op: opId('0123456789abcdef') }

  expect(parseMarkerId(markerId(parts))).toEqual(parts)
})

test.each([
  undefined, 7, '', 'turnback:1:12:3', 'turnback:2:12:3:abcdefgh', 'turnback:1:-1:3:abcdefgh', 'turnback:1:1.5:3:abcdefgh',
  'turnback:1:12:3:ABCDEFGH', 'turnback:1:12:3:short', ` ${id}`, `${id}\n`, 'turnback:1:1234567890123456:3:abcdefgh',
])('no other id reads as a marker: %j', text => {
  expect(parseMarkerId(text)).toBeUndefined()
})

test.each([{ kind: 'plugin', plugin: 'dsh-turnback' }, { kind: 'plugin:dsh-turnback' }])('a marker is known by its source %j', source => {
  expect(markerOf(event({ id, source }))).toEqual({ seq: 40, startSeq: 12, turn: 3, op: 'abcdefgh' })
})

test.each([undefined, null, { kind: 'user' }, { kind: 'plugin', plugin: 'other' }, { kind: 'plugin:other' }, { plugin: 'dsh-turnback' }])(
  'a message of ours with the source %j is no marker', source => {
    expect(markerOf(event({ id, source }))).toBeUndefined()
  })

test.each([null, undefined, 'x', { id }])('data of foreign shape is no marker: %j', data => {
  expect(markerOf(event(data))).toBeUndefined()
})

test('a copy of the marker that was appended plainly is no marker', () => {
  expect(markerOf(event({ id, source: { kind: 'plugin', plugin: 'dsh-turnback' } }, 'append'))).toBeUndefined()
})

test('only a user message is a marker', () => {
  expect(markerOf({ ...event({ id, source: { kind: 'plugin:dsh-turnback' } }), type: 'assistant/message' })).toBeUndefined()
})

test.each(Object.values(markerTexts))('what the model reads stays short: %s', text => {
  expect(text.length).toBeLessThanOrEqual(140)
})
