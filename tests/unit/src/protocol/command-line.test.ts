import { expect, test } from 'vitest'
import { parseCommandLine } from '../../../../src/protocol/command-line.ts'

test.each(['', ' ', '   \t\n'])('blank arguments are the bare form: %j', line => {
  expect(parseCommandLine(line)).toEqual({ ok: true, value: { kind: 'bare' } })
})

const plain = { kind: 'turn', turn: 2, scope: 'both', branch: false, only: undefined, running: 'refuse', queued: 'keep' }

test.each([
  [' 2', plain],
  ['123456789  ', { ...plain, turn: 123456789 }],
  ['2 both', plain],
  ['2  files', { ...plain, scope: 'files' }],
  ['2 conversation', { ...plain, scope: 'conversation' }],
  ['2 --only a.txt', { ...plain, only: ['a.txt'] }],
  ['2 files --only a.txt /w/b.txt', { ...plain, scope: 'files', only: ['a.txt', '/w/b.txt'] }],
  ['2 --only a --only "b c" \'d "e"\' “f g” ‘h’', { ...plain, only: ['a', 'b c', 'd "e"', 'f g', 'h'] }],
  ['2 --only it\'s.txt a"b', { ...plain, only: ['it\'s.txt', 'a"b'] }],
  ['2 --only files 3 undo', { ...plain, only: ['files', '3', 'undo'] }],
  ['2 --only "--only" \'--continue\'', { ...plain, only: ['--only', '--continue'] }],
  ['2 --only a --continue --drop-queued', { ...plain, only: ['a'], running: 'continue', queued: 'drop' }],
  ['2 files --continue', { ...plain, scope: 'files', running: 'continue' }],
  ['list', { kind: 'list' }],
  ['undo', { kind: 'undo', op: undefined, running: 'refuse' }],
  ['undo abcdefgh', { kind: 'undo', op: 'abcdefgh', running: 'refuse' }],
  ['undo --continue', { kind: 'undo', op: undefined, running: 'continue' }],
  ['undo abcdefgh --continue', { kind: 'undo', op: 'abcdefgh', running: 'continue' }],
  ['2 branch', { ...plain, scope: 'files', branch: true }],
  ['2 branch --only a', { ...plain, scope: 'files', branch: true, only: ['a'] }],
  ['retry', { kind: 'retry', running: 'refuse' }],
  ['retry --continue', { kind: 'retry', running: 'continue' }],
  [' help ', { kind: 'help' }],
  ['preview   7', { kind: 'preview', turn: 7, scope: 'both' }],
  ['preview 7 files', { kind: 'preview', turn: 7, scope: 'files' }],
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
  ['preview 2 files 3', 'extra', '3'],
  ['2 file', 'extra', 'file'],
  ['2 files conversation', 'extra', 'conversation'],
  ['2 a.txt', 'extra', 'a.txt'],
  ['2 --only', 'missing-path', '--only'],
  ['2 --only --continue', 'missing-path', '--only'],
  ['2 --only a --only', 'missing-path', '--only'],
  ['2 --only ""', 'missing-path', '--only'],
  ['2 --only a --unknown', 'extra', '--unknown'],
  ['2 conversation --only a', 'only-conversation', 'a'],
  ['2 --only "a b', 'quote', '"a b'],
  ['undo --drop-queued', 'extra', '--drop-queued'],
  ['retry 2', 'extra', '2'],
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
