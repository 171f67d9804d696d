import type { Outcome, Scope } from '../../src/checkpoint/journal-entry.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { OpSummary, Preview, PreviewRow, QueuedChoice, ReplyOf, RunningChoice } from '../../src/protocol/requests.ts'
import { changedRows } from '../../src/restore/changed-rows.ts'

/** Why it did not work: a refusal with facts, or the command's own sentence in the page's language. */
export type Problem =
  { readonly kind: 'failure'; readonly failure: Failure } | { readonly kind: 'said'; readonly text: string }

export type UndoPhase =
  | { readonly kind: 'offered' }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly text: string }
  | { readonly kind: 'failed'; readonly problem: Problem }

/** What is taken back. `branch`: the files, while the conversation goes on in a copy and this one stays as it is. */
export type Mode = Scope | 'branch'
export const modes = ['both', 'files', 'conversation', 'branch'] as const satisfies readonly Mode[]
export const scopeOf = (mode: Mode): Scope => (mode === 'branch' ? 'files' : mode)

/** What becomes of what goes on around a rollback. */
export interface Around {
  readonly queued: QueuedChoice
  readonly running: RunningChoice
}
const nothingChosen: Around = { queued: 'keep', running: 'refuse' }

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
  /** `only`: of all files this one is to go back, and the conversation stays. */
  | { readonly kind: 'loading'; readonly turn: number; readonly request: number; readonly only?: string | undefined }
  | {
      readonly kind: 'ready'
      readonly turn: number
      readonly preview: Preview
      readonly mode: Mode
      readonly choices: Choices
      readonly around: Around
      /** Another mode was chosen and its preview is on its way. */
      readonly awaited?: { readonly mode: Mode; readonly request: number }
      /** After a stale confirm: the paths that are new or different now. */
      readonly changed?: ReadonlySet<string>
    }
  | {
      readonly kind: 'applying'
      readonly turn: number
      readonly request: number
      /** As the host told last; undefined for work that is over before it is asked. */
      readonly progress?: ReplyOf<'progress'>
      /** The host was asked to stop before it writes. */
      readonly isStopping?: boolean
      readonly preview: Preview
      readonly mode: Mode
      readonly choices: Choices
      readonly around: Around
    }
  | {
      readonly kind: 'done'
      readonly turn: number
      readonly preview: Preview
      readonly op?: OpSummary
      readonly undo: UndoPhase
      /** Another try of the files that failed; `done` with the outcome of both in `op`. */
      readonly again: UndoPhase
      readonly prompt: PromptPhase
      readonly lostImages: number
    }
  | { readonly kind: 'failed'; readonly turn: number; readonly problem: Problem }

export type FlowEvent =
  | { readonly kind: 'opened'; readonly turn: number; readonly request: number; readonly only?: string | undefined }
  | { readonly kind: 'previewed'; readonly request: number; readonly preview: Preview }
  | { readonly kind: 'moded'; readonly mode: Mode; readonly request: number }
  | { readonly kind: 'around'; readonly around: Partial<Around> }
  | { readonly kind: 'chosen'; readonly paths: readonly string[]; readonly isBack: boolean }
  | { readonly kind: 'confirmed'; readonly request: number }
  | { readonly kind: 'progress'; readonly request: number; readonly progress: ReplyOf<'progress'> }
  | { readonly kind: 'stopping'; readonly request: number }
  | { readonly kind: 'stale'; readonly request: number; readonly preview: Preview }
  | { readonly kind: 'applied'; readonly request: number; readonly op?: OpSummary }
  | { readonly kind: 'problem'; readonly request: number; readonly problem: Problem }
  | { readonly kind: 'prompt'; readonly prompt: PromptPhase; readonly lostImages: number }
  | { readonly kind: 'undo'; readonly undo: UndoPhase }
  | { readonly kind: 'again'; readonly again: UndoPhase; readonly op?: OpSummary | undefined }
  | { readonly kind: 'closed' }

export const idle: Phase = { kind: 'idle' }

/** The next phase; an event that does not fit the current one changes nothing. */
export function nextPhase(phase: Phase, event: FlowEvent): Phase {
  switch (event.kind) {
    case 'opened':
      return phase.kind === 'applying' ? phase : { kind: 'loading', turn: event.turn, request: event.request, only: event.only }
    case 'previewed':
      if (phase.kind === 'ready' && phase.awaited?.request === event.request) {
        return { kind: 'ready', turn: phase.turn, preview: event.preview, mode: phase.awaited.mode, choices: phase.choices, around: phase.around }
      }
      if (phase.kind !== 'loading' || phase.request !== event.request) return phase
      return opened(phase, event.preview)
    case 'moded':
      return phase.kind === 'ready' ? { ...phase, awaited: { mode: event.mode, request: event.request } } : phase
    case 'around':
      return phase.kind === 'ready' ? { ...phase, around: { ...phase.around, ...event.around } } : phase
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
        mode: phase.mode,
        choices: phase.choices,
        around: phase.around,
      }
    case 'progress':
      return phase.kind === 'applying' && phase.request === event.request ? { ...phase, progress: event.progress } : phase
    case 'stopping':
      return phase.kind === 'applying' && phase.request === event.request ? { ...phase, isStopping: true } : phase
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
        again: { kind: 'offered' },
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
    case 'again':
      return phase.kind === 'done' ? { ...phase, again: event.again, ...(event.op === undefined ? {} : { op: event.op }) } : phase
    case 'closed':
      // What is being carried out cannot be called back, so its dialog stays until it is known.
      return phase.kind === 'applying' ? phase : idle
  }
}

/** A file that somebody else changed is still kept by default: that it was asked for does not say that this is known. */
function opened({ turn, only }: Extract<Phase, { kind: 'loading' }>, preview: Preview): Phase {
  const ready = { kind: 'ready', turn, preview, mode: 'both', choices: new Map<string, boolean>(), around: nothingChosen } as const
  if (only === undefined) return ready
  if (!preview.rows.some(({ path }) => path === only)) {
    return { kind: 'failed', turn, problem: { kind: 'failure', failure: failure('unknown-path', { path: only }) } }
  }
  const others = preview.rows.filter(row => row.path !== only && isChoosable(row))
  return { ...ready, mode: 'files', choices: new Map(others.map(({ path }) => [path, false])) }
}

/** The new preview takes the old one's place; choices survive where the row is still the same question. */
function staleAgain(phase: Extract<Phase, { kind: 'applying' }>, preview: Preview): Phase {
  const changed = changedRows(phase.preview, preview)
  const paths = new Set(preview.rows.map(row => row.path))
  const choices = new Map([...phase.choices].filter(([path]) => !changed.has(path) && paths.has(path)))
  return { kind: 'ready', turn: phase.turn, preview, mode: phase.mode, choices, around: phase.around, changed }
}

function requestOf(phase: Phase): number | undefined {
  if (phase.kind === 'ready') return phase.awaited?.request
  return phase.kind === 'loading' || phase.kind === 'applying' ? phase.request : undefined
}

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

/** Why a confirm would be refused, as far as the preview says; undefined when nothing stands against it. */
export function obstacle({ preview, mode, choices, around }: Extract<Phase, { kind: 'ready' }>): 'read-only' | 'running' | 'no-files' | undefined {
  const files = filesToChange(preview, choices)
  if (files > 0 && preview.isReadOnly) return 'read-only'
  if (mode === 'files' && files === 0) return 'no-files'
  return preview.running.length > 0 && around.running === 'refuse' ? 'running' : undefined
}

/** Outcomes worth showing: paths that were already as they should be were not touched and count as nothing. */
export const changedOutcomes = (op: OpSummary): readonly Outcome[] =>
  op.outcomes.filter(({ reason }) => reason !== 'unchanged')

/** How many files an op put back. */
export const filesRestored = (op: OpSummary): number =>
  changedOutcomes(op).filter(({ result }) => result === 'restored').length

/** The rollback that `undo` would take: the latest that changed a file or the conversation and is not undone. */
export const lastUndoable = (ops: readonly OpSummary[]) =>
  ops
    .filter(op => op.act === 'rollback' && !op.undone && (op.scope !== 'files' || filesRestored(op) > 0))
    .reduce<OpSummary | undefined>((last, op) => (last === undefined || op.atMs >= last.atMs ? op : last), undefined)
