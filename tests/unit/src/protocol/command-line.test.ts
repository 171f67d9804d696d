import { expect, test } from 'vitest'
import { parseCommandLine } from '../../../../src/protocol/command-line.ts'

test.each(['', ' ', '   \t\n'])('blank arguments are the bare form: %j', line => {
  expect(parseCommandLine(line)).toEqual({ ok: true, value: { kind: 'bare' } })
})

test.each([
  [' 2', { kind: 'turn', turn: 2 }],
  ['123456789  ', { kind: 'turn', turn: 123456789 }],
  ['list', { kind: 'list' }],
  ['undo', { kind: 'undo' }],
  ['undo abcdefgh', { kind: 'undo', op: 'abcdefgh' }],
  ['2 branch', { kind: 'turn', turn: 2, branch: true }],
  [' help ', { kind: 'help' }],
  ['preview   7', { kind: 'preview', turn: 7 }],
  ['--plan abcdefgh', { kind: 'plan', planId: 'abcdefgh' }],
])('reads %j', (line, command) => {
  expect(parseCommandLine(line)).toEqual({ ok: true, value: command })
})

test.each([
  ['0', 'turn-number', '0'],
  ['-1', 'turn-number', '-1'],
  ['+2', 'turn-number', '+2'],
  ['1.5', 'turn-number', '1.5'],
  ['02', 'turn-number', '02'],
  ['1234567890', 'turn-number', '1234567890'],
  ['two', 'word', 'two'],
  ['２', 'word', '２'],
  ['LIST', 'word', 'LIST'],
  ['constructor', 'word', 'constructor'],
  ['2 3', 'extra', '3'],
  ['list all', 'extra', 'all'],
  ['undo 2', 'extra', '2'],
  ['undo abcdefgh 2', 'extra', '2'],
  ['2 branch x', 'extra', 'x'],
  ['x branch', 'word', 'x'],
  ['preview', 'missing-turn', 'preview'],
  ['preview x', 'word', 'x'],
  ['preview 2 3', 'extra', '3'],
  ['--plan', 'missing-plan', '--plan'],
  ['--plan ../../etc', 'missing-plan', '../../etc'],
  ['--plan abcdefgh 2', 'extra', '2'],
])('refuses %j as %s', (line, detail, word) => {
  expect(parseCommandLine(line)).toEqual({ ok: false, failure: { code: 'bad-request', facts: { detail, word } } })
})

test('a long word is cut in the failure', () => {
  const refused = parseCommandLine('x'.repeat(5000))

  expect(refused).toMatchObject({ failure: { facts: { word: 'x'.repeat(40) } } })
})
