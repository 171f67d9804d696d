import { expect, test } from 'vitest'
import { cutBefore } from '../../../../src/surface/range.ts'
import type { SurfaceNode } from '../../../../src/surface/origin-span.ts'

const message = (seq: number): SurfaceNode => ({ seq, min: seq, max: seq, by: 'message' })
const stands = (seq: number, min: number, max: number, by: SurfaceNode['by'] = 'replacement'): SurfaceNode => ({ seq, min, max, by })
const cut = (startSeq: number, ...nodes: readonly SurfaceNode[]) => cutBefore({ nodes, replacements: [] }, startSeq)

test('the cut begins at the first node of the target turn', () => {
  expect(cut(5, message(1), message(6), message(8))).toEqual({ kind: 'cut', nodes: [6, 8] })
})

test('a replacement before the boundary stays, however high its seq is', () => {
  expect(cut(5, stands(20, 1, 4), message(6))).toEqual({ kind: 'cut', nodes: [6] })
})

test('a replacement of things from the boundary on goes like a message', () => {
  expect(cut(5, message(1), stands(20, 6, 9, 'marker'), message(15))).toEqual({ kind: 'cut', nodes: [20, 15] })
})

test('a replacement over both sides stops the cut', () => {
  expect(cut(5, stands(20, 1, 9), message(15))).toEqual({ kind: 'across', by: 'replacement' })
  expect(cut(5, stands(20, 1, 9, 'marker'))).toEqual({ kind: 'across', by: 'marker' })
})

test('a node further on that reaches back over the boundary stops the cut', () => {
  expect(cut(5, message(6), stands(20, 1, 9))).toEqual({ kind: 'across', by: 'replacement' })
  expect(cut(5, message(6), message(2))).toEqual({ kind: 'across', by: 'message' })
})

test('nothing on the surface from the boundary on is nothing to cut', () => {
  expect(cut(5, message(1))).toEqual({ kind: 'nothing' })
  expect(cut(5)).toEqual({ kind: 'nothing' })
})

test('a system prompt at the first place is never in the cut', () => {
  expect(cut(0, stands(1, 1, 1, 'system'), message(2))).toEqual({ kind: 'cut', nodes: [2] })
  expect(cut(0, stands(1, 1, 1, 'system'))).toEqual({ kind: 'nothing' })
})

// The host replaces a range, so leaving one out in the middle made it refuse the marker.
test('a system message at another place is in the cut', () => {
  expect(cut(2, stands(0, 0, 0, 'system'), message(2), stands(3, 3, 3, 'system'), message(4))).toEqual({ kind: 'cut', nodes: [2, 3, 4] })
})
