import { expect, test } from 'vitest'
import { absent, unknown } from '../../../../src/checkpoint/file-state.ts'
import { foldLedger } from '../../../../src/ledger/ledger.ts'
import { planRestore } from '../../../../src/restore/plan.ts'
import { aJournal, file, startSeqOf } from '../../../support/a-journal.ts'
import { aWorkspace, type Workspace } from '../../../support/a-workspace.ts'

/** Situations users of rollback tools meet, as far as planning decides them. */
const listed = (world: Workspace, turn: number) => world.plan(turn).rows.map(row => row.path)

test('field 4: a file the agent only failed to read and the user made is not listed', () => {
  const world = aWorkspace().begins().user({ 'report.csv': 'u' })

  expect(world.rollsBack(1).plan.rows).toEqual([])
  expect(world.look('report.csv')).toEqual(file('u'))
})

test('field 6: a file whose bytes could not be saved is skipped with the reason and never deleted', () => {
  const ledger = foldLedger(aJournal().turn(1).writes('/w/a.txt', unknown('capture-failed'), '2').entries)
  const plan = planRestore(ledger, startSeqOf(1), { current: new Map([['/w/a.txt', file('2')]]), putBack: new Set(['/w/a.txt']) })

  expect(plan.rows).toMatchObject([{ path: '/w/a.txt', decision: { kind: 'skip', skip: 'capture-failed' } }])
})

test('field 8: a file changed since is kept and marked, and can be got back after it was put back', () => {
  const world = aWorkspace({ 'a.txt': '1' }).turnWrites({ 'a.txt': '2' }).user({ 'a.txt': '2+mine' })
  expect(world.plan(1).rows).toMatchObject([{ conflict: 'changed-since', decision: { kind: 'keep' } }])

  const { op } = world.rollsBack(1, ['a.txt'])
  expect(world.look('a.txt')).toEqual(file('1'))
  world.undoes(op)

  expect(world.look('a.txt')).toEqual(file('2+mine'))
})

test('field 9: a file only the user changed is not listed', () => {
  const world = aWorkspace({ 'q.md': 'x' }).begins().user({ 'q.md': 'y' })

  expect(listed(world, 1)).toEqual([])
})

test('field 10: a file goes back to what the target turn found', () => {
  const world = aWorkspace({ 'a.txt': '1' }).turnWrites({ 'a.txt': '2' }).user({ 'a.txt': '3' }).turnWrites({ 'a.txt': '4' })

  world.rollsBack(2)

  expect(world.look('a.txt')).toEqual(file('3'))
})

test('field 13: going back over two turns puts back the files of both', () => {
  const world = aWorkspace({ 'a.txt': '1', 'b.txt': '1' }).turnWrites({ 'a.txt': '2' }).turnWrites({ 'b.txt': '2' })

  world.rollsBack(1)

  expect(world.files()).toEqual([['a.txt', file('1')], ['b.txt', file('1')]])
})

test('field 14: a file that an earlier turn made is restored, not deleted', () => {
  const world = aWorkspace().turnWrites({ 't.txt': 'v1' }).turnWrites({ 't.txt': 'v2' })

  world.rollsBack(2)

  expect(world.look('t.txt')).toEqual(file('v1'))
})

test('field 16: a file that something else changed before the target turn is not listed', () => {
  const world = aWorkspace({ 'a.txt': '1', 'b.txt': '1' }).turnWrites({ 'a.txt': '2' }).user({ 'a.txt': '5' }).turnWrites({ 'b.txt': '2' })

  expect(world.rollsBack(2).plan.rows.map(row => row.path)).toEqual(['b.txt'])
  expect(world.look('a.txt')).toEqual(file('5'))
})

test('field 17: rollbacks one after another each find the right state', () => {
  const world = aWorkspace({ a: '0', b: '0', c: '0' })
    .turnWrites({ a: '1' }).turnWrites({ b: '1' }).turnWrites({ a: '2', c: '1' }).turnWrites({ c: '2' })
  const after = (turn: number) => {
    world.rollsBack(turn)
    return ['a', 'b', 'c'].map(world.look)
  }

  expect(after(4)).toEqual(['2', '1', '1'].map(text => file(text)))
  expect(after(3)).toEqual(['1', '1', '0'].map(text => file(text)))
  expect(after(1)).toEqual(['0', '0', '0'].map(text => file(text)))
})

test('field 18: a file of the user\'s own where a withdrawn turn had one is not listed', () => {
  const world = aWorkspace({ 'y.txt': '1' }).turnWrites({ 'x.txt': 'agent' })
  world.rollsBack(1)
  world.user({ 'x.txt': 'u' }).turnWrites({ 'y.txt': '2' })

  expect(world.rollsBack(2).plan.rows.map(row => row.path)).toEqual(['y.txt'])
  expect(world.look('x.txt')).toEqual(file('u'))
})

test('field 23: an empty file comes back empty, not absent', () => {
  const world = aWorkspace({ '__init__.py': '' }).turnWrites({ '__init__.py': 'x' })

  world.rollsBack(1)

  expect(world.look('__init__.py')).toEqual(file(''))
})

test('field 24: a file deleted before the target turn stays deleted', () => {
  const world = aWorkspace({ 'd.txt': '1', 'a.txt': '1' }).turnWrites({ 'd.txt': undefined }).turnWrites({ 'a.txt': '2' })

  world.rollsBack(2)

  expect(world.files()).toEqual([['a.txt', file('1')]])
})

test('field 32: a file that is already as it was is not written', () => {
  const world = aWorkspace({ 'a.txt': '1' }).turnWrites({ 'a.txt': '2' }).user({ 'a.txt': '1' })

  expect(world.rollsBack(1).plan.rows).toMatchObject([{ decision: { kind: 'none' } }])
})

test('field 36: a path behind a link that came later is skipped, the others go back', () => {
  const ledger = foldLedger(aJournal().turn(1).writes('/w/skills/x', '1', '2').turn(2).writes('/w/b', '1', '2').entries)
  const now = new Map([['/w/skills/x', unknown('behind-link')], ['/w/b', file('2')]])

  expect(planRestore(ledger, startSeqOf(2), { current: now }).rows).toMatchObject([{ path: '/w/b', decision: { kind: 'write' } }])
  expect(planRestore(ledger, startSeqOf(1), { current: now }).rows).toMatchObject([
    { path: '/w/b', decision: { kind: 'write' } }, { path: '/w/skills/x', decision: { kind: 'skip', skip: 'behind-link' } },
  ])
})

test('field 40: what another session wrote later is marked and kept', () => {
  const world = aWorkspace({ 's.txt': '1' }).turnWrites({ 's.txt': '2' }).user({ 's.txt': '3' })

  expect(world.rollsBack(1).plan.rows).toMatchObject([{ decision: { kind: 'keep', conflict: 'changed-since' } }])
  expect(world.look('s.txt')).toEqual(file('3'))
})

test('field 43: what a subagent wrote in an earlier turn is what the target turn found', () => {
  const ledger = foldLedger(aJournal().turn(1).writes('/w/a', '1', '2').writes('/w/a', '2', '3', { session: 'child' }).turn(2).writes('/w/a', '3', '4').entries)

  expect(planRestore(ledger, startSeqOf(2), { current: new Map([['/w/a', file('4')]]) }).rows).toMatchObject([{ goal: file('3'), decision: { kind: 'write' } }])
})

test('field 59: an undo brings back the state before the rollback', () => {
  const world = aWorkspace({ a: '1' }).turnWrites({ a: '2' }).turnWrites({ a: '3' })

  world.undoes(world.rollsBack(1).op)

  expect(world.look('a')).toEqual(file('3'))
})

test('field 60: an undo brings back edits, deletions and new files, the user\'s edit included', () => {
  const world = aWorkspace({ e: '1', d: '1' }).turnWrites({ e: '2', d: undefined, n: '1' }).user({ e: 'mine' })
  const before = world.files()
  const { op } = world.rollsBack(1, ['e'])
  expect(world.files()).toEqual([['d', file('1')], ['e', file('1')]])

  world.undoes(op)

  expect(world.files()).toEqual(before)
})

test('field 71: a second try after a failure puts the rest right', () => {
  const world = aWorkspace({ a: '1', b: '1', c: '1' }).turnWrites({ a: '2', b: '2', c: '2' })
  world.rollsBack(1, [], new Set(['b']))
  expect(world.plan(1).rows).toMatchObject([{ path: 'b', decision: { kind: 'write' } }])

  world.rollsBack(1)

  expect(world.files()).toEqual([['a', file('1')], ['b', file('1')], ['c', file('1')]])
})

test('field 78: a file with the user\'s edit from between is kept, or put back by choice, and the edit is not lost', () => {
  const world = aWorkspace({ 'a.txt': '1' }).turnWrites({ 'a.txt': '2' }).user({ 'a.txt': '3' }).turnWrites({ 'a.txt': '4' })
  expect(world.plan(1).rows).toMatchObject([{ goal: file('1'), decision: { kind: 'keep', conflict: 'edited-between', putBack: 'write' } }])
  expect(world.ledger().paths.get('a.txt')!.records.map(record => record.before)).toContainEqual(file('3'))

  world.rollsBack(1, ['a.txt'])

  expect(world.look('a.txt')).toEqual(file('1'))
})

test('field 79: a turn from before the plugin has no rows, a later one goes back', () => {
  const world = aWorkspace({ 'a.txt': '1' }).begins().begins().turnWrites({ 'a.txt': '2' })

  world.rollsBack(3)

  expect(world.look('a.txt')).toEqual(file('1'))
  expect(world.plan(2).rows).toEqual([])
})

test('a file made by a turn and deleted by the user needs nothing', () => {
  const world = aWorkspace().turnWrites({ n: '1' }).user({ n: undefined })

  expect(world.rollsBack(1).plan.rows).toMatchObject([{ goal: absent, decision: { kind: 'none' } }])
})

// Bytes are all there is to tell by; they are stored, so an undo has them. Seen by the laws, after a rollback and its undo.
test('a file the user makes again exactly as the turn had left it counts as the turn\'s', () => {
  const world = aWorkspace().turnWrites({ n: '2' }).user({ n: undefined })
  world.undoes(world.rollsBack(1).op)
  world.user({ n: '2' })

  const { plan, op } = world.rollsBack(1)
  expect(plan.rows).toMatchObject([{ conflict: undefined, decision: { kind: 'delete' } }])
  world.undoes(op)

  expect(world.look('n')).toEqual(file('2'))
})
