import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wordMarks, type Mark } from '../../../../src/diff/word-marks.ts'

const cut = (text: string, marks: readonly Mark[]) => marks.map(({ start, end }) => text.slice(start, end))
const without = (text: string, marks: readonly Mark[]) => {
  let at = 0
  let rest = ''
  for (const { start, end } of marks) {
    rest += text.slice(at, start)
    at = end
  }
  return rest + text.slice(at)
}

describe('marks inside a changed line', () => {
  it.each([
    ['a word', 'const a = 1', 'const a = 2', ['1'], ['2']],
    ['a name as a whole', 'return userName', 'return userNames', ['userName'], ['userNames']],
    ['blanks', 'if (a) b', 'if (a)  b', [' '], ['  ']],
    ['one ideograph', '回退到这一轮之前', '回退到那一轮之前', ['这'], ['那']],
    ['a picture of several units', 'ok 😀 now', 'ok 😎 now', ['😀'], ['😎']],
    ['what came only', 'f(a)', 'f(a, b)', [], [', b']],
  ])('name %s', (_, before, after, removed, added) => {
    const marks = wordMarks(before, after)

    expect([cut(before, marks.removed), cut(after, marks.added).join('')]).toEqual([removed, added.join('')])
  })

  it.each([
    ['lines with little in common', 'import { a } from "x"', 'Nothing of the kind stands here'],
    ['very long lines', `${'word '.repeat(300)}a`, `${'word '.repeat(300)}b`],
    ['equal lines', 'same', 'same'],
    ['an empty line', '', 'something'],
  ])('are not made for %s', (_, before, after) => {
    expect(wordMarks(before, after)).toEqual({ removed: [], added: [] })
  })

  it('leave the same text on both sides when they are taken away', () => {
    fc.assert(fc.property(line, line, (before, after) => {
      const marks = wordMarks(before, after)

      if (marks.removed.length + marks.added.length > 0) expect(without(before, marks.removed)).toBe(without(after, marks.added))
    }))
  })
})

const line = fc.array(fc.constantFrom('a', 'word', ' ', '  ', '\t', '(', '轮', '😀', 'é'), { maxLength: 30 }).map(parts => parts.join(''))
