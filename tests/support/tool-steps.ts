import type { Step } from './mock-model.ts'

/** Tool calls of the `standard` preset for the scripted model; relative paths are those of the session's folder. */

export type ToolCall = NonNullable<Step['tools']>[number]

export const read = (path: string): ToolCall => ({ name: 'read', args: { file_path: path } })
export const write = (path: string, content: string): ToolCall => ({ name: 'write', args: { file_path: path, content } })
export const edit = (path: string, from: string, to: string): ToolCall => ({ name: 'edit', args: { file_path: path, old_string: from, new_string: to } })
export const runs = (command: string, more: object = {}): ToolCall => ({ name: 'bash', args: { command, description: 'Work in the shell', ...more } })

/** Calls one after another, each in a step of its own, and a last word. */
export const steps = (...calls: readonly ToolCall[]): readonly Step[] => [...calls.map(call => ({ tools: [call] })), { text: 'Done.' }]
