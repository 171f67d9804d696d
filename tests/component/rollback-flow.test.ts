import { expect, test } from 'vitest'
import { filesToChange, idle, nextPhase, type FlowEvent, type Phase } from '../../client/state/rollback-flow.ts'
import { failure } from '../../src/protocol/failure.ts'
import { aConflict, aPreview, aRow } from './support.ts'

const after = (...events: readonly FlowEvent[]): Phase => events.reduce(nextPhase, idle)
const opened: FlowEvent = { kind: 'opened', turn: 2, request: 1 }
const preview = aPreview({ rows: [aRow('a.txt', 'write'), aConflict('c.txt'), aConflict('d.txt')] })
const previewed: FlowEvent = { kind: 'previewed', request: 1, preview }
const confirmed: FlowEvent = { kind: 'confirmed', request: 2 }
const problem: FlowEvent = { kind: 'problem', request: 2, problem: { kind: 'failure', failure: failure('busy') } }

test('goes from the click to a preview with nothing chosen', () => {
  expect(after(opened, previewed)).toEqual({ kind: 'ready', turn: 2, preview, putBack: new Set() })
})

test('drops a reply that answers an older request', () => {
  const waiting = after(opened, { kind: 'opened', turn: 3, request: 2 })

  expect(nextPhase(waiting, previewed)).toBe(waiting)
})

test('drops a reply that comes after closing', () => {
  expect(after(opened, { kind: 'closed' }, previewed)).toBe(idle)
})

test('nothing is carried out before a preview is there', () => {
  expect(after(opened, confirmed)).toEqual({ kind: 'loading', turn: 2, request: 1 })
})

test('cannot be closed or opened anew while it is being carried out', () => {
  const applying = after(opened, previewed, confirmed)

  expect(nextPhase(applying, { kind: 'closed' })).toBe(applying)
  expect(nextPhase(applying, { kind: 'opened', turn: 1, request: 3 })).toBe(applying)
})

test('counts the files of the plan and the conflicts put back by choice', () => {
  expect(filesToChange(preview, new Set())).toBe(1)
  expect(filesToChange(preview, new Set(['/w/c.txt']))).toBe(2)
})

test('field 64: a stale confirm shows the new preview, marks what is different and keeps the choices that still hold', () => {
  const now = aPreview({ token: 't2', rows: [aConflict('a.txt'), aConflict('c.txt'), aRow('d.txt', 'write')] })

  const phase = after(
    opened,
    previewed,
    { kind: 'chosen', path: '/w/c.txt', putBack: true },
    { kind: 'chosen', path: '/w/d.txt', putBack: true },
    confirmed,
    { kind: 'stale', request: 2, preview: now },
  )

  expect(phase).toEqual({
    kind: 'ready',
    turn: 2,
    preview: now,
    putBack: new Set(['/w/c.txt']),
    changed: new Set(['/w/a.txt', '/w/d.txt']),
  })
})

test('a problem ends in a state that names it, and only for the request it answers', () => {
  expect(after(opened, previewed, confirmed, problem)).toMatchObject({ kind: 'failed', turn: 2 })
  expect(after(opened, previewed, { kind: 'confirmed', request: 3 }, problem)).toMatchObject({ kind: 'applying' })
})
