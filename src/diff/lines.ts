/** The byte order mark, as decoding leaves it at the start of a text. */
export const BOM = '\uFEFF'

/**
 * The lines of a text, each with its line feed; only the last may lack one. A carriage return belongs to its line, as
 * it does for git. Joined, they are the text again; an empty text has none.
 */
export function splitLines(text: string): string[] {
  const lines: string[] = []
  let start = 0
  for (let feed = text.indexOf('\n'); feed !== -1; feed = text.indexOf('\n', start)) {
    lines.push(text.slice(start, feed + 1))
    start = feed + 1
  }
  if (start < text.length) lines.push(text.slice(start))
  return lines
}

export interface LineParts {
  readonly text: string
  /** Undefined for the last line of a text that does not end with one. */
  readonly end: '\n' | '\r\n' | undefined
}

/** A line of `splitLines` without its end, and the end. */
export function partsOf(line: string): LineParts {
  if (!line.endsWith('\n')) return { text: line, end: undefined }
  return line.endsWith('\r\n') ? { text: line.slice(0, -2), end: '\r\n' } : { text: line.slice(0, -1), end: '\n' }
}

/** What does not show in the words of a text and may be all that differs. */
export interface TextForm {
  /** `none` for a text without a single line end. */
  readonly lineEnds: 'lf' | 'crlf' | 'mixed' | 'none'
  readonly hasBom: boolean
  /** True for an empty text too: no line lacks its end. */
  readonly endsWithNewline: boolean
}

export function formOf(text: string): TextForm {
  let feeds = 0
  let returns = 0
  for (let feed = text.indexOf('\n'); feed !== -1; feed = text.indexOf('\n', feed + 1)) {
    feeds += 1
    if (text[feed - 1] === '\r') returns += 1
  }
  return {
    lineEnds: feeds === 0 ? 'none' : returns === 0 ? 'lf' : returns === feeds ? 'crlf' : 'mixed',
    hasBom: text.startsWith(BOM),
    endsWithNewline: text === '' || text.endsWith('\n'),
  }
}
