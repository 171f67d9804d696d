import { h, render } from 'preact'
import { act } from 'preact/test-utils'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { activate } from '../../client/activate.ts'
import { sessionId } from '../../src/ids.ts'
import { ok } from '../../src/result.ts'
import { anOp, aPreview, settle } from './support.ts'
import { fakePage, react, type FakePageOptions } from './fake-page.ts'

/** What the host half would answer; the connection wraps it once more. */
const answers: Record<string, unknown> = {
  hello: { protocol: 1, version: '1', command: 'rollback', problems: [] },
  timeline: { turns: [], ops: [] },
  preview: aPreview(),
}
const rpc = async (_channel: string, endpoint: string) => ok(ok(answers[endpoint]))

let logged: string[] = []
beforeEach(() => {
  logged = []
  vi.spyOn(console, 'error').mockImplementation(line => void logged.push(String(line)))
})
afterEach(() => {
  vi.restoreAllMocks()
  document.body.replaceChildren()
  document.head.replaceChildren()
})

const start = async (options: FakePageOptions) => {
  const page = fakePage(options)
  const health = activate(page.ctx, react)
  await settle()
  return { ...page, health }
}
const draw = async (page: Awaited<ReturnType<typeof start>>, ...args: Parameters<typeof page.draw>) => {
  let place!: HTMLElement
  await act(async () => {
    place = page.draw(...args)
    await settle()
  })
  return place
}

test('on an old host: a button in the action row and a row of its own for turns without one', async () => {
  const page = await start({ rpc })

  expect(page.slots()).toContain('conversation.chat.assistant-actions turnback')
  expect(page.slots()).toContain('conversation.chat.node turnback-turn')
  expect(page.slots()).not.toContain('conversation.chat.turnTail turnback')
  expect(page.definitions.map(({ kind }) => kind).sort()).toEqual(['turnback-marker', 'turnback-turn'])
  expect(logged).toEqual([])
})

test('where the turn’s tail is a list, the button joins it and no row is added', async () => {
  const page = await start({ rpc, generation: 'new' })

  expect(page.slots()).toContain('conversation.chat.turnTail turnback')
  expect(page.definitions.map(({ kind }) => kind)).toEqual(['turnback-marker'])
})

test('in a list-form tail the button shows only where the host draws no action row', async () => {
  const page = await start({ rpc, generation: 'new' })
  const tail = (closing: unknown) => ({
    sessionId: 's1',
    turn: { turn: 2, data: new Map([['turn-tail', { closing }]]) },
  })

  const without = await draw(page, 'conversation.chat.turnTail', 'turnback', tail(null))
  const withRow = await draw(page, 'conversation.chat.turnTail', 'turnback', tail({ finalNode: { messageId: 'm' } }))

  expect(without.querySelector('button')?.getAttribute('aria-label')).toBe('Roll back to before turn 2')
  expect(withRow.querySelector('button')).toBeNull()
})

test.each([
  'slots',
  'locale',
  'sessions',
  'connection',
  'remote.commands',
  'conversation',
  'conversationEvents',
  'uiConversation',
])('field 74: without the service "%s" the page still starts', async missing => {
  for (const generation of ['old', 'new'] as const) {
    expect(() => activate(fakePage({ rpc, generation, without: [missing] }).ctx, react)).not.toThrow()
  }
  await settle()
})

test('field 74: with nothing at all the page still starts, and says once what is missing', async () => {
  const health = activate({} as never, react)
  await settle()

  expect(health.problems.length).toBeGreaterThan(0)
  expect(new Set(logged).size).toBe(logged.length)
  expect(logged.every(line => line.startsWith('[turnback] '))).toBe(true)
})

test('a slot that refuses us costs only that slot', async () => {
  const page = fakePage({ rpc })
  const slots = page.ctx.slots as { register: (options: { name: string }, component: unknown) => () => void }
  const register = slots.register
  slots.register = (options, component) => {
    if (options.name === 'conversation.chat.assistant-actions') throw new Error('malformed')
    return register(options, component)
  }

  const health = activate(page.ctx, react)
  await settle()

  expect(health.problems).toEqual([{ part: 'slot conversation.chat.assistant-actions', detail: 'malformed' }])
  expect(page.slots()).toContain('conversation.chat.node turnback-turn')
})

test('a slot nobody declares is simply not joined', async () => {
  const page = await start({ rpc, undeclared: ['conversation.chat.assistant-actions', 'conversation.chat.turnTail'] })

  expect(page.slots()).toContain('conversation.chat.node turnback-marker')
  expect(logged).toEqual([])
})

test.each(['old', 'new'] as const)(
  'the button of a closing message finds its turn and opens the dialog (%s host)',
  async generation => {
    const page = await start({ rpc, generation })
    page.chat.set({ ...page.chat.getSnapshot(), legacy: { nodes: [{ kind: 'assistant', messageId: 'm2', turn: 2 }] } })
    const place = await draw(page, 'conversation.chat.assistant-actions', 'turnback', {
      sessionId: 's1',
      messageId: 'm2',
    })
    const button = place.querySelector('button')!

    await act(async () => {
      button.click()
      await settle()
    })

    expect(button.getAttribute('aria-label')).toBe('Roll back to before turn 2')
    expect(document.querySelector('dialog')?.textContent).toContain('2 turns leave the conversation')
  },
)

test('a missing host half is said in the dialog, not thrown', async () => {
  const page = await start({})
  const place = await draw(page, 'conversation.chat.node', 'turnback-turn', {
    sessionId: 's1',
    node: { data: { turn: 3 } },
  })

  await act(async () => {
    place.querySelector('button')!.click()
    await settle()
  })

  expect(document.querySelector('dialog [role=alert]')?.textContent).toContain('does not answer')
})

test('another session on the screen closes the dialog', async () => {
  const page = await start({ rpc })
  const place = await draw(page, 'conversation.chat.node', 'turnback-turn', {
    sessionId: 's1',
    node: { data: { turn: 3 } },
  })
  await act(async () => {
    place.querySelector('button')!.click()
    await settle()
  })
  expect(document.querySelector('dialog')).not.toBeNull()

  await act(() => page.current.set({ current: 's2' }))

  expect(document.querySelector('dialog')).toBeNull()
})

test('markers from the projection hide rows in their own session’s chat only, and the style goes with the plugin', async () => {
  const page = await start({ rpc })
  page.chat.set({
    order: ['9:turn-tail2', '15:turnback-marker40'],
    nodes: new Map<string, object>([
      [
        '9:turn-tail2',
        { key: '9:turn-tail2', kind: 'turn-tail', anchorSeq: 24.1, location: { kind: 'turn', turn: { turn: 2 } } },
      ],
      [
        '15:turnback-marker40',
        {
          key: '15:turnback-marker40',
          kind: 'turnback-marker',
          anchorSeq: 40,
          data: { seq: 40, startSeq: 20, turn: 2, op: 'op000000' },
        },
      ],
    ]),
    legacy: { nodes: [] },
  })
  page.projection.set({ markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })

  const place = await draw(page, 'conversation.chat.node', 'turnback-marker', {
    sessionId: 's1',
    node: { data: { seq: 40, turn: 2 } },
  })
  const style = document.querySelector('style[data-turnback=hidden]')!

  expect(place.querySelector('[data-turnback-session="s1"]')).not.toBeNull()
  expect(style.textContent).toContain(
    '[data-chat-flow]:has([data-turnback-session="s1"]) [data-chat-flow-key="9:turn-tail2"]',
  )
  expect(style.textContent).not.toContain('marker40')
  page.dispose()
  expect(document.querySelector('style[data-turnback=hidden]')).toBeNull()
  expect(document.querySelector('[data-turnback=dialog]')).toBeNull()
  expect(page.session.count() + page.chat.count() + page.projection.count()).toBe(0)
})

test('without the host half a marker’s own row still hides what it withdrew', async () => {
  const page = await start({})
  page.chat.set({
    order: ['4:usera', '15:turnback-marker40'],
    nodes: new Map<string, object>([
      ['4:usera', { key: '4:usera', kind: 'user', anchorSeq: 22 }],
      [
        '15:turnback-marker40',
        {
          key: '15:turnback-marker40',
          kind: 'turnback-marker',
          anchorSeq: 40,
          data: { seq: 40, startSeq: 20, turn: 2, op: 'op000000' },
        },
      ],
    ]),
    legacy: { nodes: [] },
  })
  page.projection.set(undefined)

  const place = await draw(page, 'conversation.chat.node', 'turnback-marker', {
    sessionId: 's1',
    node: { data: { seq: 40, turn: 2 } },
  })

  expect(document.querySelector('style[data-turnback=hidden]')!.textContent).toContain('"4:usera"')
  expect(place.textContent).toContain('Rolled back to before turn 2')
  expect(place.textContent).toContain('A fresh start')
})

test('tells the host half the page’s language at start and when it changes', async () => {
  const told: unknown[] = []
  const page = await start({
    locale: 'zh',
    rpc: async (_channel, endpoint, payload) => {
      if (endpoint === 'hello') told.push(payload)
      return ok(ok(answers[endpoint]))
    },
  })
  await draw(page, 'conversation.chat.node', 'turnback-turn', { sessionId: 's1', node: { data: { turn: 3 } } })

  await act(async () => {
    page.locale.set({ active: 'en' })
    await settle()
  })

  expect(told).toEqual([{ locale: 'zh' }, { locale: 'zh', sessionId: 's1' }, { locale: 'en', sessionId: 's1' }])
  expect(document.querySelector('button')?.getAttribute('aria-label')).toBe('Roll back to before turn 3')
})

test('what our command answered is drawn as it was written', async () => {
  const page = await start({ rpc })

  const answered = await draw(page, 'conversation.chat.commandview', 'rollback', {
    node: { name: 'rollback', outcome: { kind: 'error', text: 'line one\nline two' } },
  })
  const waiting = await draw(page, 'conversation.chat.commandview', 'turnback', {
    node: { name: 'turnback', outcome: null },
  })

  expect(answered.querySelector('pre')?.textContent).toBe('line one\nline two')
  expect(waiting.textContent).toContain('Working…')
})

/** A page whose chat holds a withdrawn prompt and the marker at 40. */
async function rolledBack(options: FakePageOptions = {}) {
  const page = await start({ rpc, ...options })
  page.chat.set({
    order: [],
    nodes: new Map(),
    legacy: { nodes: [{ kind: 'user', seq: 22, content: [{ type: 'text', text: 'do it' }] }] },
  })
  page.projection.set({ markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })
  return page
}

test.each(['old', 'new'] as const)(
  'a line typed in this composer brings its prompt back (%s host)',
  async generation => {
    const page = await rolledBack({ generation })

    page.emit('command/executed', 's1', 'rollback', { kind: 'success', text: '', sourceEventSeq: 40 })
    await settle()

    expect(page.drafts.text).toBe('do it')
  },
)

test.each([
  ['another command', 'compact', { kind: 'success', sourceEventSeq: 40 }],
  ['an error', 'rollback', { kind: 'error', text: 'no' }],
  ['an answer without an event', 'rollback', { kind: 'success', text: 'list' }],
  ['no result at all', 'rollback', undefined],
])('%s leaves the composer alone', async (_what, name, result) => {
  const page = await rolledBack()

  page.emit('command/executed', 's1', name, result)
  await settle()

  expect(page.drafts.text).toBe('')
})

test.each([
  ['a command that made a copy opens it', { kind: 'success', text: '' }, ['s2']],
  ['a command that was refused opens nothing', { kind: 'error', text: '' }, []],
])('%s', async (_what, result, opened) => {
  const page = await start({
    rpc: async (_channel, endpoint) => ok(ok(endpoint === 'outcome' ? { op: anOp({ act: 'undo', copy: sessionId('s2') }) } : answers[endpoint])),
  })

  page.emit('command/executed', 's1', 'rollback', result)
  await settle()

  expect(page.opened).toEqual(opened)
})

test('after a lost connection the host half is greeted again', async () => {
  let greeted = 0
  const page = await start({
    rpc: async (_channel, endpoint) => {
      if (endpoint === 'hello') greeted++
      return ok(ok(answers[endpoint]))
    },
  })

  page.emit('connection/reset')
  await settle()

  expect(greeted).toBe(2)
})

test('the Checkpoints tab stands between the chat and the trajectory, in the page’s language', async () => {
  const page = await start({ rpc })
  const entry = page.entries.find(({ options }) => options.name === 'conversation.view')!.options as { order?: number; label?: () => string }

  expect(entry.order).toBe(5)
  expect(entry.label?.()).toBe('Checkpoints')
  page.locale.set({ active: 'zh' })
  expect(entry.label?.()).toBe('检查点')
})

test('a host without views goes without the tab, and that is said once a session was drawn', async () => {
  const page = await start({ rpc, undeclared: ['conversation.view'] })
  vi.useFakeTimers()
  try {
    expect(page.slots().filter(name => name.startsWith('conversation.view'))).toEqual([])
    vi.advanceTimersByTime(60_000)
    expect(logged).toEqual([])

    for (const sessionId of ['s1', 's2']) page.draw('conversation.chat.assistant-actions', 'turnback', { sessionId, messageId: 'm' })
    vi.advanceTimersByTime(60_000)

    expect(logged.filter(line => line.includes('conversation.view'))).toHaveLength(1)
  } finally {
    vi.useRealTimers()
  }
})

test('each session’s view shows its own turns, also when the other’s answer comes later', async () => {
  const waiting: Record<string, () => void> = {}
  const answer = async (_channel: string, endpoint: string, payload: unknown) => {
    const { sessionId } = payload as { sessionId: string }
    if (endpoint !== 'timeline') return ok(ok(endpoint === 'checkpoint' ? { rows: [], more: 0 } : answers[endpoint]))
    await new Promise<void>((resolve) => { waiting[sessionId] = resolve })
    const turn = { turn: 1, startSeq: 1, title: `of ${sessionId}`, images: 0, atMs: 1, state: 'available', files: 0, commands: 0, gaps: [] }
    return ok(ok({ turns: [turn], ops: [] }))
  }
  const page = await start({ rpc: answer })
  const first = await draw(page, 'conversation.view', 'turnback', { sessionId: 's1' })
  const second = await draw(page, 'conversation.view', 'turnback', { sessionId: 's2' })

  await act(async () => {
    waiting.s2!()
    await settle()
    waiting.s1!()
    await settle()
  })

  expect(first.textContent).toContain('of s1')
  expect(second.textContent).toContain('of s2')
})

test('a view that is given another session shows that one', async () => {
  const answer = async (_channel: string, endpoint: string, payload: unknown) => {
    if (endpoint !== 'timeline') return ok(ok(endpoint === 'checkpoint' ? { rows: [], more: 0 } : answers[endpoint]))
    const { sessionId } = payload as { sessionId: string }
    return ok(ok({ turns: [{ turn: 1, startSeq: 1, title: `of ${sessionId}`, images: 0, atMs: 1, state: 'available', files: 0, commands: 0, gaps: [] }], ops: [] }))
  }
  const page = await start({ rpc: answer })
  const place = await draw(page, 'conversation.view', 'turnback', { sessionId: 's1' })
  await act(settle)
  expect(place.textContent).toContain('of s1')
  const { component } = page.entries.find(({ options }) => options.name === 'conversation.view')!

  await act(async () => {
    render(h(component, { sessionId: 's2' } as never), place)
    await settle()
  })
  await act(settle)

  expect(place.textContent).toContain('of s2')
  expect(place.textContent).not.toContain('of s1')
})
