import { signal } from '@preact/signals'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/preact'
import { act } from 'preact/test-utils'
import { afterEach, expect, test, vi } from 'vitest'
import { CheckpointsView } from '../../client/islands/CheckpointsView.tsx'
import { createCheckpointsStore } from '../../client/state/checkpoints-store.ts'
import { actionOf, renames } from '../../client/state/compared.ts'
import { railItems } from '../../client/state/rail.ts'
import { translator } from '../../locales/translate.ts'
import { absent, type FileState } from '../../src/checkpoint/file-state.ts'
import { diffTexts } from '../../src/diff/line-diff.ts'
import { digest, opId } from '../../src/ids.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'
import { failure } from '../../src/protocol/failure.ts'
import type { TurnRow } from '../../src/protocol/requests.ts'
import { fail, ok } from '../../src/result.ts'
import { anOp, aStore, fakeComposer, fakeView, later, scriptedRemote, settle } from './support.ts'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const aTurn = (turn: number, more: Partial<TurnRow> = {}): TurnRow => ({
  turn, startSeq: turn * 10, title: `task ${turn}`, images: 0, atMs: turn, state: 'available', files: 1, commands: 0, gaps: [], ...more,
})
const file = (letter: string, mode = 0o644): FileState => ({ kind: 'file', digest: digest(letter.repeat(64)), bytes: 2, mode })
const aRow = (shown: string, more: Partial<ComparedRow> = {}): ComparedRow =>
  ({ path: `/w/${shown}`, shown, before: file('a'), after: file('b'), origins: ['tool'], ...more })
const timeline = (turns: readonly TurnRow[], ops = [] as ReturnType<typeof anOp>[]) => ok({ turns, ops })
const rows = (...shown: string[]) => ok({ rows: shown.map(one => aRow(one)), more: 0 })
const diff = ok({ current: file('a'), goal: file('b'), content: { kind: 'text', before: '1\n', after: '2\n' } })

type Script = Parameters<typeof scriptedRemote>[0]
async function show(script: Script, view = fakeView(), composer?: ReturnType<typeof fakeComposer>['composer']) {
  const { remote, asked, lines } = scriptedRemote({ checkpoint: [rows()], diff: [diff], counts: [ok({ counts: [] })], ...script })
  const store = aStore({ remote, view: view.view, composer: () => composer })
  const checkpoints = createCheckpointsStore({ store, remote, compare: async (before, after) => diffTexts(before, after) })
  const open = vi.fn<(store: unknown, turn: number, opener: HTMLElement, only?: string) => void>()
  const drawn = render(<CheckpointsView checkpoints={checkpoints} t={signal(translator('en'))} open={open} />)
  await act(settle)
  return { store, checkpoints, asked, lines, open, view, drawn, of: (endpoint: string) => asked.filter(one => one.endpoint === endpoint).map(({ request }) => request) }
}
const rail = () => screen.getByRole('listbox', { name: 'Turns, newest first' })
const chosen = (box: HTMLElement) => within(box).getAllByRole('option').filter(option => option.ariaSelected === 'true' || option.getAttribute('aria-selected') === 'true').map(({ textContent }) => textContent)
const press = (key: string, box = rail()) => act(async () => {
  fireEvent.keyDown(box, { key })
  await settle()
})

test('turns stand newest first with what each changed, and the newest one’s files beside them', async () => {
  const { of } = await show({
    timeline: [timeline([aTurn(1, { files: 0 }), aTurn(2, { changed: { tool: 1, shell: 2 }, gaps: [{ reason: 'command', count: 1, names: ['bash'] }] })])],
    checkpoint: [rows('x.txt', 'y.txt')],
  })

  const texts = within(rail()).getAllByRole('option').map(({ textContent }) => textContent)
  expect(texts[0]).toContain('task 2')
  expect(texts[0]).toContain('3 files · 2 by commands')
  expect(texts[1]).toContain('no files')
  expect(within(within(rail()).getAllByRole('option')[0]!).getByRole('img', { name: 'Not wholly covered' })).toBeTruthy()
  expect(of('checkpoint')).toEqual([{ sessionId: 'session-1', turn: 2 }])
  expect(within(screen.getByRole('listbox', { name: 'Changed files' })).getAllByRole('option')).toHaveLength(2)
  expect(screen.getByRole('heading', { name: 'x.txt' })).toBeTruthy()
})

test('a rolled-back turn says so, and the rollback and its undo stand where they happened', async () => {
  await show({
    timeline: [timeline(
      [aTurn(1), aTurn(2, { state: 'rolled-back', files: 0, changed: { tool: 4, shell: 0 } }), aTurn(3, { atMs: 50 })],
      [anOp({ markerSeq: 25, atMs: 30, undone: true }), { ...anOp({ op: opId('op000001'), act: 'undo', of: opId('op000000'), atMs: 40, scope: 'files' }), target: undefined, markerSeq: undefined } as never],
    )],
  })

  const texts = within(rail()).getAllByRole('option').map(({ textContent }) => textContent!)
  expect(texts.map(text => /task \d|Rolled back to before turn 2|A rollback was undone/.exec(text)?.[0])).toEqual(
    ['task 3', 'A rollback was undone', 'Rolled back to before turn 2', 'task 2', 'task 1'])
  expect(texts[2]).toContain('undone since')
  expect(texts[3]).toContain('already rolled back · 4 files')
})

test('files alone that went back are not called a rollback of the conversation', async () => {
  await show({ timeline: [timeline([aTurn(1)], [anOp({ scope: 'files', target: { startSeq: 10, number: 1, withdrawn: [] } })])] })

  expect(within(rail()).getAllByRole('option')[0]!.textContent).toContain('Files put back to before turn 1')
})

test('arrows, Home and End move through the turns, and Enter goes on to what was selected', async () => {
  const { of } = await show({ timeline: [timeline([aTurn(1), aTurn(2), aTurn(3)])] })

  await press('ArrowDown')
  expect(chosen(rail())[0]).toContain('task 2')
  expect(rail().getAttribute('aria-activedescendant')).toBe(within(rail()).getAllByRole('option')[1]!.id)
  await press('End')
  expect(chosen(rail())[0]).toContain('task 1')
  await press('ArrowDown')
  expect(chosen(rail())[0]).toContain('task 1')
  await press('Home')
  await press('Enter')
  expect(document.activeElement?.textContent).toBe('Turn 3')
  expect(of('checkpoint').map(({ turn }) => turn)).toEqual([3, 2, 1, 3])
})

test('the chosen turn stays chosen when another one ends, and its files are not asked for again', async () => {
  const { view, of } = await show({ timeline: [timeline([aTurn(1), aTurn(2)]), timeline([aTurn(1), aTurn(2)]), timeline([aTurn(1), aTurn(2), aTurn(3)])] })
  await press('ArrowDown')

  await act(async () => {
    view.publish({ running: true })
    await settle()
    view.publish({ running: false })
    await settle()
  })

  expect(within(rail()).getAllByRole('option')).toHaveLength(3)
  expect(chosen(rail())[0]).toContain('task 1')
  expect(of('checkpoint').map(({ turn }) => turn)).toEqual([2, 1])
})

test('a turn that has changed more since is read again, and what is shown stays until then', async () => {
  const more = later<ReturnType<typeof rows>>()
  const { view } = await show({ timeline: [timeline([aTurn(1)]), timeline([aTurn(1, { files: 2 })])], checkpoint: [rows('x.txt'), more.promise] })

  await act(async () => {
    view.publish({ running: true })
    await settle()
  })
  expect(screen.getByRole('heading', { name: 'x.txt' })).toBeTruthy()
  await act(async () => {
    more.resolve(rows('w.txt', 'x.txt'))
    await settle()
  })

  expect(within(screen.getByRole('listbox', { name: 'Changed files' })).getAllByRole('option')).toHaveLength(2)
})

test('a late answer about a turn that is no longer chosen is dropped', async () => {
  const slow = later<ReturnType<typeof rows>>()
  await show({ timeline: [timeline([aTurn(1), aTurn(2)])], checkpoint: [slow.promise, rows('one.txt')] })

  await press('ArrowDown')
  await act(async () => {
    slow.resolve(rows('two.txt'))
    await settle()
  })

  expect(screen.getByRole('heading', { name: 'one.txt' })).toBeTruthy()
  expect(screen.queryByText('two.txt')).toBeNull()
})

test('another point to compare with is asked for, and another turn begins alone again', async () => {
  const { of } = await show({ timeline: [timeline([aTurn(1), aTurn(2), aTurn(3)])] })
  await press('End')
  const select = () => screen.getByRole<HTMLSelectElement>('combobox', { name: 'Compare' })
  expect([...select().options].map(({ text }) => text)).toEqual(['This turn alone', 'From here to now', 'From here to after turn 3', 'From here to after turn 2'])

  await act(async () => {
    fireEvent.change(select(), { target: { value: '2' } })
    await settle()
  })
  await act(async () => {
    fireEvent.change(select(), { target: { value: 'now' } })
    await settle()
  })
  await press('Home')

  expect(of('checkpoint').slice(1)).toEqual([
    { sessionId: 'session-1', turn: 1 }, { sessionId: 'session-1', turn: 1, until: 2 }, { sessionId: 'session-1', turn: 1, until: 'now' }, { sessionId: 'session-1', turn: 3 },
  ])
})

test('lines are asked for with both points, and told as what happened', async () => {
  const { of } = await show({ timeline: [timeline([aTurn(1)])], checkpoint: [rows('x.txt')], diff: [ok({ current: absent, goal: file('b'), content: { kind: 'text', before: '', after: '2\n' } })] })

  expect(of('diff')).toEqual([{ sessionId: 'session-1', turn: 1, until: 1, path: '/w/x.txt' }])
  expect(await screen.findByText('Before: nothing is there; after: it is a file.')).toBeTruthy()
})

test('what was deleted and came back elsewhere with the same bytes is named a rename', () => {
  const moved = [aRow('from.txt', { after: absent }), aRow('to.txt', { before: absent, after: file('a') }), aRow('copy.txt', { before: absent, after: file('a') })]

  expect([...renames(moved)].map(([path, { shown }]) => `${path} ${shown}`)).toEqual(['/w/to.txt from.txt'])
  expect(moved.map(actionOf)).toEqual(['deleted', 'added', 'added'])
  expect(actionOf(aRow('m', { after: file('a', 0o755) }))).toBe('mode')
  expect(actionOf(aRow('s', { after: file('a') }))).toBe('same')
  expect(actionOf(aRow('u', { after: { kind: 'unknown', reason: 'cut-off' } }))).toBe('unknown')
})

test('the dialog opens for the chosen turn, and not for one that cannot be gone back to', async () => {
  const { open, store } = await show({ timeline: [timeline([aTurn(1), aTurn(2, { state: 'compacted' })])] })
  const button = () => screen.getByRole('button', { name: 'Roll back to before this turn' })

  expect(button().getAttribute('aria-disabled')).toBe('true')
  fireEvent.click(button())
  expect(open).not.toHaveBeenCalled()
  await press('ArrowDown')
  fireEvent.click(button())
  expect(open).toHaveBeenCalledWith(store, 1, button())
})

const until = (ms: number) => act(() => new Promise(done => setTimeout(done, ms)))

test('turns are found by words of their files, asked for once the words have come', async () => {
  const { of } = await show({
    timeline: [timeline([aTurn(1), aTurn(2), aTurn(3)], [anOp({ markerSeq: 25 })])], history: [ok({ turns: [10] })],
  })
  const box = screen.getByRole('searchbox', { name: 'Filter by file' })

  fireEvent.input(box, { target: { value: 'a' } })
  fireEvent.input(box, { target: { value: 'a.t' } })
  await until(200)

  expect(of('history')).toEqual([{ sessionId: 'session-1', words: 'a.t' }])
  // The rollback put a.txt back.
  expect(within(rail()).getAllByRole('option').map(({ textContent }) => /task \d|Rolled back/.exec(textContent!)?.[0])).toEqual(['Rolled back', 'task 1'])
  expect(screen.getByText('2 entries')).toBeTruthy()
  fireEvent.input(box, { target: { value: '' } })
  await until(10)
  expect(within(rail()).getAllByRole('option')).toHaveLength(4)
})

test('the history of a file lists the turns that changed it, with that file shown in each', async () => {
  const { of } = await show({
    timeline: [timeline([aTurn(1), aTurn(2), aTurn(3)])], checkpoint: [rows('a.txt', 'b.txt')], history: [ok({ turns: [10, 30] })],
  })
  fireEvent.click(within(screen.getByRole('listbox', { name: 'Changed files' })).getAllByRole('option')[1]!)
  await until(10)

  await click('History of this file')
  await until(200)
  await press('End')

  expect(of('history')).toEqual([{ sessionId: 'session-1', words: '', path: '/w/b.txt' }])
  expect(within(rail()).getAllByRole('option')).toHaveLength(2)
  expect(chosen(rail())[0]).toContain('task 1')
  expect(screen.getByRole('heading', { name: 'b.txt' })).toBeTruthy()
  await click('Only b.txt')
  expect(within(rail()).getAllByRole('option')).toHaveLength(3)
})

test('turns are listed by how they changed files, or only those not wholly covered; the chosen one stays', async () => {
  await show({
    timeline: [timeline([
      aTurn(1, { changed: { tool: 1, shell: 0 } }), aTurn(2, { changed: { tool: 0, shell: 3 } }), aTurn(3, { gaps: [{ reason: 'command', count: 1, names: [] }] }),
    ], [anOp({ markerSeq: 25 })])],
  })
  const listed = async (kind: string) => {
    await act(() => void fireEvent.change(screen.getByRole('combobox', { name: 'Kind of turns' }), { target: { value: kind } }))
    return within(rail()).queryAllByRole('option').map(({ textContent }) => /task \d|Rolled back/.exec(textContent!)?.[0])
  }

  expect(await listed('tool')).toEqual(['task 1'])
  expect(await listed('shell')).toEqual(['task 2'])
  expect(await listed('gaps')).toEqual(['task 3'])
  expect(await listed('all')).toHaveLength(4)
  expect(screen.getByRole('heading', { name: 'Turn 3' })).toBeTruthy()
})

test('when the host cannot filter it says why, and lists everything', async () => {
  await show({ timeline: [timeline([aTurn(1), aTurn(2)])], history: [fail(failure('host-missing'))] })

  fireEvent.input(screen.getByRole('searchbox', { name: 'Filter by file' }), { target: { value: 'a' } })
  await until(200)

  expect(within(rail()).getAllByRole('option')).toHaveLength(2)
  expect(within(screen.getByRole('search')).getByRole('status').textContent).toContain('host half')
})

const onClipboard = () => {
  const writeText = vi.fn<(text: string) => Promise<void>>(async () => {})
  vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } })
  return writeText
}
const click = (name: string) => act(async () => {
  fireEvent.click(screen.getByRole('button', { name }))
  await new Promise(done => setTimeout(done, 20))
})

test('one file is restored through the dialog, as it was before the turn', async () => {
  const { open, store } = await show({ timeline: [timeline([aTurn(1)])], checkpoint: [rows('x.txt')] })

  fireEvent.click(screen.getByRole('button', { name: 'Restore this file' }))

  expect(open).toHaveBeenCalledWith(store, 1, expect.anything(), '/w/x.txt')
})

test('path and patch go to the clipboard, and it is said', async () => {
  const copied = onClipboard()
  await show({ timeline: [timeline([aTurn(1)])], checkpoint: [rows('dir/x.txt')] })

  await click('Copy path')
  await click('Copy patch')

  expect(copied.mock.calls.map(([text]) => text)).toEqual(['dir/x.txt', 'diff --git a/dir/x.txt b/dir/x.txt\n--- a/dir/x.txt\n+++ b/dir/x.txt\n@@ -1,1 +1,1 @@\n-1\n+2\n'])
  expect(screen.getByText('Patch copied.')).toBeTruthy()
})

test('a patch of all files names how many it cannot hold', async () => {
  const copied = onClipboard()
  const { of } = await show({
    timeline: [timeline([aTurn(1)])], checkpoint: [rows('x.txt', 'y.bin')],
    diff: [diff, ok({ current: file('a'), goal: file('b'), content: { kind: 'binary' } })],
  })
  // The row that is open from the start has its lines already.
  await waitFor(() => expect(document.body.textContent).toContain('Line 1, added:'))

  await click('Copy patch of all')
  await screen.findByText('Patch copied, without 1 file that a patch cannot hold.')

  expect(of('diff').map(({ path }) => path)).toEqual(['/w/x.txt', '/w/y.bin'])
  expect(copied.mock.calls[0]![0]).toContain('diff --git a/x.txt b/x.txt')
})

test('where the browser forbids copying, it is said', async () => {
  onClipboard().mockRejectedValue(new Error('denied'))
  await show({ timeline: [timeline([aTurn(1)])], checkpoint: [rows('x.txt')] })

  await click('Copy path')

  expect(screen.getByText('The browser did not allow copying.')).toBeTruthy()
})

test('the newest rollback can be undone from here, an earlier one not, and a refusal is told where the chat is hidden', async () => {
  const ops = [anOp({ op: opId('op000002'), markerSeq: 25, atMs: 5 }), anOp({ op: opId('op000001'), markerSeq: 15, atMs: 3 })]
  const { composer, state } = fakeComposer()
  const { lines } = await show({ timeline: [timeline([aTurn(1), aTurn(2)], ops)], run: [{ kind: 'refused', text: 'Not now.' }] }, fakeView(), composer)
  await press('Home')

  await click('Undo (opens a copy)')
  expect(lines).toEqual(['/rollback undo'])
  expect(state.notices).toEqual(['Not now.'])
  await press('ArrowDown')
  await press('ArrowDown')
  expect(screen.getByRole('heading', { level: 2 }).textContent).toBe('Rolled back to before turn 2')
  expect(screen.queryByRole('button', { name: 'Undo (opens a copy)' })).toBeNull()
})

test('without turns it says so, and while it waits, too', async () => {
  const slow = later<ReturnType<typeof timeline>>()
  await show({ timeline: [slow.promise] })
  expect(screen.getByRole('status').textContent).toBe('Reading the session’s turns…')

  await act(async () => {
    slow.resolve(timeline([]))
    await settle()
  })
  expect(screen.getByText(/No turns yet/)).toBeTruthy()
})

test('a host half that is away is named, and another try brings the turns', async () => {
  await show({ timeline: [fail(failure('host-missing')), timeline([aTurn(1)])] })
  expect(within(screen.getByRole('alert')).getByText('The session’s turns could not be read.')).toBeTruthy()

  await act(async () => {
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
    await settle()
  })

  expect(within(rail()).getAllByRole('option')).toHaveLength(1)
})

test('what was read stays when it cannot be brought up to date', async () => {
  const { view } = await show({ timeline: [timeline([aTurn(1)]), fail(failure('host-missing'))] })

  await act(async () => {
    view.publish({ running: true })
    await settle()
  })

  expect(screen.getByText('The list could not be brought up to date.')).toBeTruthy()
  expect(within(rail()).getAllByRole('option')).toHaveLength(1)
})

test('files that cannot be read are a problem with another try', async () => {
  await show({ timeline: [timeline([aTurn(1)])], checkpoint: [fail(failure('store-unavailable', { detail: 'EIO' })), rows('x.txt')] })

  await act(async () => {
    fireEvent.click(within(screen.getByRole('alert')).getByRole('button', { name: 'Try again' }))
    await settle()
  })

  expect(screen.getByRole('heading', { name: 'x.txt' })).toBeTruthy()
})

test('a view that is gone asks nothing more', async () => {
  const { view, drawn, asked } = await show({ timeline: [timeline([aTurn(1)])] })
  drawn.unmount()
  const before = asked.filter(({ endpoint }) => endpoint !== 'timeline').length

  await act(async () => {
    view.publish({ running: true })
    await settle()
  })

  expect(asked.filter(({ endpoint }) => endpoint !== 'timeline')).toHaveLength(before)
})

test('of thousands of turns only those near the visible part are drawn', async () => {
  await show({ timeline: [timeline(Array.from({ length: 5000 }, (_, at) => aTurn(at + 1)))] })

  expect(within(rail()).getAllByRole('option').length).toBeLessThan(100)
  expect(within(rail()).getAllByRole('option')[0]!.getAttribute('aria-setsize')).toBe('5000')
})

test('an op without a marker stands by its time, one with a marker by its place', () => {
  const items = railItems([aTurn(1, { atMs: 100 }), aTurn(2, { atMs: 200 })], [
    anOp({ op: opId('opmarker0'), markerSeq: 15, atMs: 999 }), { ...anOp({ op: opId('opfiles00'), atMs: 250 }), markerSeq: undefined } as never,
  ])

  expect(items.map(({ key }) => key)).toEqual(['op:opfiles00', 'turn:20', 'op:opmarker0', 'turn:10'])
})
