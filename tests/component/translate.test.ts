import { expect, test } from 'vitest'
import { en } from '../../locales/en.ts'
import { hasText, translate, translateCount, translateFailure } from '../../locales/translate.ts'
import { zh } from '../../locales/zh.ts'
import { failure, failureCodes } from '../../src/protocol/failure.ts'

const keys = Object.keys(en) as (keyof typeof en)[]
const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(match => match[1]!).sort()

test('both languages have the same keys and no empty text', () => {
  expect(Object.keys(zh).sort()).toEqual([...keys].sort())
  expect(keys.filter(key => en[key].trim() === '' || zh[key].trim() === '')).toEqual([])
})

test('both languages fill the same placeholders', () => {
  expect(keys.filter(key => placeholders(en[key]).join() !== placeholders(zh[key]).join())).toEqual([])
})

test('Chinese texts are Chinese', () => {
  const technical = new Set(['command.list.row', 'command.names.separator', 'reason.other'])
  expect(keys.filter(key => !technical.has(key) && !/[\u4e00-\u9fff]/.test(zh[key]))).toEqual([])
})

test('every count has a form for one and for many', () => {
  const bases = keys
    .filter(key => key.endsWith('.other') && placeholders(en[key]).includes('count'))
    .map(key => key.slice(0, -'.other'.length))

  expect(bases.filter(base => !hasText(`${base}.one`))).toEqual([])
})

test('every failure has a sentence and a remedy in both languages', () => {
  for (const code of failureCodes) {
    for (const locale of ['en', 'zh'] as const) {
      const { text, remedy } = translateFailure(locale, failure(code))
      expect(text.length, code).toBeGreaterThan(0)
      expect(remedy.length, code).toBeGreaterThan(0)
    }
  }
})

test('fills placeholders with what is given and leaves the others readable', () => {
  expect(translate('en', 'failure.unknown-turn', { turn: 99, last: 3 })).toBe(
    'There is no turn 99 in this session; the last one is turn 3.',
  )
  expect(translate('en', 'failure.unknown-turn', { turn: 99 })).toContain('{last}')
})

test('a value that looks like a placeholder is not filled again', () => {
  expect(translate('en', 'failure.jobs-running', { names: '{count}', count: 7 })).toContain('{count}')
})

test('counts choose their form', () => {
  expect(translateCount('en', 'bar.turns', 1)).toBe('1 turn rolled back')
  expect(translateCount('en', 'bar.turns', 3)).toBe('3 turns rolled back')
  expect(translateCount('zh', 'bar.turns', 3)).toBe('已回退 3 轮')
})

test('names from outside are not taken for keys', () => {
  expect(hasText('toString')).toBe(false)
  expect(hasText('__proto__')).toBe(false)
})
