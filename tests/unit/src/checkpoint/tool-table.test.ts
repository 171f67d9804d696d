import { expect, test } from 'vitest'
import { callLabel, toolKind } from '../../../../src/checkpoint/tool-table.ts'

test.each([
  ['read', 'reader'], ['todo_write', 'reader'], ['schedule_create', 'reader'], ['session_search', 'reader'], ['write', 'file'], ['edit', 'file'], ['run_code', 'container'],
  ['subagent', 'container'], ['bash', 'command'], ['terminal_send', 'command'], ['mcp__db__query', 'command'], ['constructor', 'command'],
])('%s is a %s', (name, kind) => {
  expect(toolKind(name, {})).toBe(kind)
})

test('the editor only reads when it views', () => {
  expect(toolKind('str_replace_editor', { command: 'view' })).toBe('reader')
  expect(toolKind('str_replace_editor', { command: 'create' })).toBe('file')
  expect(toolKind('str_replace_editor', undefined)).toBe('file')
})

test.each([
  ['write', { file_path: 'a.ts', content: 'x' }, 'a.ts'],
  ['str_replace_editor', { command: 'create', path: '/w/a' }, '/w/a'],
  ['bash', { command: '\n npm test\nrm x' }, 'npm test'],
  ['bash', { command: '  ' }, 'bash'],
  ['bash', { command: 7 }, 'bash'],
  ['run_code', { command: 'x' }, 'run_code'],
  ['mcp__x', undefined, 'mcp__x'],
])('the label of %s %j is %s', (name, args, label) => {
  expect(callLabel(name, args)).toBe(label)
})

test('a long label ends in an ellipsis', () => {
  expect(callLabel('bash', { command: 'y'.repeat(200) })).toBe(`${'y'.repeat(79)}…`)
})
