import type { OpSummary, TurnRow } from '../../src/protocol/requests.ts'

/** One entry of the Checkpoints view's rail. */
export type RailItem =
  | { readonly kind: 'turn'; readonly key: string; readonly turn: TurnRow }
  | { readonly kind: 'op'; readonly key: string; readonly op: OpSummary }

/** Turns and what was rolled back and undone between them, newest first. */
export function railItems(turns: readonly TurnRow[], ops: readonly OpSummary[]): readonly RailItem[] {
  const items: RailItem[] = []
  let left = ops.toSorted((a, b) => b.atMs - a.atMs)
  for (const turn of turns.toSorted((a, b) => b.startSeq - a.startSeq)) {
    const after = new Set(left.filter(op => isAfter(op, turn)))
    if (after.size > 0) left = left.filter(op => !after.has(op))
    items.push(...[...after].map(opItem), { kind: 'turn', key: `turn:${turn.startSeq}`, turn })
  }
  return [...items, ...left.map(opItem)]
}

const opItem = (op: OpSummary): RailItem => ({ kind: 'op', key: `op:${op.op}`, op })

/** A marker says it by its place in the log, whatever the clock did. */
const isAfter = ({ markerSeq, atMs }: OpSummary, turn: TurnRow): boolean =>
  markerSeq === undefined ? atMs >= turn.atMs : markerSeq > turn.startSeq

/** Files that a turn changed, those included that a rollback put back since. */
export const filesOf = ({ changed, files }: TurnRow): number => (changed === undefined ? files : changed.tool + changed.shell)
