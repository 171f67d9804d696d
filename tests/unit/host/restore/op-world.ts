import {
  chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm, symlink, writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { absent, type FileState } from '../../../../src/checkpoint/file-state.ts'
import type { OpBeginEntry, OpRow } from '../../../../src/checkpoint/journal-entry.ts'
import { opId, type Digest } from '../../../../src/ids.ts'
import { observePath } from '../../../../host/capture/observe.ts'
import { digestOf } from '../../../../host/digest.ts'

export { absent }
export const MAX_BYTES = 1_000_000

/** A folder on the real disk, a store in memory, and ops on both. */
export async function anOpWorld() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'turnback-')))
  const blobs = new Map<Digest, Buffer>()
  const at = (name: string): string => join(root, name)

  return {
    root,
    at,
    blobs,
    deps: { maxBytes: MAX_BYTES, readBlob: async (digest: Digest) => blobs.get(digest) },
    /** A file state whose bytes are in the store. */
    file(content: string | Buffer, mode = 0o644): FileState {
      const bytes = Buffer.from(content)
      blobs.set(digestOf(bytes), bytes)
      return { kind: 'file', digest: digestOf(bytes), bytes: bytes.length, mode }
    },
    link: (target: string): FileState => ({ kind: 'link', target }),
    /** Makes the disk hold `state` at `name`, parents included. */
    async lay(name: string, state: FileState): Promise<void> {
      await rm(at(name), { recursive: true, force: true })
      if (state.kind !== 'absent') await mkdir(dirname(at(name)), { recursive: true })
      if (state.kind === 'folder') await mkdir(at(name))
      if (state.kind === 'link') await symlink(state.target, at(name))
      if (state.kind !== 'file') return
      await writeFile(at(name), blobs.get(state.digest)!)
      await chmod(at(name), state.mode)
    },
    stateOf: async (name: string): Promise<FileState> => (await observePath(at(name), { maxBytes: MAX_BYTES })).state,
    row(name: string, was: FileState, goal: FileState, absentFolders: string[] = []): OpRow {
      const action = goal.kind === 'absent' ? 'delete' : was.kind === 'absent' ? 'recreate' : 'write'
      const temp = join(dirname(at(name)), `.${basename(name).slice(0, 20)}.turnback-op00000001`)
      return { path: at(name), action, was, goal, temp, absentFolders: absentFolders.map(at) }
    },
    begin: (rows: OpRow[], foldersToRemove: string[] = []): OpBeginEntry => ({
      kind: 'op-begin',
      op: opId('op00000001'),
      act: 'rollback',
      scope: 'files',
      rows,
      decided: [],
      foldersToRemove: foldersToRemove.map(at),
      atMs: 0,
    }),
    /** Every path below the root: mode and content. */
    snapshot: () => snapshot(root),
    clean: () => rm(root, { recursive: true, force: true }),
  }
}
export type OpWorld = Awaited<ReturnType<typeof anOpWorld>>

async function snapshot(root: string): Promise<Record<string, string>> {
  const seen: Record<string, string> = {}
  for (const name of (await readdir(root, { recursive: true })).sort()) {
    const path = join(root, name)
    const stat = await lstat(path)
    const mode = (stat.mode & 0o7777).toString(8)
    if (stat.isDirectory()) seen[name] = `folder ${mode}`
    else if (stat.isSymbolicLink()) seen[name] = `link ${await readlink(path)}`
    else seen[name] = `file ${mode} ${(await readFile(path)).toString('latin1')}`
  }
  return seen
}
