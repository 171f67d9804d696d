import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { aSession, aStore, before, blob, positionOf, workspace } from './store-world.ts'

const script = join(import.meta.dirname, '../../../../scripts/inspect-store.ts')

async function inspect(root: string, ...args: string[]): Promise<{ code: number; out: string }> {
  const child = spawn(process.execPath, ['--no-warnings', script, '--home', join(root, '../../..'), ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const out = text(child.stdout)
  const [code] = (await once(child, 'exit')) as [number]
  return { code, out: await out }
}

test('prints every record of a sound session and exits with 0', async () => {
  const world = await aStore()
  const content = blob('bytes')
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('a', content)], blobs: [content] })
  await appendFile(join(world.root, 'packs', 'session-1-1.pack'), 'TBK1 torn')

  const { code, out } = await inspect(world.root, aSession)

  expect(out).toContain('session session-1: 1 segments, 3 records')
  expect(out).toContain('torn tail of 9 bytes')
  expect(out).toMatch(/1 {2}header .* session-1 in \/w\n/)
  expect(out).toMatch(new RegExp(`2 {2}blob .* ${content.digest}\n`))
  expect(out).toMatch(/3 {2}journal .* before write \/w\/a: 5 bytes/)
  expect(out).toContain('  sound')
  expect(code).toBe(0)
})

test('names damage and exits with 1', async () => {
  const world = await aStore()
  const content = blob('bytes')
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('a', content)], blobs: [content] })
  const path = join(world.root, 'packs', 'session-1-1.pack')
  const bytes = await readFile(path)
  bytes[bytes.indexOf('bytes', bytes.indexOf(content.digest, 0, 'hex'))]! ^= 1
  await writeFile(path, bytes)

  const all = await inspect(world.root)
  const json = await inspect(world.root, '--json', aSession)

  expect(all.out).toContain('HOLE after record 1: records 1 to 1 of segment 1 are damaged or missing')
  expect(all.out).toContain(`DAMAGE record 3 (before) names 5 bytes ${content.digest} that are not stored`)
  expect(JSON.parse(json.out)).toMatchObject({ sessions: [{ session: aSession, holes: [{ afterPosition: 1 }], damage: [expect.stringContaining(content.digest)] }] })
  expect([all.code, json.code]).toEqual([1, 1])
})

test('an empty store is sound, an unknown session is not', async () => {
  const world = await aStore()

  expect(await inspect(world.root)).toEqual({ code: 0, out: `store ${world.root}\nno sessions\n` })
  expect((await inspect(world.root, 'nobody')).code).toBe(1)
})

test('writes out the raw bytes of any recorded state by the digits that a record shows', async () => {
  const world = await aStore()
  const content = blob('bytes\r\n')
  await positionOf(world.open().journal(aSession, workspace), { entries: [before('a', content)], blobs: [content] })

  expect(await inspect(world.root, aSession, '--bytes', content.digest.slice(0, 12))).toEqual({ code: 0, out: 'bytes\r\n' })
  expect(await inspect(world.root, aSession, '--bytes', 'ffffffffffff')).toEqual({ code: 1, out: '' })
})
