import { expect, test } from 'vitest'
import { markerDefinition, turnDefinition } from '../../client/dsh/conversation-events.ts'
import { markerId } from '../../src/surface/marker.ts'
import { opId } from '../../src/ids.ts'
import type { LogEvent } from '../../src/turn/log-event.ts'

const event = (seq: number, type: string, data: unknown, surfaceOp?: unknown): LogEvent => ({
  seq,
  type,
  time: 0,
  data,
  ...(surfaceOp === undefined ? {} : { surfaceOp }),
})
const start = event(10, 'turn/start', { turn: 2 })
const end = event(20, 'turn/end', { turn: 2, reason: { kind: 'completed' } })
const says = (text: string, surfaceOp?: unknown) =>
  event(15, 'assistant/message', { turn: 2, message: { id: 'm', content: [{ type: 'text', text }] } }, surfaceOp)

/** The node the host would get for these events of one turn. */
function node(events: readonly LogEvent[], closing?: unknown) {
  const matches = events
    .filter(found => turnDefinition.match(found) !== null)
    .map(found => ({
      event: found,
      location: {
        kind: 'turn',
        turn: { turn: 2, data: new Map(closing === undefined ? [] : [['turn-tail', { closing }]]) },
      },
    }))
  return turnDefinition.buildViewNode({ key: '13:turnback-turn2', id: '2', matches, state: {} })
}

test('a running turn has no row', () => {
  expect(node([start])).toBeNull()
})

test('a turn that ended without a word gets a visible row at its end, without a place of its own', () => {
  expect(node([start, end])).toMatchObject({
    anchorSeq: 20,
    visibility: 'visible',
    location: { kind: 'unresolved' },
    data: { turn: 2 },
  })
})

test('a turn with words keeps its row hidden: the host draws its action row', () => {
  expect(node([start, says('hi'), end])).toMatchObject({ visibility: 'hidden' })
})

test('blank words and replacements are no words', () => {
  expect(node([start, says('  \n'), end])).toMatchObject({ visibility: 'visible' })
  expect(node([start, says('hi', { op: 'replace', start: 1, end: 2 }), end])).toMatchObject({ visibility: 'visible' })
})

test('the host’s own tail decides: a text cut off by a crash has no action row', () => {
  expect(node([start, says('hi'), end], { finalNode: {} })).toMatchObject({ visibility: 'visible' })
  expect(node([start, says('hi'), end], { finalNode: { messageId: 'm' } })).toMatchObject({ visibility: 'hidden' })
  expect(node([start, end], null)).toMatchObject({ visibility: 'visible' })
})

test('a turn whose start is outside the loaded window still has its row', () => {
  expect(node([end])).toMatchObject({ visibility: 'visible', data: { turn: 2 } })
})

test('once drawn the row is never withdrawn, only hidden', () => {
  expect(node([end])).not.toBeNull()
  expect(node([start, says('hi'), end])).not.toBeNull()
})

const id = markerId({ startSeq: 10, turn: 2, op: opId('op000000') })

test.each([
  [
    'up to format 3',
    { kind: 'plugin', plugin: 'dsh-turnback', form: 'notice', summary: 's' },
    { op: 'replace', start: 10, end: 20 },
  ],
  ['from format 4 on', { kind: 'plugin:dsh-turnback' }, { op: 'replace', startSeq: 10, endSeq: 20 }],
])('recognises a marker in the spelling %s', (_format, source, surfaceOp) => {
  const marker = event(30, 'user/message', { id, source }, surfaceOp)
  const state = markerDefinition.start(undefined, { event: marker })

  expect(markerDefinition.match(marker)).toEqual({ id: '30', role: 'start' })
  expect(
    markerDefinition.buildViewNode({
      key: 'k',
      id: '30',
      matches: [],
      state: state as never,
      start: { location: { kind: 'session' } },
    }),
  ).toMatchObject({
    kind: 'turnback-marker',
    anchorSeq: 30,
    location: { kind: 'session' },
    data: { seq: 30, startSeq: 10, turn: 2 },
  })
})

test.each([
  ['a person’s message', event(30, 'user/message', { id: 'm', source: { kind: 'user' } })],
  ['a message that only borrows the id', event(30, 'user/message', { id, source: { kind: 'user' } })],
  ['another plugin’s message', event(30, 'user/message', { id: 'x', source: { kind: 'plugin', plugin: 'other' } })],
  ['an event without data', event(30, 'user/message', null)],
  ['an event of another kind', event(30, 'tool/call', { turn: 2 })],
])('takes %s for no marker', (_what, other) => {
  expect(markerDefinition.match(other)).toBeNull()
})

test.each([null, undefined, 7, 'text', {}, { turn: 'two' }])('no event data breaks the matching: %j', data => {
  expect(turnDefinition.match(event(1, 'turn/end', data))).toBeNull()
  expect(markerDefinition.match(event(1, 'user/message', data))).toBeNull()
})
