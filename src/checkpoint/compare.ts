import type { Seq } from '../ids.ts'
import { sameState, unknown, type FileState } from './file-state.ts'
import type { JournalEntry, TurnRef } from './journal-entry.ts'

/** How a path came into a state: a call named it, it changed while a command ran, an op of ours put it back, or somebody else left it so. */
export const comparedOrigins = ['tool', 'shell', 'op', 'outside'] as const
export type ComparedOrigin = (typeof comparedOrigins)[number]

/** A turn as a place in the journal. */
export interface TurnPlace {
  readonly startSeq: Seq
  /** Unix ms of turn/start */
  readonly atMs: number
}

/** One path at two points: before the first turn of a stretch, and after its last. */
export interface ComparedPath {
  readonly path: string
  readonly before: FileState
  readonly after: FileState
  /** What moved it in between, in this order and each once. */
  readonly origins: readonly ComparedOrigin[]
  /** The calls that did, oldest first. */
  readonly callIds: readonly string[]
}

/** The way of one path from a state to the next. */
interface Step {
  readonly origin: ComparedOrigin
  /** The turn it is booked on; undefined for what no turn did. */
  readonly turn: Seq | undefined
  /** True when it happened before the turn of this place. */
  isBefore(place: TurnPlace): boolean
  readonly before: FileState | undefined
  readonly after: FileState
  readonly callId: string | undefined
}

/**
 * What is recorded between the start of turn `from` and the end of turn `to`, from the journal alone; without `to` up to
 * its end, which need not be what is on the disk. Withdrawn turns count as what they were: things that happened. Paths
 * that are after `to` as they were before `from` are left out, unless it is the same turn: that one did change them.
 */
export function compareTurns(entries: Iterable<JournalEntry>, from: TurnPlace, to: TurnPlace | undefined): readonly ComparedPath[] {
  const isOne = to?.startSeq === from.startSeq
  const rows: ComparedPath[] = []
  for (const [path, steps] of stepsByPath(entries)) {
    const within = steps.filter(step => (step.turn === undefined
      ? !isOne && !step.isBefore(from) && (to === undefined || step.isBefore(to))
      : step.turn >= from.startSeq && (to === undefined || step.turn <= to.startSeq)))
    if (within.length === 0) continue
    const before = stateBefore(steps, from)
    const after = stateAfter(steps, to)
    if (!isOne && to !== undefined && sameState(before, after)) continue
    rows.push({
      path, before, after,
      origins: comparedOrigins.filter(origin => within.some(step => step.origin === origin)),
      callIds: [...new Set(within.flatMap(({ callId }) => callId ?? []))],
    })
  }
  return rows
}

/** Paths that each turn changed, by its startSeq: `shell` when no call named them. Withdrawn turns are turns. */
export function changesByTurn(entries: Iterable<JournalEntry>): ReadonlyMap<Seq, ReadonlyMap<string, 'tool' | 'shell'>> {
  const turns = new Map<Seq, Map<string, 'tool' | 'shell'>>()
  for (const [path, steps] of stepsByPath(entries)) {
    for (const { turn, origin } of steps) {
      if (turn === undefined) continue
      const paths = turns.get(turn) ?? new Map<string, 'tool' | 'shell'>()
      turns.set(turn, paths.set(path, origin === 'tool' ? 'tool' : paths.get(path) ?? 'shell'))
    }
  }
  return turns
}

/** What the turn found; where it did not touch the path, what stood there by then. */
function stateBefore(steps: readonly Step[], from: TurnPlace): FileState {
  const own = steps.find(step => step.turn === from.startSeq)
  const last = steps.findLast(step => step.isBefore(from))
  return own?.before ?? last?.after ?? steps.find(step => step.before !== undefined)?.before ?? unknown('record-lost')
}

/** What the turn left, or what stood there at its end. */
function stateAfter(steps: readonly Step[], to: TurnPlace | undefined): FileState {
  const last = to === undefined ? steps.at(-1) : steps.findLast(step => step.turn === to.startSeq || step.isBefore(to))
  return last?.after ?? steps.find(step => step.before !== undefined)?.before ?? unknown('record-lost')
}

/** The steps of every path in the order they happened; those that changed nothing, and those that were taken back, are none. */
function stepsByPath(entries: Iterable<JournalEntry>): ReadonlyMap<string, readonly Step[]> {
  const drafts = new Map<string, Draft[]>()
  const byRecord = new Map<string, Draft>()
  const ops = new Map<string, readonly { readonly path: string; readonly draft: Draft }[]>()
  const add = (path: string, draft: Draft): Draft => {
    const story = drafts.get(path)
    if (story === undefined) drafts.set(path, [draft])
    else story.push(draft)
    return draft
  }
  for (const entry of entries) {
    switch (entry.kind) {
      case 'before':
        if (byRecord.has(entry.id)) break
        byRecord.set(entry.id, add(entry.path, {
          origin: 'tool', ...placeOf(entry), before: entry.state, after: unknown('cut-off'), callId: entry.call.callId, isStep: true,
        }))
        break
      case 'after': {
        const draft = byRecord.get(entry.of)
        if (draft?.before === undefined) break
        draft.after = entry.state
        draft.isStep = !sameState(draft.before, entry.state)
        break
      }
      case 'change':
        if (byRecord.has(entry.id)) break
        byRecord.set(entry.id, add(entry.path, {
          origin: 'shell', ...placeOf(entry), before: entry.before, after: entry.after, callId: entry.call.callId, isStep: true,
        }))
        break
      case 'outside':
        add(entry.path, { origin: 'outside', ...momentOf(entry), before: undefined, after: entry.state, callId: undefined, isStep: true })
        break
      case 'op-begin':
        // Its place is here, where the files moved; that it was done may be noted much later.
        ops.set(entry.op, entry.rows.map(({ path, was, goal }) => ({
          path, draft: add(path, { origin: 'op', ...momentOf(entry), before: was, after: goal, callId: undefined, isStep: false }),
        })))
        break
      case 'op-done': {
        const restored = new Set(entry.outcomes.filter(({ result }) => result === 'restored').map(({ path }) => path))
        for (const { path, draft } of ops.get(entry.op) ?? []) draft.isStep = restored.has(path)
        break
      }
    }
  }
  return new Map([...drafts].map(([path, story]) => [path, story.filter(({ isStep }) => isStep)]))
}

/** A step while the journal is read: what it left, and whether it was one, is told by a later entry. */
interface Draft extends Omit<Step, 'after'> {
  after: FileState
  isStep: boolean
}

type Moment = Pick<Step, 'turn' | 'isBefore'>

/** A record stands at its turn; one that was booked late stands where it was seen. */
const placeOf = ({ turn, atMs }: { readonly turn: TurnRef; readonly atMs: number }): Moment => ({
  turn: turn.startSeq, isBefore: place => (turn.late === true ? atMs < place.atMs : turn.startSeq < place.startSeq),
})

/** What no turn did stands where it happened. */
const momentOf = ({ atMs }: { readonly atMs: number }): Moment => ({ turn: undefined, isBefore: place => atMs < place.atMs })
