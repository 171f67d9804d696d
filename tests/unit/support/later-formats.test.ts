import { expect, test } from 'vitest'
import type { ForeignEvent } from '../../../host/dsh/host-types.ts'
import { refusedLater } from '../../support/later-formats.ts'

const said = (seq: number, source: object = { kind: 'user' }): ForeignEvent => ({ seq, type: 'user/message', time: 0, data: { source }, surfaceOp: 'append' })
const marker = (seq: number, more: Partial<ForeignEvent> = {}): ForeignEvent =>
  ({ ...said(seq, { kind: 'plugin', plugin: 'dsh-turnback' }), surfaceOp: { op: 'replace', start: 0, end: 1 }, sourceEventSeqs: [0, 1], ...more })

test('a log with a marker in order is taken', () => {
  expect(refusedLater([said(0), said(1), marker(2)])).toEqual([])
})

test.each<[string, ForeignEvent]>([
  ['the source has a member mood', said(2, { kind: 'plugin', plugin: 'x', mood: 'good' })],
  ['the source names no plugin', said(2, { kind: 'plugin' })],
  ['a source of kind plugin:x', said(2, { kind: 'plugin:x' })],
  ['a surfaceOp of another shape', marker(2, { surfaceOp: { op: 'replace', start: 0, end: 1, more: 1 } })],
  ['a range that is not on the surface', marker(2, { surfaceOp: { op: 'replace', start: 1, end: 7 } })],
  ['a replaced node that is no source', marker(2, { sourceEventSeqs: [0] })],
  ['sources that are not unique and earlier', marker(2, { sourceEventSeqs: [0, 1, 9] })],
  ['an assistant message in place of others', marker(2, { type: 'assistant/message' })],
])('one with %s is refused', (why, event) => {
  expect(refusedLater([said(0), said(1), event]).join()).toContain(why)
})
