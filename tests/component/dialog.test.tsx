import { cleanup, fireEvent, render, screen, within } from '@testing-library/preact'
import { signal } from '@preact/signals'
import { act } from 'preact/test-utils'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { RollbackPanel } from '../../client/islands/RollbackPanel.tsx'
import { TurnActions } from '../../client/islands/TurnActions.tsx'
import type { RollbackStore } from '../../client/state/rollback-store.ts'
import { failure } from '../../src/protocol/failure.ts'
import type { GitMove, OpSummary, Preview, TurnRow } from '../../src/protocol/requests.ts'
import { fail, ok } from '../../src/result.ts'
import {
  aConflict,
  anOp,
  aPreview,
  aRow,
  aStore,
  en,
  fakeComposer,
  fakeView,
  goingWell,
  later,
  scriptedRemote,
  settle,
  zh,
} from './support.ts'

afterEach(() => {
  cleanup()
  document.body.replaceChildren()
})

// What was left to the next frame must not come when the document is gone.
afterAll(() => new Promise(resolve => setTimeout(resolve, 120)))

/** The dialog of turn 2, opened from a button outside of it. */
async function open(script: Parameters<typeof scriptedRemote>[0], t = en) {
  const remote = scriptedRemote(script)
  const { composer, state } = fakeComposer()
  const store = aStore({ remote: remote.remote, composer: () => composer })
  const opener = document.createElement('button')
  document.body.append(opener)
  render(<RollbackPanel active={signal<RollbackStore | undefined>(store)} t={t} />)
  await act(async () => {
    store.open(2, opener)
    await settle()
  })
  return { ...remote, store, opener, composer: state }
}

const openWell = (preview: Preview = aPreview(), op: OpSummary = anOp(), t = en) => open(goingWell(preview, op), t)
const press = (name: string | RegExp) =>
  act(async () => {
    fireEvent.click(screen.getByRole('button', { name }))
    await settle()
  })
const rowOf = (name: string) => screen.getByText(name).closest('li')!

test('says in words what leaves the conversation and what happens to each file', async () => {
  await openWell(
    aPreview({
      rows: [
        aRow('src/a.txt', 'write'),
        aRow('gone.txt', 'recreate'),
        aRow('new.txt', 'delete'),
        aRow('same.txt', 'none'),
        aRow('big.bin', 'skip', { skip: 'too-large' }),
      ],
      folders: ['lib/deep'],
    }),
  )

  const dialog = screen.getByRole('dialog', { name: 'Roll back to before turn 2' })
  expect(dialog.textContent).toContain('2 turns leave the conversation')
  expect(dialog.textContent).toContain('third prompt')
  expect(dialog.textContent).toContain('6 messages')
  expect(rowOf('a.txt').textContent).toBe('src/a.txtrestore')
  expect(rowOf('gone.txt').textContent).toContain('bring back')
  expect(rowOf('new.txt').textContent).toContain('delete')
  expect(rowOf('big.bin').textContent).toContain('Too large')
  expect(screen.queryByText('same.txt')).toBeNull()
  expect(dialog.textContent).toContain('1 recorded file is already as it was')
  expect(dialog.textContent).toContain('lib/deep')
  expect(screen.getByRole('button', { name: 'Roll back 2 turns and 3 files' })).toBeTruthy()
})

test('field 63: with no file effect it says so, and the button names none', async () => {
  await openWell(aPreview({ rows: [], turns: [{ turn: 2, title: '' }] }))

  expect(screen.getByRole('dialog').textContent).toContain('No recorded file changes')
  expect(screen.getByRole('dialog').textContent).toContain('no text')
  expect(screen.getByRole('button', { name: 'Roll back 1 turn, no files' })).toBeTruthy()
})

test('field 33: names are shown as they are', async () => {
  await openWell(aPreview({ rows: [aRow('公共函数.cpp', 'write'), aRow('日本語 ノート.txt', 'write')] }))

  expect(rowOf('公共函数.cpp')).toBeTruthy()
  expect(rowOf('日本語 ノート.txt')).toBeTruthy()
})

test('field 8, field 78: conflicts are marked, kept by default, and put back only by choice', async () => {
  const { asked } = await openWell(
    aPreview({ rows: [aConflict('a.txt'), aConflict('b.txt', { conflict: 'edited-between' })] }),
  )
  expect(rowOf('a.txt').textContent).toContain('Changed since the agent last wrote it')
  expect(rowOf('b.txt').textContent).toContain('edit of yours from between')
  expect(within(rowOf('a.txt')).getByRole<HTMLInputElement>('radio', { name: 'Keep' }).checked).toBe(true)
  expect(screen.getByRole('button', { name: 'Roll back 2 turns, no files' })).toBeTruthy()

  await act(() => void fireEvent.click(within(rowOf('b.txt')).getByRole('radio', { name: 'Put back' })))
  await press('Roll back 2 turns and 1 file')

  expect(asked.find(({ endpoint }) => endpoint === 'plan')?.request['putBack']).toEqual(['/w/b.txt'])
})

const check = (name: string) => act(() => void fireEvent.click(screen.getByRole('checkbox', { name })))
const planAsked = (asked: readonly { endpoint: string; request: Record<string, unknown> }[]) => asked.findLast(({ endpoint }) => endpoint === 'plan')?.request

test('a file that is taken out of the selection stays as it is, and the button counts it no more', async () => {
  const { asked } = await openWell(aPreview({ rows: [aRow('a.txt', 'write'), aRow('b.txt', 'write'), aRow('new.txt', 'delete')] }))

  await check('Put back b.txt')
  await check('Delete new.txt')

  expect(rowOf('b.txt').textContent).toBe('b.txtkeep')
  expect(screen.getByRole<HTMLInputElement>('checkbox', { name: /^Put back all/ }).indeterminate).toBe(true)
  expect(screen.getByText('1 of 2')).toBeTruthy()
  await press('Roll back 2 turns and 1 file')
  expect(planAsked(asked)).toMatchObject({ putBack: [], only: ['/w/a.txt'] })
})

test('the box of a group takes all of its files in or out, conflicts by choice too', async () => {
  const { asked } = await openWell(aPreview({ rows: [aConflict('x.txt'), aConflict('y.txt'), aRow('a.txt', 'write'), aRow('b.txt', 'write')] }))

  await check('Put back all: Changed in the meantime, kept unless you choose otherwise')
  await check('Put back all: Put back to how they were')

  expect(within(rowOf('x.txt')).getByRole<HTMLInputElement>('radio', { name: 'Put back' }).checked).toBe(true)
  expect(screen.getByRole<HTMLInputElement>('checkbox', { name: 'Put back a.txt' }).checked).toBe(false)
  await press('Roll back 2 turns and 2 files')
  expect(planAsked(asked)).toMatchObject({ putBack: ['/w/x.txt', '/w/y.txt'], only: ['/w/x.txt', '/w/y.txt'] })
})

test('files alone, or the conversation alone, is one switch away and says what stays', async () => {
  const files = aPreview({ scope: 'files', token: 'tf' })
  const talk = aPreview({ scope: 'conversation', token: 'tc', rows: [] })
  const { asked } = await open({ ...goingWell(files, anOp({ scope: 'files' })), preview: [ok(aPreview()), ok(talk), ok(files)] })
  const choose = (name: string) => act(async () => { fireEvent.click(screen.getByRole('radio', { name })); await settle() })

  await choose('Conversation only')
  expect(screen.getByRole('dialog').textContent).toContain('No file is touched.')
  expect(screen.getByRole('button', { name: 'Roll back 2 turns, leave the files' })).toBeTruthy()
  await choose('Files only')
  expect(screen.getByRole('dialog').textContent).toContain('The conversation stays as it is')
  expect(screen.getByRole('dialog').textContent).not.toContain('third prompt')
  await press('Put back 2 files')

  expect(asked.filter(({ endpoint }) => endpoint === 'preview').map(({ request }) => request['scope'])).toEqual(['both', 'conversation', 'files'])
  expect(planAsked(asked)).toMatchObject({ scope: 'files', token: 'tf' })
  expect(screen.getByRole('dialog').textContent).toContain('The conversation stays as it was.')
})

test('as a branch: says that this conversation stays, and what the new session has', async () => {
  const files = aPreview({ scope: 'files', token: 'tf' })
  const { asked } = await open({ ...goingWell(files, anOp({ scope: 'files' })), preview: [ok(aPreview()), ok(files)] })
  await act(async () => { fireEvent.click(screen.getByRole('radio', { name: 'As a branch' })); await settle() })

  expect(screen.getByRole('dialog').textContent).toContain('A new session opens with everything before turn 2.')
  await press('Branch before turn 2 and put back 2 files')

  expect(planAsked(asked)).toMatchObject({ scope: 'files', token: 'tf', branch: true })
})

test('work that still runs is named, and nothing happens beside it unless that is wanted', async () => {
  const { asked } = await openWell(aPreview({ running: [{ kind: 'job', label: 'npm run watch' }] }))
  const primary = () => screen.getByRole('button', { name: /^Roll back 2 turns/ })
  expect(screen.getByText('npm run watch')).toBeTruthy()
  expect(primary().getAttribute('aria-disabled')).toBe('true')

  await check('Roll back all the same, and let them run on')
  await press(/^Roll back 2 turns/)

  expect(planAsked(asked)).toMatchObject({ running: 'continue' })
})

test('messages that wait can be removed where the host offers that', async () => {
  const { asked } = await openWell(aPreview({ queued: ['next task'], canDropQueued: true }))
  await check('Remove it from the queue')
  await press(/^Roll back 2 turns/)
  expect(planAsked(asked)).toMatchObject({ queued: 'drop' })
  cleanup()

  await openWell(aPreview({ queued: ['next task'], canDropQueued: false }))
  expect(screen.queryByRole('checkbox', { name: 'Remove it from the queue' })).toBeNull()
})

test('in a read-only session files are not promised, and the way out is named', async () => {
  await openWell(aPreview({ isReadOnly: true }))

  expect(screen.getByText(/^This session may not write files/)).toBeTruthy()
  expect(screen.getByRole('button', { name: /^Roll back 2 turns/ }).getAttribute('aria-disabled')).toBe('true')
})

test('field 71: files that failed can be tried again from the result, which then says what they came to', async () => {
  const failed = anOp({ outcomes: [{ path: '/w/a.txt', result: 'failed', reason: 'EACCES' }], retryable: ['/w/a.txt'], leftOut: 1 })
  const { lines } = await open({
    ...goingWell(aPreview(), failed),
    outcome: [ok({ op: failed }), ok({ op: anOp({ outcomes: [{ path: '/w/a.txt', result: 'restored', action: 'write' }] }) })],
  })
  await press(/^Roll back 2 turns/)
  expect(screen.getByRole('dialog').textContent).toContain('1 file could not be put back.')
  expect(screen.getByRole('dialog').textContent).toContain('1 file was not selected and stays as it is.')

  await press('Try again')

  expect(lines.at(-1)).toBe('/rollback retry')
  expect(screen.getByRole('dialog').textContent).toContain('1 file is as it was before.')
  expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
})

test('another try that is refused says why and can be made once more', async () => {
  const failed = anOp({ outcomes: [{ path: '/w/a.txt', result: 'failed', reason: 'EACCES' }], retryable: ['/w/a.txt'] })
  await open({ ...goingWell(aPreview(), failed), run: [{ kind: 'done', text: 'Rolled back.' }, { kind: 'refused', text: 'A turn is running.' }] })
  await press(/^Roll back 2 turns/)

  await press('Try again')

  expect(screen.getByRole('dialog').textContent).toContain('A turn is running.')
  expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy()
})

test('a long rollback says how far it is and can be stopped until it writes', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const running = later<{ kind: 'refused'; text: string }>()
    const { asked, lines } = await open({
      ...goingWell(aPreview()),
      run: [running.promise as never],
      progress: [ok({ stage: 'saving', done: 3, total: 40 }), ok({ stage: 'writing', done: 7, total: 40 })],
      stop: [ok({ isStopping: true })],
    })
    await press(/^Roll back 2 turns/)
    const tick = () => act(async () => { vi.advanceTimersByTime(600); await settle() })
    expect(screen.queryByRole('progressbar')).toBeNull()

    await tick()
    expect(screen.getByRole('progressbar', { name: 'Saving what will be replaced: 3 of 40 files' })).toBeTruthy()
    await press('Stop')
    expect(screen.getByRole('dialog').textContent).toContain('Stopping; nothing has been changed.')
    expect(asked.filter(({ endpoint }) => endpoint === 'stop')).toHaveLength(1)

    await act(async () => { running.resolve({ kind: 'refused', text: 'The rollback was stopped before anything was changed.' }); await settle() })
    expect(screen.getByRole('alert').textContent).toContain('stopped before anything was changed')
    const questions = asked.length
    await tick()
    expect(asked).toHaveLength(questions)
    expect(lines).toHaveLength(1)
  } finally {
    vi.useRealTimers()
  }
})

test('once it writes there is nothing to stop', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const { asked } = await open({ ...goingWell(aPreview()), run: [later<never>().promise], progress: [ok({ stage: 'writing', done: 7, total: 40 })] })
    await press(/^Roll back 2 turns/)
    await act(async () => { vi.advanceTimersByTime(600); await settle() })

    expect(screen.getByRole('progressbar', { name: 'Putting files back: 7 of 40' })).toBeTruthy()
    await press('Stop')
    expect(asked.some(({ endpoint }) => endpoint === 'stop')).toBe(false)
  } finally {
    vi.useRealTimers()
  }
})

test('while another scope is on its way nothing can be confirmed, and with no file to put back neither', async () => {
  const waiting = later<ReturnType<typeof ok>>()
  const { lines } = await open({ ...goingWell(aPreview()), preview: [ok(aPreview()), waiting.promise] })
  await act(() => void fireEvent.click(screen.getByRole('radio', { name: 'Files only' })))
  const primary = () => screen.getAllByRole('button').at(-1)!
  expect(primary().getAttribute('aria-disabled')).toBe('true')
  await act(async () => { fireEvent.click(primary()); await settle() })

  await act(async () => { waiting.resolve(ok(aPreview({ scope: 'files', rows: [aConflict('x.txt')] }))); await settle() })

  expect(primary().textContent).toBe('No file to put back')
  await act(async () => { fireEvent.click(primary()); await settle() })
  expect(lines).toEqual([])
})

test('a long list can be filtered by name, and a group’s box then means the files that are shown', async () => {
  const rows = Array.from({ length: 30 }, (_, at) => aRow(at < 3 ? `src/keep${at}.ts` : `lib/f${at}.txt`, 'write'))
  const { asked } = await openWell(aPreview({ rows }))

  await act(() => void fireEvent.input(screen.getByRole('searchbox', { name: 'Filter files by name' }), { target: { value: 'KEEP' } }))
  expect(screen.getByText('3 files with this name')).toBeTruthy()
  await check('Put back all: Put back to how they were')
  await act(() => void fireEvent.input(screen.getByRole('searchbox'), { target: { value: '' } }))

  await press('Roll back 2 turns and 27 files')
  expect((planAsked(asked)!['only'] as string[]).some(path => path.includes('keep'))).toBe(false)
})

test('a conflict whose old state is "not there" is called what it is: a deletion', async () => {
  await openWell(aPreview({ rows: [aConflict('mine.txt', { putBackAction: 'delete' })] }))

  expect(within(rowOf('mine.txt')).getByRole('radio', { name: 'Delete' })).toBeTruthy()
})

test('field 79: what was not recorded and what commands did is named before the files', async () => {
  await openWell(
    aPreview({
      gaps: [
        { reason: 'no-record', count: 2, names: ['write'] },
        { reason: 'command', count: 3, names: ['npm run build', 'rm -r d'] },
      ],
      queued: ['next task'],
      untouched: ['todo', 'something-new'],
    }),
  )

  const text = screen.getByRole('dialog').textContent
  expect(text).toContain('2 calls were not recorded')
  expect(text).toContain('3 commands ran whose file changes are not covered')
  expect(text).toContain('npm run build')
  expect(text).toContain('1 waiting message stays in the queue')
  expect(text).toContain('Not rolled back: to-do list')
  expect(text.indexOf('Not covered')).toBeLessThan(text.indexOf('a.txt'))
})

test('a name of several calls stands once and counts as one; only a list cut short has more', async () => {
  const many = Array.from({ length: 20 }, (_, at) => `command ${at}`)
  await openWell(
    aPreview({
      gaps: [
        { reason: 'no-record', count: 2, names: ['a.txt'] },
        { reason: 'command', count: 23, names: many },
      ],
    }),
  )

  const text = screen.getByRole('dialog').textContent
  expect(text).toContain('2 calls were not recorded')
  expect(text).not.toContain('and 1 more')
  expect(text).toContain('and 3 more')
})

test('says what is being waited for, and the leaving button is there at once', async () => {
  await open({ preview: [later<ReturnType<typeof ok>>().promise] })

  expect(screen.getByRole('status').textContent).toBe('Looking at what would change…')
  expect(screen.getByRole('button', { name: 'Cancel' })).toBeTruthy()
  expect(screen.queryByRole('button', { name: /^Roll back/ })).toBeNull()
})

test('a refusal is a readable notice with its remedy, and can be looked at again', async () => {
  await open({ preview: [fail(failure('jobs-running', { count: 1, names: 'npm test' })), ok(aPreview())] })
  expect(screen.getByRole('alert').textContent).toBe(
    'Background work of this session is still running: npm test.Stop it or wait for it to end, then roll back.',
  )

  await press('Look again')

  expect(screen.getByRole('button', { name: 'Roll back 2 turns and 2 files' })).toBeTruthy()
})

test('a refusal that a second look cannot change offers only to close', async () => {
  await open({ preview: [fail(failure('already-rolled-back', { turn: 2 }))] })

  expect(screen.getByRole('alert').textContent).toContain('Turn 2 was already rolled back.')
  expect(screen.queryByRole('button', { name: 'Look again' })).toBeNull()
})

test('field 61: Escape, Cancel, the cross and a click outside close it and run nothing', async () => {
  const leave: ((dialog: HTMLElement) => void)[] = [
    dialog => fireEvent.keyDown(dialog, { key: 'Escape' }),
    () => fireEvent.click(screen.getByRole('button', { name: 'Cancel' })),
    () => fireEvent.click(screen.getByRole('button', { name: 'Close' })),
    dialog => {
      fireEvent.pointerDown(dialog)
      fireEvent.click(dialog)
    },
  ]
  for (const way of leave) {
    const { lines, asked } = await openWell()
    await act(() => way(screen.getByRole('dialog')))

    expect(screen.queryByRole('dialog')).toBeNull()
    expect(lines).toEqual([])
    expect(asked.map(({ endpoint }) => endpoint)).toEqual(['preview'])
    cleanup()
  }
})

test('a press inside that is let go outside does not close it', async () => {
  await openWell()
  const dialog = screen.getByRole('dialog')

  await act(() => {
    fireEvent.pointerDown(screen.getByText('second prompt'))
    fireEvent.click(dialog)
  })

  expect(screen.queryByRole('dialog')).not.toBeNull()
})

test('field 77: closing gives the focus back to the button it was opened from', async () => {
  const { opener } = await openWell()

  await act(() => void fireEvent.keyDown(screen.getByRole('dialog'), { key: 'Escape' }))

  expect(document.activeElement).toBe(opener)
})

test('the page’s own Escape handling does not see the key', async () => {
  await openWell()
  let seen = 0
  const count = () => {
    seen++
  }
  document.addEventListener('keydown', count)

  await act(() => void fireEvent.keyDown(screen.getByRole('dialog'), { key: 'Escape' }))
  document.removeEventListener('keydown', count)

  expect(seen).toBe(0)
})

test('field 64: a stale confirm shows the new list with a notice and marks the changed row', async () => {
  const { lines } = await open({
    ...goingWell(aPreview()),
    plan: [ok({ kind: 'stale', preview: aPreview({ rows: [aConflict('a.txt'), aRow('new/b.txt', 'delete')] }) })],
  })

  await press(/^Roll back 2 turns/)

  expect(screen.getByRole('alert').textContent).toContain('Nothing was done')
  expect(rowOf('a.txt').textContent).toContain('changed just now')
  expect(rowOf('b.txt').textContent).not.toContain('changed just now')
  expect(lines).toEqual([])
})

test('cannot be left or confirmed twice while it is being carried out', async () => {
  const slow = later<ReturnType<typeof ok>>()
  const { asked } = await open({ ...goingWell(aPreview()), plan: [slow.promise] })
  await press(/^Roll back 2 turns/)

  await act(() => void fireEvent.keyDown(screen.getByRole('dialog'), { key: 'Escape' }))
  await press('Rolling back…')

  expect(screen.getByRole('button', { name: 'Cancel' }).getAttribute('aria-disabled')).toBe('true')
  expect(asked.filter(({ endpoint }) => endpoint === 'plan')).toHaveLength(1)
})

test('field 76: the result names what could not be put back first and counts only what was', async () => {
  await openWell(
    aPreview(),
    anOp({
      outcomes: [
        { path: '/w/a.txt', result: 'restored', action: 'write' },
        { path: '/w/new/b.txt', result: 'failed', reason: 'EACCES' },
        { path: '/w/kept.txt', result: 'kept', reason: 'changed-since' },
        { path: '/w/same.txt', result: 'restored', reason: 'unchanged' },
      ],
    }),
  )

  await press(/^Roll back 2 turns/)

  const text = screen.getByRole('dialog', { name: 'Rolled back to before turn 2' }).textContent
  expect(text).toContain('1 file is as it was before.')
  expect(text).toContain('1 file could not be put back.')
  expect(text).not.toContain('same.txt')
  expect(screen.getAllByRole('listitem').map(row => row.textContent)).toEqual([
    expect.stringContaining('Writing it is not permitted (EACCES)'),
    expect.stringContaining('kept'),
    expect.stringContaining('put back'),
  ])
})

test('after the result: undo on demand, focus in the composer when closed', async () => {
  const { lines, composer } = await open({
    ...goingWell(aPreview()),
    run: [
      { kind: 'done', text: '' },
      { kind: 'done', text: 'Recovered: a.txt' },
    ],
  })
  await press(/^Roll back 2 turns/)

  await press('Undo (opens a copy)')
  expect(screen.getByRole('dialog').textContent).toContain('The conversation stays rolled back')
  expect(screen.getByRole('dialog').textContent).toContain('Recovered: a.txt')
  expect(screen.queryByRole('button', { name: 'Undo (opens a copy)' })).toBeNull()
  await act(() => void fireEvent.keyDown(screen.getByRole('dialog'), { key: 'Escape' }))

  expect(lines).toEqual(['/rollback --plan plan0000', '/rollback undo'])
  expect(composer.focused).toBe(1)
})

test('field 79: the result names again what was not covered, so that it is no all-clear', async () => {
  await openWell(aPreview({ gaps: [{ reason: 'command', count: 1, names: ['make'] }] }))

  await press(/^Roll back 2 turns/)

  const text = screen.getByRole('dialog', { name: 'Rolled back to before turn 2' }).textContent
  expect(text).toContain('1 command ran whose file changes are not covered')
  expect(text).toContain('make')
})

test('after an undo the result no longer says of a file that it is put back', async () => {
  await open({ ...goingWell(aPreview()), run: [{ kind: 'done', text: '' }, { kind: 'done', text: 'Recovered: a.txt' }] })
  await press(/^Roll back 2 turns/)

  await press('Undo (opens a copy)')

  const text = screen.getByRole('dialog').textContent
  expect(text).toContain('2 turns left the conversation')
  expect(text).not.toContain('put back')
  expect(screen.queryByRole('listitem')).toBeNull()
})

const aMove = (more: Partial<GitMove> = {}): GitMove => ({
  turn: 2, words: 'git switch main', from: 'a'.repeat(40), to: 'b'.repeat(40), fromRef: 'feature', toRef: 'main', ...more,
})

test('what git itself changed is a group of its own, kept by default, below what moved HEAD and how to take it back', async () => {
  const { asked } = await openWell(
    aPreview({
      gitMoves: [aMove({ advice: 'git switch feature' })],
      rows: [aConflict('src/a.ts', { conflict: 'git-moved', origin: 'shell' }), aConflict('b.txt'), aRow('c.txt', 'write')],
    }),
  )
  const { textContent } = screen.getByRole('dialog')

  expect(textContent).toContain('git switch main moved HEAD from feature (aaaaaaa) to main (bbbbbbb).')
  expect(screen.getByText('git switch feature').tagName).toBe('CODE')
  expect(textContent!.indexOf('git switch feature')).toBeLessThan(textContent!.indexOf('a.ts'))
  const list = screen.getByRole('list', { name: 'Changed by git itself, kept unless you choose otherwise' })
  expect(within(list).getAllByRole('listitem')).toHaveLength(1)
  expect(within(rowOf('a.ts')).getByRole<HTMLInputElement>('radio', { name: 'Keep' }).checked).toBe(true)
  await act(() => void fireEvent.click(within(rowOf('a.ts')).getByRole('radio', { name: 'Put back' })))
  await press('Roll back 2 turns and 2 files')
  expect(asked.find(({ endpoint }) => endpoint === 'plan')?.request['putBack']).toEqual(['/w/src/a.ts'])
  // The way back is still to be taken when the rollback is done.
  expect(screen.getByText('git switch feature')).toBeTruthy()
})

test('a move of HEAD without files is told too, and without advice where nothing is sure', async () => {
  await openWell(aPreview({ rows: [], gitMoves: [aMove({ words: 'git checkout v1', fromRef: 'main' }), aMove({ fromRef: undefined })] }))
  const { textContent } = screen.getByRole('dialog')

  expect(textContent).toContain('git checkout v1 moved HEAD from main (aaaaaaa)')
  expect(textContent).toContain('moved HEAD from aaaaaaa to main (bbbbbbb)')
  expect(textContent).toContain('never rolled back')
})

test('of many moves the first are told and the rest is counted', async () => {
  await openWell(aPreview({ gitMoves: Array.from({ length: 8 }, (_, at) => aMove({ words: `git commit -m ${at}`, ...(at === 7 && { advice: 'git reset aaa' }) })) }))
  const { textContent } = screen.getByRole('dialog')

  expect(textContent!.match(/moved HEAD/g)).toHaveLength(3)
  expect(textContent).toContain('and 5 more')
  expect(textContent).toContain('git reset aaa')
})

test('field 40: a file that another session changed says so', async () => {
  await openWell(aPreview({ rows: [aConflict('s.txt', { conflict: 'other-session' })] }))

  expect(rowOf('s.txt').textContent).toContain('Another session in this workspace changed it too')
})

test('a row that commands changed tells which, whole in its title', async () => {
  const long = `sed -i ${'x'.repeat(70)} a.txt`
  await openWell(
    aPreview({
      rows: [
        aRow('a.txt', 'write', { origin: 'shell', commands: [long, 'npm run format'] }),
        aRow('b.txt', 'write', { origin: 'shell' }),
        aRow('c.txt', 'write'),
      ],
    }),
  )

  expect(rowOf('a.txt').textContent).toContain(`changed while ${long} npm run format ran`)
  expect(screen.getByTitle(long).tagName).toBe('CODE')
  expect(rowOf('b.txt').textContent).toContain('changed while a command ran')
  expect(rowOf('c.txt').textContent).toBe('c.txtrestore')
})

test('an edit that was found outside of the session is called that, not an edit of the reader', async () => {
  await openWell(
    aPreview({
      rows: [
        aConflict('a.txt', { conflict: 'edited-between', isOutside: true }),
        aConflict('b.txt', { isOutside: true }),
        aConflict('c.txt', { conflict: 'other-session', isOutside: true }),
      ],
    }),
  )

  expect(rowOf('a.txt').textContent).toContain('made outside of this session, between two changes')
  expect(rowOf('b.txt').textContent).toContain('Edited outside of this session since')
  expect(rowOf('c.txt').textContent).toContain('Another session')
})

test('a file that cannot be put back is said once, where it stands with its reason, and before what is put back', async () => {
  await openWell(
    aPreview({
      rows: [aRow('a.txt', 'write'), aRow('big.bin', 'skip', { skip: 'too-large' })],
      gaps: [{ reason: 'too-large', count: 1, names: ['big.bin'] }],
    }),
    anOp({ outcomes: [{ path: '/w/a.txt', result: 'restored', action: 'write' }, { path: '/w/big.bin', result: 'skipped', reason: 'too-large' }] }),
  )
  const before = screen.getByRole('dialog').textContent!

  expect(screen.queryByText('Not covered')).toBeNull()
  expect(before.indexOf('big.bin')).toBeLessThan(before.indexOf('a.txt'))
  await press(/^Roll back 2 turns/)

  expect(screen.queryByText('Not covered')).toBeNull()
  expect(rowOf('big.bin').textContent).toContain('Too large')
})

test('a file that cannot be put back says why it cannot, not what else is in doubt', async () => {
  await openWell(aPreview({ rows: [aRow('big.bin', 'skip', { skip: 'too-large', conflict: 'cut-off' })] }))

  expect(rowOf('big.bin').textContent).toContain('Too large')
  expect(rowOf('big.bin').textContent).not.toContain('The host stopped')
})

test('a file whose gap is not its row’s reason is still named as not covered', async () => {
  await openWell(
    aPreview({ rows: [aConflict('grown.bin', { conflict: 'cut-off' })], gaps: [{ reason: 'too-large', count: 1, names: ['grown.bin'] }] }),
  )

  expect(screen.getByText('Not covered').closest('section')!.textContent).toContain('grown.bin')
})

test('a file with other names is named where one of them would be replaced', async () => {
  const linked = { ...aRow('a.txt', 'write').current, links: 2 } as const
  await openWell(aPreview({ rows: [aRow('a.txt', 'write', { current: linked }), aRow('gone.txt', 'delete', { current: linked })] }))

  const note = screen.getByText(/^Has other names/)
  expect(within(note).getByText('a.txt')).toBeTruthy()
  expect(within(note).queryByText('gone.txt')).toBeNull()
})

test('where commands ran, one quiet line says what is never looked at', async () => {
  await openWell(aPreview({ hasCommands: true }))

  expect(screen.getByText(/^Files that git ignores/).tagName).toBe('P')
  expect(screen.queryByText('Not covered')).toBeNull()
  cleanup()
  await openWell(aPreview())
  expect(screen.queryByText(/^Files that git ignores/)).toBeNull()
})

test('the second click of a double click on the primary button finds the leaving one, and the result can be scrolled with the keys', async () => {
  await openWell()

  await press(/^Roll back 2 turns/)

  expect(within(screen.getByRole('dialog')).getAllByRole('button').map(button => button.textContent)).toEqual(['', 'Undo (opens a copy)', 'Close'])
  expect(document.activeElement?.textContent).toBe('Close')
  expect(screen.getByRole('group', { name: 'Rolled back to before turn 2' }).tabIndex).toBe(0)
})

test('of many folders the outermost are named and the rest is counted', async () => {
  await openWell(aPreview({ folders: ['a/b/c/d', 'a/b/c', 'x/y', 'a/b', 'a', 'x', 'b', 'c'] }))

  const text = screen.getByRole('dialog').textContent
  expect(text).toContain('8 folders made in these turns go too if they are empty')
  for (const name of ['a', 'b', 'c', 'x', 'a/b', 'x/y']) expect(screen.getByTitle(name)).toBeTruthy()
  expect(screen.queryByTitle('a/b/c/d')).toBeNull()
  expect(text).toContain('and 2 more')
})

test('offers no undo when neither a file nor the conversation was changed', async () => {
  await openWell(aPreview(), anOp({ scope: 'files', outcomes: [{ path: '/w/a.txt', result: 'kept', reason: 'changed-since' }] }))

  await press(/^Roll back 2 turns/)

  expect(screen.queryByRole('button', { name: 'Undo (opens a copy)' })).toBeNull()
})

test('draws only a part of a very long list', async () => {
  await openWell(aPreview({ rows: Array.from({ length: 2000 }, (_, index) => aRow(`f${index}.txt`, 'write')) }))

  expect(document.querySelectorAll('dialog li').length).toBeLessThan(200)
  expect(screen.getByRole('button', { name: 'Roll back 2 turns and 2000 files' })).toBeTruthy()
})

test('speaks Chinese where the page does', async () => {
  await openWell(aPreview({ gaps: [{ reason: 'command', count: 1, names: ['make'] }] }), anOp(), zh)

  expect(screen.getByRole('dialog', { name: '回退到第 2 轮之前' }).textContent).toContain('运行过 1 条命令')
  expect(screen.getByRole('button', { name: '回退 2 轮和 2 个文件' })).toBeTruthy()
})

function button(view = fakeView(), script: Parameters<typeof scriptedRemote>[0] = {}) {
  const opened: number[] = []
  const { remote, asked } = scriptedRemote(script)
  const store = aStore({ remote, view: view.view })
  render(
    <TurnActions store={store} t={en} at={{ messageId: 'message-2' }} open={(_store, turn) => opened.push(turn)} />,
  )
  return { view, opened, asked }
}

test('the button names its turn and opens it', async () => {
  const { opened } = button()

  await press('Roll back to before turn 2')

  expect(opened).toEqual([2])
})

const aTurn = (more: Partial<TurnRow> = {}): TurnRow =>
  ({ turn: 2, startSeq: 20, title: 'second', images: 0, atMs: 0, state: 'available', files: 3, commands: 0, gaps: [], ...more })
const pointAt = (node: HTMLElement) => act(async () => { fireEvent.pointerEnter(node); await settle() })

test('pointed at, the button says what its turn changed; it asks once, and again when a turn has ended', async () => {
  const { view, asked } = button(fakeView(), { timeline: [ok({ turns: [aTurn()], ops: [] }), ok({ turns: [aTurn({ files: 1 })], ops: [] })] })
  const node = screen.getByRole('button', { name: 'Roll back to before turn 2' })
  expect(asked).toEqual([])

  await pointAt(node)
  await pointAt(node)
  expect(node.title).toBe('Roll back to before turn 2 · 3 files')
  expect(asked).toHaveLength(1)

  await act(() => view.publish({ running: true }))
  await act(() => view.publish({ running: false }))
  await pointAt(node)
  expect(node.title).toBe('Roll back to before turn 2 · 1 file')
})

test('a turn that cannot be reached any more says so in place of opening', async () => {
  const { opened } = button(fakeView(), { timeline: [ok({ turns: [aTurn({ state: 'compacted' })], ops: [] })] })
  const node = screen.getByRole('button')
  await pointAt(node)

  await press('Roll back to before turn 2')

  expect(node.getAttribute('aria-disabled')).toBe('true')
  expect(node.title).toContain('folded into a summary')
  expect(opened).toEqual([])
})

test('field 44: while a turn runs the button says why it does nothing, and works again after', async () => {
  const { view, opened } = button(fakeView({ running: true }))
  const node = screen.getByRole('button')
  await press('Roll back to before turn 2')
  expect(node.getAttribute('aria-disabled')).toBe('true')
  expect(node.title).toContain('still running')
  expect(opened).toEqual([])

  await act(() => view.publish({ running: false }))
  await press('Roll back to before turn 2')

  expect(opened).toEqual([2])
})

test('offers no button in a subagent’s view', () => {
  button(fakeView({ offered: false }))

  expect(screen.queryByRole('button')).toBeNull()
})
