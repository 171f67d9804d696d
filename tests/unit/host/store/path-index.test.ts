import { appendFile, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { sessionId, type SessionId } from '../../../../src/ids.ts'
import { makePathIndex, type PathIndex } from '../../../../host/store/path-index.ts'
import { nodeFs, type StoreFile, type StoreFs } from '../../../../host/store/store-fs.ts'
import type { TurnbackStore } from '../../../../host/store/store.ts'
import { aJournal, file, opRow, restored, startSeqOf, stateOf } from '../../../support/a-journal.ts'
import { aStore, blob, positionOf, type Blob } from './store-world.ts'

const a = sessionId('a')
const b = sessionId('b')

let world: Awaited<ReturnType<typeof aStore>>
let store: TurnbackStore
beforeEach(async () => {
  world = await aStore()
  store = world.open()
})

const append = (session: SessionId, workspace: string, entries: readonly JournalEntry[], blobs: readonly Blob[] = []) =>
  positionOf(store.journal(session, workspace), { entries, blobs })

/** What is known of `path` by session, as `before→after` in digests' texts. */
async function writes(index: PathIndex, { paths = ['/w/s.txt'], workspace = '/w', except = [a] as readonly SessionId[] } = {}) {
  const found = await index.writesTo(new Set(paths), { workspace, except: new Set(except) })
  return [...found].flatMap(([path, list]) => list.filter(({ origin }) => origin !== 'op').map(({ session, after, atMs }) => ({ path, session, after, atMs })))
}
const written = (session: SessionId, after: string, path = '/w/s.txt') => ({ path, session, after: file(after) })

/** The real file system, with what it is asked counted. */
function countingFs(): { fs: StoreFs; count: { opens: number; bytes: number } } {
  const count = { opens: 0, bytes: 0 }
  const open: StoreFs['open'] = async (path, flags, mode) => {
    count.opens += 1
    const opened = await nodeFs.open(path, flags, mode)
    return {
      read: async (buffer, offset, length, position) => {
        const read = await opened.read(buffer, offset, length, position)
        count.bytes += read.bytesRead
        return read
      },
      close: () => opened.close(),
    } satisfies Partial<StoreFile> as StoreFile
  }
  return { fs: { ...nodeFs, open }, count }
}

describe('what other sessions wrote', () => {
  test('is found though nobody has them open', async () => {
    await append(b, '/w', aJournal().writes('/w/s.txt', '1', '2').writes('/w/other.txt', undefined, 'x').entries)
    await store.close()

    expect(await writes(makePathIndex(store))).toMatchObject([written(b, '2')])
  })

  test('leaves out those that are excepted and paths that nobody asked for', async () => {
    await append(a, '/w', aJournal().writes('/w/s.txt', '1', '2').entries)
    await append(b, '/w', aJournal().writes('/w/other.txt', '1', '2').entries)

    expect(await writes(makePathIndex(store))).toEqual([])
  })

  test('counts in a workspace inside or around this one, and in no other', async () => {
    await append(sessionId('inside'), '/w/sub', aJournal().writes('/w/sub/s.txt', '1', '2').entries)
    await append(sessionId('around'), '/', aJournal().writes('/w/sub/s.txt', '2', '3').entries)
    await append(sessionId('beside'), '/w/su', aJournal().writes('/w/sub/s.txt', '3', '4').entries)

    const found = await writes(makePathIndex(store), { paths: ['/w/sub/s.txt'] })

    expect(found.map(({ session }) => session)).toEqual(['around', 'beside', 'inside'])
    expect((await writes(makePathIndex(store), { paths: ['/w/sub/s.txt'], workspace: '/w/sub' })).map(({ session }) => session)).toEqual(['around', 'inside'])
  })

  test('is cancelled by their own rollbacks, and comes back with the undo', async () => {
    const journal = aJournal().writes('/w/s.txt', '1', '2').turn(2).writes('/w/s.txt', '2', '3')
    await append(b, '/w', journal.entries)
    const index = makePathIndex(store)
    const count = journal.entries.length
    const op = journal.rollback(2, [opRow('/w/s.txt', file('3'), file('2'))], [restored('/w/s.txt')])
    const length = journal.entries.length
    await append(b, '/w', journal.entries.slice(count))
    expect(await writes(index)).toMatchObject([written(b, '2')])

    journal.undo(op, [opRow('/w/s.txt', file('2'), file('3'))], [restored('/w/s.txt')])
    await append(b, '/w', journal.entries.slice(length))

    expect(await writes(index)).toMatchObject([written(b, '2'), written(b, '3')])
  })

  test('includes what their rollbacks did to a file, as that', async () => {
    const journal = aJournal().writes('/w/s.txt', '1', '2').writes('/w/t.txt', '1', '2')
    journal.rollback(1, [opRow('/w/s.txt', file('2'), file('1')), opRow('/w/t.txt', file('2'), file('1'))], [restored('/w/s.txt'), { path: '/w/t.txt', result: 'failed' }])
    await append(b, '/w', journal.entries)

    const found = await makePathIndex(store).writesTo(new Set(['/w/s.txt', '/w/t.txt']), { workspace: '/w', except: new Set() })

    expect(found.get('/w/s.txt')).toMatchObject([{ origin: 'op', before: file('2'), after: file('1') }])
    expect(found.get('/w/t.txt')).toMatchObject([{ origin: 'tool' }])
  })

  test('leaves out what both sides may have booked around their commands', async () => {
    const change = (id: string, doubt?: 'overlap' | 'long'): JournalEntry => ({
      kind: 'change', id, turn: { startSeq: startSeqOf(1), number: 1 }, call: { callId: id, tool: 'bash', sessionId: b }, origin: 'shell', path: '/w/s.txt',
      before: stateOf('1'), after: stateOf(id), absentFolders: [], atMs: 1, ...doubt && { doubt },
    })
    await append(b, '/w', [change('2', 'overlap'), change('3'), change('4', 'long')])

    expect(await writes(makePathIndex(store))).toMatchObject([written(b, '3'), written(b, '4')])
  })

  test('is seen as it is added, in the same segment and in a new one', async () => {
    const index = makePathIndex(store)
    expect(await writes(index)).toEqual([])
    const journal = aJournal().writes('/w/s.txt', '1', '2')
    await append(b, '/w', journal.entries)
    expect(await writes(index)).toHaveLength(1)
    journal.writes('/w/s.txt', '2', '3')
    await append(b, '/w', journal.entries.slice(-2))
    expect(await writes(index)).toHaveLength(2)
    await store.close()
    store = world.open()
    journal.writes('/w/s.txt', '3', '4')
    await append(b, '/w', journal.entries.slice(-2))

    expect(await writes(index)).toMatchObject([written(b, '2'), written(b, '3'), written(b, '4')])
  })

  test('asked for many times at once is read once', async () => {
    await append(b, '/w', aJournal().writes('/w/s.txt', '1', '2').entries)
    const index = makePathIndex(store)

    const found = await Promise.all([writes(index), writes(index), writes(index)])

    expect(found.map(({ length }) => length)).toEqual([1, 1, 1])
  })

  test('is whole again when a session that was long at rest goes on', async () => {
    const journal = aJournal().writes('/w/s.txt', '1', '2')
    await append(b, '/w', journal.entries)
    await store.close()
    const old = new Date(Date.now() - 60 * 60_000)
    await utimes(join(store.layout.packs, 'b-1.pack'), old, old)
    const index = makePathIndex(store)
    expect(await writes(index)).toHaveLength(1)
    store = world.open()
    journal.writes('/w/s.txt', '2', '3')
    await append(b, '/w', journal.entries.slice(-2))

    expect(await writes(index)).toMatchObject([written(b, '2'), written(b, '3')])
  })

  test('is told to each of two workspaces, whichever asks first', async () => {
    await append(b, '/w/sub', aJournal().writes('/w/sub/s.txt', '1', '2').entries)
    const index = makePathIndex(store)

    expect(await writes(index, { paths: ['/w/sub/s.txt'], workspace: '/x' })).toEqual([])
    expect(await writes(index, { paths: ['/w/sub/s.txt'] })).toHaveLength(1)
  })

  test('is gone with its segment', async () => {
    await append(b, '/w', aJournal().writes('/w/s.txt', '1', '2').entries)
    const index = makePathIndex(store)
    expect(await writes(index)).toHaveLength(1)
    await rm(join(store.layout.packs, 'b-1.pack'))

    expect(await writes(index)).toEqual([])
  })
})

describe('a damaged segment', () => {
  const pack = () => join(store.layout.packs, 'b-1.pack')

  test.each<[string, () => Promise<void>]>([
    ['that is empty', () => truncate(pack())],
    ['that is no segment', () => writeFile(pack(), 'nothing of ours'.repeat(1000))],
    ['with a damaged header', async () => {
      const bytes = await readFile(pack())
      bytes.write('X', bytes.indexOf('"format"'))
      await writeFile(pack(), bytes)
    }],
    ['of another format', async () => {
      const bytes = await readFile(pack())
      await writeFile(pack(), bytes.subarray(40))
    }],
  ])('%s tells nothing, and the others are read', async (_what, damage) => {
    await append(b, '/w', aJournal().writes('/w/s.txt', '1', '2').entries)
    await append(sessionId('c'), '/w', aJournal().writes('/w/s.txt', '1', '3').entries)
    await damage()

    expect(await writes(makePathIndex(store))).toMatchObject([written(sessionId('c'), '3')])
  })

  test('tells what stands before the damage', async () => {
    const journal = aJournal().writes('/w/s.txt', '1', '2').writes('/w/s.txt', '2', '3')
    await append(b, '/w', journal.entries)
    const bytes = await readFile(pack())
    bytes.write('X', bytes.lastIndexOf('"kind":"before"'))
    await writeFile(pack(), bytes)

    expect(await writes(makePathIndex(store))).toMatchObject([written(b, '2')])
  })

  test('that ends inside a record is read on when the rest is there', async () => {
    await append(b, '/w', aJournal().writes('/w/s.txt', '1', '2').entries)
    const bytes = await readFile(pack())
    await truncate(pack(), bytes.length - 10)
    const index = makePathIndex(store)
    expect(await writes(index)).toMatchObject([{ session: b, after: undefined }])
    await appendFile(pack(), bytes.subarray(bytes.length - 10))

    expect(await writes(index)).toMatchObject([written(b, '2')])
  })

  test('is no error where the folder is missing or cannot be listed', async () => {
    expect(await writes(makePathIndex(store))).toEqual([])
    const fs: StoreFs = { ...nodeFs, readdir: () => Promise.reject(Object.assign(new Error('EACCES'), { code: 'EACCES' })) }

    expect(await writes(makePathIndex({ layout: store.layout, fs }))).toEqual([])
  })
})

describe('the cost', () => {
  test('the bytes of saved files are stepped over', async () => {
    const blobs = Array.from({ length: 8 }, (_, at) => blob(Buffer.alloc(500_000, at + 1)))
    await append(b, '/w', aJournal().writes('/w/s.txt', '1', '2').entries, blobs)
    const { fs, count } = countingFs()

    expect(await writes(makePathIndex({ layout: store.layout, fs }))).toHaveLength(1)

    expect(count.bytes).toBeLessThan(200_000)
  })

  test('a file that is as it was is not opened again, and of one that grew only the new part is read', async () => {
    const journal = aJournal()
    for (let at = 0; at < 500; at++) journal.writes('/w/s.txt', `${at}`, `${at + 1}`)
    await append(b, '/w', journal.entries)
    await append(sessionId('c'), '/w', aJournal().writes('/w/s.txt', '1', '3').entries)
    const { fs, count } = countingFs()
    const index = makePathIndex({ layout: store.layout, fs })
    expect(await writes(index)).toHaveLength(501)
    const first = { ...count }
    await writes(index)
    expect(count).toEqual(first)
    journal.writes('/w/s.txt', '500', '501')
    await append(b, '/w', journal.entries.slice(-2))

    expect(await writes(index)).toHaveLength(502)

    expect(count.opens - first.opens).toBe(1)
    expect(count.bytes - first.bytes).toBeLessThan(20_000)
  })

  test('of another workspace no more than the header is read', async () => {
    const journal = aJournal()
    for (let at = 0; at < 500; at++) journal.writes('/x/s.txt', `${at}`, `${at + 1}`)
    await append(b, '/x', journal.entries)
    const { fs, count } = countingFs()
    const index = makePathIndex({ layout: store.layout, fs })
    await writes(index)
    await append(b, '/x', aJournal().writes('/x/s.txt', '1', '2').entries)

    await writes(index)

    expect(count.opens).toBe(1)
    expect(count.bytes).toBeLessThan(20_000)
  })
})
