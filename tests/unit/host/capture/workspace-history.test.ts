import { describe, expect, test } from 'vitest'
import { Play, type Call, type Step } from '../../../support/history/play.ts'
import type { Edit } from '../../../support/history/disk.ts'

/** Histories that random ones led to, kept so that they are played every time. */
const command = (...edits: Edit[]): Call => ({ kind: 'command', bySub: false, edits, beside: [] })
const tool = (path: string, content = 4): Call => ({ kind: 'tool', bySub: false, path, content })
const byUser = (...edits: Edit[]): Call => ({ kind: 'user', edits })
const turn = (...calls: Call[]): Step => ({ kind: 'turn', who: 'A', calls })
const write = (path: string, content = 4): Edit => ({ do: 'write', path, content, mode: 0o644 })

const histories: readonly (readonly [string, readonly Step[]])[] = [
  ['the user\'s empty folder comes back when a command put a link that leads nowhere in its parent\'s place', [
    turn(byUser({ do: 'folder', path: 'd/y z' }), command(write('a'))),
    turn(command({ do: 'delete', path: 'd' }, { do: 'link', path: 'd', target: 'd' })),
  ]],
  ['and when the link leads to a folder that has one of that name', [
    turn(byUser({ do: 'folder', path: 'd/y z' }, { do: 'folder', path: 'D/y z' }), command(write('a'))),
    turn(command({ do: 'delete', path: 'd' }, { do: 'link', path: 'd', target: 'D' })),
  ]],
  ['a file two folders deep goes although a link to itself stands in the outer one\'s place', [
    turn(tool('d/e/深い.txt'), command({ do: 'delete', path: 'a' })),
    turn(command({ do: 'delete', path: 'd' })),
    turn(command({ do: 'link', path: 'd', target: 'd' }, write('a', 0))),
  ]],
  ['a folder that made way for a file comes back with the mode it had, not the one it was made with', [
    turn(tool('A')),
    turn(command({ do: 'move', path: 'A', to: 'a' }, { do: 'folder', path: 'A' })),
    { kind: 'user', edits: [{ do: 'chmod', path: 'A', mode: 0o744 }] },
  ]],
  ['a link that a command moved away comes back where a later file made a folder', [
    { kind: 'user', edits: [{ do: 'link', path: 'd/e', target: 'nowhere' }] },
    turn(command({ do: 'move', path: 'd/e', to: 'a' })),
    turn(tool('d/e/深い.txt')),
  ]],
  ['a link goes that took the place of a folder which a command had made empty and removed full', [
    turn(command({ do: 'folder', path: 'd' }), command(write('a'))),
    turn(command(write('d/x')), command({ do: 'delete', path: 'd' }, { do: 'link', path: 'd', target: 'nowhere' })),
  ]],
  ['a file comes back whose place a command gave to a folder that a later one removed with what was in it', [
    turn(command(write('d'))),
    turn(command({ do: 'delete', path: 'd' }, { do: 'link', path: 'd/y z', target: 'nowhere' }), command({ do: 'delete', path: 'd' })),
  ]],
  ['and where a file of the same name was made in the place of a folder that came with what was in it', [
    turn(command(write('d'))),
    turn(command({ do: 'delete', path: 'd' }), tool('d/x'), command({ do: 'delete', path: 'd/x' }), command({ do: 'delete', path: 'd' }, write('d'))),
  ]],
  ['a session\'s file goes although another one had written it in between and took that back', [
    turn(tool('b.txt', 0), { kind: 'command', bySub: false, edits: [write('a', 0)], beside: [{ by: 'other', path: 'b.txt', content: 1 }] }),
    { kind: 'rollback', who: 'B', turn: 0 },
  ]],
]

describe.each([['a plain folder', false], ['a git work tree', true]] as const)('in %s', (_where, hasGit) => {
  test.each(histories)('%s', async (_what, steps) => {
    await expect(Play.run(steps, { hasGit })).resolves.toBeUndefined()
  })
})
