import { expect, test } from 'vitest'
import { createRemote } from '../../client/dsh/remote.ts'
import { fakePage, type FakePageOptions } from './fake-page.ts'

const remoteOf = (options: FakePageOptions) => createRemote(fakePage(options).ctx)
const hello = { protocol: 1, version: '1', command: 'rollback', problems: [] }

test('unwraps both envelopes and checks the value', async () => {
  const remote = remoteOf({ rpc: async () => ({ ok: true, value: { ok: true, value: hello } }) })

  expect(await remote.call('hello', {})).toEqual({ ok: true, value: hello })
})

test('finds the path under /api where plugins get no channel, and remembers it', async () => {
  const targets: string[] = []
  const remote = remoteOf({
    rpc: async (channel, endpoint) => {
      targets.push(`${channel} ${endpoint}`)
      if (channel === '/turnback') throw new Error('transport failure for /turnback/hello: HTTP 405')
      return { ok: true, value: { ok: true, value: hello } }
    },
  })

  expect((await remote.call('hello', {})).ok).toBe(true)
  expect((await remote.call('hello', {})).ok).toBe(true)
  expect(targets).toEqual(['/turnback hello', '/api turnback/hello', '/api turnback/hello'])
})

test.each([
  ['no connection service', { without: ['connection'] }, 'host-missing'],
  ['neither path exists', {}, 'host-missing'],
  ['the host is down', { rpc: () => Promise.reject(new TypeError('Failed to fetch')) }, 'host-missing'],
  ['the handler throws', { rpc: () => Promise.reject(new Error('transport failure: HTTP 500')) }, 'internal'],
  ['the answer is no envelope', { rpc: async () => 'hello' }, 'host-mismatch'],
  [
    'the value is of another version',
    { rpc: async () => ({ ok: true, value: { ok: true, value: { protocol: 2 } } }) },
    'host-mismatch',
  ],
  [
    'the host refuses the request',
    { rpc: async () => ({ ok: false, error: { code: 'x', message: 'no' } }) },
    'host-mismatch',
  ],
  [
    'our half refuses',
    { rpc: async () => ({ ok: true, value: { ok: false, failure: { code: 'turn-running' } } }) },
    'turn-running',
  ],
] as [string, FakePageOptions, string][])('a read is a failure with a code when %s', async (_why, options, code) => {
  expect(await remoteOf(options).call('hello', {})).toMatchObject({ ok: false, failure: { code } })
})

test('a stopped read is aborted, whatever the transport says', async () => {
  const abort = new AbortController()
  abort.abort()

  expect(await remoteOf({ rpc: () => Promise.reject(new Error('x')) }).call('hello', {}, abort.signal)).toMatchObject({
    ok: false,
    failure: { code: 'aborted' },
  })
})

const ran = (result: object) => async () => ({ ok: true, value: { commandId: 'c', result } })

test.each([
  [
    'it succeeded',
    { execute: ran({ kind: 'success', text: 'done', sourceEventSeq: 7 }) },
    { kind: 'done', text: 'done', sourceEventSeq: 7 },
  ],
  ['it said no', { execute: ran({ kind: 'error', text: 'no' }) }, { kind: 'refused', text: 'no' }],
  [
    'nobody has the command',
    { execute: async () => ({ ok: true }) },
    { kind: 'failed', failure: { code: 'host-missing', facts: {} } },
  ],
  [
    'the session is gone',
    { execute: async () => ({ ok: false, error: { code: 'session-not-found', message: 'x' } }) },
    { kind: 'failed', failure: { code: 'unknown-session', facts: {} } },
  ],
  [
    'the connection broke',
    { execute: () => Promise.reject(new Error('gone')) },
    { kind: 'failed', failure: { code: 'host-missing', facts: {} } },
  ],
  [
    'there is no command service',
    { without: ['remote.commands'] },
    { kind: 'failed', failure: { code: 'unsupported-host', facts: { detail: 'remote.commands' } } },
  ],
] as [string, FakePageOptions, object][])('a command run is told apart when %s', async (_why, options, expected) => {
  expect(await remoteOf(options).run('s1', '/rollback 2')).toEqual(expected)
})
