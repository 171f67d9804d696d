import { cleanup, fireEvent, render, screen } from '@testing-library/preact'
import { act } from 'preact/test-utils'
import { afterEach, expect, test } from 'vitest'
import { hiddenCss } from '../../client/state/hidden-style.ts'
import { MarkerBar } from '../../client/islands/MarkerBar.tsx'
import { opId, sessionId } from '../../src/ids.ts'
import type { OpSummary } from '../../src/protocol/requests.ts'
import { ok } from '../../src/result.ts'
import { anOp, aStore, en, fakeView, scriptedRemote, settle } from './support.ts'

afterEach(cleanup)

const marker = { seq: 40, startSeq: 20, turn: 2, op: 'op000000' }

async function bar(ops: readonly OpSummary[], options: Parameters<typeof fakeView>[0] = {}) {
  const remote = scriptedRemote({ timeline: [ok({ turns: [], ops })], run: [{ kind: 'done', text: 'Undone.' }] })
  const rows = [
    { key: 'first', kind: 'user', anchorSeq: 5, turn: 1 },
    { key: 'marker', kind: 'turnback-marker', anchorSeq: 40 },
  ]
  const view = fakeView({ rows, markers: [marker], ...options })
  const opened: string[] = []
  const archived: string[] = []
  const archiver = () => async (id: string) => void archived.push(id)
  const store = aStore({ remote: remote.remote, view: view.view, openSession: id => void opened.push(id), archiver })
  render(<MarkerBar store={store} t={en} marker={marker} />)
  // The bar asks for its details in an effect; the reply comes after it.
  await act(() => settle())
  await act(() => settle())
  return { ...remote, store, view, opened, archived }
}

test('says how much was rolled back and what became of the files', async () => {
  await bar([anOp()])

  expect(screen.getByRole('note').textContent).toContain('2 turns rolled back · files put back')
})

test.each([
  [
    'some files not put back',
    {
      outcomes: [
        { path: '/w/a', result: 'restored' },
        { path: '/w/b', result: 'failed' },
      ],
    },
  ],
  ['no files changed', { outcomes: [] }],
  ['no files changed', { outcomes: [{ path: '/w/a', result: 'restored', reason: 'unchanged' }] }],
  ['conversation only', { scope: 'conversation' }],
  ['file changes undone', { undone: true }],
] as [string, Partial<OpSummary>][])('tells "%s" apart', async (words, more) => {
  await bar([anOp(more)])

  expect(screen.getByRole('note').textContent).toContain(words)
})

test('counts only the turns it took away itself, and names what nobody can vouch for', async () => {
  const gaps = [
    { reason: 'command' as const, count: 3, names: ['npm test'] },
    { reason: 'no-record' as const, count: 1, names: ['old.txt'] },
  ]
  await bar([anOp({ target: { startSeq: 10, number: 1, withdrawn: [1, 4] }, gaps })])

  expect(screen.getByRole('note').textContent).toContain(
    '2 turns rolled back · files put back · 3 commands not covered · 1 call not recorded',
  )
  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Details' })))
  for (const name of ['npm test', 'old.txt']) expect(screen.getByText(name)).toBeTruthy()
})

test('once undone it neither lists what had been done nor speaks of commands', async () => {
  await bar([anOp({ undone: true, gaps: [{ reason: 'command', count: 1, names: ['npm test'] }] })])

  expect(screen.getByRole('note').textContent).toBe('2 turns rolled back · file changes undoneShow')
})

test('once undone it leads to the copy in which the conversation goes on', async () => {
  const { opened } = await bar([
    anOp({ undone: true }),
    anOp({ op: opId('op222222'), act: 'undo', of: opId('op000000'), copy: sessionId('session-copy'), atMs: 2 }),
  ])

  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Open the copy' })))

  expect(opened).toEqual(['session-copy'])
})

test('once undone the session can be archived, asked twice, and the copy is shown in its place', async () => {
  const { opened, archived } = await bar([
    anOp({ undone: true }),
    anOp({ op: opId('op222222'), act: 'undo', of: opId('op000000'), copy: sessionId('session-copy'), atMs: 2 }),
  ])

  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Archive this session' })))
  expect(archived).toEqual([])
  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Archive for good?' })))

  expect([opened, archived]).toEqual([['session-copy'], ['session-1']])
})

test('without details it still says where the conversation was cut', async () => {
  await bar([])

  expect(screen.getByRole('note').textContent).toBe('Rolled back to before turn 2Show')
  expect(screen.queryByRole('button', { name: 'Details' })).toBeNull()
})

test('the withdrawn turns can be read again, dimmed, and hidden once more', async () => {
  const rows = [{ key: 'p2', kind: 'user', anchorSeq: marker.startSeq + 1, turn: 2 }]
  const { store } = await bar([anOp()], { rows })
  expect(hiddenCss('session-1', store.hidden.value)).toMatch(/"p2"][^}]*display: none/)

  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Show' })))
  expect(screen.getByRole('button', { name: 'Hide again' }).getAttribute('aria-expanded')).toBe('true')
  expect(hiddenCss('session-1', store.hidden.value)).not.toContain('display: none')
  expect(hiddenCss('session-1', store.hidden.value)).toMatch(/"p2"][^}]*opacity: 0.5/)

  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Hide again' })))
  expect(hiddenCss('session-1', store.hidden.value)).toContain('display: none')
})

test('undo runs the undo command once', async () => {
  const { lines } = await bar([anOp()])

  await act(async () => {
    fireEvent.click(screen.getByRole('button', { name: 'Undo (opens a copy)' }))
    fireEvent.click(screen.getByRole('button', { name: /Undo/ }))
    await settle()
  })

  expect(lines).toEqual(['/rollback undo'])
})

test('details name each file and why it was not put back', async () => {
  await bar([
    anOp({
      outcomes: [
        { path: '/w/src/a.txt', result: 'restored', action: 'write' },
        { path: '/w/b.txt', result: 'kept', reason: 'changed-since' },
        { path: '/out/c', result: 'failed', reason: 'EBUSY' },
      ],
    }),
  ])
  const toggle = screen.getByRole('button', { name: 'Details' })
  expect(screen.queryByRole('listitem')).toBeNull()

  await act(() => void fireEvent.click(toggle))

  expect(toggle.getAttribute('aria-expanded')).toBe('true')
  expect(screen.getAllByRole('listitem').map(row => row.textContent)).toEqual([
    '/out/cAnother program holds it (EBUSY).failed',
    'b.txtChanged since the agent last wrote it.kept',
    'src/a.txtput back',
  ])
})

test('only the rollback that undo would take offers it', async () => {
  await bar([anOp(), anOp({ op: 'op111111' as OpSummary['op'], markerSeq: 60, atMs: 2 })])

  expect(screen.queryByRole('button', { name: 'Undo (opens a copy)' })).toBeNull()
})

test('when nothing else is left it draws a fresh start', async () => {
  const { view } = await bar([anOp()], {
    rows: [
      { key: 'p2', kind: 'user', anchorSeq: 22, turn: 2 },
      { key: 'marker', kind: 'turnback-marker', anchorSeq: 40 },
    ],
  })
  expect(screen.getByText('A fresh start')).toBeTruthy()

  await act(() =>
    view.publish({
      rows: [
        { key: 'marker', kind: 'turnback-marker', anchorSeq: 40 },
        { key: 'p4', kind: 'user', anchorSeq: 52, turn: 4 },
      ],
    }),
  )

  expect(screen.queryByText('A fresh start')).toBeNull()
})

test('the hiding rules match rows by key, split rows and grouped rows, in this session’s chat only', () => {
  document.body.innerHTML = ['s1', 's2']
    .map(
      session => `
    <div data-chat-flow id="${session}"><i data-turnback-session="${session}"></i>
      <p data-chat-flow-key="9:turn-tail2"></p><p data-chat-flow-key='["9:turn-tail2","x"]' data-chat-node-key="9:turn-tail2"></p>
      <p data-chat-group-key="g" data-chat-turn="2"></p><p data-chat-turn="2"></p><p data-chat-flow-key="9:turn-tail1"></p>
    </div>`,
    )
    .join('')

  const selector = hiddenCss('s1', { keys: ['9:turn-tail2'], turns: [2] }).replace(/\{[^}]*\}$/, '')

  expect([...document.querySelectorAll(selector)].map(row => row.parentElement!.id)).toEqual(['s1', 's1', 's1'])
})

test('a key with quotes or backslashes stays one string', () => {
  document.body.innerHTML = '<div data-chat-flow><i data-turnback-session="s1"></i><p></p></div>'
  const key = 'a"\\b'
  document.querySelector('p')!.setAttribute('data-chat-flow-key', key)

  const selector = hiddenCss('s1', { keys: [key], turns: [] }).replace(/\{[^}]*\}$/, '')

  expect(document.querySelectorAll(selector)).toHaveLength(1)
})

test('no rules without anything to hide', () => {
  expect(hiddenCss('s1', { keys: [], turns: [] })).toBe('')
})

test('tells in its details what moved git and how that is taken back, until it is undone', async () => {
  const gitMoves = [{ turn: 2, words: 'git switch main', from: 'a'.repeat(40), to: 'b'.repeat(40), fromRef: 'side', toRef: 'main', advice: 'git switch side' }]
  await bar([anOp({ outcomes: [], gitMoves })])

  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Details' })))

  expect(screen.getByText('git switch side')).toBeTruthy()
  cleanup()
  await bar([anOp({ outcomes: [], gitMoves, undone: true })])
  expect(screen.queryByRole('button', { name: 'Details' })).toBeNull()
})

test('a skipped file stands in the list with its reason and not among the gaps as well', async () => {
  await bar([anOp({
    outcomes: [{ path: '/w/d/big.bin', result: 'skipped', reason: 'too-large' }],
    gaps: [{ reason: 'too-large', count: 2, names: ['/w/d/big.bin', '/w/d/other.bin'] }],
  })])

  expect(screen.getByRole('note').textContent).toContain('2 large files not covered')
  await act(() => void fireEvent.click(screen.getByRole('button', { name: 'Details' })))

  expect(screen.getAllByText(/big\.bin/)).toHaveLength(1)
  expect(screen.getByText('d/other.bin')).toBeTruthy()
})
