import { cleanup, fireEvent, render, screen } from '@testing-library/preact'
import { signal } from '@preact/signals'
import { act } from 'preact/test-utils'
import { afterEach, expect, test, vi } from 'vitest'
import { RowCounts, RowDiff } from '../../client/islands/RowDiff.tsx'
import { createDiffStore, type About } from '../../client/state/diff-store.ts'
import { diffTexts } from '../../src/diff/line-diff.ts'
import { digest } from '../../src/ids.ts'
import type { FileChange } from '../../src/protocol/diff.ts'
import { failure } from '../../src/protocol/failure.ts'
import { fail, ok } from '../../src/result.ts'
import { aRow, aText, en, scriptedRemote, settle, zh } from './support.ts'

afterEach(cleanup)

const row = aRow('src/a.txt', 'write')
const aFile = (bytes: number, mode = 0o644, word = 'b') => ({ kind: 'file', digest: digest(word.repeat(64)), bytes, mode }) as const

function aDiffStore(script: Parameters<typeof scriptedRemote>[0]) {
  const remote = scriptedRemote(script)
  return {
    ...remote,
    store: createDiffStore({
      sessionId: 's', remote: remote.remote, about: signal<About | undefined>({ turn: 2, token: 't' }),
      compare: async (before, after) => diffTexts(before, after, { timeoutMs: 1000, maxEdits: 50 }),
    }),
  }
}

/** The diff of `row`, with what the host answers; without an answer it stays on its way. */
async function show(answers: readonly ReturnType<typeof ok<FileChange>>[] | readonly unknown[], t = en, shownRow = row) {
  const { store } = aDiffStore({ diff: answers as never })
  const { container } = render(<RowDiff diffs={store} row={shownRow} t={t} />)
  await act(async () => {
    await settle()
    await settle()
    await settle()
    await settle()
    await settle()
  })
  return container
}
const showText = (before: string, after: string, more: Partial<FileChange> = {}, t = en) =>
  show([ok(aText(before, after, { current: aFile(before.length), goal: aFile(after.length, 0o644, 'c'), ...more }))], t)

const lines = () => [...document.querySelectorAll('[data-kind]')].map(line => {
  const [old, now, sign, text] = [...line.children].map(part => part.textContent)
  return { numbers: `${old}|${now}`, sign, text }
})

test('a line that went and the one that came say it in sign and in words, with their numbers', async () => {
  await showText('one\ntwo\nthree\n', 'one\n2\nthree\n')

  expect(screen.getByRole('region', { name: 'Changes in src/a.txt' }).tabIndex).toBe(0)
  expect(lines()).toEqual([
    { numbers: '1|1', sign: ' ', text: 'Line 1: one' },
    { numbers: '2|', sign: '−', text: 'Line 2 goes: two' },
    { numbers: '|2', sign: '+', text: 'Line 2 comes: 2' },
    { numbers: '3|3', sign: ' ', text: 'Line 3: three' },
  ])
})

test('numbers and signs are not read out, as the words say the same', async () => {
  await showText('a\n', 'b\n')

  const [old, now, sign, text] = [...document.querySelector('[data-kind]')!.children]
  expect([old, now, sign, text].map(part => part!.getAttribute('aria-hidden'))).toEqual(['true', 'true', 'true', null])
})

test('what differs inside a changed line is marked', async () => {
  await showText('const a = 1\n', 'const a = 2\n')

  expect([...document.querySelectorAll('[class*=mark]')].map(mark => mark.textContent)).toEqual(['1', '2'])
})

test('unchanged lines are folded, and a button shows and folds them', async () => {
  const before = Array.from({ length: 30 }, (_, at) => `line ${at + 1}\n`).join('')
  await showText(before, before.replace('line 15\n', 'fifteen\n'))

  const [above, below] = screen.getAllByRole('button')
  expect(above!.textContent).toBe('11 unchanged lines')
  expect(below!.textContent).toBe('12 unchanged lines')
  expect(above!.getAttribute('aria-expanded')).toBe('false')
  expect(screen.queryByText(/Line 3:/)).toBeNull()
  const controlled = document.getElementById(above!.getAttribute('aria-controls')!)!
  expect(controlled.hidden).toBe(true)

  fireEvent.click(above!)

  expect(above!.getAttribute('aria-expanded')).toBe('true')
  expect(controlled.hidden).toBe(false)
  expect(controlled.textContent).toContain('line 3')
  fireEvent.click(above!)
  expect(controlled.textContent).toBe('')
})

test('tabs and blanks at the end of changed lines have a sign that is not copied', async () => {
  await showText('a\n', '\ta  \n')

  expect([...document.querySelectorAll('[data-sign]')].map(blank => [blank.getAttribute('data-sign'), blank.textContent])).toEqual([['→', '\t'], ['··', '  ']])
})

test('other line ends are told, and stand as a sign in changed lines', async () => {
  const container = await showText('a\r\nb\r\n', 'a\nb\n')

  expect(container.textContent).toContain('Line ends: CRLF → LF')
  expect(lines().map(({ sign, text }) => `${sign}${text}`)).toEqual(['−Line 1 goes: aCR', '−Line 2 goes: bCR', '+Line 1 comes: a', '+Line 2 comes: b'])
})

test('a carriage return is no news where all lines have one', async () => {
  await showText('a\r\nb\r\n', 'a\r\nc\r\n')

  expect(lines().map(({ text }) => text)).toEqual(['Line 1: a', 'Line 2 goes: b', 'Line 2 comes: c'])
})

test('a missing end of the last line and a byte order mark are told', async () => {
  const container = await showText('\ufeffa\nb', 'a\nb\n')

  expect(container.textContent).toContain('The byte order mark (BOM) at the start goes.')
  expect(lines().map(({ text }) => text)).toContain('Line 2 goes: b no line end at the end of the file')
})

test('characters that would not show are named', async () => {
  await showText('a\n', 'if (\u202eadmin)\n')

  expect(lines().at(-1)!.text).toBe('Line 1 comes: if (U+202Eadmin)')
})

test('a very long line is cut, and the rest counted', async () => {
  await showText('', `${'x'.repeat(5000)}\n`)

  expect(lines()[0]!.text).toMatch(/^Line 1 comes: x{2000} … 3000 more characters$/)
})

test('an empty file is told from none', async () => {
  expect((await showText('', 'a\n', { current: aFile(0) })).textContent).toContain('The file is empty now.')
  cleanup()
  const container = await showText('', 'a\n', { current: { kind: 'absent' } })
  expect(container.textContent).toContain('Now nothing is there; after the rollback it is a file.')
  expect(container.textContent).not.toContain('empty')
})

test('versions that differ too much are shown as one block, with the reason', async () => {
  const rows = Array.from({ length: 60 }, (_, at) => `line ${at}\n`)

  const container = await showText(rows.join(''), rows.toReversed().join(''))

  expect(container.textContent).toContain('The two versions differ too much')
  expect(lines().map(({ sign }) => sign).join('')).toBe('−'.repeat(60) + '+'.repeat(60))
})

test.each([
  ['binary', 'Not a text'],
  ['too-large', 'Too large to show.'],
  ['gone', 'The saved content is gone'],
] as const)('content that is %s is told in words with the sizes', async (kind, words) => {
  const container = await show([ok({ current: aFile(12_300), goal: aFile(2_000_000), content: { kind } })])

  expect(container.textContent).toContain(words)
  expect(container.textContent).toContain('Size: 12.3 kB → 2.0 MB')
  expect(screen.queryByRole('region')).toBeNull()
})

test('permissions alone are told', async () => {
  const container = await show([ok({ current: aFile(5, 0o755), goal: aFile(5, 0o644), content: { kind: 'same' } })])

  expect(container.textContent).toContain('The content is the same.')
  expect(container.textContent).toContain('Permissions: 755 → 644')
})

test('links are shown by their target', async () => {
  const container = await show([ok(aText('b.txt', 'text\n', { current: { kind: 'link', target: 'b.txt' }, goal: aFile(5) }))])

  expect(container.textContent).toContain('it is a symbolic link, shown by its target')
  expect(lines().map(({ sign, text }) => `${sign}${text}`)).toEqual(['−Line 1 goes: b.txt no line end at the end of the file', '+Line 1 comes: text'])
})

test('pictures stand side by side with names, sizes and measures', async () => {
  await show([ok({ current: aFile(1000), goal: aFile(2500), content: { kind: 'image', before: { type: 'image/gif', base64: 'R0lG' }, after: { type: 'image/png', base64: 'iVBO' } } })])

  const [now, then] = screen.getAllByRole('img') as HTMLImageElement[]
  expect([now!.alt, then!.alt]).toEqual(['src/a.txt, Now', 'src/a.txt, After the rollback'])
  expect(then!.src).toBe('data:image/png;base64,iVBO')
  Object.defineProperties(now, { naturalWidth: { value: 20 }, naturalHeight: { value: 10 } })
  fireEvent.load(now!)
  expect(screen.getByText('Now · 1.0 kB · 20 × 10')).toBeTruthy()

  fireEvent.error(then!)

  expect(screen.getByText('This picture cannot be shown.')).toBeTruthy()
})

test('a picture that comes has nothing beside it', async () => {
  await show([ok({ current: { kind: 'absent' }, goal: aFile(2500), content: { kind: 'image', after: { type: 'image/png', base64: 'iVBO' } } })])

  expect(screen.getAllByRole('img').length).toBe(1)
  expect(screen.getByText('No picture')).toBeTruthy()
})

test('a failure says why, and the next try may go well', async () => {
  await show([fail(failure('host-missing')), ok(aText('a\n', 'b\n'))])
  expect(screen.getByRole('alert').textContent).toContain('The host half of Turnback does not answer.')

  await act(async () => {
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
    await settle()
    await settle()
    await settle()
    await settle()
    await settle()
  })

  expect(lines().length).toBe(2)
})

test('while both versions are on their way that is told', async () => {
  await show([new Promise(() => {})])

  expect(screen.getByRole('status').textContent).toBe('Reading both versions…')
})

test('a file that changed since the preview is told', async () => {
  const listed = aRow('src/a.txt', 'write', { current: aFile(3, 0o644, 'd') })
  const container = await show([ok(aText('a\n', 'b\n', { current: aFile(2) }))], en, listed)

  expect(container.textContent).toContain('It changed since this preview was made.')
})

test('all of it is Chinese on a Chinese page', async () => {
  const container = await showText('a\r\nb\r\n', 'a\nb\n', {}, zh)

  expect(container.textContent).toContain('换行符：CRLF → LF')
  expect(lines()[0]!.text).toBe('将消失，第 1 行： aCR')
})

test('line counts come when the host knows them, in figures and in words', async () => {
  const { store } = aDiffStore({ counts: [ok({ counts: [{ path: row.path, added: 3, removed: 4 }] })] })
  const { container } = render(<RowCounts diffs={store} row={row} t={en} />)
  expect(container.textContent).toBe('')

  await vi.waitFor(() => expect(container.textContent).toBe('+3 −43 lines come, 4 lines go'))
})
