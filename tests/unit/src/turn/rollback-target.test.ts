import { describe, expect, test } from 'vitest'
import type { LogEvent } from '../../../../src/turn/log-event.ts'
import { judgeTarget, readConversation, turnState } from '../../../../src/turn/rollback-target.ts'
import { aLog, type LogFormat } from '../../../support/a-log.ts'

const formats: readonly LogFormat[] = [0, 4]
const judge = (events: readonly LogEvent[], turn: number) => judgeTarget(readConversation(events), turn)
const states = (events: readonly LogEvent[]) => {
  const conversation = readConversation(events)
  return conversation.turns.map(turn => turnState(conversation, turn))
}
/** Turn numbers that leave, or the failure's code. */
const verdict = (events: readonly LogEvent[], turn: number) => {
  const target = judge(events, turn)
  return target.ok ? target.value.withdrawn.map(({ number }) => number) : target.failure.code
}
const four = (format: LogFormat) => aLog(format).turn('1').says('a').turn('2').says('b').turn('3').says('c').turn('4').says('d')

describe.each(formats)('in a log of format %i', format => {
  test.each([[4, [4]], [3, [3, 4]], [1, [1, 2, 3, 4]]])('going back to before turn %i withdraws it and everything after it', (turn, withdrawn) => {
    expect(verdict(four(format).done(), turn)).toEqual(withdrawn)
  })

  test('the cut of the first turn takes the runtime context along and leaves a system prompt alone', () => {
    const log = four(format)
    const target = judge(log.done(), 1)

    expect(target).toMatchObject({ ok: true, value: { cut: log.surfaceSeqs().slice(format === 0 ? 0 : 1) } })
  })

  test('the same rollback a second time is refused', () => {
    const log = four(format).rollsBack(2)

    expect(verdict(log.done(), 2)).toBe('already-rolled-back')
    expect(verdict(log.done(), 3)).toBe('already-rolled-back')
    expect(states(log.done())).toEqual(['available', 'rolled-back', 'rolled-back', 'rolled-back'])
  })

  // From format 3 on the system prompt stands inside the first turn and stays: the turn seemed to be there still.
  test('the same rollback of everything a second time is refused', () => {
    const log = four(format).rollsBack(1)

    expect(verdict(log.done(), 1)).toBe('already-rolled-back')
    expect(states(log.done())).toEqual(['rolled-back', 'rolled-back', 'rolled-back', 'rolled-back'])
  })

  test('after a rollback to 4 and a new turn, a rollback to 3 withdraws what is left', () => {
    const log = four(format).turn('5').rollsBack(4).turn('6').says('f')

    expect(verdict(log.done(), 3)).toEqual([3, 6])
    expect(verdict(log.done(), 5)).toBe('already-rolled-back')
    expect(verdict(log.done(), 6)).toEqual([6])
  })

  test('a target rolled back before is allowed when a newer turn follows', () => {
    expect(verdict(four(format).rollsBack(3).turn('5').done(), 3)).toEqual([5])
  })

  test('a compaction of turns 1 and 2 leaves the way to 4 and to 1 open and closes the one to 2', () => {
    const log = four(format).compacts(1, 2)

    expect(verdict(log.done(), 4)).toEqual([4])
    expect(verdict(log.done(), 3)).toEqual([3, 4])
    expect(verdict(log.done(), 2)).toBe('compacted')
    expect(verdict(log.done(), 1)).toEqual([1, 2, 3, 4])
    expect(states(log.done())).toEqual(['available', 'compacted', 'available', 'available'])
  })

  // With nothing after the compacted turns, going back to before them was refused as done already.
  test('a compaction of everything still lets the first turn be rolled back', () => {
    expect(verdict(aLog(format).turn('1').turn('2').compacts(1, 2).done(), 1)).toEqual([1, 2])
  })

  test('a compaction that swallowed a marker makes its turns compacted', () => {
    const log = four(format).rollsBack(3).turn('5').compacts(1, 5).turn('6')

    expect(states(log.done())).toEqual(['available', 'compacted', 'compacted', 'compacted', 'compacted', 'available'])
    expect(verdict(log.done(), 1)).toEqual([1, 2, 5, 6])
  })

  test('a compaction over nothing but withdrawn and newer turns makes the withdrawn ones compacted', () => {
    const log = aLog(format).turn('1').turn('2').rollsBack(1).turn('3').compacts(1, 3).turn('4')

    expect(states(log.done())).toEqual(['compacted', 'compacted', 'compacted', 'available'])
    expect(verdict(log.done(), 1)).toEqual([3, 4])
  })

  test('a shortened tool result leaves its turn available', () => {
    const log = aLog(format).turn('1').turn('2').writes('a').prunesLastResult().says('ok').turn('3')

    expect(states(log.done())).toEqual(['available', 'available', 'available'])
    expect(verdict(log.done(), 2)).toEqual([2, 3])
    expect(judge(log.done(), 2)).toMatchObject({ value: { cut: log.surfaceSeqs().slice(log.surfaceSeqs().findIndex(seq => seq > log.startOf(2))) } })
  })
})

test('a turn that does not exist is named with the last one', () => {
  expect(judge(four(0).done(), 9)).toEqual({ ok: false, failure: { code: 'unknown-turn', facts: { turn: 9, last: 4 } } })
  expect(judge([], 1)).toMatchObject({ failure: { code: 'unknown-turn', facts: { last: 0 } } })
})

test('field 44: no turn is rolled back while the last one runs', () => {
  const log = four(0).running()

  expect(judge(log, 1)).toEqual({ ok: false, failure: { code: 'turn-running', facts: { turn: 4 } } })
  expect(states(log)).toEqual(['available', 'available', 'available', 'running'])
})

test('no turn is rolled back while a compaction is under way', () => {
  expect(verdict(four(0).notes('compaction/start').done(), 2)).toBe('compaction-open')
  expect(verdict(four(0).notes('compaction/start').notes('compaction/end', { error: 'x' }).done(), 2)).toEqual([2, 3, 4])
})

test('a compaction that a dead process left open stops nobody', () => {
  expect(verdict(four(0).notes('compaction/start').notes('session/end-seed').done(), 2)).toEqual([2, 3, 4])
})

test('a turn of which nothing reached the context cannot be rolled back alone', () => {
  const log = aLog().turn('1').emptyTurn()

  expect(verdict(log.done(), 2)).toBe('nothing-to-roll-back')
})

// A stopped turn without a message counted as there still, and its rollback could be repeated without end.
test('a turn of which nothing reached the context goes with the turns around it, once', () => {
  const log = aLog().turn('1').emptyTurn().turn('3').emptyTurn()
  expect(verdict(log.done(), 2)).toEqual([2, 3, 4])

  log.rollsBack(2)

  expect(verdict(log.done(), 2)).toBe('already-rolled-back')
  expect(verdict(log.done(), 3)).toBe('already-rolled-back')
  expect(states(log.done())).toEqual(['available', 'rolled-back', 'rolled-back', 'rolled-back'])
})

test('a number that repeats in a fork means the fork\'s own turn', () => {
  const log = aLog().turn('1').turn('2').turn('3').numbersFrom(2).turn('own 2').says('x')
  const target = judge(log.done(), 2)

  expect(target).toMatchObject({ ok: true, value: { turn: { startSeq: log.startOf(2) }, withdrawn: [{ prompts: [{ text: 'own 2' }] }] } })
})

// A compaction in the middle of a turn leaves later messages of it: the turn was offered and then refused.
test('a turn whose beginning a compaction swallowed together with earlier turns is compacted', () => {
  const log = aLog().turn('1').turn('2').says('early')
  const covered = log.surfaceSeqs()
  log.raw({ type: 'user/message', data: {}, surfaceOp: { op: 'replace', start: covered[0], end: covered.at(-1) } }).says('late')

  expect(states(log.done())).toEqual(['available', 'compacted'])
  expect(verdict(log.done(), 2)).toBe('compacted')
})

test('what stands after the last turn leaves with it', () => {
  const log = aLog().turn('1').turn('2').notes('session/title').raw({ type: 'user/message', data: {}, surfaceOp: 'append' })
  const events = log.done()

  expect(judge(events, 2)).toMatchObject({ value: { cut: [log.startOf(2) + 2, events.length - 1] } })
})
