import * as v from 'valibot'
import { opActs, OpIdSchema, OutcomeSchema, ScopeSchema } from '../checkpoint/journal-entry.ts'
import { FileStateSchema } from '../checkpoint/file-state.ts'
import { GapSchema } from '../checkpoint/gap.ts'
import { planId, sessionId } from '../ids.ts'
import { checkpointEndpoints } from './checkpoints.ts'
import { diffEndpoints } from './diff.ts'
import { FailureSchema } from './failure.ts'

/**
 * The read channel between the halves, `/turnback` on the host's connection: one request and one
 * reply schema per endpoint, checked by both sides. A reply is `{ok: true, value}` or
 * `{ok: false, failure}`. Rolling back itself goes through the `rollback` command.
 */
export const PROTOCOL = 1
/** Channel name and projection key. */
export const CHANNEL = '/turnback'
export const PROJECTION = 'turnback'
/** The command's name; the second one serves the browser half when another plugin took the first. */
export const COMMAND = 'rollback'
export const FALLBACK_COMMAND = 'turnback'

const int = v.pipe(v.number(), v.integer())
const count = v.pipe(int, v.minValue(0))
const turnNumber = v.pipe(int, v.minValue(1))
const Session = v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.transform(sessionId))
const PlanIdSchema = v.pipe(v.string(), v.regex(/^[0-9a-z]{8,32}$/), v.transform(planId))
export const locales = ['en', 'zh'] as const
export type Locale = (typeof locales)[number]

const turnStates = ['available', 'running', 'rolled-back', 'compacted'] as const
export const TurnRowSchema = v.object({
  turn: turnNumber,
  startSeq: count,
  /** First line of the first human message, cut; empty when it holds only pictures or nobody wrote it. */
  title: v.string(),
  images: count,
  /** Unix ms of turn/start */
  atMs: int,
  state: v.picklist(turnStates),
  /** Paths with a record in this turn. */
  files: count,
  /** Paths that it changed, those included whose records a rollback cancelled: named by calls, and the others, which changed while commands ran. */
  changed: v.optional(v.object({ tool: count, shell: count })),
  /** Shell and other commands whose changes are not covered. */
  commands: count,
  /** What of it nobody can vouch for, one per reason. */
  gaps: v.array(GapSchema),
})
export type TurnRow = v.InferOutput<typeof TurnRowSchema>

/** `advice`: a git command that undoes the move; we never run it. Refs are short names, undefined when detached. */
export const GitMoveSchema = v.object({
  turn: turnNumber,
  words: v.string(),
  from: v.optional(v.string()),
  to: v.optional(v.string()),
  fromRef: v.optional(v.string()),
  toRef: v.optional(v.string()),
  advice: v.optional(v.string()),
})
export type GitMove = v.InferOutput<typeof GitMoveSchema>

export const OpSummarySchema = v.object({
  op: OpIdSchema,
  act: v.picklist(opActs),
  /** The rollback that was undone, or tried again. */
  of: v.optional(OpIdSchema),
  scope: ScopeSchema,
  target: v.optional(v.object({ startSeq: count, number: turnNumber, withdrawn: v.array(turnNumber) })),
  /** What it could not vouch for. */
  gaps: v.array(GapSchema),
  /** Moves of HEAD in the turns it withdrew, with what undoes them as things are now; not given in the reply to `outcome`. */
  gitMoves: v.optional(v.array(GitMoveSchema)),
  markerSeq: v.optional(count),
  /** Of a rollback that was tried again: with what the last try came to. */
  outcomes: v.array(OutcomeSchema),
  /** The session to open now, because the conversation goes on there: the copy that a branch or an undo made, or, after the undo of such an undo, the original. */
  copy: v.optional(Session),
  /** Files of its span that were not selected and stay as they are; absent for none. */
  leftOut: v.optional(count),
  /** Paths that failed and that `/rollback retry` would try again now; absent for none. */
  retryable: v.optional(v.array(v.string())),
  /** A later undo reversed it. */
  undone: v.boolean(),
  atMs: int,
})
export type OpSummary = v.InferOutput<typeof OpSummarySchema>

/** Why a path is a conflict; default `keep`. */
const conflictKinds = ['changed-since', 'edited-between', 'other-session', 'shared', 'git-moved', 'cut-off'] as const
const ConflictSchema = v.picklist(conflictKinds)
const planActions = ['write', 'recreate', 'delete', 'none', 'keep', 'skip'] as const
export const PreviewRowSchema = v.object({
  /** Absolute path on the host. */
  path: v.string(),
  /** The path as shown: relative to the workspace when inside it. */
  shown: v.string(),
  action: v.picklist(planActions),
  /** What a conflict row would do if the user chose to put it back. */
  putBackAction: v.optional(v.picklist(['write', 'recreate', 'delete'])),
  conflict: v.optional(ConflictSchema),
  /** `shell`: changed while a command ran; no call named it. */
  origin: v.picklist(['tool', 'shell']),
  skip: v.optional(v.string()),
  /** First words of the commands during which it changed, each once. */
  commands: v.optional(v.array(v.string())),
  /** In these turns it was found in a state that no call of this session left. */
  isOutside: v.optional(v.literal(true)),
  goal: FileStateSchema,
  current: FileStateSchema,
  turns: v.array(turnNumber),
})
export type PreviewRow = v.InferOutput<typeof PreviewRowSchema>

/** Work of this session that goes on beside its turns. A `job` is a command in the background. */
export const RunningWorkSchema = v.object({ kind: v.picklist(['job', 'subagent']), label: v.string() })
export type RunningWork = v.InferOutput<typeof RunningWorkSchema>

export const PreviewSchema = v.object({
  /** Hash of everything the preview rests on; a plan made from another state of the world is refused. */
  token: v.string(),
  scope: ScopeSchema,
  target: v.object({ turn: turnNumber, startSeq: count, title: v.string(), atMs: int }),
  lastTurn: turnNumber,
  /** Turns withdrawn, oldest first. */
  turns: v.array(v.object({ turn: turnNumber, title: v.string() })),
  /** Messages that leave the model's context. */
  messages: count,
  rows: v.array(PreviewRowSchema),
  /** Empty folders made in the span that will go, as shown. */
  folders: v.array(v.string()),
  gaps: v.array(GapSchema),
  /** True when commands ran: what git or the ignore list hides was not looked at around them. */
  hasCommands: v.boolean(),
  /** Moves of HEAD by commands of these turns, oldest first. */
  gitMoves: v.array(GitMoveSchema),
  /** First words of messages that wait in the queue and will run after the rollback. */
  queued: v.array(v.string()),
  /** The host can remove them, so that a plan may ask for `queued: 'drop'`. */
  canDropQueued: v.boolean(),
  /** Jobs and subagents that run now: a plan is refused with `jobs-running` unless it says `running: 'continue'`. */
  running: v.array(RunningWorkSchema),
  /** Files cannot be written, because the session is read-only; scope `conversation` can be carried out all the same. */
  isReadOnly: v.boolean(),
  /** Session state named as not rolled back: keys of locales `untouched.<key>`. */
  untouched: v.array(v.string()),
  /** The withdrawn prompt for the composer; images are attachment ids. */
  prompt: v.object({ text: v.string(), images: v.array(v.string()) }),
})
export type Preview = v.InferOutput<typeof PreviewSchema>

const locale = v.picklist(locales)
/** What becomes of messages that wait in the queue, and whether jobs and subagents may go on during a rollback. */
export const queuedChoices = ['keep', 'drop'] as const
export type QueuedChoice = (typeof queuedChoices)[number]
export const runningChoices = ['refuse', 'continue'] as const
export type RunningChoice = (typeof runningChoices)[number]
export const endpoints = {
  hello: {
    request: v.object({ locale: v.optional(locale), sessionId: v.optional(Session) }),
    reply: v.object({
      protocol: v.literal(PROTOCOL),
      version: v.string(),
      command: v.string(),
      /** Contracts that are not as expected; empty when all is well. */
      problems: v.array(v.object({ contract: v.string(), detail: v.string() })),
    }),
  },
  timeline: {
    request: v.object({ sessionId: Session }),
    reply: v.object({ turns: v.array(TurnRowSchema), ops: v.array(OpSummarySchema) }),
  },
  preview: {
    request: v.object({ sessionId: Session, turn: turnNumber, scope: v.optional(ScopeSchema, 'both') }),
    reply: PreviewSchema,
  },
  plan: {
    request: v.object({
      sessionId: Session,
      turn: turnNumber,
      scope: v.optional(ScopeSchema, 'both'),
      token: v.string(),
      /** Conflict paths to put back instead of keeping them. */
      putBack: v.optional(v.array(v.string()), []),
      /** Absolute paths of rows that take part; absent means all. A path that is no row is refused with `unknown-selection`. */
      only: v.optional(v.array(v.pipe(v.string(), v.startsWith('/')))),
      /** The conversation goes on in a copy and this session stays as it is; `token` is of a preview of the files alone. */
      branch: v.optional(v.boolean(), false),
      /** `drop` removes the messages that wait when the plan is made, and none that comes later. */
      queued: v.optional(v.picklist(queuedChoices), 'keep'),
      running: v.optional(v.picklist(runningChoices), 'refuse'),
    }),
    reply: v.variant('kind', [
      v.object({ kind: v.literal('planned'), planId: PlanIdSchema, expiresAtMs: int }),
      /** `changedRows(old, preview)` of src/restore/changed-rows.ts says which rows are different now. */
      v.object({ kind: v.literal('stale'), preview: PreviewSchema }),
    ]),
  },
  /** A plan for the paths that a rollback could not put back, toward the same states; executed like any plan. */
  retry: {
    request: v.object({ sessionId: Session, running: v.optional(v.picklist(runningChoices), 'refuse') }),
    reply: v.object({
      planId: PlanIdSchema,
      expiresAtMs: int,
      /** The rollback that is tried again. */
      of: OpIdSchema,
      /** What it would do as things are now; a file that changed since is kept. */
      rows: v.array(PreviewRowSchema),
    }),
  },
  /** Of a plan, of an op, or, with neither, of the last run of our command, when that carried out something. */
  outcome: {
    request: v.object({ sessionId: Session, planId: v.optional(PlanIdSchema), op: v.optional(OpIdSchema) }),
    reply: v.object({ op: v.optional(OpSummarySchema) }),
  },
  /** How far the session's op is; without a stage there is none. `writing` cannot be stopped. */
  progress: {
    request: v.object({ sessionId: Session }),
    reply: v.object({ stage: v.optional(v.picklist(['looking', 'saving', 'writing'])), done: count, total: count }),
  },
  /** Stops the session's op before it writes. */
  stop: {
    request: v.object({ sessionId: Session }),
    reply: v.object({ isStopping: v.boolean() }),
  },
  ...diffEndpoints({ sessionId: Session, turn: turnNumber }, turnNumber),
  ...checkpointEndpoints(Session, turnNumber),
} as const
export type Endpoint = keyof typeof endpoints
export type RequestOf<E extends Endpoint> = v.InferOutput<(typeof endpoints)[E]['request']>
/** What a caller writes: defaults may be left out and ids are plain strings. */
export type RequestInput<E extends Endpoint> = v.InferInput<(typeof endpoints)[E]['request']>
export type ReplyOf<E extends Endpoint> = v.InferOutput<(typeof endpoints)[E]['reply']>

export const replyEnvelope = v.variant('ok', [
  v.object({ ok: v.literal(true), value: v.unknown() }),
  v.object({ ok: v.literal(false), failure: FailureSchema }),
])

/** What the projection `turnback` pushes to open pages: our markers of this session, oldest first. */
export const ProjectionViewSchema = v.object({
  markers: v.array(v.object({ seq: count, startSeq: count, turn: turnNumber, op: v.string() })),
})
export type ProjectionView = v.InferOutput<typeof ProjectionViewSchema>
