import { expect, test } from 'vitest'
import { createSessionView } from '../../client/dsh/session-view.ts'
import { fakePage } from './fake-page.ts'

const generations = ['old', 'new'] as const
const marker = { seq: 40, startSeq: 20, turn: 2 }

/** A session with two prompts, a command of ours and a marker, in the spelling of one generation. */
function session(generation: 'old' | 'new') {
  const page = fakePage({ generation })
  page.chat.set({
    order: ['user', 'edge', 'command', '15:turnback-marker40', 'gone'],
    nodes: new Map<string, object>([
      ['user', { key: 'user', kind: 'user', anchorSeq: 22, location: { kind: 'step', turn: { turn: 2 } } }],
      ['edge', { key: 'edge', kind: 'user', anchorSeq: 23.5, location: { kind: 'session' } }],
      [
        'command',
        {
          key: 'command',
          kind: 'command',
          anchorSeq: 39,
          data: { name: 'rollback', outcome: { kind: 'success', sourceEventSeq: 40 } },
        },
      ],
      [
        '15:turnback-marker40',
        { key: '15:turnback-marker40', kind: 'turnback-marker', anchorSeq: 40, data: { ...marker, op: 'drawn000' } },
      ],
    ]),
    legacy: {
      nodes: [
        { kind: 'user', seq: 12, content: [{ type: 'text', text: 'before' }] },
        {
          kind: 'user',
          seq: 22,
          content: [
            { type: 'image', attachment: { attachmentId: 'picture' } },
            { type: 'text', text: 'do' },
            { type: 'text', text: 'it' },
          ],
        },
        { kind: 'assistant', seq: 24, messageId: 'm2', turn: 2 },
      ],
    },
  })
  return { page, view: createSessionView(page.ctx, 's1')! }
}

test.each(generations)('reads rows with turn, anchor and our commands (%s host)', generation => {
  const { view } = session(generation)

  expect(view.rows(new Set(['rollback']))).toEqual([
    { key: 'user', kind: 'user', anchorSeq: 22, turn: 2 },
    { key: 'edge', kind: 'user', anchorSeq: 23.5 },
    { key: 'command', kind: 'command', anchorSeq: 39, command: { answered: true, sourceEventSeq: 40 } },
    { key: '15:turnback-marker40', kind: 'turnback-marker', anchorSeq: 40 },
  ])
  expect(view.rows(new Set(['other']))[2]).toEqual({ key: 'command', kind: 'command', anchorSeq: 39 })
})

test.each(generations)('knows the turn of a message and the prompt a marker withdrew (%s host)', generation => {
  const { view } = session(generation)

  expect(view.turnOfMessage('m2')).toBe(2)
  expect(view.turnOfMessage('unknown')).toBeUndefined()
  expect(view.promptAt(marker)).toEqual({ text: 'do\nit', images: ['picture'] })
  expect(view.promptAt({ ...marker, startSeq: 30 })).toBeUndefined()
})

test('what the host pushes wins over the drawn row, and either alone is enough', () => {
  const { page, view } = session('old')
  expect(view.markers()).toEqual([{ ...marker, op: 'drawn000' }])

  page.projection.set({
    markers: [
      { ...marker, op: 'pushed00' },
      { seq: 10, startSeq: 2, turn: 1, op: 'older000' },
    ],
  })

  expect(view.markers().map(({ op }) => op)).toEqual(['older000', 'pushed00'])
})

test.each([undefined, null, 'text', { markers: [{ seq: 'x' }] }])('an unreadable projection is none: %j', value => {
  const { page, view } = session('old')

  page.projection.set(value)

  expect(view.markers()).toHaveLength(1)
})

test('tells of running, of subagent views and of removed sessions', () => {
  const { page, view } = session('old')
  expect([view.isRunning(), view.isOffered()]).toEqual([false, true])

  page.session.set({ running: true, subagent: { address: {} } })
  expect([view.isRunning(), view.isOffered()]).toEqual([true, false])
  page.session.set({ removed: true })

  expect(view.isOffered()).toBe(false)
})

test.each(generations)('listens to every source once and lets go of all (%s host)', generation => {
  const { page, view } = session(generation)
  let told = 0

  const stop = view.subscribe(() => {
    told++
  })
  page.chat.set({ ...page.chat.getSnapshot() })
  page.projection.set({ markers: [] })
  stop()
  page.session.set({})

  expect(told).toBe(2)
  expect(page.chat.count() + page.session.count() + page.projection.count()).toBe(0)
})

test('a session that is not open has no view', () => {
  expect(createSessionView(fakePage().ctx, 'elsewhere')).toBeUndefined()
})
