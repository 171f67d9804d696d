import * as v from 'valibot'

/**
 * Why a request was refused or could not be done. `code` is stable; the sentence and the remedy stand
 * in locales under `failure.<code>` and `failure.<code>.remedy`, filled from `facts`.
 */
export const failureCodes = [
  'bad-request', // the request or the command line does not read; facts.detail
  'unknown-session', // no such session is open in the host
  'unknown-turn', // facts.turn, facts.last
  'unknown-path', // facts.path: no file of this rollback
  'turn-running', // a turn runs now
  'jobs-running', // facts.count, facts.names: jobs or subagents of this session still run
  'already-rolled-back', // facts.turn
  'compacted', // facts.turn: a compaction covers both sides of the boundary
  'compaction-open', // a compaction is under way
  'nothing-to-roll-back', // facts.turn: no message of it is in the context any more
  'plan-expired', // the plan id is unknown or too old
  'stale', // something changed since the preview; nothing was done
  'unknown-selection', // facts.names, facts.there: a selected path is none that the rollback would touch; what there is
  'nothing-to-retry', // no file of a standing rollback is left that failed
  'cannot-drop', // the host offers no way to remove queued messages
  'nothing-to-undo', // no rollback of this session is left to undo
  'no-copy', // facts.detail: a copy of the session could not be made
  'read-only', // the session's sandbox forbids writing files
  'files-read-only', // the same; facts.turn: its conversation alone could be rolled back
  'store-unavailable', // facts.detail: our store cannot be written, so nothing could be saved first
  'store-full', // facts.detail: our store has reached its limit, so nothing could be saved first
  'busy', // another rollback of this session is under way
  'host-missing', // client only: the host half does not answer
  'host-mismatch', // client only: its answer does not read; facts.detail
  'unsupported-host', // facts.detail: a DSH contract is not as expected
  'aborted', // stopped before the point of no return
  'internal', // facts.detail: a bug of ours
] as const
export type FailureCode = (typeof failureCodes)[number]

/** Refusals that the same request can only meet again: a second look is not offered for them. */
const final: ReadonlySet<FailureCode> = new Set([
  'bad-request', 'unknown-turn', 'unknown-path', 'unknown-selection', 'already-rolled-back', 'compacted', 'nothing-to-roll-back', 'nothing-to-undo', 'nothing-to-retry',
  'cannot-drop', 'unsupported-host',
])
export const isFinal = ({ code }: Failure): boolean => final.has(code)

export const FailureSchema = v.object({
  code: v.picklist(failureCodes),
  facts: v.optional(v.record(v.string(), v.union([v.string(), v.number()])), {}),
})
export type Failure = v.InferOutput<typeof FailureSchema>

export const failure = (code: FailureCode, facts: Record<string, string | number> = {}): Failure => ({ code, facts })
