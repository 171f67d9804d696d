import { describe, expect, it } from 'vitest'
import { hunksOf, linesOf, segmentsOf } from '../../../../src/diff/hunks.ts'
import { diffTexts, type LineDiff } from '../../../../src/diff/line-diff.ts'
import { formOf, partsOf, splitLines } from '../../../../src/diff/lines.ts'
import { patchOf } from './patch.ts'

function diff(before: string, after: string, bounds?: Parameters<typeof diffTexts>[2]): LineDiff {
  const found = diffTexts(before, after, bounds)
  if (found.kind === 'binary') throw new Error('taken for binary')
  return found
}

const reversed = (text: string) => text.split('\n').slice(0, -1).reverse().map(line => `${line}\n`).join('')
const numbered = (count: number, word = 'line') => Array.from({ length: count }, (_, at) => `${word} ${at + 1}\n`).join('')

describe('the lines of a text', () => {
  it.each([
    ['an empty text has none', '', []],
    ['the last one may lack its end', 'a\nb', ['a\n', 'b']],
    ['an empty line is a line', 'a\n\nb\n', ['a\n', '\n', 'b\n']],
    ['a carriage return alone ends no line', 'a\rb\r\nc', ['a\rb\r\n', 'c']],
  ])('%s', (_, text, lines) => {
    expect(splitLines(text)).toEqual(lines)
  })

  it('come apart into words and end', () => {
    expect([partsOf('a\r\n'), partsOf('a\n'), partsOf('a\r')]).toEqual([{ text: 'a', end: '\r\n' }, { text: 'a', end: '\n' }, { text: 'a\r', end: undefined }])
  })
})

it.each([
  ['', { lineEnds: 'none', hasBom: false, endsWithNewline: true }],
  ['a', { lineEnds: 'none', hasBom: false, endsWithNewline: false }],
  ['a\nb\n', { lineEnds: 'lf', hasBom: false, endsWithNewline: true }],
  ['\uFEFFa\r\nb', { lineEnds: 'crlf', hasBom: true, endsWithNewline: false }],
  ['a\r\nb\n', { lineEnds: 'mixed', hasBom: false, endsWithNewline: true }],
])('tells the form of %j', (text, form) => {
  expect(formOf(text)).toEqual(form)
})

describe('a diff of two texts', () => {
  it('names the lines that went and those that came, and counts them', () => {
    const found = diff('a\nb\nc\nd\n', 'a\nB\nB2\nc\n')

    expect(found).toEqual({
      kind: 'lines', oldLines: 4, newLines: 4, added: 2, removed: 2,
      changes: [{ oldStart: 1, oldCount: 1, newStart: 1, newCount: 2 }, { oldStart: 3, oldCount: 1, newStart: 4, newCount: 0 }],
    })
  })

  it.each([
    ['two equal texts', 'a\nb', 'a\nb', 0, 0],
    ['two empty texts', '', '', 0, 0],
    ['a text that came', '', 'a\nb\n', 2, 0],
    ['a text that went', 'a\nb', '', 0, 2],
    ['a line end that came at the end', 'a', 'a\n', 1, 1],
    ['other line ends', 'a\r\nb\r\n', 'a\nb\n', 2, 2],
    ['a byte order mark that went', '\uFEFFa\nb\n', 'a\nb\n', 1, 1],
  ])('counts what %s adds and removes', (_, before, after, added, removed) => {
    expect(diff(before, after)).toMatchObject({ kind: 'lines', added, removed })
  })

  it('takes a text with a zero byte near its start for binary, as git does', () => {
    expect(diffTexts('a\n', 'a\0\n')).toEqual({ kind: 'binary' })
    expect(diffTexts(`${'x'.repeat(8000)}\0`, 'a').kind).toBe('lines')
  })

  it('compares lines of a million characters', () => {
    const long = 'x'.repeat(1_000_000)

    expect(diff(`a\n${long}\nb\n`, `a\n${long}y\nb\n`)).toMatchObject({ kind: 'lines', added: 1, removed: 1 })
  })

  it('says that two texts are too different, and tells what differs as one change', () => {
    const found = diff(`top\n${numbered(50)}end\n`, `top\n${reversed(numbered(60))}end\n`, { timeoutMs: 1000, maxEdits: 20 })

    expect(found).toMatchObject({ kind: 'too-different', removed: 50, added: 60, changes: [{ oldStart: 1, oldCount: 50, newStart: 1, newCount: 60 }] })
  })

  it('stops searching when its time is over', () => {
    expect(diff(numbered(5000), reversed(numbered(5000)), { timeoutMs: -1, maxEdits: 100_000 }).kind).toBe('too-different')
  })

  it('needs no search where no line is on both sides', () => {
    expect(diff(numbered(20_000, 'old'), numbered(20_000, 'new'), { timeoutMs: -1, maxEdits: 1 })).toMatchObject({ kind: 'lines', added: 20_000, removed: 20_000 })
  })

  it('does not begin a search that must find too many lines', () => {
    const found = diff(`${numbered(30)}same\n${numbered(30, 'old')}`, `${numbered(30, 'new')}same\n${numbered(30, 'newer')}`, { timeoutMs: 60_000, maxEdits: 119 })

    expect(found).toMatchObject({ kind: 'too-different', added: 61, removed: 61 })
  })

  it('needs no search where all of one side is new', () => {
    expect(diff('a\nb\n', `a\n${numbered(20_000)}b\n`, { timeoutMs: 0, maxEdits: 1 })).toMatchObject({ kind: 'lines', added: 20_000, removed: 0 })
  })
})

describe('hunks', () => {
  it('hold the lines around a change, and those between two that stand close', () => {
    const before = numbered(30)
    const after = before.replace('line 10\n', 'ten\n').replace('line 17\n', 'seventeen\n').replace('line 29\n', '')

    const hunks = hunksOf(diff(before, after))

    expect(hunks.map(({ oldStart, oldCount, newStart, newCount }) => [oldStart, oldCount, newStart, newCount])).toEqual([[6, 14, 6, 14], [25, 5, 25, 4]])
  })

  it('tell each line with its numbers, and which line stands in its place', () => {
    const [hunk] = hunksOf(diff('a\nb\nc\nd\n', 'a\nB\nd\n'))

    expect(linesOf(hunk!)).toEqual([
      { kind: 'same', old: 1, new: 1 }, { kind: 'removed', old: 2, pair: 2 }, { kind: 'removed', old: 3 }, { kind: 'added', new: 2, pair: 2 },
      { kind: 'same', old: 4, new: 3 },
    ])
  })

  it('say of a last line that it has no end', () => {
    expect(patchOf(diff('a\nb', 'a\nc\n'), 'a\nb', 'a\nc\n')).toBe('--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n')
  })

  it('fold what is equal, above, between and below', () => {
    const before = numbered(40)
    const after = before.replace('line 10\n', 'ten\n').replace('line 30\n', 'thirty\n')

    const segments = segmentsOf(diff(before, after))

    expect(segments.map(segment => `${segment.kind} ${segment.kind === 'hunk' ? segment.lines.length : segment.count}`)).toEqual(['fold 6', 'hunk 8', 'fold 13', 'hunk 8', 'fold 7'])
  })

  it('of equal texts are none, and all is one fold', () => {
    expect(segmentsOf(diff('a\nb\n', 'a\nb\n'))).toEqual([{ kind: 'fold', oldStart: 0, newStart: 0, count: 2 }])
  })
})
