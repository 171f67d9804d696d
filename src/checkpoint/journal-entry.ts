import * as v from 'valibot'
import { opId, sessionId } from '../ids.ts'
import { FileStateSchema } from './file-state.ts'
import { GapSchema } from './gap.ts'

/**
 * The journal: everything Turnback knows of a session, in the order it happened. One entry is the
 * payload of one `journal` frame of a segment (host/store). An entry is never changed; a later one
 * says what became of an earlier one. `atMs` is Unix time.
 */
const int = v.pipe(v.number(), v.integer())
const seq = v.pipe(int, v.minValue(0))
const path = v.pipe(v.string(), v.startsWith('/'))
const SessionIdSchema = v.pipe(v.string(), v.minLength(1), v.transform(sessionId))
export const OpIdSchema = v.pipe(v.string(), v.regex(/^[0-9a-z]{8,32}$/), v.transform(opId))

/** The root session's turn a change is booked on. `late`: that turn had already ended. */
const TurnRefSchema = v.object({ startSeq: seq, number: int, late: v.optional(v.literal(true)) })

/** The tool call; `sessionId` differs from the segment's when a subagent made it. */
const CallRefSchema = v.object({ callId: v.string(), tool: v.string(), sessionId: SessionIdSchema })

/** The look before a call writes `path`: the state found and the parent folders that did not exist, outermost first. */
const BeforeSchema = v.object({
  kind: v.literal('before'),
  id: v.string(),
  turn: TurnRefSchema,
  call: CallRefSchema,
  origin: v.literal('tool'),
  path,
  state: FileStateSchema,
  absentFolders: v.array(path),
  atMs: int,
})

/** The look after it; closes the `before` with id `of`. */
const AfterSchema = v.object({ kind: v.literal('after'), of: v.string(), state: FileStateSchema, atMs: int })

/** Why nobody can be sure that the command made a change that was seen in its bracket. */
export const doubts = [
  'long', // it ran for long, and somebody may have saved a file meanwhile
  'overlap', // another session's command ran in the same workspace meanwhile
  'git-moved', // the command moved HEAD, and git explains the change
  'late', // the command went on in the background, and this was seen in a look after its own
] as const

/** A path that changed between the looks before and after a command. Its bytes before are in the store. */
const ChangeSchema = v.object({
  kind: v.literal('change'),
  id: v.string(),
  turn: TurnRefSchema,
  call: CallRefSchema,
  origin: v.literal('shell'),
  path,
  before: FileStateSchema,
  after: FileStateSchema,
  absentFolders: v.array(path),
  doubt: v.optional(v.picklist(doubts)),
  atMs: int,
})

/**
 * A command that was looked at from before to after; written after its `change` entries. `words`: what it is
 * known by. A command that goes on in the background has one with `job` `running`, and another when a later
 * look has closed it: `ended`, or `cut` when that look came before the job's end.
 */
const BracketSchema = v.object({
  kind: v.literal('bracket'),
  turn: TurnRefSchema,
  call: CallRefSchema,
  words: v.string(),
  how: v.picklist(['git', 'walk']),
  gaps: v.array(GapSchema),
  job: v.optional(v.picklist(['running', 'ended', 'cut'])),
  /** git: where HEAD was and is, when it moved; without a ref it was or is detached */
  head: v.optional(v.object({
    from: v.optional(v.string()), to: v.optional(v.string()), fromRef: v.optional(v.string()), ref: v.optional(v.string()),
  })),
  atMs: int,
})

/** A path of the ledger was found in a state that no call of ours left; its bytes are in the store. */
const OutsideSchema = v.object({ kind: v.literal('outside'), path, state: FileStateSchema, atMs: int })

/** A call that was watched from start to end and announced no write: proof of coverage, not a change. `ran` false: it was refused before its body. */
const SeenSchema = v.object({ kind: v.literal('seen'), turn: TurnRefSchema, call: CallRefSchema, ran: v.optional(v.literal(false)), atMs: int })

/** One path of an op. `was` is the rescue: its bytes are in the store before anything is written. `temp` is the sibling the new bytes are written to. */
const OpRowSchema = v.object({
  path,
  action: v.picklist(['write', 'recreate', 'delete']),
  was: FileStateSchema,
  goal: FileStateSchema,
  temp: path,
  /** parent folders missing at plan time, outermost first: made for the row, removed again when it is taken back */
  absentFolders: v.array(path),
})
export type OpRow = v.InferOutput<typeof OpRowSchema>

const outcomeKinds = [
  'restored', // the path is what the plan wanted
  'kept', // a conflict, left as it is
  'skipped', // known before: no state to go back to
  'failed', // an error at apply; the path is as it was, or named
] as const

/** What happened to one path; `reason` is an errno code or a reason of ours, for the words in locales. */
export const OutcomeSchema = v.object({
  path,
  result: v.picklist(outcomeKinds),
  action: v.optional(v.picklist(['write', 'recreate', 'delete'])),
  reason: v.optional(v.string()),
})
export type Outcome = v.InferOutput<typeof OutcomeSchema>

/** A folder an op removed, with the permission bits to make it again. */
const FolderSchema = v.object({ path, mode: v.pipe(int, v.minValue(0), v.maxValue(0o7777)) })
export type Folder = v.InferOutput<typeof FolderSchema>

const scopes = ['both', 'files', 'conversation'] as const
export const ScopeSchema = v.picklist(scopes)
export type Scope = v.InferOutput<typeof ScopeSchema>

/** `retry`: the paths that a rollback could not put back, tried again. */
export const opActs = ['rollback', 'undo', 'retry'] as const

/** An op exists from here on: every rescue state is stored. `foldersToRemove`: removed when empty, deepest first. */
const OpBeginSchema = v.object({
  kind: v.literal('op-begin'),
  op: OpIdSchema,
  act: v.picklist(opActs),
  /** undo: the op that is undone; retry: the rollback that is tried again */
  of: v.optional(OpIdSchema),
  scope: ScopeSchema,
  /** rollback: the turn before which we go back, and the numbers of the turns from it on that stood till then; retry: its rollback's */
  target: v.optional(v.object({ startSeq: seq, number: int, withdrawn: v.array(int) })),
  /** rollback: what of its span nobody can vouch for */
  gaps: v.optional(v.array(GapSchema)),
  /** rollback of the conversation: message id of the marker; in the durable log it means "committed" */
  markerId: v.optional(v.string()),
  /** rollback of files in a branch: the session that goes on from before the turn, made before the op */
  copy: v.optional(SessionIdSchema),
  rows: v.array(OpRowSchema),
  /** paths decided before apply: kept and skipped */
  decided: v.array(OutcomeSchema),
  /** rollback: how many paths of its span were not selected and keep their records */
  leftOut: v.optional(int),
  foldersToRemove: v.array(path),
  /** undo: the modes of folders that its rows make again */
  folderModes: v.optional(v.array(FolderSchema)),
  atMs: int,
})

/** Every file step was tried; `removedFolders` are gone. For scope `files` and for an undo this is the commit point. */
const OpAppliedSchema = v.object({
  kind: v.literal('op-applied'),
  op: OpIdSchema,
  outcomes: v.array(OutcomeSchema),
  removedFolders: v.array(FolderSchema),
  atMs: int,
})

/** The op stands. `outcomes` repeats op-applied, or is what recovery found on disk. */
const OpDoneSchema = v.object({
  kind: v.literal('op-done'),
  op: OpIdSchema,
  outcomes: v.array(OutcomeSchema),
  markerSeq: v.optional(seq),
  /** undo: the session in which the conversation goes on, a copy from before the rollback or, once that undo is undone, this one again */
  copy: v.optional(SessionIdSchema),
  recovered: v.optional(v.literal(true)),
  atMs: int,
})

/** The op was taken back: `outcomes` with result `restored` are paths that hold their rescue state again. */
const OpTakenBackSchema = v.object({
  kind: v.literal('op-taken-back'),
  op: OpIdSchema,
  outcomes: v.array(OutcomeSchema),
  atMs: int,
})

export const JournalEntrySchema = v.variant('kind', [
  BeforeSchema, AfterSchema, ChangeSchema, BracketSchema, OutsideSchema, SeenSchema, OpBeginSchema, OpAppliedSchema, OpDoneSchema, OpTakenBackSchema,
])
export type JournalEntry = v.InferOutput<typeof JournalEntrySchema>
export type BeforeEntry = v.InferOutput<typeof BeforeSchema>
export type ChangeEntry = v.InferOutput<typeof ChangeSchema>
export type OutsideEntry = v.InferOutput<typeof OutsideSchema>
export type BracketEntry = v.InferOutput<typeof BracketSchema>
export type OpBeginEntry = v.InferOutput<typeof OpBeginSchema>
export type OpDoneEntry = v.InferOutput<typeof OpDoneSchema>
export type TurnRef = v.InferOutput<typeof TurnRefSchema>
export type CallRef = v.InferOutput<typeof CallRefSchema>
