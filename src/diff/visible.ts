import type { Mark } from './word-marks.ts'

/** A stretch of a line as shown. */
export interface Piece {
  /** `tab` is one tab, `blank` a run of blanks at the end, `hidden` one character that would not show or would lie. */
  readonly kind: 'plain' | 'tab' | 'blank' | 'hidden'
  readonly text: string
  /** What differs from the line in its place. */
  readonly isMarked: boolean
}

export interface VisibleLine {
  readonly pieces: readonly Piece[]
  /** Characters of a very long line that are not shown. */
  readonly left: number
}

/** Characters shown of one line. */
export const MAX_SHOWN = 2000

/** Tabs; blanks at the end; controls, and marks of direction and of no width, which can make a line read as another. */
const special = /\t| +$|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** A line without its end, cut into pieces. `marks` in order and without overlap. */
export function visibleLine(line: string, marks: readonly Mark[] = []): VisibleLine {
  const shown = line.length > MAX_SHOWN ? line.slice(0, safeEnd(line, MAX_SHOWN)) : line
  const pieces: Piece[] = []
  let at = 0
  const add = (text: string, isMarked: boolean): void => {
    let from = 0
    for (const match of text.matchAll(special)) {
      // Blanks are at the end only at the line's own end.
      if (match[0].startsWith(' ') && at + text.length < line.length) continue
      if (match.index > from) pieces.push({ kind: 'plain', text: text.slice(from, match.index), isMarked })
      pieces.push({ kind: match[0] === '\t' ? 'tab' : match[0].startsWith(' ') ? 'blank' : 'hidden', text: match[0], isMarked })
      from = match.index + match[0].length
    }
    if (from < text.length) pieces.push({ kind: 'plain', text: text.slice(from), isMarked })
    at += text.length
  }
  for (const { start, end } of marks) {
    if (start >= shown.length) break
    if (start > at) add(shown.slice(at, start), false)
    add(shown.slice(start, Math.min(end, shown.length)), true)
  }
  if (at < shown.length) add(shown.slice(at), false)
  return { pieces, left: line.length - shown.length }
}

/** Not between the two halves of one character. */
const safeEnd = (line: string, end: number): number => {
  const unit = line.charCodeAt(end - 1)
  return unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end
}

/** How a hidden character is named: `U+202E`. */
export const nameOf = (character: string): string => `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
