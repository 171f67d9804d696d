import { signal } from '@preact/signals'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createDiffStore, type About } from '../../client/state/diff-store.ts'
import { diffTexts } from '../../src/diff/line-diff.ts'
import type { FileChange } from '../../src/protocol/diff.ts'
import { failure } from '../../src/protocol/failure.ts'
import { fail, ok } from '../../src/result.ts'
import { aText, later, scriptedRemote, settle } from './support.ts'

afterEach(() => vi.useRealTimers())

function aStore(script: Parameters<typeof scriptedRemote>[0]) {
  const about = signal<About | undefined>({ turn: 2, token: 't1' })
  const remote = scriptedRemote(script)
  const store = createDiffStore({ sessionId: 's', remote: remote.remote, about, compare: async (before, after) => diffTexts(before, after) })
  const ready = () => vi.waitFor(() => expect([...store.entries.value.values()].every(({ kind }) => kind !== 'loading')).toBe(true))
  return { ...remote, about, store, ready }
}

describe('the diffs of one preview', () => {
  test('are asked for when somebody looks, and once', async () => {
    const { store, asked, ready } = aStore({ diff: [ok(aText('a\nb\n', 'a\nc\n'))] })
    expect(asked).toEqual([])

    const close = store.open('/w/a')
    expect(store.entries.value.get('/w/a')).toEqual({ kind: 'loading' })
    await ready()
    close()
    store.open('/w/a')

    expect(store.entries.value.get('/w/a')).toMatchObject({ kind: 'ready', text: { added: 1, removed: 1, isCoarse: false, before: ['a\n', 'b\n'] } })
    expect(asked).toEqual([{ endpoint: 'diff', request: { sessionId: 's', turn: 2, path: '/w/a' } }])
  })

  test('of another state of the world are asked for anew, and a late answer of the old one is dropped', async () => {
    const late = later<ReturnType<typeof ok<FileChange>>>()
    const { store, about, ready } = aStore({ diff: [late.promise, ok(aText('new\n', ''))] })
    store.open('/w/a')

    about.value = { turn: 2, token: 't2' }
    await ready()
    late.resolve(ok(aText('old\n', '')))
    await settle()

    expect(store.entries.value.get('/w/a')).toMatchObject({ text: { before: ['new\n'] } })
  })

  test('go when nothing is looked at any more', async () => {
    const { store, about, ready } = aStore({ diff: [ok(aText('a', 'b'))] })
    store.open('/w/a')()
    store.open('/w/b')
    await ready()

    about.value = undefined

    expect(store.entries.value.size).toBe(0)
  })

  test('that failed say why, and can be tried again', async () => {
    const { store, ready } = aStore({ diff: [fail(failure('host-missing')), ok(aText('a', 'b'))] })
    store.open('/w/a')
    await ready()
    expect(store.entries.value.get('/w/a')).toEqual({ kind: 'failed', failure: failure('host-missing') })

    store.retry('/w/a')
    await ready()

    expect(store.entries.value.get('/w/a')).toMatchObject({ kind: 'ready' })
  })

  test('are not kept without end: what nobody looks at goes, oldest first', async () => {
    const { store, ready } = aStore({ diff: [ok(aText('a', 'b'))] })
    store.open('/w/held')
    for (let at = 0; at < 20; at += 1) {
      const close = store.open(`/w/${at}`)
      await ready()
      close()
    }

    expect([...store.entries.value.keys()]).toEqual(['/w/held', ...Array.from({ length: 12 }, (_, at) => `/w/${at + 8}`)])
  })

  test('that nobody waits for any more are called off', async () => {
    const late = later<ReturnType<typeof ok<FileChange>>>()
    const { store } = aStore({ diff: [late.promise] })

    store.open('/w/a')()
    late.resolve(ok(aText('a', 'b')))
    await settle()

    expect(store.entries.value.size).toBe(0)
  })

  test('of texts with too many lines come without them', async () => {
    const { store, ready } = aStore({ diff: [ok(aText('\n'.repeat(100_001), ''))] })
    store.open('/w/a')
    await ready()

    const entry = store.entries.value.get('/w/a')
    expect(entry).toMatchObject({ kind: 'ready' })
    expect(entry).not.toHaveProperty('text')
  })
})

describe('line counts', () => {
  test('of rows that come into view together are asked for together, each once', async () => {
    vi.useFakeTimers()
    const counts = [{ path: '/w/a', added: 1, removed: 2 }]
    const { store, asked } = aStore({ counts: [ok({ counts })] })

    for (const path of ['/w/a', '/w/b', '/w/a']) store.wantCount(path)
    await vi.advanceTimersByTimeAsync(100)
    store.wantCount('/w/b')
    await vi.advanceTimersByTimeAsync(100)

    expect(asked).toEqual([{ endpoint: 'counts', request: { sessionId: 's', turn: 2, paths: ['/w/a', '/w/b'] } }])
    expect(store.counts.value.get('/w/a')).toEqual(counts[0])
  })

  test('are asked for in parts of fifty', async () => {
    vi.useFakeTimers()
    const { store, asked } = aStore({ counts: [ok({ counts: [] })] })

    for (let at = 0; at < 120; at += 1) store.wantCount(`/w/${at}`)
    await vi.advanceTimersByTimeAsync(100)

    expect(asked.map(({ request }) => (request['paths'] as string[]).length)).toEqual([50, 50, 20])
  })

  test('of another state of the world are asked for anew', async () => {
    vi.useFakeTimers()
    const { store, about, asked } = aStore({ counts: [ok({ counts: [{ path: '/w/a', added: 1, removed: 2 }] })] })
    store.wantCount('/w/a')
    await vi.advanceTimersByTimeAsync(100)

    about.value = { turn: 2, token: 't2' }

    expect(store.counts.value.size).toBe(0)
    store.wantCount('/w/a')
    await vi.advanceTimersByTimeAsync(100)
    expect(asked.length).toBe(2)
  })
})
