import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { addPlugin } from '../support/dsh-host.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import { expectOk, sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import * as ui from '../support/ui.ts'

/** What is broken around us never breaks a tool call, a turn, the opening of a session or the page, and is said. */

const read = (path: string) => ({ name: 'read', args: { file_path: path } })
const write = (path: string, content: string) => ({ name: 'write', args: { file_path: path, content } })
const edit = (path: string, from: string, to: string) => ({ name: 'edit', args: { file_path: path, old_string: from, new_string: to } })
const scenarios: Record<string, Step[]> = {
  one: [{ tools: [read('a.txt')] }, { tools: [edit('a.txt', '1', '2')] }, { text: 'The edit is done.' }],
  two: [{ tools: [edit('a.txt', '2', '3')] }, { text: 'The second edit is done.' }],
  three: [{ tools: [edit('a.txt', '3', '4'), write('new.txt', 'n\n')] }, { text: 'The third edit is done.' }],
  new: [{ tools: [write('new.txt', 'n\n')] }, { text: 'The new file is there.' }],
  big: [{ tools: [write('big.txt', 'b'.repeat(400_000))] }, { text: 'The big file is there.' }],
  bigger: [{ tools: [write('bigger.txt', 'c'.repeat(900_000))] }, { text: 'The bigger file is there.' }],
}

const rollbackButton = (world: World, turn: number) => world.page.getByRole('button', { name: `Roll back to before turn ${turn}`, exact: true })
/** How often the host's console has complained about our store. */
const complaints = (world: World) => world.host.log().split('\n').filter(line => line.startsWith('[turnback] store')).length

describe('field 6, field 76: the store cannot be written', () => {
  let world: World
  let rpc: SessionRpc
  const blocker = () => join(world.home, 'data', 'turnback')
  beforeAll(async () => {
    // A file where the folder should be stops even root.
    const block = (workspace: string) => {
      const data = join(dirname(workspace), 'home', 'data')
      mkdirSync(data, { recursive: true })
      writeFileSync(join(data, 'turnback'), 'not a folder')
    }
    world = await startWorld({ scenarios, files: { 'a.txt': '1\n', 'b.txt': '1\n' }, prepare: block })
    rpc = sessionRpc(world.home, () => world.host.url)
  })
  afterAll(() => world?.dispose())

  test('tools and turns work, and the host\'s console says it once', async () => {
    await world.ask('Edit. [scenario:one]')
    await world.ask('Edit again. [scenario:two]')

    await world.page.getByText('The second edit is done.').waitFor()
    expect(world.read('a.txt')).toBe('3\n')
    expect(complaints(world)).toBe(1)
  })

  test('the button says that nothing can be put back, and nothing is deleted or claimed', async () => {
    const log = world.sessionLog()
    await rollbackButton(world, 1).click()
    const dialog = world.page.getByRole('dialog')
    await dialog.getByText(/not recorded|cannot save/).first().waitFor()
    await ui.screenshot(world.page, 'faults-store-blocked')
    await world.page.keyboard.press('Escape')
    const [sessionId] = world.sessionIds()
    const answer = await rpc.command(sessionId!, '/rollback 1')

    expect(answer.kind).toBe('error')
    expect(answer.text).toContain('Turnback cannot save anything, so nothing was changed')
    expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['3\n', '1\n'])
    expect(world.sessionLog().filter(line => line.type === 'user/message')).toEqual(log.filter(line => line.type === 'user/message'))
  })

  test('writable again, the next turn is recorded without a restart; the earlier ones stay named', async () => {
    rmSync(blocker())
    await world.ask('Third edit. [scenario:three]')
    const sessionId = world.sessionIds()[0]!
    const third = expectOk(await rpc.turnback('preview', { sessionId, turn: 3 }))
    expect(third.rows.map(row => [row.shown, row.action])).toEqual([['a.txt', 'write'], ['new.txt', 'delete']])
    expect(third.gaps).toEqual([])
    expect(expectOk(await rpc.turnback('preview', { sessionId, turn: 2 })).gaps).toEqual([{ reason: 'no-record', count: 1, names: ['a.txt'] }])

    expect(await rpc.command(sessionId, '/rollback 3')).toMatchObject({ kind: 'success' })
    expect([world.read('a.txt'), world.read('new.txt')]).toEqual(['3\n', undefined])
    expect(world.pageErrors.filter(error => !error.includes('[turnback] host half: store'))).toEqual([])
  })

  test('blocked once more, the session still opens after a restart', async () => {
    await world.host.stop('SIGTERM')
    rmSync(blocker(), { recursive: true })
    writeFileSync(blocker(), 'not a folder')
    await world.restartHost()
    await ui.openSession(world.page, /Session one/)

    await world.page.getByText('The second edit is done.').waitFor()
    expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
  })
})

/** Mounting needs rights that not every machine gives; where it does not, nothing can be said about a full disk here. */
const canMount = ((): boolean => {
  const folder = mkdtempSync(join(tmpdir(), 'turnback-mount-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]).status === 0
  if (mounted) execFileSync('umount', [folder])
  rmSync(folder, { recursive: true })
  return mounted
})()

if (!canMount) console.warn('NOT RUN: the full disk on the real host, because mounting is not permitted here; contract field 69 covers a full store')

describe.each(canMount ? ['512k'] : [])('field 69: the store lies on a full disk of %s', (size) => {
  let world: World
  let rpc: SessionRpc
  const store = () => join(world.home, 'data', 'turnback')
  beforeAll(async () => {
    const mount = (workspace: string) => {
      const folder = join(dirname(workspace), 'home', 'data', 'turnback')
      mkdirSync(folder, { recursive: true })
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
    }
    world = await startWorld({ scenarios, files: { 'a.txt': '1\n' }, prepare: mount })
    rpc = sessionRpc(world.home, () => world.host.url)
  })
  afterAll(async () => {
    await world?.host.stop()
    if (world !== undefined) execFileSync('umount', [store()])
    await world?.dispose()
  })

  test('a turn whose bytes do not fit works and is named; what fits is still recorded', async () => {
    const id = await rpc.create()
    await rpc.ask(id, 'Edit. [scenario:one]')
    // A file that stands in the disk's way fills it up, as another program would.
    writeFileSync(join(store(), 'filler'), Buffer.alloc(1 << 17))
    await rpc.ask(id, 'Write much. [scenario:big]')
    await rpc.ask(id, 'Write more. [scenario:bigger]')
    expect(world.read('bigger.txt')).toHaveLength(900_000)
    const preview = expectOk(await rpc.turnback('preview', { sessionId: id, turn: 1 }))
    expect(preview.rows.find(row => row.shown === 'a.txt')).toMatchObject({ action: 'write' })
    // Every file of the span is either put back or named, never passed over.
    const spoken = [...preview.rows.map(row => row.shown), ...preview.gaps.flatMap(gap => gap.names)]
    expect(spoken).toEqual(expect.arrayContaining(['big.txt', 'bigger.txt']))

    rmSync(join(store(), 'filler'))
    const answer = await rpc.command(id, '/rollback 1')
    for (const name of ['a.txt', 'big.txt', 'bigger.txt']) {
      const isBack = name === 'a.txt' ? world.read(name) === '1\n' : world.read(name) === undefined
      if (!isBack) expect(answer.text).toMatch(answer.kind === 'error' ? /Free disk space/ : new RegExp(`(Kept|Not restorable|FAILED|not recorded).*${name}`))
    }
    expect(complaints(world)).toBeGreaterThanOrEqual(1)
    expect(complaints(world)).toBeLessThanOrEqual(2)
  })
})

describe('a half is missing or talks nonsense', () => {
  let world: World
  let clientAlone: string
  beforeAll(async () => {
    clientAlone = mkdtempSync(join(tmpdir(), 'turnback-half-'))
    mkdirSync(join(clientAlone, 'lib'))
    const root = fileURLToPath(new URL('../..', import.meta.url))
    for (const part of ['package.json', 'cordis.patch.yml', 'lib/client.js']) copyFileSync(join(root, part), join(clientAlone, part))
    writeFileSync(join(clientAlone, 'lib', 'index.js'), 'export const name = "turnback"\nexport function apply() {}\n')
    world = await startWorld({ scenarios, files: { 'a.txt': '1\n' } })
    await world.ask('Edit. [scenario:one]')
  })
  afterAll(async () => {
    await world?.dispose()
    rmSync(clientAlone, { recursive: true, force: true })
  })
  afterEach(() => world.page.unrouteAll())
  /** What the page threw; that it complains in its console is the point of some of these tests. */
  const thrown = () => world.pageErrors.filter(error => /^\w*Error/.test(error))

  const envelope = (value: unknown) => (rpcId: unknown) => JSON.stringify({ type: 'server-response', rpcId, result: { ok: true, value } })
  test.each([
    ['another shape', 200, envelope({ ok: true, value: { nonsense: true } }), 'answered in a way this page does not understand'],
    ['no envelope', 200, envelope('hello'), 'answered in a way this page does not understand'],
    ['a page of HTML', 200, () => '<html>It works!</html>', /does not answer|does not understand|went wrong/],
    ['an error of the server', 500, () => 'oops', /does not answer|does not understand|went wrong/],
    ['nothing of that name', 404, () => 'not found', 'The host half of Turnback does not answer.'],
  ] as const)('%s: the page boots and the button says why it cannot roll back', async (_, status, body, words) => {
    await world.page.route(/\/turnback\//, route => route.fulfill({
      status, contentType: 'application/json', body: body((route.request().postDataJSON() as { rpcId?: unknown } | null)?.rpcId),
    }))
    await world.page.reload()
    await ui.waitForBoot(world.page)
    await ui.openSession(world.page, /Session one/)
    await rollbackButton(world, 1).click()
    await world.page.getByRole('dialog').getByText(words).first().waitFor()
    if (status === 404) await ui.screenshot(world.page, 'faults-host-missing')
    await world.page.keyboard.press('Escape')

    expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
    expect(thrown()).toEqual([])
    expect(world.read('a.txt')).toBe('2\n')
  })

  test('with the channel back the same button works', async () => {
    await rollbackButton(world, 1).click()
    await world.page.getByRole('dialog').getByRole('button', { name: 'Roll back 1 turn and 1 file' }).click()
    await world.page.getByRole('dialog').getByText('1 file is as it was before.').waitFor()

    expect(world.read('a.txt')).toBe('1\n')
  })

  test('switched off in the profile: the page boots, turns run, nothing of ours is in the way', async () => {
    const patch = join(world.home, 'cordis.patch.yml')
    writeFileSync(patch, '- id: turnback\n  disabled: true\n')
    await world.restartHost()
    rmSync(patch)
    await ui.newSession(world.page)
    await world.ask('Edit. [scenario:one]')
    await world.page.getByText('The edit is done.').waitFor()

    expect(world.read('a.txt')).toBe('2\n')
    expect(await rollbackButton(world, 1).count()).toBe(0)
    expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
  })

  test('field 74: with the browser half alone the page boots, turns run, and the button says what is missing', async () => {
    await world.host.stop('SIGTERM')
    await addPlugin(world.home, clientAlone)
    await world.restartHost()
    await world.ask('Write. [scenario:new]')
    await rollbackButton(world, 1).click()
    await world.page.getByRole('dialog').getByText('The host half of Turnback does not answer.').waitFor()
    await world.page.getByRole('dialog').getByText('Check that DSH is running and the plugin is installed, then try again.').waitFor()
    await world.page.keyboard.press('Escape')

    expect(world.read('new.txt')).toBe('n\n')
    expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
    expect(thrown()).toEqual([])
  })
})
