import { describe, expect, it } from 'vitest'
import { MAX_SHOWN, nameOf, visibleLine } from '../../../../src/diff/visible.ts'

const pieces = (line: string, marks: Parameters<typeof visibleLine>[1] = []) =>
  visibleLine(line, marks).pieces.map(({ kind, text, isMarked }) => `${kind}${isMarked ? '*' : ''} ${JSON.stringify(text)}`)

describe('a line as shown', () => {
  it.each([
    ['plain words', 'a b  c', ['plain "a b  c"']],
    ['each tab for itself', '\t\tx', ['tab "\\t"', 'tab "\\t"', 'plain "x"']],
    ['blanks at the end', 'a b  ', ['plain "a b"', 'blank "  "']],
    ['a line of blanks', '  ', ['blank "  "']],
    ['a carriage return inside', 'a\rb', ['plain "a"', 'hidden "\\r"', 'plain "b"']],
    ['a turn of direction', 'a\u202eb', ['plain "a"', 'hidden "\u202e"', 'plain "b"']],
    ['a byte order mark', '\ufeffa', ['hidden "\ufeff"', 'plain "a"']],
    ['nothing', '', []],
  ])('tells %s', (_, line, shown) => {
    expect(pieces(line)).toEqual(shown)
  })

  it('is cut at its marks', () => {
    expect(pieces('let a = 1', [{ start: 4, end: 5 }, { start: 8, end: 9 }])).toEqual(['plain "let "', 'plain* "a"', 'plain " = "', 'plain* "1"'])
  })

  it('takes a blank before a mark for no blank at the end', () => {
    expect(pieces('a b', [{ start: 2, end: 3 }])).toEqual(['plain "a "', 'plain* "b"'])
    expect(pieces('a  ', [{ start: 1, end: 2 }])).toEqual(['plain "a"', 'plain* " "', 'blank " "'])
  })

  it('ends where it is too long, and says how much is left', () => {
    const line = `${'x'.repeat(MAX_SHOWN - 1)}😀 and on  `

    const { pieces: shown, left } = visibleLine(line, [{ start: MAX_SHOWN + 1, end: MAX_SHOWN + 2 }])

    expect(shown.map(({ text }) => text).join('')).toBe('x'.repeat(MAX_SHOWN - 1))
    expect(left).toBe(line.length - MAX_SHOWN + 1)
  })
})

it('names a character by its number', () => {
  expect([nameOf('\u202e'), nameOf('\r')]).toEqual(['U+202E', 'U+000D'])
})
