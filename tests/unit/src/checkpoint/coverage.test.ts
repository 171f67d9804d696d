import { expect, test } from 'vitest'
import { coverageGaps } from '../../../../src/checkpoint/coverage.ts'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { sessionId } from '../../../../src/ids.ts'
import { foldLedger } from '../../../../src/ledger/ledger.ts'
import type { LogEvent } from '../../../../src/turn/log-event.ts'
import { indexTurns, type ToolCall } from '../../../../src/turn/turn-index.ts'
import { root } from '../../../support/a-journal.ts'
import { aLog } from '../../../support/a-log.ts'

interface Given {
  readonly startSeq?: number
  readonly holes?: boolean
  readonly gone?: readonly string[]
  /** Which calls the journal has a record of. */
  readonly watched?: (call: ToolCall) => boolean
  readonly more?: readonly JournalEntry[]
}

function gaps(events: readonly LogEvent[], given: Given = {}) {
  const turns = indexTurns(events)
  const seen = turns.flatMap(turn => turn.calls.filter(given.watched ?? (() => false)).map((call): JournalEntry => ({
    kind: 'seen', turn: { startSeq: turn.startSeq, number: turn.number }, call: { callId: call.callId, tool: call.name, sessionId: root }, atMs: 0,
  })))
  return coverageGaps({
    session: root, turns, startSeq: given.startSeq ?? 0, ledger: foldLedger([...seen, ...given.more ?? []]), hasHoles: given.holes ?? false, ...given.gone && { gone: given.gone },
  })
}
const childCall = (tool: string, late?: true): JournalEntry => ({
  kind: 'before', id: `x-${tool}`, turn: { startSeq: 0, number: 1, ...late && { late } }, call: { callId: 'c', tool, sessionId: root },
  origin: 'tool', path: '/w/a', state: { kind: 'absent' }, absentFolders: [], atMs: 0,
})

test('turns that only read and talk leave no gap', () => {
  const log = aLog().turn('hi').calls('read', { file_path: 'a' }).calls('todo_write', {}).calls('str_replace_editor', { command: 'view', path: 'a' })

  expect(gaps(log.done())).toEqual([])
})

test('field 79: a write without a record is a gap, a recorded one is not', () => {
  const log = aLog().turn('1').writes('old.txt').turn('2').writes('new.txt')
  const watched = (call: ToolCall) => call.args?.file_path === 'new.txt'

  expect(gaps(log.done(), { watched })).toEqual([{ reason: 'no-record', count: 1, names: ['old.txt'] }])
  expect(gaps(log.done(), { watched, startSeq: log.startOf(2) })).toEqual([])
})

test('field 19: a shell command is named even when it was watched', () => {
  expect(gaps(aLog().turn('1').runs('sed -i s/1/2/ a.txt').done(), { watched: () => true }))
    .toEqual([{ reason: 'command', count: 1, names: ['sed -i s/1/2/ a.txt'] }])
})

test('a command that a program ran is named, and so is a program nobody watched', () => {
  const log = aLog().turn('1').calls('run_code', { code: 'x' }).dispatches('bash', { command: 'make' })

  expect(gaps(log.done())).toEqual([{ reason: 'no-record', count: 1, names: ['run_code'] }, { reason: 'command', count: 1, names: ['make'] }])
})

test('a call that never started is no gap', () => {
  const log = aLog().turn('1').writes('a', { error: true, code: 'TOOL_NOT_STARTED' }).calls('no_such_tool', {}, { error: true, code: 'UNKNOWN_TOOL' })

  expect(gaps(log.done())).toEqual([])
})

test('a command that failed may have written all the same', () => {
  expect(gaps(aLog().turn('1').runs('make', { error: true }).done())).toMatchObject([{ reason: 'command', count: 1 }])
})

test('a command of a subagent is named by its tool', () => {
  const of = (tool: string, session: string): JournalEntry => ({
    kind: 'seen', turn: { startSeq: 0, number: 1 }, call: { callId: 'c', tool, sessionId: session as typeof root }, atMs: 0,
  })

  expect(gaps([], { more: [of('bash', 'child'), of('read', 'child'), of('bash', root)] })).toEqual([{ reason: 'command', count: 1, names: ['bash'] }])
})

// Every subagent ends with a report, so every delegation was said to have changed files unseen.
test('the report a subagent ends with is no command', () => {
  const report: JournalEntry = {
    kind: 'seen', turn: { startSeq: 0, number: 1 }, call: { callId: 'c', tool: 'report', sessionId: sessionId('child') }, atMs: 0,
  }

  expect(gaps([], { more: [report] })).toEqual([])
})

test('a change booked on a turn that had ended is named', () => {
  expect(gaps([], { more: [childCall('write', true), childCall('edit')] })).toEqual([{ reason: 'late', count: 1, names: ['write'] }])
})

test('a hole in the store is a gap without names', () => {
  expect(gaps([], { holes: true })).toEqual([{ reason: 'store-hole', count: 1, names: [] }])
})

test('files whose saved bytes are gone are one gap', () => {
  expect(gaps([], { gone: ['/w/a', '/w/b'] })).toEqual([{ reason: 'object-gone', count: 2, names: ['/w/a', '/w/b'] }])
})

test('the same command is counted each time and named once, and names end at twenty', () => {
  const log = aLog().turn('1')
  for (let n = 0; n < 30; n++) log.runs(`make ${n % 25}`)
  const [gap] = gaps(log.done())

  expect(gap!.count).toBe(30)
  expect(gap!.names).toHaveLength(20)
  expect(new Set(gap!.names).size).toBe(20)
})
