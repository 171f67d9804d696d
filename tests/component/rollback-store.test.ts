import { expect, test } from 'vitest'
import { sessionId } from '../../src/ids.ts'
import { failure } from '../../src/protocol/failure.ts'
import { fail, ok } from '../../src/result.ts'
import {
  aConflict,
  anOp,
  aPreview,
  aRow,
  aStore,
  fakeComposer,
  fakeView,
  goingWell,
  later,
  scriptedRemote,
  settle,
} from './support.ts'

test('carries out exactly the plan the host made from the shown preview', async () => {
  const { remote, asked, lines } = scriptedRemote(
    goingWell(aPreview({ rows: [aConflict('c.txt'), aConflict('d.txt')] })),
  )
  const store = aStore({ remote })
  store.open(2)
  await settle()
  store.choose(['/w/c.txt'], true)
  store.choose(['/w/d.txt'], true)
  store.choose(['/w/d.txt'], false)

  await store.confirm()

  expect(asked.find(({ endpoint }) => endpoint === 'plan')?.request).toEqual({
    sessionId: 'session-1',
    turn: 2,
    scope: 'both',
    branch: false,
    queued: 'keep',
    running: 'refuse',
    token: 't1',
    putBack: ['/w/c.txt'],
  })
  expect(lines).toEqual(['/rollback --plan plan0000'])
  expect(store.phase.value).toMatchObject({ kind: 'done', op: anOp() })
})

test('field 61: opening and closing asks for a preview and runs nothing', async () => {
  const { remote, asked, lines } = scriptedRemote(goingWell(aPreview()))
  const store = aStore({ remote })

  store.open(2)
  await settle()
  store.close()

  expect(asked.map(({ endpoint }) => endpoint)).toEqual(['preview'])
  expect(lines).toEqual([])
  expect(store.phase.value.kind).toBe('idle')
})

test('leaving a result shows the end of the chat, where the bar is; leaving a preview moves nothing', async () => {
  const { remote } = scriptedRemote(goingWell(aPreview()))
  let shown = 0
  const store = aStore({ remote, showEnd: () => shown++ })
  store.open(2)
  await settle()
  store.close()
  expect(shown).toBe(0)
  store.open(2)
  await settle()
  await store.confirm()

  store.close()

  expect(shown).toBe(1)
})

test('drops the preview of a turn that is no longer looked at', async () => {
  const slow = later<ReturnType<typeof ok>>()
  const second = aPreview({ token: 'second' })
  const { remote } = scriptedRemote({ preview: [slow.promise, ok(second)] })
  const store = aStore({ remote })
  store.open(1)
  store.open(2)
  await settle()

  slow.resolve(ok(aPreview({ token: 'first' })))
  await settle()

  expect(store.phase.value).toMatchObject({ kind: 'ready', turn: 2, preview: second })
})

test('field 64: a stale plan is not carried out', async () => {
  const { remote, lines } = scriptedRemote({
    preview: [ok(aPreview())],
    plan: [ok({ kind: 'stale', preview: aPreview({ token: 't2', rows: [aConflict('a.txt')] }) })],
  })
  const store = aStore({ remote })
  store.open(2)
  await settle()

  await store.confirm()

  expect(lines).toEqual([])
  expect(store.phase.value).toMatchObject({ kind: 'ready', changed: new Set(['/w/a.txt']) })
})

test('a refusal of the command is shown in its own words', async () => {
  const { remote } = scriptedRemote({
    ...goingWell(aPreview()),
    run: [{ kind: 'refused', text: 'A turn is still running.' }],
  })
  const store = aStore({ remote })
  store.open(2)
  await settle()

  await store.confirm()

  expect(store.phase.value).toMatchObject({
    kind: 'failed',
    problem: { kind: 'said', text: 'A turn is still running.' },
  })
})

test('when the connection breaks while it is carried out, the host’s record decides what happened', async () => {
  const broken = { kind: 'failed', failure: failure('host-missing') } as const
  const done = aStore({ remote: scriptedRemote({ ...goingWell(aPreview()), run: [broken] }).remote })
  const notDone = aStore({
    remote: scriptedRemote({ ...goingWell(aPreview()), run: [broken], outcome: [ok({})] }).remote,
  })
  for (const store of [done, notDone]) {
    store.open(2)
    await settle()
    await store.confirm()
  }

  expect(done.phase.value.kind).toBe('done')
  expect(notDone.phase.value).toMatchObject({ kind: 'failed', problem: { failure: { code: 'host-missing' } } })
})

test('puts the withdrawn prompt and its pictures into an empty composer and names the pictures that are lost', async () => {
  const { composer, state } = fakeComposer()
  const store = aStore({
    remote: scriptedRemote(goingWell(aPreview({ prompt: { text: 'do it', images: ['one', 'lost-two'] } }))).remote,
    composer: () => composer,
  })
  store.open(2)
  await settle()

  await store.confirm()

  expect(state.draft).toBe('do it')
  expect(state.images).toEqual(['one'])
  expect(store.phase.value).toMatchObject({ kind: 'done', prompt: 'restored', lostImages: 1 })
})

test('keeps a draft and offers the withdrawn prompt, which goes after it', async () => {
  const { composer, state } = fakeComposer('half a thought')
  const store = aStore({
    remote: scriptedRemote(goingWell(aPreview({ prompt: { text: 'do it', images: [] } }))).remote,
    composer: () => composer,
  })
  store.open(2)
  await settle()

  await store.confirm()
  expect(state.draft).toBe('half a thought')
  expect(store.waitingPrompt.value).toBe('do it')
  store.insertPrompt()

  expect(state.draft).toBe('half a thought\n\ndo it')
  expect(store.waitingPrompt.value).toBeUndefined()
  expect(store.phase.value).toMatchObject({ prompt: 'restored' })
})

test('a branch opens its session with the withdrawn prompt in its composer; this session’s draft is left alone', async () => {
  const { composer, state } = fakeComposer('half a thought')
  const opened: string[] = []
  const placed: unknown[] = []
  const files = aPreview({ scope: 'files', token: 'tf', prompt: { text: 'do it', images: [] } })
  const { remote, asked } = scriptedRemote({ ...goingWell(files, anOp({ scope: 'files', copy: sessionId('session-2') })), preview: [ok(aPreview()), ok(files)] })
  const store = aStore({ remote, composer: () => composer, openSession: id => opened.push(id), placeDraft: (...args) => placed.push(args) })
  store.open(2)
  await settle()
  store.setMode('branch')
  await settle()

  await store.confirm()

  expect(asked.find(({ endpoint }) => endpoint === 'plan')?.request).toMatchObject({ scope: 'files', token: 'tf', branch: true })
  expect([opened, placed, state.draft]).toEqual([['session-2'], [['session-2', 'do it']], 'half a thought'])
})

test('draft and withdrawn prompt can change places, and neither is lost', async () => {
  const { composer, state } = fakeComposer('half a thought')
  const store = aStore({
    remote: scriptedRemote(goingWell(aPreview({ prompt: { text: 'do it', images: [] } }))).remote,
    composer: () => composer,
  })
  store.open(2)
  await settle()
  await store.confirm()

  store.swapPrompt()
  expect([state.draft, store.waitingPrompt.value, store.isDraftWaiting.value]).toEqual(['do it', 'half a thought', true])
  store.swapPrompt()
  expect([state.draft, store.waitingPrompt.value, store.isDraftWaiting.value]).toEqual(['half a thought', 'do it', false])
  store.swapPrompt()
  store.insertPrompt()
  expect([state.draft, store.waitingPrompt.value, store.isDraftWaiting.value]).toEqual(['do it\n\nhalf a thought', undefined, false])
})

test('a prompt without words leaves the composer alone', async () => {
  const { composer, state } = fakeComposer('half a thought')
  const store = aStore({
    remote: scriptedRemote(goingWell(aPreview({ prompt: { text: '  ', images: [] } }))).remote,
    composer: () => composer,
  })
  store.open(2)
  await settle()

  await store.confirm()

  expect(state.draft).toBe('half a thought')
  expect(store.waitingPrompt.value).toBeUndefined()
})

test('a typed rollback brings the withdrawn prompt back once its marker is there and the composer is done with the line', async () => {
  const { composer, state } = fakeComposer('/rollback 2')
  const submission = later<void>()
  state.settled = submission.promise
  const session = fakeView({ prompt: { text: 'do it', images: ['one'] } })
  const store = aStore({ remote: scriptedRemote().remote, view: session.view, composer: () => composer })

  store.rolledBackByCommand(40)
  session.publish({ markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })
  await settle()
  expect(state.draft).toBe('/rollback 2')
  state.draft = ''
  submission.resolve()
  await settle()

  expect(state.draft).toBe('do it')
  expect(state.images).toEqual(['one'])
})

test('a marker that came from elsewhere leaves the composer alone', async () => {
  const { composer, state } = fakeComposer()
  const session = fakeView({ prompt: { text: 'do it', images: [] } })
  aStore({ remote: scriptedRemote().remote, view: session.view, composer: () => composer })

  session.publish({ markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })
  await settle()

  expect(state.draft).toBe('')
})

test('undo from the result runs the undo command and tells its answer', async () => {
  const { remote, lines } = scriptedRemote({
    ...goingWell(aPreview()),
    run: [
      { kind: 'done', text: 'Rolled back.' },
      { kind: 'done', text: 'Undone.' },
    ],
  })
  const store = aStore({ remote, command: () => 'turnback' })
  store.open(2)
  await settle()
  await store.confirm()

  await store.undo()

  expect(lines).toEqual(['/turnback --plan plan0000', '/turnback undo'])
  expect(store.phase.value).toMatchObject({ undo: { kind: 'done', text: 'Undone.' } })
})

test.each([
  ['from the result', async (store: ReturnType<typeof aStore>) => { store.open(2); await settle(); await store.confirm(); await store.undo() }],
  ['from the bar', (store: ReturnType<typeof aStore>) => store.undoFromBar()],
])('undo %s opens the copy in which the conversation goes on', async (_where, undo) => {
  const undone = { op: anOp({ act: 'undo', copy: sessionId('session-copy') }) }
  const { remote, asked } = scriptedRemote({ ...goingWell(aPreview()), outcome: [ok(undone)], run: [{ kind: 'done', text: '' }] })
  const opened: string[] = []

  await undo(aStore({ remote, openSession: id => void opened.push(id) }))

  expect(opened.at(-1)).toBe('session-copy')
  expect(asked.filter(({ endpoint }) => endpoint === 'outcome').at(-1)?.request).toEqual({ sessionId: 'session-1' })
})

test('an undo from the bar that never reached the host is told in the composer', async () => {
  const { composer, state } = fakeComposer()
  const store = aStore({ remote: scriptedRemote().remote, composer: () => composer })

  await store.undoFromBar()

  expect(state.notices).toEqual(['The host half of Turnback does not answer.'])
})

test('looks at the refused turn again on retry', async () => {
  const { remote } = scriptedRemote({ preview: [fail(failure('busy')), ok(aPreview())] })
  const store = aStore({ remote })
  store.open(2)
  await settle()
  expect(store.phase.value.kind).toBe('failed')

  store.retry()
  await settle()

  expect(store.phase.value.kind).toBe('ready')
})

test('hides rows as markers arrive and does not walk the rows for a streamed chunk', () => {
  const rows = [
    { key: 'p1', kind: 'user', anchorSeq: 12, turn: 1 },
    { key: 'p2', kind: 'user', anchorSeq: 22, turn: 2 },
  ]
  const session = fakeView({ rows })
  const store = aStore({ remote: scriptedRemote().remote, view: session.view })
  const before = session.walks()

  for (let chunk = 0; chunk < 50; chunk++) session.publish()
  expect(session.walks()).toBe(before)
  session.publish({ markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })

  expect(store.hidden.value.keys).toEqual(['p2'])
  expect(store.empty.value).toBe(false)
})

test('a run of our command is looked at until it has answered, then its row goes', () => {
  const running = { key: 'run', kind: 'command', anchorSeq: 41, command: { answered: false } }
  const session = fakeView({ rows: [running], markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })
  const store = aStore({ remote: scriptedRemote().remote, view: session.view })
  expect(store.hidden.value.keys).toEqual([])

  session.publish({ rows: [{ ...running, command: { answered: true, sourceEventSeq: 40 } }] })

  expect(store.hidden.value.keys).toEqual(['run'])
})

// Seen in the real host: the marker is pushed before the op is noted as done, so the bar had no details.
test('asks for the details of a typed rollback again once the command has answered', () => {
  const running = { key: 'run', kind: 'command', anchorSeq: 39, command: { answered: false } }
  const session = fakeView({ rows: [running] })
  const { remote, asked } = scriptedRemote()
  const store = aStore({ remote, view: session.view })
  const timelines = () => asked.filter(call => call.endpoint === 'timeline').length
  store.loadOps()
  session.publish({ markers: [{ seq: 40, startSeq: 20, turn: 2, op: 'op000000' }] })
  expect(timelines()).toBe(2)

  session.publish({ rows: [{ ...running, command: { answered: true, sourceEventSeq: 40 } }] })
  session.publish()

  expect(timelines()).toBe(3)
})

test('follows the running state and lets go of the session when disposed', () => {
  const session = fakeView()
  const store = aStore({ remote: scriptedRemote().remote, view: session.view })

  session.publish({ running: true })
  expect(store.running.value).toBe(true)
  store.dispose()

  expect(session.listening()).toBe(0)
})

test('a preview with nothing to do is still a preview', async () => {
  const store = aStore({
    remote: scriptedRemote(goingWell(aPreview({ rows: [aRow('a.txt', 'none')] }), anOp({ outcomes: [] }))).remote,
  })
  store.open(2)
  await settle()

  await store.confirm()

  expect(store.phase.value).toMatchObject({ kind: 'done' })
})
