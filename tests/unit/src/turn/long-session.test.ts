import { expect, test } from 'vitest'
import { judgeTarget, readConversation, turnState } from '../../../../src/turn/rollback-target.ts'
import type { LogEvent } from '../../../../src/turn/log-event.ts'

const TURNS = 4000
const STEPS = 10

/** A log of many turns in which a pruner replaced every tool result, as DSH's does one by one. */
function aLongLog(): LogEvent[] {
  const events: LogEvent[] = []
  const add = (type: string, surfaceOp?: unknown): number =>
    events.push({ seq: events.length, type, time: 0, data: { turn: events.length }, ...(surfaceOp === undefined ? {} : { surfaceOp }) }) - 1
  for (let turn = 1; turn <= TURNS; turn += 1) {
    events.push({ seq: events.length, type: 'turn/start', time: 0, data: { turn } })
    add('user/message', 'append')
    for (let step = 0; step < STEPS; step += 1) {
      add('assistant/message', 'append')
      add('tool/result', 'append')
    }
    add('turn/end')
  }
  for (const { seq } of events.filter(event => event.type === 'tool/result')) add('tool/result', { op: 'replace', start: seq, end: seq })
  return events
}

// By the square of the length this takes half a minute, and the host answers nobody meanwhile.
test('the state of every turn of a very long session is found in a moment', () => {
  const events = aLongLog()
  const start = performance.now()

  const conversation = readConversation(events)
  const states = conversation.turns.map(turn => turnState(conversation, turn))
  const target = judgeTarget(conversation, 2)

  expect(performance.now() - start).toBeLessThan(3000)
  expect(new Set(states)).toEqual(new Set(['available']))
  expect(target.ok && target.value.cut).toHaveLength((TURNS - 1) * (1 + 2 * STEPS))
})
