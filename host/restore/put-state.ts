import { dirname } from 'node:path'
import { sameState, type FileState } from '../../src/checkpoint/file-state.ts'
import type { Digest } from '../../src/ids.ts'
import { observePath } from '../capture/observe.ts'
import { digestOf } from '../digest.ts'
import { discardTemp, replace, syncFolder, type Content } from './atomic-write.ts'
import { errnoOf, modeOf, type FileSystem } from './file-system.ts'
import { deepestFirst, makeFolders, removeEmptyFolder, type FolderToMake } from './folders.ts'
import { parentsAreReal } from './safe-path.ts'

/** One path, the state it must be in now, the state it shall get, and the parents to make for it, outermost first. */
export type Move = {
  readonly path: string
  readonly temp: string
  readonly from: FileState
  readonly to: FileState
  readonly folders: readonly FolderToMake[]
}

export type MoveDeps = {
  /** The bytes of a stored state; `undefined` when the store has them no more. */
  readonly readBlob: (digest: Digest) => Promise<Buffer | undefined>
  readonly fs: FileSystem
  readonly maxBytes: number
  /** Gets each folder in which a name came or went, to sync it later; without it that is done at once. */
  readonly syncLater?: ((folder: string) => void) | undefined
}

/**
 * `restored`: the path is in the wanted state, as read back from the disk; a `reason` then is an errno of
 * a step after the change (the folder could not be synced). `failed`: `reason` is an errno or one of
 * `changed-meanwhile`, `behind-link`, `object-gone`, `verify`, or why a state is unknown.
 * `leftovers`: a temp or a folder made for nothing that could not be removed, with the errno.
 */
export type Moved = {
  readonly result: 'restored' | 'failed'
  readonly reason?: string
  readonly leftovers: readonly { readonly path: string; readonly reason: string }[]
}

/** What an attempt has put on the disk beside the path itself, and how it gets back what it took away. */
type Scene = { temp: boolean; readonly folders: string[]; putBack?: () => Promise<void> }

/** Moves one path from one known state to another, or leaves it. Does nothing to a path that is in the wanted
 *  state already, or in neither of the two. Only bugs and stops of a step watcher are thrown. */
export async function putState(move: Move, deps: MoveDeps): Promise<Moved> {
  const scene: Scene = { temp: false, folders: [] }
  let moved: Moved
  try {
    moved = await attempt(move, scene, deps)
  } catch (error) {
    const code = errnoOf(error)
    if (code === undefined) throw error
    // The error may have come after the change: the disk says whether the path is as wanted.
    moved = await isAt(move.to, move, deps) ? { ...restored, reason: code } : failed(code)
  }
  return moved.reason === undefined ? moved : { ...moved, leftovers: await clearUp(move, scene, moved, deps.fs) }
}

/** The limit for looking at a path of an op: a state we stored is read again even if the setting is lower now. */
export function limitFor(states: readonly FileState[], maxBytes: number): number {
  return Math.max(maxBytes, ...states.map(state => state.kind === 'file' ? state.bytes : 0))
}

const restored: Moved = { result: 'restored', leftovers: [] }
const failed = (reason: string): Moved => ({ result: 'failed', reason, leftovers: [] })

async function attempt(move: Move, scene: Scene, deps: MoveDeps): Promise<Moved> {
  const { path, temp, from, to } = move
  const { fs } = deps
  const namesChanged = async (folder: string): Promise<void> => deps.syncLater === undefined ? syncFolder(folder, fs) : deps.syncLater(folder)
  if (!await parentsAreReal(path, fs)) return failed('behind-link')
  scene.temp = true // ours, or one of an earlier try
  await discardTemp(temp, fs)
  const now = await look(move, deps)
  // Behind a link that appeared during the look, something else would be in that state.
  if (sameState(now, to)) return await parentsAreReal(path, fs) ? restored : failed('behind-link')
  // Between a file and a folder there is a moment of neither; an earlier try may have ended there.
  const isBetween = now.kind === 'absent' && isSwap(move)
  const refusal = isBetween ? undefined : unlessStill(from, now)
  if (refusal !== undefined) return failed(refusal)

  switch (to.kind) {
    case 'unknown':
      return failed(to.reason)
    case 'absent': {
      if (!await parentsAreReal(path, fs)) return failed('behind-link')
      const reason = unlessStill(from, await look(move, deps))
      if (reason !== undefined) return failed(reason)
      await (from.kind === 'folder' ? fs.rmdir(path) : fs.unlink(path))
      await namesChanged(dirname(path))
      break
    }
    case 'folder': {
      const reason = isSwap(move) && !isBetween ? await setAside(move, scene, deps) : undefined
      if (reason !== undefined) return failed(reason)
      await makeFolders([...move.folders, { path, mode: to.mode }], scene.folders, fs)
      if (scene.putBack !== undefined) await discardTemp(temp, fs)
      scene.folders.length = 0 // it is done, and so are they
      delete scene.putBack
      break
    }
    case 'file':
    case 'link': {
      const content = to.kind === 'link' ? to : await fileContent(move, to, deps)
      if (!content) return failed('object-gone')
      if (!await parentsAreReal(path, fs)) return failed('behind-link')
      await makeFolders(move.folders, scene.folders, fs)
      const beforeRename = async () => {
        if (!await parentsAreReal(path, fs)) return 'behind-link'
        return isSwap(move) ? makeRoom(move, scene, deps) : unlessStill(from, await look(move, deps))
      }
      const reason = await replace({ path, temp, content, beforeRename, renamed: namesChanged }, fs)
      if (reason !== undefined) return failed(reason)
      delete scene.putBack
    }
  }
  return await isAt(to, move, deps) ? restored : failed('verify')
}

const isSwap = ({ from, to }: Move): boolean =>
  to.kind !== 'absent' && from.kind !== 'absent' && (from.kind === 'folder') !== (to.kind === 'folder')

/** Takes a file out of the way of a folder. Its bytes are in the store, so the temp may go at any time. */
async function setAside(move: Move, scene: Scene, deps: MoveDeps): Promise<string | undefined> {
  const { path, temp, from } = move
  if (!await parentsAreReal(path, deps.fs)) return 'behind-link'
  await deps.fs.rename(path, temp)
  scene.putBack = async () => {
    if ((await look(move, deps)).kind === 'absent') await deps.fs.rename(temp, path)
  }
  const reason = unlessStill(from, await look({ ...move, path: temp }, deps))
  // Somebody has written it since the look: it goes back, and is no temp of ours that may be discarded.
  if (reason !== undefined) scene.temp = false
  return reason
}

/** Takes a folder out of the way of a file, never with anything in it. */
async function makeRoom(move: Move, scene: Scene, deps: MoveDeps): Promise<string | undefined> {
  const { path, from } = move
  const now = await look(move, deps)
  if (now.kind === 'absent') return undefined
  const reason = unlessStill(from, now)
  if (reason !== undefined) return reason
  const mode = modeOf(await deps.fs.lstat(path))
  scene.putBack = () => makeFolders([{ path, mode }], [], deps.fs)
  try {
    await deps.fs.rmdir(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'EEXIST') return 'is-folder'
    throw error
  }
  return undefined
}

async function look({ path, from, to }: Move, { fs, maxBytes }: MoveDeps): Promise<FileState> {
  return (await observePath(path, { maxBytes: limitFor([from, to], maxBytes), fs })).state
}

/** False also when nobody can tell: an error here may not hide the one that came before it. */
async function isAt(state: FileState, move: Move, deps: MoveDeps): Promise<boolean> {
  if (!sameState(await look(move, deps), state)) return false
  try {
    return await parentsAreReal(move.path, deps.fs)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

function unlessStill(expected: FileState, now: FileState): string | undefined {
  if (sameState(expected, now)) return undefined
  return now.kind === 'unknown' ? now.reason : 'changed-meanwhile'
}

async function fileContent(
  { path, from }: Move,
  to: FileState & { kind: 'file' },
  { readBlob, fs }: MoveDeps,
): Promise<Content | undefined> {
  const bytes = await readBlob(to.digest)
  // Wrong bytes are no bytes: found here, nothing is overwritten with them.
  if (!bytes || digestOf(bytes) !== to.digest) return undefined
  if (from.kind !== 'file') return { kind: 'file', bytes, mode: to.mode }
  const { uid, gid } = await fs.lstat(path)
  return { kind: 'file', bytes, mode: to.mode, owner: { uid: Number(uid), gid: Number(gid) } }
}

/** After a refusal or an error: no temp and no folder stays that was made for nothing. */
async function clearUp(
  { path, temp }: Move,
  scene: Scene,
  { result }: Moved,
  fs: FileSystem,
): Promise<Moved['leftovers']> {
  const leftovers: { path: string; reason: string }[] = []
  const attemptTo = async (clear: () => Promise<unknown>, subject: string) => {
    try {
      // Behind a link that appeared meanwhile, that name would be somebody else's file.
      if (await parentsAreReal(path, fs)) await clear()
    } catch (error) {
      const reason = errnoOf(error)
      if (reason === undefined) throw error
      leftovers.push({ path: subject, reason })
    }
  }
  if (result === 'failed' && scene.putBack !== undefined) await attemptTo(scene.putBack, path)
  if (scene.temp) await attemptTo(() => discardTemp(temp, fs), temp)
  const folders = result === 'failed' ? deepestFirst(scene.folders) : []
  for (const folder of folders) await attemptTo(() => removeEmptyFolder(folder, fs), folder)
  return leftovers
}
