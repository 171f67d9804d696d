import { describe, expect, test } from 'vitest'
import { findTurn, indexTurns } from '../../../../src/turn/turn-index.ts'
import { aLog, type LogFormat } from '../../../support/a-log.ts'

const formats: readonly LogFormat[] = [0, 4]

describe.each(formats)('in a log of format %i', format => {
  test('a turn has its number, its prompt and its calls', () => {
    const [turn] = indexTurns(aLog(format).turn('fix it').says('ok').writes('a.ts').done())

    expect(turn).toMatchObject({ number: 1, prompts: [{ text: 'fix it', images: [] }] })
    expect(turn!.calls).toMatchObject([{ name: 'write', args: { file_path: 'a.ts' }, outcome: 'ok' }])
  })

  test('what a plugin put in as a user message is no prompt', () => {
    const [turn] = indexTurns(aLog(format).turn('', { silent: true }).done())

    expect(turn!.prompts).toEqual([])
  })

  test('a failed call is an error', () => {
    const [turn] = indexTurns(aLog(format).turn('go').writes('a.ts', { error: true }).done())

    expect(turn!.calls[0]!.outcome).toBe('error')
  })

  test.each(['TOOL_NOT_STARTED', 'ABORTED_BEFORE_DISPATCH', 'UNKNOWN_TOOL'])('a call refused with %s never started', code => {
    const [turn] = indexTurns(aLog(format).turn('go').writes('a.ts', { error: true, code }).done())

    expect(turn!.calls[0]!.outcome).toBe('not-started')
  })

  test('a call whose result the host could not tell counts as made', () => {
    const [turn] = indexTurns(aLog(format).turn('go').writes('a.ts', { error: true, code: 'TOOL_OUTCOME_UNKNOWN' }).done())

    expect(turn!.calls[0]!.outcome).toBe('error')
  })

  test('a call made by a program is a call of the turn', () => {
    const [turn] = indexTurns(aLog(format).turn('go').dispatches('bash', { command: 'ls' }).dispatches('edit', { file_path: 'b' }, { error: true }).done())

    expect(turn!.calls).toMatchObject([
      { name: 'bash', args: { command: 'ls' }, outcome: 'ok' },
      { name: 'edit', args: { file_path: 'b' }, outcome: 'error' },
    ])
  })
})

test('the prompt of a turn may hold pictures only', () => {
  const [turn] = indexTurns(aLog().turn('', { images: ['i1', 'i2'] }).done())

  expect(turn!.prompts).toMatchObject([{ text: '', images: ['i1', 'i2'] }])
})

test('a message sent while the turn runs is one more prompt of it', () => {
  const [turn] = indexTurns(aLog().turn('one').says('…').steers('two').done())

  expect(turn!.prompts.map(prompt => prompt.text)).toEqual(['one', 'two'])
})

test('a running turn has no end', () => {
  const turns = indexTurns(aLog().turn('one').turn('two').running())

  expect(turns.map(turn => turn.endSeq !== undefined)).toEqual([true, false])
})

test('a call without a result is open', () => {
  const log = aLog().turn('go')
  log.starts('bash', { command: 'sleep 9' })

  expect(indexTurns(log.running())[0]!.calls[0]!.outcome).toBe('open')
})

// A log that was cut where the process died had a turn that counted as running for ever.
test('a turn whose end was never written is over when the next one begins', () => {
  const log = aLog().turn('one').raw({ type: 'turn/start', data: { turn: 2 } })
  const [first, second] = indexTurns(log.running())

  expect(first!.endSeq).toBe(second!.startSeq - 1)
})

test.each(['not json', '[1]', '"text"', 'null', ''])('arguments that are no object are undefined: %s', text => {
  const [turn] = indexTurns(aLog().turn('go').calls('write', text).done())

  expect(turn!.calls[0]!.args).toBeUndefined()
})

test('a call id used again in a later turn settles the later call', () => {
  const log = aLog().turn('one').raw({ type: 'tool/call', data: { callId: 'c', name: 'bash', arguments: '{}' } })
    .turn('two').raw({ type: 'tool/call', data: { callId: 'c', name: 'bash', arguments: '{}' } })
    .raw({ type: 'tool/result', data: { message: { source: { kind: 'tool', callId: 'c' }, content: [] } } })

  expect(indexTurns(log.done()).map(turn => turn.calls[0]!.outcome)).toEqual(['open', 'ok'])
})

test('events of foreign shape are passed over', () => {
  const log = aLog().turn('one').raw({ type: 'user/message', data: null }).raw({ type: 'tool/result', data: 'x' }).raw({ type: 'tool/call', data: 7 })

  expect(indexTurns(log.done())).toHaveLength(1)
})

test('of two turns with one number the newest counts', () => {
  const log = aLog().turn('inherited').turn('inherited too').numbersFrom(2).turn('own')
  const turns = indexTurns(log.done())

  expect(turns.map(turn => turn.number)).toEqual([1, 2, 2])
  expect(findTurn(turns, 2)!.prompts[0]!.text).toBe('own')
  expect(findTurn(turns, 3)).toBeUndefined()
})
