import { expect, test } from 'vitest'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { opId } from '../../../../src/ids.ts'
import { failedPaths, foldLedger, inSpan, retryableOp, undoableOp, watchKey } from '../../../../src/ledger/ledger.ts'
import { aJournal, file, opRow, restored, root, startSeqOf } from '../../../support/a-journal.ts'

const a = '/w/a'
const b = '/w/b'
const writeBack = opRow(a, file('2'), file('1'))
/** The turns of the records that count for a path, oldest first. */
const turnsOf = (entries: Iterable<JournalEntry>, path = a) => foldLedger(entries).paths.get(path)?.records.map(record => record.turn.number) ?? []

test('a call is one record with what it found and what it left', () => {
  const { paths } = foldLedger(aJournal().writes(a, '1', '2', { absentFolders: ['/w/d'] }).entries)

  expect(paths.get(a)!.records).toMatchObject([{ before: file('1'), after: file('2'), turn: { number: 1 }, tool: 'write', absentFolders: ['/w/d'] }])
})

test('a call that was cut off has no end', () => {
  expect(foldLedger(aJournal().cutOff(a, '1').entries).paths.get(a)!.records[0]!.after).toBeUndefined()
})

test('calls that overlap each get their own end', () => {
  const journal = aJournal()
  const [first, second] = [journal.begins(a, '0'), journal.begins(a, '0')]
  journal.ends(second, '2').ends(first, '1')

  expect(foldLedger(journal.entries).paths.get(a)!.records.map(record => record.after)).toEqual([file('1'), file('2')])
})

test('an entry written twice counts once', () => {
  const { entries } = aJournal().writes(a, '1', '2')

  expect(turnsOf([...entries, ...entries])).toEqual([1])
})

test('ends and ops without their beginning lie in a hole and are passed over', () => {
  const journal = aJournal().ends('r9', '2')
  const op = journal.rollback(1, [writeBack], [restored(a)])
  journal.undo(op, [], [restored(a)])
  const withoutBegin = journal.entries.filter(entry => entry.kind !== 'op-begin')

  expect(foldLedger(withoutBegin)).toMatchObject({ ops: [], open: [] })
})

test('the span begins at the target turn', () => {
  const ledger = foldLedger(aJournal().turn(1).writes(a, '1', '2').turn(2).writes(a, '2', '3').turn(3).writes(a, '3', '4').entries)

  expect(inSpan(ledger.paths.get(a)!, startSeqOf(2)).map(record => record.turn.number)).toEqual([2, 3])
})

test('a path put back loses the records of the withdrawn turns, the others stay', () => {
  const journal = aJournal().turn(1).writes(a, '0', '1').turn(2).writes(a, '1', '2').writes(b, '1', '2')
  journal.rollback(2, [writeBack], [restored(a), { path: b, result: 'kept' }])

  expect(turnsOf(journal.entries)).toEqual([1])
  expect(turnsOf(journal.entries, b)).toEqual([2])
})

test('a path whose every record was withdrawn is not in the ledger', () => {
  const journal = aJournal().writes(a, '1', '2')
  journal.rollback(1, [writeBack], [restored(a)])

  expect([...foldLedger(journal.entries).paths]).toEqual([])
})

test.each(['kept', 'skipped', 'failed'] as const)('a path that was %s keeps its records', result => {
  const journal = aJournal().writes(a, '1', '2')
  journal.rollback(1, [writeBack], [{ path: a, result }])

  expect(turnsOf(journal.entries)).toEqual([1])
})

test('a rollback of the conversation alone cancels nothing', () => {
  const journal = aJournal().writes(a, '1', '2')
  journal.rollback(1, [], [])

  expect(turnsOf(journal.entries)).toEqual([1])
})

test('an op that did not end is open and cancels nothing', () => {
  const journal = aJournal().writes(a, '1', '2')
  const op = journal.beginsRollback(1, [writeBack])

  expect(foldLedger(journal.entries).open).toMatchObject([{ op }])
  expect(turnsOf(journal.entries)).toEqual([1])
})

test('an op that was taken back leaves no trace', () => {
  const journal = aJournal().writes(a, '1', '2')
  journal.takesBack(journal.beginsRollback(1, [writeBack]))

  expect(foldLedger(journal.entries)).toMatchObject({ ops: [], open: [] })
  expect(turnsOf(journal.entries)).toEqual([1])
})

test('an undo gives the withdrawn turns their records back', () => {
  const journal = aJournal().turn(1).writes(a, '0', '1').turn(2).writes(a, '1', '2')
  const op = journal.rollback(2, [writeBack], [restored(a)])
  const undo = journal.undo(op, [opRow(a, file('1'), file('2'))], [restored(a)])

  expect(turnsOf(journal.entries)).toEqual([1, 2])
  expect(foldLedger(journal.entries).ops.map(({ undoneBy }) => undoneBy)).toEqual([undo, undefined])
})

test('what happened between a rollback and its undo comes after the records given back', () => {
  const journal = aJournal().turn(1).writes(a, '1', '2')
  const op = journal.rollback(1, [writeBack], [restored(a)])
  journal.turn(2).writes(a, '1', '5')
  journal.undo(op, [opRow(a, file('5'), file('2'))], [restored(a)])

  expect(turnsOf(journal.entries)).toEqual([1, 2])
})

test('a path that an undo had to keep stays as the rollback left it', () => {
  const journal = aJournal().writes(a, '1', '2')
  const op = journal.rollback(1, [writeBack], [restored(a)])
  journal.undo(op, [], [{ path: a, result: 'kept' }])

  expect(turnsOf(journal.entries)).toEqual([])
})

// Such a path has no row to undo, and its records were lost for good.
test('a path that needed no writing gets its records back with the others', () => {
  const unchanged = { ...restored(b), reason: 'unchanged' }
  const journal = aJournal().writes(a, '1', '2').writes(b, '1', '2').writes(b, '2', '1')
  const op = journal.rollback(1, [writeBack], [restored(a), unchanged], [unchanged])
  expect(turnsOf(journal.entries, b)).toEqual([])

  journal.undo(op, [opRow(a, file('1'), file('2'))], [restored(a)])

  expect(turnsOf(journal.entries, b)).toEqual([1, 1])
})

// The records stayed although the files were rolled back again, and an older turn then saw an edit nobody had made.
test('the undo of an undo cancels the records again and the rollback stands', () => {
  const journal = aJournal().turn(1).writes(a, '0', '1').turn(2).writes(a, '1', '2')
  const op = journal.rollback(2, [writeBack], [restored(a)])
  const undo = journal.undo(op, [opRow(a, file('1'), file('2'))], [restored(a)])
  const again = journal.undo(undo, [writeBack], [restored(a)])

  expect(turnsOf(journal.entries)).toEqual([1])
  expect(foldLedger(journal.entries).ops.map(({ undoneBy }) => undoneBy)).toEqual([undefined, again, undefined])
})

test('two rollbacks are undone one by one', () => {
  const journal = aJournal().turn(1).writes(a, '0', '1').turn(2).writes(a, '1', '2').turn(3).writes(a, '2', '3')
  const first = journal.rollback(3, [opRow(a, file('3'), file('2'))], [restored(a)])
  const second = journal.rollback(2, [writeBack], [restored(a)])
  journal.undo(second, [opRow(a, file('1'), file('2'))], [restored(a)])
  expect(turnsOf(journal.entries)).toEqual([1, 2])

  journal.undo(first, [opRow(a, file('2'), file('3'))], [restored(a)])

  expect(turnsOf(journal.entries)).toEqual([1, 2, 3])
})

// The undo brought back the record as it had been at the rollback, without its end.
test('the end of a call that came after the rollback is there after the undo', () => {
  const journal = aJournal()
  const late = journal.begins(a, '1')
  const op = journal.rollback(1, [writeBack], [restored(a)])
  journal.ends(late, '2')
  journal.undo(op, [], [restored(a)])

  expect(foldLedger(journal.entries).paths.get(a)!.records[0]!.after).toEqual(file('2'))
})

test('an undo that failed for a file leaves the rollback to be undone again', () => {
  const journal = aJournal().writes(a, '1', '2')
  const op = journal.rollback(1, [opRow(a, file('2'), file('1'))], [restored(a)])
  journal.undo(op, [opRow(a, file('1'), file('2'))], [{ path: a, result: 'failed', reason: 'EBUSY' }])

  expect(undoableOp(foldLedger(journal.entries))?.begin.op).toBe(op)
})

test('a folder that an undo could not remove leaves nothing to undo again', () => {
  const journal = aJournal().writes(a, '1', '2')
  const op = journal.rollback(1, [opRow(a, file('2'), file('1'))], [restored(a)])
  journal.undo(op, [opRow(a, file('1'), file('2'))], [restored(a), { path: '/w/d', result: 'failed', reason: 'EACCES' }])

  expect(undoableOp(foldLedger(journal.entries))).toBeUndefined()
})

test('an undo passes over a rollback that changed no file', () => {
  const journal = aJournal().writes(a, '1', '2')
  const first = journal.rollback(1, [opRow(a, file('2'), file('1'))], [restored(a)])
  journal.rollback(3, [], [])

  expect(undoableOp(foldLedger(journal.entries))?.begin.op).toBe(first)
})

test('an undo of an op that is not known changes nothing', () => {
  const journal = aJournal().writes(a, '1', '2')
  journal.undo(opId('unknownop'), [], [restored(a)])

  expect(turnsOf(journal.entries)).toEqual([1])
})

test('every call with a record was watched, also after its records were cancelled', () => {
  const journal = aJournal().writes(a, '1', '2').sees('bash', { session: 'child' })
  journal.rollback(1, [writeBack], [restored(a)])
  const { watched, seen } = foldLedger(journal.entries)

  expect([...watched]).toEqual([watchKey(root, 'call-1'), watchKey('child', 'call-2')])
  expect(seen).toMatchObject([{ call: { tool: 'bash' } }])
})

test('a change booked on an ended turn is late', () => {
  expect(foldLedger(aJournal().writes(a, '1', '2').writes(b, '1', '2', { late: true }).entries).late).toMatchObject([{ call: { callId: 'call-2' } }])
})

/** Turn 1 changed `a` and `b`; the rollback put `a` back and could not write `b`. */
function halfDone() {
  const journal = aJournal().turn(1).writes(a, '1', '2').writes(b, '1', '2')
  const rows = [writeBack, opRow(b, file('2'), file('1'))]
  const op = journal.rollback(1, rows, [restored(a), { path: b, result: 'failed', reason: 'EACCES' }])
  return { journal, op, rows }
}

test('a file that failed can be tried again until it is back, and its records are cancelled then', () => {
  const { journal, op, rows } = halfDone()
  const before = foldLedger(journal.entries)
  expect(failedPaths(before.ops, retryableOp(before)!)).toEqual([b])
  expect(turnsOf(journal.entries, b)).toEqual([1])

  journal.retry(op, 1, [rows[1]!], [{ path: b, result: 'failed', reason: 'EACCES' }])
  expect(retryableOp(foldLedger(journal.entries))?.begin.op).toBe(op)
  journal.retry(op, 1, [rows[1]!], [restored(b)])

  const after = foldLedger(journal.entries)
  expect(retryableOp(after)).toBeUndefined()
  expect(after.ops[0]!.done.outcomes).toEqual([restored(a), restored(b)])
  expect(turnsOf(journal.entries, b)).toEqual([])
})

test('an undo reverses a rollback with its retry and reinstates the records of both', () => {
  const { journal, op, rows } = halfDone()
  const retry = journal.retry(op, 1, [rows[1]!], [restored(b)])
  expect(undoableOp(foldLedger(journal.entries))?.begin.op).toBe(op)

  const undo = journal.undo(op, rows, [restored(a), restored(b)])

  const { ops } = foldLedger(journal.entries)
  expect(ops.map(({ begin, undoneBy }) => [begin.op, undoneBy])).toEqual([[op, undo], [retry, undo], [undo, undefined]])
  expect(turnsOf(journal.entries)).toEqual([1])
  expect(turnsOf(journal.entries, b)).toEqual([1])
  expect(retryableOp({ ops })).toBeUndefined()
})

test('a file that was kept at the retry, or put back by a later rollback, is not tried again', () => {
  const kept = halfDone()
  kept.journal.retry(kept.op, 1, [], [{ path: b, result: 'kept', reason: 'changed-since' }])
  expect(retryableOp(foldLedger(kept.journal.entries))).toBeUndefined()

  const later = halfDone()
  later.journal.rollback(1, [later.rows[1]!], [restored(b)])
  expect(retryableOp(foldLedger(later.journal.entries))).toBeUndefined()
})

test('what a call did to a file after the retry stays when both are undone', () => {
  const { journal, op, rows } = halfDone()
  journal.retry(op, 1, [rows[1]!], [restored(b)])
  journal.turn(2).writes(b, '1', '3')

  journal.undo(op, rows, [restored(a), restored(b)])

  expect(turnsOf(journal.entries, b)).toEqual([1, 2])
})
