import { describe, expect, test } from 'vitest'
import { absent, unknown, type FileState } from '../../../../src/checkpoint/file-state.ts'
import { foldLedger, undoableOp } from '../../../../src/ledger/ledger.ts'
import { decidedOutcomes, isFolderRemoval, pathsInSpan, pathsOfUndo, planRestore, planUndo } from '../../../../src/restore/plan.ts'
import { aJournal, file, opRow, restored, startSeqOf } from '../../../support/a-journal.ts'

const a = '/w/a'
const folder: FileState = { kind: 'folder' }
const link: FileState = { kind: 'link', target: '/elsewhere' }

type Journal = ReturnType<typeof aJournal>
/** The row of `a` in a plan to before `turn`. */
function rowOf(journal: Journal, now: FileState, turn = 1, putBack: readonly string[] = []) {
  const plan = planRestore(foldLedger(journal.entries), startSeqOf(turn), { current: new Map([[a, now]]), putBack: new Set(putBack) })
  return plan.rows[0]!
}

describe('what is done with a path the turn changed and nobody since', () => {
  test.each([
    ['changed', file('1'), file('2'), 'write'],
    ['made', absent, file('2'), 'delete'],
    ['deleted', file('1'), absent, 'recreate'],
    ['given another mode', file('1'), file('1', 0o755), 'write'],
    ['turned into a link', file('1'), link, 'write'],
  ] as const)('a path that was %s', (_name, before, after, kind) => {
    expect(rowOf(aJournal().writes(a, before, after), after)).toMatchObject({ goal: before, conflict: undefined, decision: { kind } })
  })

  test('a path that every call left as it found it is not ours, whatever became of it since', () => {
    // Seen with `write` on a file the model had not read: the host refuses it, and then the user changed the file.
    for (const journal of [aJournal().writes(a, '1', '1'), aJournal().writes(a, undefined, undefined).writes(a, undefined, undefined)]) {
      expect(pathsInSpan(foldLedger(journal.entries), startSeqOf(1))).toEqual([])
      expect(planRestore(foldLedger(journal.entries), startSeqOf(1), { current: new Map([[a, file('mine')]]), putBack: new Set([a]) }).rows).toEqual([])
    }
  })

  test('the goal is what the first call of the span found', () => {
    expect(rowOf(aJournal().turn(1).writes(a, '0', '1').turn(2).writes(a, '1', '2').turn(3).writes(a, '2', '3'), file('3'), 2)).toMatchObject({
      goal: file('1'), turns: [2, 3], decision: { kind: 'write' },
    })
  })
})

describe('what is kept unless the user wants it back', () => {
  test.each([
    ['changed since', aJournal().writes(a, '1', '2'), file('mine'), 'changed-since', 'write'],
    ['deleted since', aJournal().writes(a, '1', '2'), absent, 'changed-since', 'recreate'],
    ['made again since', aJournal().writes(a, '1', undefined), file('mine'), 'changed-since', 'write'],
    ['given another mode since', aJournal().writes(a, '1', '2'), file('2', 0o600), 'changed-since', 'write'],
    ['made by the turn and changed since', aJournal().writes(a, undefined, '2'), file('mine'), 'changed-since', 'delete'],
    ['edited between two calls', aJournal().writes(a, '1', '2').writes(a, 'mine', '3'), file('3'), 'edited-between', 'write'],
    ['written by a call nobody saw the end of', aJournal().cutOff(a, '1'), file('2'), 'cut-off', 'write'],
    ['cut off in the middle', aJournal().cutOff(a, '1').writes(a, '2', '3'), file('3'), 'cut-off', 'write'],
    ['left in a state that could not be read', aJournal().writes(a, '1', unknown('unreadable')), file('2'), 'cut-off', 'write'],
  ] as const)('a path that was %s', (_name, journal, now, conflict, putBack) => {
    expect(rowOf(journal, now)).toMatchObject({ conflict, decision: { kind: 'keep', conflict, putBack } })
    expect(rowOf(journal, now, 1, [a])).toMatchObject({ conflict, decision: { kind: putBack } })
  })

  test('a conflict path that is as it was needs nothing', () => {
    expect(rowOf(aJournal().writes(a, '1', '2'), file('1'))).toMatchObject({ decision: { kind: 'none' } })
  })

  test('choosing another path back does not touch it', () => {
    expect(rowOf(aJournal().writes(a, '1', '2'), file('mine'), 1, ['/w/b'])).toMatchObject({ decision: { kind: 'keep' } })
  })
})

describe('a call that was cut off before it wrote', () => {
  test('is no conflict when it was the last', () => {
    expect(rowOf(aJournal().writes(a, '1', '2').cutOff(a, '2'), file('2'))).toMatchObject({ conflict: undefined, decision: { kind: 'write' } })
  })

  // Every later rollback over the crash kept the file, although nobody had touched it.
  test('is no conflict when others came after it', () => {
    expect(rowOf(aJournal().cutOff(a, '1').writes(a, '1', '2'), file('2'))).toMatchObject({ conflict: undefined, decision: { kind: 'write' } })
  })
})

describe('what cannot be put back is skipped, chosen or not', () => {
  test.each([
    ['the state before is not known', aJournal().writes(a, unknown('too-large'), '2'), file('2'), 'too-large'],
    ['neither state is known', aJournal().writes(a, unknown('unreadable'), '2'), unknown('special'), 'unreadable'],
    ['what is there now cannot be read', aJournal().writes(a, '1', '2'), unknown('behind-link'), 'behind-link'],
    ['a folder is there now', aJournal().writes(a, '1', '2'), folder, 'is-folder'],
    ['a folder is where nothing was', aJournal().writes(a, undefined, '2'), folder, 'is-folder'],
    ['a folder is where the turn removed a file', aJournal().writes(a, '1', undefined), folder, 'is-folder'],
    ['a folder is again where the turn removed one it had made', aJournal().writes(a, undefined, folder).writes(a, folder, undefined), folder, 'is-folder'],
  ] as const)('because %s', (_name, journal, now, skip) => {
    expect(rowOf(journal, now)).toMatchObject({ decision: { kind: 'skip', skip } })
    expect(rowOf(journal, now, 1, [a])).toMatchObject({ decision: { kind: 'skip', skip } })
  })
})

test('a path whose first record of the span follows a hole is skipped, an earlier record may be lost', () => {
  const ledger = foldLedger(aJournal().turn(1).writes(a, '1', '2').turn(2).writes(a, '2', '3').entries)
  const decisionFrom = (turn: number) => planRestore(ledger, startSeqOf(turn), { current: new Map([[a, file('3')]]), putBack: new Set([a]), distrusted: new Set(['r2']) }).rows[0]!.decision

  expect(decisionFrom(2)).toEqual({ kind: 'skip', skip: 'record-lost' })
  expect(decisionFrom(1)).toEqual({ kind: 'write' })
})

test('only paths of the span are in the plan, sorted', () => {
  const ledger = foldLedger(aJournal().turn(1).writes('/w/old', '1', '2').turn(2).writes('/w/z', '1', '2').writes('/w/b', '1', '2').entries)

  expect(pathsInSpan(ledger, startSeqOf(2))).toEqual(['/w/b', '/w/z'])
  expect(planRestore(ledger, startSeqOf(3), { current: new Map() })).toEqual({ rows: [], folders: [] })
})

test('a path that was not looked at is a mistake of the caller', () => {
  const ledger = foldLedger(aJournal().writes(a, '1', '2').entries)

  expect(() => planRestore(ledger, 0, { current: new Map() })).toThrow('/w/a was not looked at')
})

describe('folders', () => {
  const plan = (journal: Journal, turn: number, now: Readonly<Record<string, FileState>>) =>
    planRestore(foldLedger(journal.entries), startSeqOf(turn), { current: new Map(Object.entries(now)) }).folders

  test('field 22: folders made for a file that goes may go too, deepest first', () => {
    const journal = aJournal().writes('/w/lib/deep/n', undefined, '1', { absentFolders: ['/w/lib', '/w/lib/deep'] }).writes('/w/src/n', undefined, '1')

    expect(plan(journal, 1, { '/w/lib/deep/n': file('1'), '/w/src/n': file('1') })).toEqual(['/w/lib/deep', '/w/lib'])
  })

  test('field 25: a folder that an earlier turn made stays until that turn goes', () => {
    const journal = aJournal().turn(3).writes('/w/deep/x', undefined, '1', { absentFolders: ['/w/deep'] }).turn(5).writes('/w/deep/y', undefined, '1')
    const now = { '/w/deep/x': file('1'), '/w/deep/y': file('1') }

    expect(plan(journal, 5, now)).toEqual([])
    expect(plan(journal, 3, now)).toEqual(['/w/deep'])
  })

  test('a folder goes although its file is gone already', () => {
    expect(plan(aJournal().writes('/w/d/n', undefined, '1', { absentFolders: ['/w/d'] }), 1, { '/w/d/n': absent })).toEqual(['/w/d'])
  })

  test('a folder goes also where nobody knows what was at the path in it, if nothing is there', () => {
    const journal = aJournal().changes('/w/d/n', unknown('not-saved'), file('1'), { absentFolders: ['/w/d'] })

    expect(plan(journal, 1, { '/w/d/n': absent })).toEqual(['/w/d'])
    expect(plan(journal, 1, { '/w/d/n': file('1') })).toEqual([])
  })

  test('a folder stays with the file that is kept in it', () => {
    expect(plan(aJournal().writes('/w/d/n', undefined, '1', { absentFolders: ['/w/d'] }), 1, { '/w/d/n': file('mine') })).toEqual([])
  })
})

describe('a folder as a path of its own', () => {
  const private_: FileState = { kind: 'folder', mode: 0o700 }
  const planOf = (journal: Journal, now: Readonly<Record<string, FileState>>, turn = 1, putBack: readonly string[] = []) =>
    planRestore(foldLedger(journal.entries), startSeqOf(turn), { current: new Map(Object.entries(now)), putBack: new Set(putBack) })

  test('one that a command made is not written: it goes at the end if it is empty, with the parents made for it', () => {
    const plan = planOf(aJournal().changes('/w/d/e', undefined, private_, { absentFolders: ['/w/d'] }), { '/w/d/e': folder })

    expect(plan.rows).toMatchObject([{ decision: { kind: 'none' } }])
    expect(plan.rows.filter(isFolderRemoval)).toHaveLength(1)
    expect(plan.folders).toEqual(['/w/d/e', '/w/d'])
    expect(decidedOutcomes(plan)).toEqual([{ path: '/w/d/e', result: 'restored', reason: 'unchanged' }])
  })

  test('one that somebody else may have made stays unless the user wants it gone', () => {
    const journal = aJournal().changes('/w/d', undefined, private_, { doubt: 'overlap' })

    expect(planOf(journal, { '/w/d': folder })).toMatchObject({ rows: [{ decision: { kind: 'keep', conflict: 'shared', putBack: 'delete' } }], folders: [] })
    expect(planOf(journal, { '/w/d': folder }, 1, ['/w/d'])).toMatchObject({ rows: [{ decision: { kind: 'none' } }], folders: ['/w/d'] })
  })

  test('one that a command removed comes back with its mode', () => {
    expect(planOf(aJournal().changes('/w/d', private_, undefined), { '/w/d': absent }).rows).toMatchObject([{ goal: private_, decision: { kind: 'recreate' } }])
  })

  test('one that is back already needs nothing', () => {
    expect(planOf(aJournal().changes('/w/d', private_, undefined), { '/w/d': folder }).rows).toMatchObject([{ decision: { kind: 'none' } }])
  })

  test('field 25: the user\'s empty folder that a command removed and a later call made again stays', () => {
    const journal = aJournal().turn(1).changes('/w/keep', private_, undefined).turn(2).writes('/w/keep/z', undefined, '1', { absentFolders: ['/w/keep'] })
    const now = { '/w/keep': folder, '/w/keep/z': file('1') }

    expect(planOf(journal, now, 2).folders).toEqual(['/w/keep'])
    expect(planOf(journal, now, 1).folders).toEqual([])
  })

  test('one that a call made on the way to a file and a command removed does not come back', () => {
    const journal = aJournal().turn(1).writes('/w/d/f', undefined, '1', { absentFolders: ['/w/d'] })
      .turn(2).changes('/w/d/f', '1', undefined).changes('/w/d', private_, undefined)
    const now = { '/w/d': absent, '/w/d/f': absent }

    expect(planOf(journal, now, 1).rows.map(row => row.decision.kind)).toEqual(['none', 'none'])
    expect(planOf(journal, now, 2).rows.map(row => row.decision.kind)).toEqual(['recreate', 'recreate'])
  })

  test('what was in a folder whose place the turn gave to a link comes back with it', () => {
    const linked = aJournal().changes('/w/d', undefined, link).changes('/w/d/f', '1', undefined)
    const kept = aJournal().changes('/w/d', undefined, link, { doubt: 'overlap' }).changes('/w/d/f', '1', undefined)
    const now = { '/w/d': link, '/w/d/f': unknown('behind-link') }

    expect(planOf(linked, now).rows.map(row => row.decision)).toEqual([{ kind: 'delete' }, { kind: 'recreate' }])
    expect(planOf(kept, now).rows[1]!.decision).toEqual({ kind: 'skip', skip: 'behind-link' })
  })

  test('one that went with what was in it tells of no edit between', () => {
    const journal = aJournal().changes('/w/d', undefined, private_).changes('/w/d/f', undefined, '1').changes('/w/d/f', '1', undefined).changes('/w/d', undefined, link)

    expect(planOf(journal, { '/w/d': link, '/w/d/f': unknown('behind-link') }).rows.map(row => row.decision)).toEqual([{ kind: 'delete' }, { kind: 'none' }])
  })

  test('a file whose place the turn gave to a folder comes back, and a folder whose place it gave to a file', () => {
    expect(planOf(aJournal().changes(a, '1', private_), { [a]: folder }).rows).toMatchObject([{ current: private_, decision: { kind: 'write' } }])
    expect(planOf(aJournal().changes(a, private_, '1'), { [a]: file('1') }).rows).toMatchObject([{ goal: private_, decision: { kind: 'write' } }])
  })
})

test('the decided outcomes name what is kept, skipped and already as it was', () => {
  const journal = aJournal().writes('/w/k', '1', '2').writes('/w/s', unknown('special'), '2').writes('/w/n', '1', '2').writes('/w/w', '1', '2')
  const now = new Map([['/w/k', file('mine')], ['/w/s', file('2')], ['/w/n', file('1')], ['/w/w', file('2')]])

  expect(decidedOutcomes(planRestore(foldLedger(journal.entries), 0, { current: now }))).toEqual([
    { path: '/w/k', result: 'kept', reason: 'changed-since' },
    { path: '/w/n', result: 'restored', reason: 'unchanged' },
    { path: '/w/s', result: 'skipped', reason: 'special' },
  ])
})

describe('an undo', () => {
  function undoRow(was: FileState, goal: FileState, now: FileState, putBack: readonly string[] = []) {
    const journal = aJournal()
    journal.rollback(1, [opRow(a, was, goal)], [restored(a)])
    return planUndo(foldLedger(journal.entries).ops[0]!, new Map([[a, now]]), new Set(putBack)).rows[0]!
  }

  test.each([
    ['overwrote', file('2'), file('1'), 'write'],
    ['deleted', file('2'), absent, 'recreate'],
    ['recreated', absent, file('1'), 'delete'],
  ] as const)('reverses what the rollback %s', (_name, was, goal, kind) => {
    expect(undoRow(was, goal, goal)).toMatchObject({ goal: was, conflict: undefined, decision: { kind } })
  })

  test('keeps what was changed after the rollback', () => {
    expect(undoRow(file('2'), file('1'), file('mine'))).toMatchObject({ decision: { kind: 'keep', conflict: 'changed-since', putBack: 'write' } })
    expect(undoRow(file('2'), file('1'), file('mine'), [a])).toMatchObject({ decision: { kind: 'write' } })
  })

  test('has nothing to do where it is done already', () => {
    expect(undoRow(file('2'), file('1'), file('2'))).toMatchObject({ decision: { kind: 'none' } })
  })

  test('skips what cannot be read', () => {
    expect(undoRow(file('2'), file('1'), unknown('unreadable'), [a])).toMatchObject({ decision: { kind: 'skip', skip: 'unreadable' } })
  })

  test('leaves out what the rollback did not manage', () => {
    const journal = aJournal()
    journal.rollback(1, [opRow(a, file('2'), file('1')), opRow('/w/b', file('2'), file('1'))], [{ path: a, result: 'failed' }, restored('/w/b')])
    const plan = planUndo(foldLedger(journal.entries).ops[0]!, new Map([['/w/b', file('1')]]), new Set())

    expect(plan.rows.map(row => row.path)).toEqual(['/w/b'])
  })

  test('brings a folder back that the rollback removed and nothing comes back in, with its mode', () => {
    const journal = aJournal().turn(1).changes('/w/d/e', undefined, folder, { absentFolders: ['/w/d'] })
    journal.rollback(1, [opRow('/w/x/f', file('2'), absent)], [restored('/w/x/f'), restored('/w/d/e')], [], [['/w/d/e', 0o700], ['/w/d', 0o755], ['/w/x', 0o755]])
    const op = undoableOp(foldLedger(journal.entries))!
    const plan = planUndo(op, new Map(pathsOfUndo(op).map(path => [path, absent])), new Set())

    expect(plan.rows).toMatchObject([
      { path: '/w/d/e', goal: { kind: 'folder', mode: 0o700 }, decision: { kind: 'recreate' } }, { path: '/w/x/f', decision: { kind: 'recreate' } },
    ])
  })

  test('keeps what took the place of a folder that the rollback removed', () => {
    const journal = aJournal()
    journal.rollback(1, [], [], [], [['/w/d', 0o700]])
    const undo = (now: FileState) => planUndo(foldLedger(journal.entries).ops[0]!, new Map([['/w/d', now]]), new Set()).rows[0]!.decision

    expect(undo(file('mine'))).toEqual({ kind: 'keep', conflict: 'changed-since', putBack: 'write' })
    expect(undo(folder)).toEqual({ kind: 'none' })
  })

  test('brings a file back that made way for a folder', () => {
    const journal = aJournal()
    journal.rollback(1, [opRow('/w/d', link, absent), opRow('/w/d/f', absent, file('1'), ['/w/d'])], [restored('/w/d'), restored('/w/d/f')])
    const plan = planUndo(foldLedger(journal.entries).ops[0]!, new Map([['/w/d', folder], ['/w/d/f', file('1')]]), new Set())

    expect(plan).toMatchObject({ rows: [{ goal: link, decision: { kind: 'write' } }, { decision: { kind: 'delete' } }], folders: [] })
  })

  test('takes a folder along that the rollback brought back', () => {
    const journal = aJournal()
    journal.rollback(1, [opRow('/w/d', absent, folder)], [restored('/w/d')])
    const plan = planUndo(foldLedger(journal.entries).ops[0]!, new Map([['/w/d', folder]]), new Set())

    expect(plan).toMatchObject({ rows: [{ decision: { kind: 'none' } }], folders: ['/w/d'] })
  })

  test('takes the folders along that the rollback made again', () => {
    const journal = aJournal()
    journal.rollback(1, [opRow('/w/d/e/n', absent, file('1'), ['/w/d', '/w/d/e'])], [restored('/w/d/e/n')])
    const plan = planUndo(foldLedger(journal.entries).ops[0]!, new Map([['/w/d/e/n', file('1')]]), new Set())

    expect(plan.folders).toEqual(['/w/d/e', '/w/d'])
  })
})
