import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Preview } from '../../src/protocol/requests.ts'
import type { World } from './e2e-world.ts'
import type { ExactTree } from './exact-tree.ts'
import { expectOk, type SessionRpc } from './session-rpc.ts'
import { steps, type ToolCall } from './tool-steps.ts'

/** Turns of the real host that consist of given tool calls, and what a rollback of them promises. */

/** A new folder beside the workspace. */
export function newFolder(world: World, name: string, make: (folder: string) => void): string {
  const folder = join(world.workspace, '..', name)
  mkdirSync(folder)
  make(folder)
  return folder
}

/** Runs one more turn of these calls in the session. */
export async function turn(world: World, rpc: SessionRpc, id: string, ...calls: readonly ToolCall[]): Promise<void> {
  const name = `${id}.${world.model.requests.length}`
  world.model.setScenario(name, steps(...calls))
  await rpc.ask(id, `Do it. [scenario:${name}]`)
}

export const previewOf = async (rpc: SessionRpc, id: string, number = 1): Promise<Preview> =>
  expectOk(await rpc.turnback('preview', { sessionId: id, turn: number }))

/** Each path of a preview with what would happen to it, or why it is kept. */
export const rowsOf = ({ rows }: Preview): readonly string[] => rows.map(row => `${row.shown} ${row.conflict ?? row.action}`)

/** Paths that stay as they are by default. */
export const keptOf = ({ rows }: Preview): readonly string[] => rows.filter(row => row.action === 'keep').map(row => row.shown)

/** `before`, but `kept` and the folders they lie in are as in `left`. */
export function withKept(before: ExactTree, left: ExactTree, kept: readonly string[]): ExactTree {
  const tree: Record<string, string | undefined> = { ...before }
  for (const path of kept) {
    for (let at = path; at !== '.'; at = dirname(at)) tree[at] = left[at]
  }
  return Object.fromEntries(Object.entries(tree).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
