import type { FileState } from '../../src/checkpoint/file-state.ts'
import type { Seen } from './look.ts'
import { equal } from './seen.ts'

/**
 * Changes since a look that already have an entry, by path. A later comparison with the same look finds them again,
 * and so does a command that ran beside the one they are booked on.
 */
export type Booked = Map<string, { readonly before: FileState; readonly after: FileState }>

/**
 * What of `seen` has no entry yet. A change that goes on from a booked one starts where that one ended; a path that
 * is again as it was at the look is found by `stateNow`.
 */
export async function unbooked(seen: readonly Seen[], booked: Booked, stateNow: (path: string) => Promise<FileState>): Promise<Seen[]> {
  const fresh = seen.flatMap((change): Seen[] => {
    const was = booked.get(change.path)
    // Another look that found the path otherwise was taken between two changes: both entries stay, and do not fit together.
    if (was === undefined || !equal(was.before, change.before)) return [change]
    return equal(was.after, change.after) ? [] : [{ ...change, before: was.after, absentFolders: was.after.kind === 'absent' ? change.absentFolders : [] }]
  })
  const found = new Set(seen.map(({ path }) => path))
  for (const [path, { after: before }] of booked) {
    if (found.has(path)) continue
    const after = await stateNow(path)
    if (!equal(before, after)) fresh.push({ path, before, after, absentFolders: [], byGit: false })
  }
  return fresh
}

export function noteBooked(booked: Booked, changes: readonly Seen[]): void {
  for (const { path, before, after } of changes) {
    booked.set(path, { before: booked.get(path)?.before ?? before, after })
  }
}
