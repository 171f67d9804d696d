import type { Step } from './mock-model.ts'

/**
 * Scripts every test can use by name: assistant steps, in order. Tools and argument names are those of the `standard`
 * agent preset; relative paths are resolved against the session's workspace. `edit` needs a `read` before it.
 */
export const scenarios: Readonly<Record<string, readonly Step[]>> = {
  /** A turn without tools. */
  hello: [{ text: 'Hello from the scripted model.' }],

  /** Creates new.txt, edits existing.txt (which the workspace must have, with the word alpha), writes bash.txt. */
  work: [
    {
      reasoning: 'I look at the file before I edit it.',
      text: 'I will create a file, edit another one and run a command.',
      tools: [
        { name: 'write', args: { file_path: 'new.txt', content: 'first line\nsecond line\n' } },
        { name: 'read', args: { file_path: 'existing.txt' } },
      ],
    },
    { tools: [{ name: 'edit', args: { file_path: 'existing.txt', old_string: 'alpha', new_string: 'ALPHA' } }] },
    { tools: [{ name: 'bash', args: { command: 'echo from-bash > bash.txt', description: 'Write a file from the shell' } }] },
    { text: 'All three changes are done.' },
  ],

  /** Changes a file and then hangs before it has said anything: for stopping or killing it. */
  stuck: [
    { tools: [{ name: 'write', args: { file_path: 'stuck.txt', content: 'half done\n' } }] },
    { tools: [{ name: 'bash', args: { command: 'sleep 60', description: 'Sleep for a minute' } }] },
    { text: 'Never reached.' },
  ],

  /** Text that streams for twenty seconds. */
  slow: [{ text: 'word '.repeat(100), chunkMs: 200 }],

  /** A turn that fails at the model; the host does not retry a 400. */
  fail: [{ status: 400 }],
}
