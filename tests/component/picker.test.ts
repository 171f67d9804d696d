import { screen } from '@testing-library/preact'
import { act } from 'preact/test-utils'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { activate } from '../../client/activate.ts'
import { relativeTime, turnOptions } from '../../client/state/turn-options.ts'
import { translator } from '../../locales/translate.ts'
import { failure } from '../../src/protocol/failure.ts'
import type { TurnRow } from '../../src/protocol/requests.ts'
import { fail, ok } from '../../src/result.ts'
import { fakePage, react, type FakePageOptions } from './fake-page.ts'
import { aPreview, settle } from './support.ts'

const MINUTE = 60_000
const now = 1_700_000_000_000
const aTurn = (turn: number, more: Partial<TurnRow> = {}): TurnRow =>
  ({ turn, startSeq: turn * 10, title: `prompt ${turn}`, images: 0, atMs: now - (20 - turn) * MINUTE, state: 'available', files: turn, commands: 0, gaps: [], ...more })

const turns = [
  aTurn(1),
  aTurn(2, { title: '', images: 1, files: 0 }),
  aTurn(3, { state: 'compacted' }),
  aTurn(4, { gaps: [{ reason: 'command', count: 1, names: ['make'] }] }),
  aTurn(5, { state: 'rolled-back' }),
]
const answers: Record<string, unknown> = {
  hello: { protocol: 1, version: '1', command: 'rollback', problems: [] },
  timeline: { turns, ops: [] },
  preview: aPreview(),
}

let logged: string[] = []
beforeEach(() => {
  logged = []
  vi.spyOn(console, 'error').mockImplementation(line => void logged.push(String(line)))
})
afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
})

async function start(options: FakePageOptions = {}) {
  const asked: (readonly [string, unknown])[] = []
  const page = fakePage({
    rpc: async (_channel, endpoint, payload) => {
      asked.push([endpoint, payload])
      return ok(ok(answers[endpoint]))
    },
    ...options,
  })
  activate(page.ctx, react)
  await settle()
  return { ...page, asked, popup: () => page.decorations.get('rollback')! }
}
const session = { sessionId: 's1' }
const signal = new AbortController().signal

test('lists the turns newest first, with words, files and time, and says what cannot be taken', () => {
  expect(turnOptions(turns, translator('en'), now)).toEqual([
    { id: '50', label: 'Before turn 5: prompt 5', detail: 'already rolled back · 15 minutes ago' },
    { id: '40', label: 'Before the last turn (4): prompt 4', detail: '4 files · 16 minutes ago · not wholly covered' },
    { id: '30', label: 'Before turn 3: prompt 3', detail: 'folded into a summary · 17 minutes ago' },
    { id: '20', label: 'Before turn 2: a picture', detail: 'no files · 18 minutes ago' },
    { id: '10', label: 'Before turn 1: prompt 1', detail: '1 file · 19 minutes ago' },
  ])
  expect(turnOptions(turns, translator('zh'), now)[1]).toEqual({ id: '40', label: '回到最近一轮（第 4 轮）之前：prompt 4', detail: '4 个文件 · 16分钟前 · 未完全覆盖' })
})

test('a time is told in the largest unit that fits', () => {
  expect([-5_000, -90 * MINUTE, -3 * 24 * 60 * MINUTE].map(ms => relativeTime(ms, 'en'))).toEqual(['now', '1 hour ago', '3 days ago'])
})

test('the bare command opens the list, and a choice opens the dialog of that turn', async () => {
  const page = await start()
  expect(page.popup().available(session)).toBe(true)
  const [, last] = await page.popup().ui.options(session, signal)

  await act(async () => {
    page.popup().ui.onSelect(last!, session)
    await settle()
  })

  expect(page.asked.at(-1)).toEqual(['preview', { sessionId: 's1', turn: 4, scope: 'both' }])
  expect(screen.getByRole('dialog')).toBeTruthy()
  page.dispose()
  expect(page.decorations.size).toBe(0)
})

test('a turn that cannot be gone back to says why, and nothing opens', async () => {
  const page = await start()
  const options = await page.popup().ui.options(session, signal)

  expect(() => page.popup().ui.onSelect(options[0]!, session)).toThrow('Turn 5 was already rolled back.')
  expect(() => page.popup().ui.onSelect(options[2]!, session)).toThrow('folded into a summary')
  expect(page.asked.some(([endpoint]) => endpoint === 'preview')).toBe(false)
})

test('what the host refuses is the list’s own error, with the remedy', async () => {
  const page = await start({ rpc: async (_channel, endpoint) => ok(endpoint === 'timeline' ? fail(failure('store-unavailable', { detail: 'EACCES' })) : ok(answers[endpoint])) })

  await expect(page.popup().ui.options(session, signal)).rejects.toThrow(/EACCES.*Free disk space/)
})

test('in a subagent’s view, and under a name that is not ours here, the command stays as it is', async () => {
  const page = await start()
  expect(page.decorations.get('turnback')!.available(session)).toBe(false)

  page.session.set({ running: false, subagent: { parent: 's0' } })

  expect(page.popup().available(session)).toBe(false)
})

test('another plugin’s list on the name, or a host without lists, costs the list alone', async () => {
  const page = fakePage()
  const taken = { name: 'rollback', available: () => true, ui: { kind: 'popupSelect', options: async () => [], onSelect: () => {} } }
  page.decorations.set('rollback', taken)
  activate(page.ctx, react)
  expect(page.decorations.get('rollback')).toBe(taken)
  expect(logged).toContainEqual(expect.stringContaining('duplicate decoration'))

  const bare = fakePage({ without: ['commandUi'] })
  activate(bare.ctx, react)
  expect(bare.slots()).toContain('conversation.chat.assistant-actions turnback')
})
