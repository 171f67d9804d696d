import { hunksOf, linesOf } from '../../../../src/diff/hunks.ts'
import type { LineDiff } from '../../../../src/diff/line-diff.ts'
import { splitLines } from '../../../../src/diff/lines.ts'

/** The hunks of a diff as a patch of the file `f`, in the form that `git apply` reads. */
export function patchOf(diff: LineDiff, before: string, after: string): string {
  const sides = { old: splitLines(before), new: splitLines(after) }
  const row = (sign: string, line: string) => (line.endsWith('\n') ? `${sign}${line}` : `${sign}${line}\n\\ No newline at end of file\n`)
  const range = (start: number, count: number) => `${count === 0 ? start : start + 1},${count}`
  const hunks = hunksOf(diff).map(hunk => [
    `@@ -${range(hunk.oldStart, hunk.oldCount)} +${range(hunk.newStart, hunk.newCount)} @@\n`,
    ...linesOf(hunk).map((line) => {
      switch (line.kind) {
        case 'same': return row(' ', sides.old[line.old - 1]!)
        case 'removed': return row('-', sides.old[line.old - 1]!)
        case 'added': return row('+', sides.new[line.new - 1]!)
      }
    }),
  ].join(''))
  return `--- a/f\n+++ b/f\n${hunks.join('')}`
}
