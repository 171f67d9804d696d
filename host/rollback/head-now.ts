import { headOf } from '../capture/git-head.ts'
import { GitFailure } from '../capture/git-run.ts'
import { openGitTree } from '../capture/git-tree.ts'
import type { HeadNow } from '../../src/checkpoint/git-move.ts'

/** Where HEAD of the workspace's work tree is; undefined where there is none or git does not say. */
export async function headNow(workspace: string, indexFolder: string): Promise<HeadNow | undefined> {
  try {
    const opened = await openGitTree(workspace, { indexFolder })
    return opened.kind === 'tree' ? await headOf(opened.tree) : undefined
  } catch (error) {
    if (error instanceof GitFailure || (error as NodeJS.ErrnoException | null)?.code !== undefined) return undefined
    throw error
  }
}
