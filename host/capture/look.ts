import { dirname } from 'node:path'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import { defaultIgnore } from '../../src/checkpoint/ignore-list.ts'
import type { BlobBatch } from './blob-batch.ts'
import type { Fingerprint, StateCache } from './fingerprint.ts'
import type { FolderLook } from './folder-look.ts'
import type { Walk } from './folder-walk.ts'
import type { GitLook } from './git-index.ts'
import type { GitTree } from './git-tree.ts'

/** Limits of one look. Bytes count what has to be read because it was not seen before. */
export interface LookBudget {
  readonly maxFiles: number
  readonly maxNewBytes: number
  readonly maxMs: number
}

export interface LookDeps extends BlobBatch {
  /** Real path of the workspace. */
  readonly workspace: string
  readonly cache: StateCache
  readonly maxFileBytes: number
  readonly budget: LookBudget
  /** The git work tree a folder lies in; undefined for none, or one that git cannot read. */
  treeOf(folder: string): Promise<GitTree | undefined>
  /** Absolute; never looked into. */
  readonly dshHome: string
  /** More names of folders that a plain walk does not enter. */
  readonly ignoreFolders?: readonly string[] | undefined
  now(): number
}

/** One work tree of the workspace and what git told of it. */
export interface TreeLook {
  readonly tree: GitTree
  readonly look: GitLook
  readonly folders: FolderLook
  /** Versions of the files that say what git ignores, apart from those that are listed themselves. */
  readonly rules: string
  /** A repository inside it could not be looked at, or there were too many: what changes there is not seen. */
  readonly hasUnseen: boolean
}

/** The workspace before a command. Every state in `known` has its bytes in the store. */
export interface Before {
  readonly how: 'git' | 'walk'
  readonly trees: readonly TreeLook[]
  readonly walk: Walk | undefined
  /** Files that no git blob stands for, by absolute path. */
  readonly known: ReadonlyMap<string, FileState>
  /** What cannot be read, of which nothing else tells whether it changed. */
  readonly unread: ReadonlyMap<string, Fingerprint>
  /** False when a budget ran out. */
  readonly isComplete: boolean
  /** False when a path that is not known may have been there. */
  readonly knowsNew: boolean
  readonly atMs: number
}

/** A path that is not as it was. */
export interface Seen {
  readonly path: string
  readonly before: FileState
  readonly after: FileState
  readonly absentFolders: readonly string[]
  /** Git's own move of HEAD explains it. */
  readonly byGit: boolean
}

export interface Difference {
  readonly seen: readonly Seen[]
  /** False when the workspace could not be looked at whole: something new may be missing in `seen`. */
  readonly isComplete: boolean
  readonly head: { readonly from: string | undefined; readonly to: string | undefined; readonly fromRef: string | undefined; readonly ref: string | undefined } | undefined
}

export const isOurs = (deps: LookDeps, path: string): boolean => path === deps.dshHome || path.startsWith(`${deps.dshHome}/`)

/** Over the size limit, special, or not to be had. */
export const isUnread = (state: FileState): boolean => state.kind === 'unknown' && ['too-large', 'special', 'unreadable'].includes(state.reason)

/** Parents of a path inside the workspace, outermost first. */
export function parentsOf(path: string, workspace: string): string[] {
  const parents: string[] = []
  for (let folder = dirname(path); folder.startsWith(`${workspace}/`); folder = dirname(folder)) parents.unshift(folder)
  return parents
}

export function walkOptions(deps: LookDeps) {
  const ignore = new Set([...defaultIgnore, ...deps.ignoreFolders ?? []])
  return { budget: { maxFiles: deps.budget.maxFiles, maxMs: deps.budget.maxMs }, ignore, keepOut: [deps.dshHome] }
}
