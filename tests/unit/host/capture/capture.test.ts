import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeCapture } from '../../../../host/capture/capture.ts'
import { makeKnownWrites } from '../../../../host/capture/known-writes.ts'
import { digestOf } from '../../../../host/digest.ts'
import type { ForeignExecution, ForeignSession } from '../../../../host/dsh/host-types.ts'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { sessionId } from '../../../../src/ids.ts'
import { failure } from '../../../../src/protocol/failure.ts'
import { fail, ok } from '../../../../src/result.ts'

const aSession = (id: string, parentSession?: string): ForeignSession => ({
  id, surface: { nodes: [] }, append: () => ({ seq: 0 }),
  header: { version: 0, id, ...(parentSession === undefined ? {} : { parentSession, origin: 'subagent' }) },
  events: [{ seq: 0, type: 'turn/start', time: 0, data: { turn: 1 } }],
})

const aCall = (session: ForeignSession, callId: string, name = 'write'): ForeignExecution =>
  ({ callId, name, agent: { id: session.id, status: 'running', session, runMaintenance: task => task(new AbortController().signal) } })

/** Capture of a person's session and its subagent, a folder, and what was noted of both. */
function aScene() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-capture-')))
  onTestFinished(() => { rmSync(folder, { recursive: true }) })
  const sessions = [aSession('root'), aSession('child', 'root')]
  const noted: JournalEntry[] = []
  const disk = { isFull: false }
  const capture = makeCapture({
    sessions: { get: id => sessions.find(session => session.id === id), list: () => sessions, flush: async () => true },
    health: { report: (contract, cause) => { if (contract !== 'store') throw cause }, clear: () => {}, problems: () => [], contain: (_contract, listener) => listener },
    observations: { remember: () => {}, announce: async () => {} },
    brackets: { open: async () => {}, close: async () => false, isOpen: () => false, settle: async () => {}, isShared: () => false, dispose: async () => {} },
    writes: makeKnownWrites(() => 0),
    maxFileBytes: 1024, dshHome: '/nowhere', now: () => 0,
    journalOf: () => ({
      session: sessionId('root'),
      append: async ({ entries }) => {
        if (disk.isFull) return fail(failure('store-unavailable'))
        noted.push(...entries)
        return ok({ position: noted.length })
      },
      flush: async () => ok(undefined),
      read: async () => ok({ entries: [], holes: [], position: 0 }), hasBlob: async () => false, readBlob: async () => undefined,
    }),
  })
  return { folder, root: sessions[0]!, child: sessions[1]!, capture, noted, disk }
}

const left = (noted: readonly JournalEntry[]) => noted.flatMap(entry => (entry.kind === 'after' && entry.state.kind === 'file' ? [entry.state.digest] : []))

test('what a subagent writes while the turn of the person ends is seen as the subagent leaves it', async () => {
  const { folder, root, child, capture, noted } = aScene()
  const path = join(folder, 'a.txt')
  writeFileSync(path, '1')
  const call = aCall(child, 'c1')
  await capture.beforeWrite(call, path, { targetKey: path, displayPath: path })

  await capture.afterTurn(root)
  writeFileSync(path, '2')
  await capture.afterCall(call, undefined)

  expect(left(noted)).toEqual([digestOf(Buffer.from('2'))])
})

test('a look that a call left open is closed when its own agent goes idle', async () => {
  const { folder, root, child, capture, noted } = aScene()
  const path = join(folder, 'a.txt')
  for (const session of [root, child]) {
    writeFileSync(path, '1')
    await capture.beforeWrite(aCall(session, 'c1'), path, { targetKey: path, displayPath: path })
    writeFileSync(path, session.id)

    await capture.afterTurn(session)
  }

  expect(left(noted)).toEqual([digestOf(Buffer.from('root')), digestOf(Buffer.from('child'))])
})

test('a first look that could not be stored is stored with the second', async () => {
  const { folder, root, capture, noted, disk } = aScene()
  const path = join(folder, 'a.txt')
  writeFileSync(path, '1')
  const call = aCall(root, 'c1')
  disk.isFull = true
  await capture.beforeWrite(call, path, { targetKey: path, displayPath: path })
  disk.isFull = false
  writeFileSync(path, '2')
  await capture.afterCall(call, undefined)

  expect(noted).toMatchObject([
    { kind: 'before', path, state: { digest: digestOf(Buffer.from('1')) } },
    { kind: 'after', state: { digest: digestOf(Buffer.from('2')) } },
  ])
})

test('a call that ran a subagent whose write could not be stored is not counted as watched', async () => {
  const { folder, root, child, capture, noted, disk } = aScene()
  const path = join(folder, 'a.txt')
  const write = aCall(child, 'c2')
  disk.isFull = true
  await capture.beforeWrite(write, path, { targetKey: path, displayPath: path })
  writeFileSync(path, '2')
  await capture.afterCall(write, undefined)
  disk.isFull = false
  await capture.afterCall(aCall(root, 'c1', 'subagent'), undefined)
  await capture.afterCall(aCall(root, 'c3', 'subagent'), undefined)

  expect(noted).toMatchObject([{ kind: 'seen', call: { callId: 'c3' } }])
})
