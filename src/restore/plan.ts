import { absent, sameState, unknown, type FileState } from '../checkpoint/file-state.ts'
import type { Outcome } from '../checkpoint/journal-entry.ts'
import type { Seq } from '../ids.ts'
import { inSpan, type CallRecord, type Ledger, type StandingOp } from '../ledger/ledger.ts'

/** Why a path is not simply put back. Default for each is to keep the path as it is. */
export type Conflict =
  | 'changed-since' // it is not what the session's last call left
  | 'edited-between' // somebody changed it between two calls of the span
  | 'other-session' // another session in this workspace changed it since, or between two calls of the span
  | 'shared' // it changed while a command ran, and somebody else may have done it
  | 'git-moved' // the command moved HEAD, and git explains the change
  | 'cut-off' // what a call left was never seen: the process died during it, or the path could not be read after it

/** Why a path cannot be put back at all. */
export type Skip = Extract<FileState, { kind: 'unknown' }>['reason'] | 'is-folder'
  | 'in-the-way' // what stands in its place, or in the folder that stands there, was not selected

export type FileAction = 'write' | 'recreate' | 'delete'

export type Decision =
  | { readonly kind: FileAction }
  | { readonly kind: 'none' } // already as it was
  | { readonly kind: 'keep'; readonly conflict: Conflict; readonly putBack: FileAction }
  | { readonly kind: 'skip'; readonly skip: Skip }

/** One path of a plan. `goal` is the state before the span, `current` what is there now. */
export interface PlanRow {
  readonly path: string
  readonly goal: FileState
  readonly current: FileState
  readonly conflict: Conflict | undefined
  readonly decision: Decision
  /** Turn numbers of the span that changed it, oldest first. */
  readonly turns: readonly number[]
  /** `shell` when no call named the path: it changed while commands ran. */
  readonly origin: 'tool' | 'shell'
}

export interface RestorePlan {
  /** Sorted by path. */
  readonly rows: readonly PlanRow[]
  /** Folders that the span's calls made and that may go when they are empty, deepest first. */
  readonly folders: readonly string[]
}

/** Paths whose state has to be looked at before `planRestore` for this target. */
export const pathsInSpan = (ledger: Ledger, startSeq: Seq): readonly string[] =>
  [...ledger.paths.values()].filter(path => inSpan(path, startSeq).length > 0).map(path => path.path).sort()

/** What another session of the same workspace did to a path, by its own records. */
export interface OtherWrite {
  readonly after: FileState | undefined
  readonly atMs: number
  /** It is a change that our records have as well, seen around a command of ours: that session's, or nobody knows whose. */
  readonly isShared?: true | undefined
}

/** The world beside the ledger. */
export interface Findings {
  /** A state for every path of `pathsInSpan`. */
  readonly current: ReadonlyMap<string, FileState>
  /** Conflict paths that the user wants back all the same. */
  readonly putBack?: ReadonlySet<string> | undefined
  /**
   * Ids of records that a hole in the journal comes before: where such a record is a path's first of the
   * span, an earlier one may be lost and the state to go back to is unknown.
   */
  readonly distrusted?: ReadonlySet<string> | undefined
  /** Writes of other sessions, by path. */
  readonly others?: ReadonlyMap<string, readonly OtherWrite[]> | undefined
}

/** Decides, per path, how the files get back to before the turn that starts at `startSeq`. */
export function planRestore(ledger: Ledger, startSeq: Seq, { current, putBack, distrusted, others }: Findings): RestorePlan {
  const brought = folderStories(ledger, startSeq)
  const { stateAt, decided } = withoutLinksThatGo(current)
  // In the order of paths, so that a folder's place is decided before what is in it.
  const rows = pathsInSpan(ledger, startSeq).map((path): PlanRow => {
    const records = inSpan(ledger.paths.get(path)!, startSeq)
    const first = records[0]!
    const isFolder = isFolders(records)
    // A folder may also stand where the last record left nothing, made on the way to something by a later call, and one
    // that took a file's place may have gone with what was in it.
    const folder = isFolder || [stateAt(path), records.at(-1)!.after].some(state => state?.kind === 'folder') ? brought().get(path) ?? untold : undefined
    const end = endOf(records, stateAt(path), folder)
    const now = withModeFrom(end, stateAt(path))
    // A folder that a call removed may be one that an earlier call of the span made on the way to a file.
    const isMade = isFolder && folder !== undefined && folder.firstMade < first.number
    const goal = distrusted?.has(first.id) === true ? unknown('record-lost') : isMade ? absent : first.before
    const conflict = conflictOf({ records, end, now, others: others?.get(path) ?? [], isFolder })
    const turns = [...new Set(records.map(record => record.turn.number))]
    const origin = records.some(record => record.origin === 'tool') ? 'tool' : 'shell'
    const decision = decide({ goal, now, end }, conflict, putBack?.has(path) === true)
    return decided({ path, goal, current: now, conflict, turns, origin, decision })
  })
  // A path that cannot be put back and where nothing is keeps no folder alive either: those that go are empty.
  const gone = rows.filter(row => (row.goal.kind === 'absent' && ['delete', 'none'].includes(row.decision.kind))
    || (row.decision.kind === 'skip' && row.current.kind === 'absent'))
  const goes = gone.map(row => row.path)
  return { rows, folders: foldersToRemove(rows, [...madeFor(ledger, startSeq, goes), ...leftFor(ledger, startSeq, goes)]) }
}

/**
 * A folder that was not there before: nothing is written for it. It is one of the plan's `folders`, which go at the
 * end if they are empty, and like a path that is as it was already its records are cancelled. No row for a list of files.
 */
export const isFolderRemoval = ({ goal, current, decision }: Pick<PlanRow, 'goal' | 'current' | 'decision'>): boolean =>
  decision.kind === 'none' && goal.kind === 'absent' && current.kind === 'folder'

/** Paths whose state has to be looked at before `planUndo` for this op. */
export const pathsOfUndo = (op: StandingOp): readonly string[] =>
  [...new Set([...op.begin.rows.map(row => row.path), ...bareFolders(op).map(({ path }) => path)])].sort()

/**
 * Decides how the paths in `failed` get where `op` wanted them, with the same rule: one that is no longer as the op
 * left it is kept. `current` holds the state of each failed row.
 */
export function planRetry(op: StandingOp, failed: readonly string[], current: ReadonlyMap<string, FileState>): RestorePlan {
  const again = new Set(failed)
  const gone = new Set(op.removedFolders.map(({ path }) => path))
  const wanted = op.begin.rows.filter(({ path }) => again.has(path)).map(({ path, was, goal }) => ({ path, goal, end: was }))
  return { rows: planMoves(wanted, current, new Set()), folders: op.begin.foldersToRemove.filter(folder => !gone.has(folder)) }
}

/**
 * Decides how the files get back to what `op` replaced. Only paths that the op changed take part, and folders that it
 * removed and nothing comes back in; a path that is no longer as the op left it is a conflict.
 */
export function planUndo(op: StandingOp, current: ReadonlyMap<string, FileState>, putBack: ReadonlySet<string>): RestorePlan {
  const changed = restoredRows(op)
  const made = changed.filter(({ action }) => action === 'recreate').flatMap(({ absentFolders }) => absentFolders)
  // Where the op took a file away it may have made a folder, for what came back in it.
  const taken = new Set(made)
  const wanted = [
    ...changed.map(({ path, was, goal }) => ({ path, goal: was, end: goal.kind === 'absent' && taken.has(path) ? { kind: 'folder' } as const : goal })),
    ...bareFolders(op).map(({ path, mode }) => ({ path, goal: { kind: 'folder', mode } as const, end: absent })),
  ]
  const rows = planMoves(wanted, current, putBack)
  return { rows, folders: foldersToRemove(rows, made) }
}

/** `end`: the state an op of ours left there; anything else is somebody's later work. */
interface Wanted {
  readonly path: string
  readonly goal: FileState
  readonly end: FileState
}

function planMoves(wanted: readonly Wanted[], current: ReadonlyMap<string, FileState>, putBack: ReadonlySet<string>): readonly PlanRow[] {
  const { stateAt, decided } = withoutLinksThatGo(current)
  return wanted.toSorted(byPath).map(({ path, goal, end }) => {
    const now = withModeFrom(end, stateAt(path))
    const conflict = sameState(now, end) ? undefined : 'changed-since'
    return decided({ path, goal, current: now, conflict, turns: [], origin: 'tool', decision: decide({ goal, now, end }, conflict, putBack.has(path)) })
  })
}

/**
 * The state of each path, where a link that goes no longer hides what comes behind it. Rows are to be decided in the
 * order of paths, so that a folder's place is decided before what is in it.
 */
function withoutLinksThatGo(current: ReadonlyMap<string, FileState>) {
  const links = new Set<string>()
  return {
    stateAt: (path: string): FileState => {
      const state = stateOf(current, path)
      const isHidden = state.kind === 'unknown' && state.reason === 'behind-link'
      return isHidden && links.size > 0 && parentsOf(path).some(folder => links.has(folder)) ? absent : state
    },
    decided: (row: PlanRow): PlanRow => {
      const { goal, current: now, decision } = row
      if (now.kind === 'link' && (decision.kind === 'delete' || (decision.kind === 'write' && goal.kind === 'folder'))) links.add(row.path)
      return row
    },
  }
}

/** The outcomes that are settled before anything is written. */
export function decidedOutcomes(plan: RestorePlan): readonly Outcome[] {
  return plan.rows.flatMap((row): Outcome[] => {
    switch (row.decision.kind) {
      case 'keep': return [{ path: row.path, result: 'kept', reason: row.decision.conflict }]
      case 'skip': return [{ path: row.path, result: 'skipped', reason: row.decision.skip }]
      // Nothing to write, but the path is as it was before the span: its records are cancelled like the others'.
      case 'none': return [{ path: row.path, result: 'restored', reason: 'unchanged' }]
      default: return []
    }
  })
}

function stateOf(current: ReadonlyMap<string, FileState>, path: string): FileState {
  const state = current.get(path)
  if (state === undefined) throw new Error(`restore/plan: ${path} was not looked at`)
  return state
}

/** `end`: what the session left there, as far as that was seen. */
function decide({ goal, now, end }: { goal: FileState; now: FileState; end: FileState | undefined }, conflict: Conflict | undefined, putBack: boolean): Decision {
  if (goal.kind === 'unknown') return { kind: 'skip', skip: goal.reason }
  if (sameState(goal, now)) return { kind: 'none' }
  // What cannot be read cannot be saved, and what cannot be saved is not replaced.
  if (now.kind === 'unknown') return { kind: 'skip', skip: now.reason }
  // Somebody else's folder, with who knows what in it.
  if (now.kind === 'folder' && end?.kind !== 'folder') return { kind: 'skip', skip: 'is-folder' }
  const action = goal.kind === 'absent' ? 'delete' : now.kind === 'absent' ? 'recreate' : 'write'
  if (conflict !== undefined && !putBack) return { kind: 'keep', conflict, putBack: action }
  return { kind: action === 'delete' && now.kind === 'folder' ? 'none' : action }
}

/** The last call's end says what should be there; a call that found something else than the one before it left tells of an edit between. */
function conflictOf({ records, end, now, others, isFolder }: {
  records: readonly CallRecord[]; end: FileState | undefined; now: FileState; others: readonly OtherWrite[]; isFolder: boolean
}): Conflict | undefined {
  const last = records.at(-1)!
  if (!isSeen(end)) return 'cut-off'
  if (others.some(({ atMs, isShared }) => isShared === true || atMs > last.atMs)) return 'other-session'
  if (!sameState(end, now)) return 'changed-since'
  // A folder comes and goes with what is in it, of which its own records say nothing; there is nothing in it to lose.
  const pairs = isFolder ? [] : records.slice(1).map((record, at) => ({ left: leftBy(records[at]!, record.before), found: record.before }))
  if (pairs.some(({ left }) => !isSeen(left))) return 'cut-off'
  // A folder that came or went with what was in it is recorded for that.
  const breaks = pairs.filter(({ left, found }) => !sameState(left!, found) && ![left!, found].every(isFolderOrNothing))
  if (breaks.some(({ found }) => others.some(({ after }) => after !== undefined && sameState(after, found)))) return 'other-session'
  if (breaks.length > 0) return 'edited-between'
  const doubts = new Set(records.map(record => record.doubt))
  return doubts.has('git-moved') ? 'git-moved' : doubts.has('long') || doubts.has('overlap') || doubts.has('late') ? 'shared' : undefined
}

/** What a call left. One that was cut off, after which the path is `found` as the call had found it, did not write. */
const leftBy = ({ before, after }: CallRecord, found: FileState): FileState | undefined =>
  after ?? (sameState(before, found) ? before : undefined)

const isSeen = (state: FileState | undefined): state is FileState => state !== undefined && state.kind !== 'unknown'

/** A look need not tell a folder's mode; what is taken away is to come back with the one it had. */
const withModeFrom = (end: FileState | undefined, now: FileState): FileState =>
  now.kind === 'folder' && now.mode === undefined && end?.kind === 'folder' ? end : now

const restoredRows = ({ begin, done }: StandingOp) => {
  const restored = new Set(done.outcomes.filter(outcome => outcome.result === 'restored').map(outcome => outcome.path))
  return begin.rows.filter(row => restored.has(row.path))
}

/** Folders an op removed that do not come back with something in them. */
function bareFolders(op: StandingOp): StandingOp['removedFolders'] {
  const back = [...restoredRows(op).filter(({ was }) => was.kind !== 'absent'), ...op.removedFolders]
  const parents = new Set(back.flatMap(({ path }) => parentsOf(path)))
  return op.removedFolders.filter(({ path }) => !parents.has(path))
}

const parentsOf = (path: string): readonly string[] =>
  [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index))

/** What the records of what is in a folder tell of the folder itself: numbers of records. */
interface FolderStory {
  /** Calls that made it on the way to something. */
  readonly firstMade: number
  readonly lastMade: number
  /** The last call that took something away in it, and may have taken it along. */
  readonly lastEmptied: number
}
const untold: FolderStory = { firstMade: Infinity, lastMade: -1, lastEmptied: -1 }

/** For the span; gathered when first asked for, as most spans name no folder. */
function folderStories(ledger: Ledger, startSeq: Seq): () => ReadonlyMap<string, FolderStory> {
  let stories: Map<string, FolderStory> | undefined
  const gather = (): Map<string, FolderStory> => {
    const all = new Map<string, FolderStory>()
    const note = (folder: string, add: (story: FolderStory) => Partial<FolderStory>): void => {
      const story = all.get(folder) ?? untold
      all.set(folder, { ...story, ...add(story) })
    }
    for (const path of ledger.paths.values()) {
      for (const { before, after, absentFolders, number } of inSpan(path, startSeq)) {
        if (after?.kind === 'absent') for (const folder of parentsOf(path.path)) note(folder, story => ({ lastEmptied: Math.max(number, story.lastEmptied) }))
        if (before.kind !== 'absent' || after === undefined || after.kind === 'absent') continue
        for (const folder of absentFolders) note(folder, story => ({ firstMade: Math.min(number, story.firstMade), lastMade: Math.max(number, story.lastMade) }))
      }
    }
    return all
  }
  return () => stories ??= gather()
}

const isFolders = (records: readonly CallRecord[]): boolean =>
  records.every(({ before, after }) => [before, after].every(state => state === undefined || isFolderOrNothing(state)))
  && records.some(({ before, after }) => before.kind === 'folder' || after?.kind === 'folder')

const isFolderOrNothing = ({ kind }: FileState): boolean => kind === 'folder' || kind === 'absent'

/** What the session left at a path, as far as that was seen; `folder` where it is or was a folder. */
function endOf(records: readonly CallRecord[], now: FileState, folder: FolderStory | undefined): FileState | undefined {
  const last = records.at(-1)!
  const left = leftBy(last, now)
  if (folder === undefined) return left
  const lastSeen = Math.max(last.number, folder.lastMade)
  const isThere = folder.lastMade > last.number || left?.kind === 'folder'
  // A command that removes a folder with something in it is recorded for what was in it.
  if (isThere && now.kind === 'absent' && folder.lastEmptied > lastSeen) return absent
  return isThere && left?.kind !== 'folder' ? { kind: 'folder' } : left
}

const madeFor = (ledger: Ledger, startSeq: Seq, gone: readonly string[]): readonly string[] =>
  gone.flatMap(path => inSpan(ledger.paths.get(path)!, startSeq).flatMap(record => record.absentFolders))

/**
 * Folders that an earlier rollback from within the span would have removed, had they been empty: those around what goes
 * now. The records that tell of their making are cancelled.
 */
function leftFor({ ops }: Ledger, startSeq: Seq, gone: readonly string[]): readonly string[] {
  const left = ops.filter(({ begin, undoneBy }) => begin.act === 'rollback' && undoneBy === undefined && begin.target !== undefined && begin.target.startSeq >= startSeq)
    .flatMap(({ begin, removedFolders }) => begin.foldersToRemove.filter(folder => !removedFolders.some(({ path }) => path === folder)))
  return left.length === 0 ? [] : left.filter(folder => gone.some(path => path.startsWith(`${folder}/`)))
}

/** Of the folders `made` on the way to what goes, those that have no row of their own which says otherwise. */
function foldersToRemove(rows: readonly PlanRow[], made: readonly string[]): readonly string[] {
  const decided = new Set(rows.map(row => row.path))
  return deepestFirst([...rows.filter(isFolderRemoval).map(row => row.path), ...made.filter(folder => !decided.has(folder))])
}

const deepestFirst = (folders: readonly string[]): readonly string[] =>
  [...new Set(folders)].sort((a, b) => b.split('/').length - a.split('/').length || (a < b ? -1 : 1))

const byPath = (a: { readonly path: string }, b: { readonly path: string }): number => (a.path < b.path ? -1 : 1)
