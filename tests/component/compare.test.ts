import { afterEach, expect, test, vi } from 'vitest'
import { compareTexts } from '../../client/state/compare.ts'

/** Long enough for a worker. */
const long = 'line\n'.repeat(5000)

afterEach(() => vi.useRealTimers())

/** A worker as far as it is used: `answer` plays what it does with a message. */
function aWorker(answer: (worker: EventTarget, data: unknown) => void) {
  const events = new EventTarget()
  const state = { terminated: 0, received: [] as unknown[] }
  const worker = Object.assign(events, {
    terminate: () => { state.terminated += 1 },
    postMessage: (data: unknown) => {
      state.received.push(data)
      answer(events, data)
    },
  })
  return { start: () => worker as unknown as Worker, state }
}
const running = () => new AbortController().signal
const reply = { kind: 'lines', changes: [], oldLines: 1, newLines: 1, added: 7, removed: 7 }

test('long texts are compared in a worker, which is ended then', async () => {
  const { start, state } = aWorker(worker => worker.dispatchEvent(new MessageEvent('message', { data: reply })))

  expect(await compareTexts(long, '', running(), start)).toEqual(reply)
  expect(state).toEqual({ terminated: 1, received: [{ before: long, after: '' }] })
})

test('short texts start no worker', async () => {
  const start = vi.fn<() => Worker>()

  expect(await compareTexts('a\n', 'b\n', running(), start)).toMatchObject({ kind: 'lines', added: 1, removed: 1 })
  expect(start).not.toHaveBeenCalled()
})

test.each([
  ['cannot be started', { start: () => { throw new Error('SecurityError') } }],
  ['breaks', aWorker(worker => worker.dispatchEvent(new Event('error')))],
])('a worker that %s leaves the work to the page', async (_, { start }) => {
  expect(await compareTexts(long, `${long}more\n`, running(), start)).toMatchObject({ kind: 'lines', added: 1, removed: 0 })
})

test('a worker that says nothing is ended, and the page does the work', async () => {
  vi.useFakeTimers()
  const { start, state } = aWorker(() => {})

  const found = compareTexts(long, `${long}more\n`, running(), start)
  await vi.advanceTimersByTimeAsync(6000)

  expect(await found).toMatchObject({ kind: 'lines', added: 1 })
  expect(state.terminated).toBe(1)
})

test('an aborted comparison ends its worker and gives nothing', async () => {
  const { start, state } = aWorker(() => {})
  const stop = new AbortController()

  const found = compareTexts(long, '', stop.signal, start)
  stop.abort()

  await expect(found).rejects.toThrow()
  expect(state.terminated).toBe(1)
})
