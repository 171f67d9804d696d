import type { BracketEntry, CallRef, ChangeEntry } from '../../src/checkpoint/journal-entry.ts'
import type { Booking } from './attribution.ts'
import type { Difference, Seen } from './look.ts'

/** One entry per path, all booked on one call. */
export const changeEntries = (
  { booking, call, id, atMs }: { readonly booking: Booking; readonly call: CallRef; readonly id: () => string; readonly atMs: number },
  seen: readonly Seen[],
  doubtOf: (change: Seen) => ChangeEntry['doubt'],
): ChangeEntry[] => seen.map((change) => {
  const doubt = doubtOf(change)
  return {
    kind: 'change', id: id(), turn: booking.turn, call, origin: 'shell',
    path: change.path, before: change.before, after: change.after, absentFolders: [...change.absentFolders],
    ...(doubt === undefined ? {} : { doubt }), atMs,
  }
})

export const overBudget = (words: string): BracketEntry['gaps'] => [{ reason: 'over-budget', count: 1, names: [words] }]

/** Where git's HEAD was and is, when a command moved it. */
export const headEntry = (head: Difference['head']): Pick<BracketEntry, 'head'> =>
  (head === undefined ? {} : { head: Object.fromEntries(Object.entries(head).filter(([, value]) => value !== undefined)) })
