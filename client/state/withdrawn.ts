import type { OpSummary, TurnRow } from '../../src/protocol/requests.ts'

/** Numbers of the turns that `op` took out of the conversation: those of its span that no rollback before it had taken. */
export function withdrawnBy(op: OpSummary, ops: readonly OpSummary[]): readonly number[] {
  const before = ops.filter(
    other => other.act === 'rollback' && other.scope !== 'files' && (other.markerSeq ?? 0) < (op.markerSeq ?? 0),
  )
  const gone = new Set(before.flatMap(span))
  return span(op).filter(number => !gone.has(number))
}

/** How many commands ran in these turns; what they changed is not covered. */
export function commandsIn(numbers: readonly number[], turns: readonly TurnRow[]): number {
  return turns.filter(({ turn }) => numbers.includes(turn)).reduce((sum, { commands }) => sum + commands, 0)
}

function span({ target }: OpSummary): readonly number[] {
  if (target === undefined) return []
  return Array.from({ length: target.lastNumber - target.number + 1 }, (_, at) => target.number + at)
}
