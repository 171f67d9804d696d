import { expect, test } from 'vitest'
import { filesToChange, idle, nextPhase, obstacle, selectionOf, type FlowEvent, type Phase } from '../../client/state/rollback-flow.ts'
import { failure } from '../../src/protocol/failure.ts'
import { aConflict, aPreview, aRow } from './support.ts'

const after = (...events: readonly FlowEvent[]): Phase => events.reduce(nextPhase, idle)
const around = { queued: 'keep', running: 'refuse' } as const
const opened: FlowEvent = { kind: 'opened', turn: 2, request: 1 }
const preview = aPreview({ rows: [aRow('a.txt', 'write'), aConflict('c.txt'), aConflict('d.txt')] })
const previewed: FlowEvent = { kind: 'previewed', request: 1, preview }
const confirmed: FlowEvent = { kind: 'confirmed', request: 2 }
const problem: FlowEvent = { kind: 'problem', request: 2, problem: { kind: 'failure', failure: failure('busy') } }

test('goes from the click to a preview with nothing chosen', () => {
  expect(after(opened, previewed)).toEqual({ kind: 'ready', turn: 2, preview, mode: 'both', choices: new Map(), around })
})

test('asked for one file, chooses that one alone and leaves the conversation', () => {
  const phase = after({ ...opened, only: '/w/a.txt' } as FlowEvent, previewed) as Extract<Phase, { kind: 'ready' }>

  expect(phase).toMatchObject({ kind: 'ready', mode: 'files' })
  expect(filesToChange(preview, phase.choices)).toBe(1)
})

test('asked for one file that somebody else changed, it is kept unless that is chosen', () => {
  const phase = after({ ...opened, only: '/w/c.txt' } as FlowEvent, previewed) as Extract<Phase, { kind: 'ready' }>

  expect(filesToChange(preview, phase.choices)).toBe(0)
  expect(selectionOf(preview, new Map([...phase.choices, ['/w/c.txt', true]])).putBack).toEqual(['/w/c.txt'])
})

test('asked for one file that is none of the rollback, it says so', () => {
  expect(after({ ...opened, only: '/w/other' } as FlowEvent, previewed)).toMatchObject({ kind: 'failed', problem: { failure: { code: 'unknown-path' } } })
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
  expect(filesToChange(preview, new Map())).toBe(1)
  expect(filesToChange(preview, new Map([['/w/c.txt', true]]))).toBe(2)
  expect(filesToChange(preview, new Map([['/w/a.txt', false]]))).toBe(0)
})

test('field 64: a stale confirm shows the new preview, marks what is different and keeps the choices that still hold', () => {
  const now = aPreview({ token: 't2', rows: [aConflict('a.txt'), aConflict('c.txt'), aRow('d.txt', 'write')] })

  const phase = after(
    opened,
    previewed,
    { kind: 'chosen', paths: ['/w/c.txt', '/w/d.txt'], isBack: true },
    confirmed,
    { kind: 'stale', request: 2, preview: now },
  )

  expect(phase).toEqual({
    kind: 'ready',
    turn: 2,
    preview: now,
    mode: 'both',
    choices: new Map([['/w/c.txt', true]]),
    around,
    changed: new Set(['/w/a.txt', '/w/d.txt']),
  })
})

test('a problem ends in a state that names it, and only for the request it answers', () => {
  expect(after(opened, previewed, confirmed, problem)).toMatchObject({ kind: 'failed', turn: 2 })
  expect(after(opened, previewed, { kind: 'confirmed', request: 3 }, problem)).toMatchObject({ kind: 'applying' })
})

test('asks the host for all paths but those that are to stay, and for the conflicts to put back', () => {
  const rows = [aRow('a.txt', 'write'), aRow('b.txt', 'delete'), aConflict('c.txt'), aRow('same.txt', 'none'), aRow('big.bin', 'skip', { skip: 'too-large' })]
  const some = aPreview({ rows })

  expect(selectionOf(some, new Map())).toEqual({ putBack: [] })
  expect(selectionOf(some, new Map([['/w/c.txt', true]]))).toEqual({ putBack: ['/w/c.txt'] })
  expect(selectionOf(some, new Map([['/w/b.txt', false], ['/w/c.txt', true]]))).toEqual({
    putBack: ['/w/c.txt'], only: ['/w/a.txt', '/w/c.txt', '/w/same.txt', '/w/big.bin'],
  })
  // A choice that is no question any more counts for nothing.
  expect(selectionOf(some, new Map([['/w/same.txt', false], ['/w/gone.txt', false]]))).toEqual({ putBack: [] })
})

test('another mode keeps the choices, waits for its own preview, and cannot be confirmed before', () => {
  const chosen: FlowEvent = { kind: 'chosen', paths: ['/w/c.txt'], isBack: true }
  const waiting = after(opened, previewed, chosen, { kind: 'moded', mode: 'files', request: 5 })
  expect(nextPhase(waiting, { ...confirmed, request: 6 })).toBe(waiting)
  expect(nextPhase(waiting, { kind: 'previewed', request: 4, preview: aPreview({ scope: 'conversation' }) })).toBe(waiting)

  const files = aPreview({ scope: 'files', token: 't2' })
  expect(nextPhase(waiting, { kind: 'previewed', request: 5, preview: files })).toEqual({
    kind: 'ready', turn: 2, preview: files, mode: 'files', choices: new Map([['/w/c.txt', true]]), around,
  })
  expect(nextPhase(waiting, { kind: 'problem', request: 5, problem: { kind: 'failure', failure: failure('busy') } })).toMatchObject({ kind: 'failed' })
})

test('says what stands against a confirm: running work until it may go on, a read-only session, nothing to put back', () => {
  const obstacleOf = (more: Parameters<typeof aPreview>[0], ...events: readonly FlowEvent[]) => {
    const phase = after(opened, { kind: 'previewed', request: 1, preview: aPreview(more) }, ...events)
    return phase.kind === 'ready' ? obstacle(phase) : phase.kind
  }
  const running = [{ kind: 'job', label: 'npm test' }] as const
  expect(obstacleOf({})).toBeUndefined()
  expect(obstacleOf({ running: [...running] })).toBe('running')
  expect(obstacleOf({ running: [...running] }, { kind: 'around', around: { running: 'continue' } })).toBeUndefined()
  expect(obstacleOf({ isReadOnly: true })).toBe('read-only')
  expect(obstacleOf({ isReadOnly: true, rows: [aConflict('c.txt')] })).toBeUndefined()
  expect(obstacleOf({ rows: [] })).toBeUndefined()
  expect(obstacleOf({ rows: [] }, { kind: 'moded', mode: 'files', request: 2 }, { kind: 'previewed', request: 2, preview: aPreview({ rows: [], scope: 'files' }) })).toBe('no-files')
})
