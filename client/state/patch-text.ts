import { gitPatch } from '../../src/diff/patch.ts'
import type { LineDiff, TextDiff } from '../../src/diff/line-diff.ts'
import { splitLines } from '../../src/diff/lines.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'
import type { FileChange } from '../../src/protocol/diff.ts'

/** Files of one patch; one with more would be no use on a clipboard. */
export const MAX_PATCHED = 500

export interface PatchText {
  readonly text: string
  /** Files that it does not have: no texts, too large, gone, or with no name inside the workspace. */
  readonly left: number
}

interface Sources {
  /** Undefined when it could not be had. */
  changeOf(row: ComparedRow): Promise<FileChange | undefined>
  compare(before: string, after: string): Promise<TextDiff>
}

/** The changes of these files as one patch for `git apply`, from the workspace. */
export async function patchText(rows: readonly ComparedRow[], { changeOf, compare }: Sources): Promise<PatchText> {
  const pieces: string[] = []
  for (const row of rows.slice(0, MAX_PATCHED)) {
    const change = await changeOf(row)
    const piece = change === undefined ? undefined : await pieceOf(row, change, compare)
    if (piece !== undefined) pieces.push(piece)
  }
  return { text: pieces.join(''), left: rows.length - pieces.length }
}

async function pieceOf({ shown }: ComparedRow, { current, goal, content }: FileChange, compare: Sources['compare']): Promise<string | undefined> {
  if (content.kind !== 'text' && content.kind !== 'same') return undefined
  const texts = content.kind === 'text' ? content : { before: '', after: '' }
  const diff = await compare(texts.before, texts.after)
  if (diff.kind === 'binary') return undefined
  // With nothing on one side there is nothing to search for.
  return gitPatch({ path: shown, before: current, after: goal, texts }, (before, after) =>
    (before === '' || after === '' ? wholeText(before, after) : diff))
}

/** A text that comes or goes whole. */
function wholeText(before: string, after: string): LineDiff {
  const [removed, added] = [splitLines(before).length, splitLines(after).length]
  return { kind: 'lines', changes: [{ oldStart: 0, oldCount: removed, newStart: 0, newCount: added }], oldLines: removed, newLines: added, removed, added }
}
