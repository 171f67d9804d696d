import { describe, expect, it } from 'vitest'
import { absent, unknown } from '../../../../src/checkpoint/file-state.ts'
import { compareTurns } from '../../../../src/checkpoint/compare.ts'
import { aJournal, file, opRow, restored, startSeqOf } from '../../../support/a-journal.ts'

const at = (turn: number, atMs = 1000 + turn) => ({ startSeq: startSeqOf(turn), atMs })
const a = '/w/a'

describe('what changed between two turns', () => {
  it('is what the first call found and the last one left', () => {
    const { entries } = aJournal().turn(1).writes(a, '1', '2').writes(a, '2', '3')

    expect(compareTurns(entries, at(1), at(1))).toEqual([{ path: a, before: file('1'), after: file('3'), origins: ['tool'], callIds: ['call-1', 'call-2'] }])
  })

  it('keeps a path that one turn changed and changed back, and drops it from a longer stretch', () => {
    const { entries } = aJournal().turn(1).writes(a, '1', '2').writes(a, '2', '1').turn(2).writes('/w/b', undefined, 'x')

    expect(compareTurns(entries, at(1), at(1)).map(({ path }) => path)).toEqual([a])
    expect(compareTurns(entries, at(1), at(2)).map(({ path }) => path)).toEqual(['/w/b'])
  })

  it('names every way in which a path moved', () => {
    const journal = aJournal().turn(1).writes(a, '1', '2').changes(a, '2', '3')
    journal.rollback(1, [opRow(a, file('3'), file('1'))], [restored(a)])
    const { entries } = journal.turn(2).writes(a, '1', '5')

    expect(compareTurns(entries, at(1, 0), at(2))).toMatchObject([{ origins: ['tool', 'shell', 'op'], after: file('5') }])
  })

  it('a rollback that failed at a path did not move it', () => {
    const journal = aJournal().turn(1).writes(a, '1', '2')
    journal.rollback(1, [opRow(a, file('2'), file('1'))], [{ path: a, result: 'failed' }])

    expect(compareTurns(journal.entries, at(1, 0), undefined)).toMatchObject([{ after: file('2'), origins: ['tool'] }])
  })

  it('a write that was refused is no change', () => {
    expect(compareTurns(aJournal().turn(1).writes(a, '1', '1').entries, at(1), at(1))).toEqual([])
  })

  it('what a call left that was cut off is not known', () => {
    expect(compareTurns(aJournal().turn(1).cutOff(a, '1').entries, at(1), at(1))).toMatchObject([{ before: file('1'), after: unknown('cut-off') }])
  })

  it('an edit from between two turns is in what the later one found, and not in what the earlier one did', () => {
    const { entries } = aJournal().turn(1).writes(a, '1', '2').turn(2).writes(a, 'mine', '3')

    expect(compareTurns(entries, at(1), at(1))).toMatchObject([{ after: file('2') }])
    expect(compareTurns(entries, at(2), at(2))).toMatchObject([{ before: file('mine') }])
  })

  it('a turn that touched nothing has no rows', () => {
    expect(compareTurns(aJournal().turn(1).writes(a, absent, '2').entries, at(2), at(2))).toEqual([])
  })

  it('a change seen after a later turn began stands there, however it is booked', () => {
    const { entries } = aJournal().turn(1).writes('/w/b', '1', '2').turn(2).writes(a, '1', '2').turn(1).changes(a, '2', 'late', { late: true })

    expect(compareTurns(entries, at(2, 1.5), at(2, 1.5))).toMatchObject([{ path: a, before: file('1'), after: file('2') }])
  })
})
