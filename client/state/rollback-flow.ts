import type { Outcome, Scope } from '../../src/checkpoint/journal-entry.ts'
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

/** What the person decided of single files, by path: put back or leave. Without a choice the plan's default counts. */
export type Choices = ReadonlyMap<string, boolean>

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
      readonly choices: Choices
      /** Another scope was chosen and its preview is on its way. */
      readonly awaited?: { readonly scope: Scope; readonly request: number }
      /** After a stale confirm: the paths that are new or different now. */
      readonly changed?: ReadonlySet<string>
    }
  | {
      readonly kind: 'applying'
      readonly turn: number
      readonly request: number
      readonly preview: Preview
      readonly choices: Choices
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
  | { readonly kind: 'scoped'; readonly scope: Scope; readonly request: number }
  | { readonly kind: 'chosen'; readonly paths: readonly string[]; readonly isBack: boolean }
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
      if (phase.kind === 'ready' && phase.awaited?.request === event.request) {
        return { kind: 'ready', turn: phase.turn, preview: event.preview, choices: phase.choices }
      }
      if (phase.kind !== 'loading' || phase.request !== event.request) return phase
      return { kind: 'ready', turn: phase.turn, preview: event.preview, choices: new Map() }
    case 'scoped':
      return phase.kind === 'ready' ? { ...phase, awaited: { scope: event.scope, request: event.request } } : phase
    case 'chosen':
      if (phase.kind !== 'ready') return phase
      return { ...phase, choices: new Map([...phase.choices, ...event.paths.map(path => [path, event.isBack] as const)]) }
    case 'confirmed':
      if (phase.kind !== 'ready' || phase.awaited !== undefined) return phase
      return {
        kind: 'applying',
        turn: phase.turn,
        request: event.request,
        preview: phase.preview,
        choices: phase.choices,
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
      if (phase.kind === 'idle' || requestOf(phase) !== event.request) return phase
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
  const paths = new Set(preview.rows.map(row => row.path))
  const choices = new Map([...phase.choices].filter(([path]) => !changed.has(path) && paths.has(path)))
  return { kind: 'ready', turn: phase.turn, preview, choices, changed }
}

function requestOf(phase: Phase): number | undefined {
  if (phase.kind === 'ready') return phase.awaited?.request
  return phase.kind === 'loading' || phase.kind === 'applying' ? phase.request : undefined
}

function sameRow(before: PreviewRow | undefined, now: PreviewRow): boolean {
  if (before === undefined || before.action !== now.action || before.conflict !== now.conflict) return false
  return same(before.current, now.current) && same(before.goal, now.goal)
}

const same = (a: PreviewRow['goal'], b: PreviewRow['goal']) =>
  sameState(a, b) || (a.kind === 'unknown' && b.kind === 'unknown' && a.reason === b.reason)

/** True for a row that can go back; what already is as it was, or cannot be put back, asks nothing. */
export const isChoosable = ({ action, putBackAction }: PreviewRow): boolean =>
  action === 'keep' ? putBackAction !== undefined : action !== 'none' && action !== 'skip'

/** True when a confirm would put the row's file back: conflicts only by choice, the others unless chosen otherwise. */
export const goesBack = (row: PreviewRow, choices: Choices): boolean =>
  isChoosable(row) && (choices.get(row.path) ?? row.action !== 'keep')

/** How many files a confirm would change. */
export const filesToChange = (preview: Preview, choices: Choices): number =>
  preview.rows.filter(row => goesBack(row, choices)).length

/** The choices as the host is asked: conflicts to put back and, where a planned file is to stay, all paths but these. */
export function selectionOf(preview: Preview, choices: Choices): { readonly putBack: string[]; readonly only?: string[] } {
  const left = new Set(preview.rows.filter(row => row.action !== 'keep' && isChoosable(row) && !goesBack(row, choices)))
  const putBack = preview.rows.filter(row => row.action === 'keep' && goesBack(row, choices)).map(row => row.path)
  return { putBack, ...(left.size === 0 ? {} : { only: preview.rows.filter(row => !left.has(row)).map(row => row.path) }) }
}

/** Outcomes worth showing: paths that were already as they should be were not touched and count as nothing. */
export const changedOutcomes = (op: OpSummary): readonly Outcome[] =>
  op.outcomes.filter(({ reason }) => reason !== 'unchanged')

/** How many files an op put back. */
export const filesRestored = (op: OpSummary): number =>
  changedOutcomes(op).filter(({ result }) => result === 'restored').length
