import type { Outcome } from '../../src/checkpoint/journal-entry.ts'
import { sameState } from '../../src/checkpoint/file-state.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import type { OpSummary, Preview, PreviewRow } from '../../src/protocol/requests.ts'

/** Why it did not work: a refusal with facts, or the command's own sentence in the page's language. */
export type Problem =
  { readonly kind: 'failure'; readonly failure: Failure } | { readonly kind: 'said'; readonly text: string }

export type UndoPhase =
  | { readonly kind: 'offered' }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly text: string }
  | { readonly kind: 'failed'; readonly problem: Problem }

/** What became of the withdrawn prompt. */
export type PromptPhase = 'none' | 'restored' | 'beside-draft'

/**
 * One look at one rollback, from the click to the result. `request` numbers what is being waited for;
 * a reply with another number is late and is dropped.
 */
export type Phase =
  | { readonly kind: 'idle' }
  | { readonly kind: 'loading'; readonly turn: number; readonly request: number }
  | {
      readonly kind: 'ready'
      readonly turn: number
      readonly preview: Preview
      /** Conflict paths the person chose to put back. */
      readonly putBack: ReadonlySet<string>
      /** After a stale confirm: the paths that are new or different now. */
      readonly changed?: ReadonlySet<string>
    }
  | {
      readonly kind: 'applying'
      readonly turn: number
      readonly request: number
      readonly preview: Preview
      readonly putBack: ReadonlySet<string>
    }
  | {
      readonly kind: 'done'
      readonly turn: number
      readonly preview: Preview
      readonly op?: OpSummary
      readonly undo: UndoPhase
      readonly prompt: PromptPhase
      readonly lostImages: number
    }
  | { readonly kind: 'failed'; readonly turn: number; readonly problem: Problem }

export type FlowEvent =
  | { readonly kind: 'opened'; readonly turn: number; readonly request: number }
  | { readonly kind: 'previewed'; readonly request: number; readonly preview: Preview }
  | { readonly kind: 'chosen'; readonly path: string; readonly putBack: boolean }
  | { readonly kind: 'confirmed'; readonly request: number }
  | { readonly kind: 'stale'; readonly request: number; readonly preview: Preview }
  | { readonly kind: 'applied'; readonly request: number; readonly op?: OpSummary }
  | { readonly kind: 'problem'; readonly request: number; readonly problem: Problem }
  | { readonly kind: 'prompt'; readonly prompt: PromptPhase; readonly lostImages: number }
  | { readonly kind: 'undo'; readonly undo: UndoPhase }
  | { readonly kind: 'closed' }

export const idle: Phase = { kind: 'idle' }

/** The next phase; an event that does not fit the current one changes nothing. */
export function nextPhase(phase: Phase, event: FlowEvent): Phase {
  switch (event.kind) {
    case 'opened':
      return phase.kind === 'applying' ? phase : { kind: 'loading', turn: event.turn, request: event.request }
    case 'previewed':
      if (phase.kind !== 'loading' || phase.request !== event.request) return phase
      return { kind: 'ready', turn: phase.turn, preview: event.preview, putBack: new Set() }
    case 'chosen':
      if (phase.kind !== 'ready') return phase
      return { ...phase, putBack: withChoice(phase.putBack, event.path, event.putBack) }
    case 'confirmed':
      if (phase.kind !== 'ready') return phase
      return {
        kind: 'applying',
        turn: phase.turn,
        request: event.request,
        preview: phase.preview,
        putBack: phase.putBack,
      }
    case 'stale':
      if (phase.kind !== 'applying' || phase.request !== event.request) return phase
      return staleAgain(phase, event.preview)
    case 'applied':
      if (phase.kind !== 'applying' || phase.request !== event.request) return phase
      return {
        kind: 'done',
        turn: phase.turn,
        preview: phase.preview,
        ...(event.op === undefined ? {} : { op: event.op }),
        undo: { kind: 'offered' },
        prompt: 'none',
        lostImages: 0,
      }
    case 'problem':
      if ((phase.kind !== 'loading' && phase.kind !== 'applying') || phase.request !== event.request) return phase
      return { kind: 'failed', turn: phase.turn, problem: event.problem }
    case 'prompt':
      return phase.kind === 'done' ? { ...phase, prompt: event.prompt, lostImages: event.lostImages } : phase
    case 'undo':
      return phase.kind === 'done' ? { ...phase, undo: event.undo } : phase
    case 'closed':
      // What is being carried out cannot be called back, so its dialog stays until it is known.
      return phase.kind === 'applying' ? phase : idle
  }
}

/** The new preview takes the old one's place; choices survive where the row is still the same question. */
function staleAgain(phase: Extract<Phase, { kind: 'applying' }>, preview: Preview): Phase {
  const before = new Map(phase.preview.rows.map(row => [row.path, row]))
  const changed = new Set(preview.rows.filter(row => !sameRow(before.get(row.path), row)).map(row => row.path))
  const putBack = new Set(
    [...phase.putBack].filter(path => !changed.has(path) && preview.rows.some(row => row.path === path)),
  )
  return { kind: 'ready', turn: phase.turn, preview, putBack, changed }
}

function sameRow(before: PreviewRow | undefined, now: PreviewRow): boolean {
  if (before === undefined || before.action !== now.action || before.conflict !== now.conflict) return false
  return same(before.current, now.current) && same(before.goal, now.goal)
}

const same = (a: PreviewRow['goal'], b: PreviewRow['goal']) =>
  sameState(a, b) || (a.kind === 'unknown' && b.kind === 'unknown' && a.reason === b.reason)

function withChoice(putBack: ReadonlySet<string>, path: string, chosen: boolean): ReadonlySet<string> {
  const next = new Set(putBack)
  if (chosen) next.add(path)
  else next.delete(path)
  return next
}

/** How many files a confirm would change: the planned ones and the conflicts put back by choice. */
export function filesToChange(preview: Preview, putBack: ReadonlySet<string>): number {
  return preview.rows.filter(
    row =>
      row.action === 'write' ||
      row.action === 'recreate' ||
      row.action === 'delete' ||
      (row.action === 'keep' && putBack.has(row.path)),
  ).length
}

/** Outcomes worth showing: paths that were already as they should be were not touched and count as nothing. */
export const changedOutcomes = (op: OpSummary): readonly Outcome[] =>
  op.outcomes.filter(({ reason }) => reason !== 'unchanged')

/** How many files an op put back. */
export const filesRestored = (op: OpSummary): number =>
  changedOutcomes(op).filter(({ result }) => result === 'restored').length
