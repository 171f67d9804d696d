import { describe, expect, it } from 'vitest'
import { cutBeforeMarker, cutBeforeTurn } from '../../../../src/turn/session-cut.ts'
import type { LogEvent } from '../../../../src/turn/log-event.ts'

const log = (...events: readonly (string | readonly [type: string, data: object])[]): readonly LogEvent[] =>
  events.map((event, seq) => ({ seq, type: typeof event === 'string' ? event : event[0], time: seq, data: typeof event === 'string' ? {} : event[1] }))
const run = (commandId: string) => ['command/run', { commandId }] as const
const done = (commandId: string) => ['command/done', { commandId }] as const
const turn = ['turn/start', 'user/message', 'turn/end'] as const
const marker = ['user/message', { id: 'm' }] as const
const cutOf = (result: ReturnType<typeof cutBeforeMarker>) => (result.ok ? result.value : result.failure)

describe('the cut before a rollback', () => {
  it.each([
    ['its command', [...turn, run('a'), 'compaction/prune', marker, done('a')], 3],
    ['its command, where another one has answered before', [...turn, run('x'), done('x'), run('a'), marker, done('a')], 5],
    ['a command that had begun before and not answered', [...turn, run('x'), run('a'), marker, done('x'), done('a')], 3],
    ['its command, where another one came before the marker', [...turn, run('a'), run('x'), done('x'), marker, done('a')], 3],
    ['its price, where no command is logged', [...turn, 'compaction/prune', marker], 3],
    ['itself, where neither is logged', [...turn, marker], 3],
    ['its command, where an earlier one was never answered', [run('x'), ...turn, run('a'), marker], 4],
  ] as const)('is before %s', (_what, events, cut) => {
    expect(cutOf(cutBeforeMarker(log(...events), 'm'))).toBe(cut)
  })

  it('is refused without the marker, inside a turn, and where events are missing', () => {
    expect(cutOf(cutBeforeMarker(log(...turn), 'm'))).toBe('no-marker')
    expect(cutOf(cutBeforeMarker(log('turn/start', run('a'), marker), 'm'))).toBe('inside-turn')
    expect(cutOf(cutBeforeMarker(log(...turn, run('a'), marker).slice(1), 'm'))).toBe('gap')
  })
})

describe('the cut before a turn', () => {
  it.each([
    ['at its start', [...turn, ...turn], 3, 3],
    ['before its prompt, which waited', [...turn, ['agent/inbox/spliced', {}], ['agent/inbox/spliced', {}], ...turn], 5, 3],
    ['after what stands between, such as a title or a compaction', [...turn, 'session/title', 'compaction/end', ...turn], 5, 5],
    ['at nothing, before the first', [['agent/inbox/spliced', {}], ...turn], 1, 0],
  ] as const)('is %s', (_what, events, startSeq, cut) => {
    expect(cutOf(cutBeforeTurn(log(...events), startSeq))).toBe(cut)
  })

  it('is refused where the turn before has not ended', () => {
    expect(cutOf(cutBeforeTurn(log('turn/start', 'user/message', ...turn), 2))).toBe('inside-turn')
  })
})
