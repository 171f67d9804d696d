import { expect, test } from 'vitest'
import { hiddenRows, MARKER_ROW, nothingLeft, TURN_ROW, type ChatRow } from '../../../src/surface/hidden.ts'

const row = (key: string, anchorSeq: number, more: Partial<ChatRow> = {}): ChatRow => ({
  key,
  kind: 'any',
  anchorSeq,
  ...more,
})
const marker = (seq: number) => row(`marker${seq}`, seq, { kind: MARKER_ROW })

/** Turns 1..3 start at 10, 20 and 30; each has a prompt, an answer and a tail. */
const turns = [1, 2, 3].flatMap(turn => [
  row(`prompt${turn}`, turn * 10 + 2, { turn }),
  row(`answer${turn}`, turn * 10 + 4, { turn }),
  row(`tail${turn}`, turn * 10 + 4.1, { turn }),
])

test('hides nothing without a marker', () => {
  expect(hiddenRows(turns, [])).toEqual({ keys: [], turns: [] })
})

test('hides the rows of the withdrawn turns and keeps the marker and what follows', () => {
  const rows = [...turns, marker(40), row('prompt4', 52, { turn: 4 })]

  const hidden = hiddenRows(rows, [{ seq: 40, startSeq: 20, turn: 2 }])

  expect(hidden.keys).toEqual(['prompt2', 'answer2', 'tail2', 'prompt3', 'answer3', 'tail3'])
  expect(hidden.turns).toEqual([2, 3])
})

test('hides a row at the edge of the loaded window that has no turn', () => {
  const rows = [row('edge', 22), row('answer2', 24, { turn: 2 }), marker(40)]

  expect(hiddenRows(rows, [{ seq: 40, startSeq: 20, turn: 2 }]).keys).toContain('edge')
})

test('compares fractional anchors as numbers: before the start stays, after it goes', () => {
  const rows = [row('tail1', 19.9), row('cut-off', 20.1), marker(40), row('after', 40.1)]

  expect(hiddenRows(rows, [{ seq: 40, startSeq: 20, turn: 2 }]).keys).toEqual(['cut-off'])
})

test('hides a row of a withdrawn turn that arrived after the marker', () => {
  const rows = [
    row('prompt2', 22, { turn: 2 }),
    marker(40),
    row('late', 44, { turn: 2 }),
    row('prompt3', 52, { turn: 3 }),
  ]

  expect(hiddenRows(rows, [{ seq: 40, startSeq: 20, turn: 2 }]).keys).toEqual(['prompt2', 'late'])
})

test('a later marker over an earlier one hides its bar; turn numbers that came after stay apart', () => {
  const rows = [...turns, marker(40), row('prompt4', 52, { turn: 4 }), marker(60), row('prompt5', 72, { turn: 5 })]

  const hidden = hiddenRows(rows, [
    { seq: 40, startSeq: 20, turn: 2 },
    { seq: 60, startSeq: 10, turn: 1 },
  ])

  expect(hidden.keys).toContain('marker40')
  expect(hidden.keys).toContain('prompt4')
  expect(hidden.keys).not.toContain('marker60')
  expect(hidden.keys).not.toContain('prompt5')
  expect(hidden.turns).toEqual([1, 2, 3, 4])
})

test('two rollbacks side by side keep both bars', () => {
  const rows = [...turns, marker(40), row('prompt4', 52, { turn: 4 }), marker(60)]

  const hidden = hiddenRows(rows, [
    { seq: 40, startSeq: 20, turn: 2 },
    { seq: 60, startSeq: 50, turn: 4 },
  ])

  expect(hidden.keys).not.toContain('marker40')
  expect(hidden.keys).not.toContain('marker60')
})

test('hides the row of our command only when a marker says the same', () => {
  const rows = [
    ...turns,
    marker(40),
    row('rolled back', 41, { command: { answered: true, sourceEventSeq: 40 } }),
    row('list', 43, { command: { answered: true } }),
    row('elsewhere', 45, { command: { answered: true, sourceEventSeq: 7 } }),
  ]

  const hidden = hiddenRows(rows, [{ seq: 40, startSeq: 30, turn: 3 }])

  expect(hidden.keys).toContain('rolled back')
  expect(hidden.keys).not.toContain('list')
  expect(hidden.keys).not.toContain('elsewhere')
})

test('nothing is left when only our own rows are to be seen', () => {
  const rows = [...turns, row('end', 39, { kind: TURN_ROW }), marker(40), row('system', 1, { kind: 'system-prompt' })]
  const all = hiddenRows(rows, [{ seq: 40, startSeq: 10, turn: 1 }])
  const some = hiddenRows(rows, [{ seq: 40, startSeq: 20, turn: 2 }])

  expect(nothingLeft(rows, all)).toBe(true)
  expect(nothingLeft(rows, some)).toBe(false)
})

test('of a marker whose rows are shown, what another one withdrew too stays hidden, and so does the command that says the same', () => {
  const command = row('command', 39, { command: { answered: true, sourceEventSeq: 40 } })
  const rows = [...turns, command, marker(40), row('prompt4', 52, { turn: 4 }), marker(60)]
  const markers = [{ seq: 40, startSeq: 20, turn: 2 }, { seq: 60, startSeq: 10, turn: 1 }]

  const { keys, dimmed } = hiddenRows(rows, markers, new Set([60]))

  expect(keys).toEqual(['prompt2', 'answer2', 'tail2', 'prompt3', 'answer3', 'tail3', 'command'])
  expect(dimmed).toEqual({ keys: ['prompt1', 'answer1', 'tail1', 'marker40', 'prompt4'], turns: [1, 4] })
  expect(hiddenRows(rows, markers, new Set([99]))).toEqual(hiddenRows(rows, markers))
})
