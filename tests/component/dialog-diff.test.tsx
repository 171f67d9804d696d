import { cleanup, fireEvent, render, screen, within } from '@testing-library/preact'
import { signal } from '@preact/signals'
import { act } from 'preact/test-utils'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { RollbackPanel } from '../../client/islands/RollbackPanel.tsx'
import type { RollbackStore } from '../../client/state/rollback-store.ts'
import type { Preview } from '../../src/protocol/requests.ts'
import { ok } from '../../src/result.ts'
import { aPreview, aRow, aStore, aText, en, goingWell, scriptedRemote, settle } from './support.ts'

afterEach(() => {
  cleanup()
  document.body.replaceChildren()
})

// What was left to the next frame must not come when the document is gone.
afterAll(() => new Promise(resolve => setTimeout(resolve, 120)))

/** The dialog of turn 2 with these files; every diff takes `b` to `a`. */
async function open(preview: Partial<Preview>) {
  const { remote, asked } = scriptedRemote({
    ...goingWell(aPreview(preview)),
    diff: [ok(aText('b\n', 'a\n'))],
    counts: [ok({ counts: [{ path: '/w/a.txt', added: 1, removed: 1 }] })],
  })
  const store = aStore({ remote })
  render(<RollbackPanel active={signal<RollbackStore | undefined>(store)} t={en} />)
  await act(async () => {
    store.open(2)
    await settle()
  })
  const askedFor = (endpoint: string) => asked.filter(one => one.endpoint === endpoint).map(({ request }) => request)
  return { store, askedFor }
}
const opener = (path: string) => screen.getByRole('button', { name: `Changes in ${path}` })

test('a row opens its diff below it, and closes it again', async () => {
  const { askedFor } = await open({ rows: [aRow('a.txt', 'write'), aRow('b.txt', 'write')] })
  expect(askedFor('diff')).toEqual([])
  expect(opener('a.txt').getAttribute('aria-expanded')).toBe('false')

  fireEvent.click(opener('a.txt'))
  const lines = await screen.findByRole('region', { name: 'Changes in a.txt' })

  expect(opener('a.txt').getAttribute('aria-expanded')).toBe('true')
  expect(document.getElementById(opener('a.txt').getAttribute('aria-controls')!)!.contains(lines)).toBe(true)
  expect(lines.closest('li')).toBe(opener('a.txt').closest('li'))
  expect(askedFor('diff')).toEqual([{ sessionId: 'session-1', turn: 2, path: '/w/a.txt' }])
  fireEvent.click(opener('a.txt'))
  expect(screen.queryByRole('region', { name: 'Changes in a.txt' })).toBeNull()
})

test('line counts stand in the rows', async () => {
  const { askedFor } = await open({ rows: [aRow('a.txt', 'write'), aRow('b.txt', 'write')] })

  await vi.waitFor(() => expect(opener('a.txt').closest('li')!.textContent).toContain('+1 −1'))

  expect(askedFor('counts')).toEqual([{ sessionId: 'session-1', turn: 2, paths: ['/w/a.txt', '/w/b.txt'] }])
})

test('a file of which one side is unknown has nothing to open', async () => {
  await open({ rows: [aRow('big.bin', 'skip', { skip: 'too-large', goal: { kind: 'unknown', reason: 'too-large' } })] })

  expect(screen.queryByRole('button', { name: /^Changes in/ })).toBeNull()
})

test('in a list that draws only some of its rows, an opened row makes the list longer by a known height', async () => {
  await open({ rows: Array.from({ length: 300 }, (_, at) => aRow(`f${String(at).padStart(3, '0')}.txt`, 'write')) })
  fireEvent.click(screen.getByRole('button', { name: /^Put back to how they were/ }))
  const list = screen.getByRole('list', { name: 'Put back to how they were' })
  const height = () => within(list).getAllByRole('listitem', { hidden: true })
    .filter(item => item.getAttribute('aria-hidden') === 'true').reduce((sum, item) => sum + Number.parseFloat(item.style.height), 0)
  const drawn = within(list).getAllByRole('listitem').length
  const before = height()

  fireEvent.click(opener('f001.txt'))

  const lines = await screen.findByRole('region', { name: 'Changes in f001.txt' })
  expect(lines.closest<HTMLElement>('[id]')!.style.height).toBe('360px')
  expect(height()).toBe(before)
  expect(within(list).getAllByRole('listitem').length).toBe(drawn)
})
