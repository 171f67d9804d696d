import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packPlugin, type LogLine } from '../support/dsh-host.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import { sessionRpc, type SessionRpc } from '../support/session-rpc.ts'
import { treeOf, type Tree } from '../support/tree.ts'
import * as ui from '../support/ui.ts'

/**
 * The host is killed (SIGKILL) at a step of a rollback and started again on the same home. The rule: with the marker
 * in the durable log the rollback is finished, without it everything is taken back; never a half. All places share
 * one home, each has its own session and folder; every start but the last serves the next place as well.
 */

interface Place {
  readonly name: string
  readonly phase: string
  readonly count: number
  /** What the next start must make of it; at `marker` the log on the disk decides. */
  readonly outcome: 'taken back' | 'finished' | 'either'
}

const place = (phase: string, outcome: Place['outcome'], count = 1): Place =>
  ({ name: phase === 'file' ? `file-${count}` : phase, phase, count, outcome })
/** How often the rollback below reports `file`: before and after each change to the disk. */
const FILE_STEPS = 28
const fileSteps = process.env['TURNBACK_LONG'] === '1' ? Array.from({ length: FILE_STEPS }, (_, at) => at + 1) : [1, FILE_STEPS / 2]
const places: readonly Place[] = [
  place('op-begin', 'taken back'),
  ...fileSteps.map(count => place('file', 'taken back', count)),
  place('op-applied', 'taken back'),
  place('marker', 'either'),
  place('flushed', 'finished'),
  place('op-done', 'finished'),
]

/** An undo changes files only, so its own note that all was tried (`op-applied`) commits it. */
const undoPlaces: readonly Place[] = [
  { ...place('file', 'taken back', 5), name: 'undo-file' },
  { ...place('op-applied', 'finished'), name: 'undo-applied' },
]

/** Turn 2 edits three files and makes one in a new folder, all below the place's own folder. */
function turns(folder: string): Record<string, Step[]> {
  const path = (name: string) => `${folder}/${name}`
  const edit = (name: string) => ({ name: 'edit', args: { file_path: path(name), old_string: '1', new_string: '2' } })
  const read = (name: string) => ({ name: 'read', args: { file_path: path(name) } })
  const write = (name: string, content: string) => ({ name: 'write', args: { file_path: path(name), content } })
  return {
    [`${folder}-t1`]: [{ tools: [write('a.txt', 'a1\n')] }, { text: 'One.' }],
    [`${folder}-t2`]: [
      { tools: [edit('a.txt'), read('hand.txt'), read('gone.txt'), write('lib/n.txt', 'n2\n')] },
      { tools: [edit('hand.txt'), edit('gone.txt')] },
      { text: 'Two.' },
    ],
    [`${folder}-t3`]: [{ text: `The answer of turn three in ${folder}.` }],
  }
}

const general: Record<string, Step[]> = {
  next: [{ text: 'The next turn is done.' }],
  cut: [{ tools: [{ name: 'write', args: { file_path: 'cut/new.txt', content: 'half\n' } }] }, { text: 'Not to the end', hold: true }],
}
const handBytes = 'h1\r\nmy own words\r\n'
const beforeTurn2: Tree = { 'a.txt': 'a1\n', 'gone.txt': 'g1\n', 'hand.txt': 'h1\r\n' }
/** The user wants these two put back although both were changed by hand. */
const putBack = (folder: string) => [`${folder}/hand.txt`, `${folder}/gone.txt`]

let world: World
let rpc: SessionRpc
const sessions = new Map<string, { id: string, before: Tree, after: Tree, log: readonly LogLine[], isFinished: boolean }>()
beforeAll(async () => {
  const folders = [...places, ...undoPlaces].map(({ name }) => name)
  world = await startWorld({
    plugins: [await packPlugin(), fileURLToPath(new URL('../support/crash-plugin', import.meta.url))],
    scenarios: Object.assign({}, general, ...folders.map(turns)),
    files: Object.fromEntries(folders.flatMap(folder => [[`${folder}/hand.txt`, 'h1\r\n'], [`${folder}/gone.txt`, 'g1\n']])),
  })
  rpc = sessionRpc(world.home, () => world.host.url)
  // Nothing is looked at before the last start.
  await world.page.goto('about:blank')
})
afterAll(() => world?.dispose())

const treeIn = (folder: string) => treeOf(join(world.workspace, folder))

/** Three turns, then the user's own edit of one file and removal of another. */
async function threeTurns(name: string): Promise<string> {
  const id = await rpc.create()
  for (const turn of [1, 2, 3]) await rpc.ask(id, `Task ${turn} in ${name}. [scenario:${name}-t${turn}]`)
  writeFileSync(join(world.workspace, name, 'hand.txt'), handBytes)
  rmSync(join(world.workspace, name, 'gone.txt'))
  return id
}

const crashAt = ({ phase, count }: Place) => writeFileSync(join(world.home, 'crash-at.json'), JSON.stringify({ phase, count }))

test.each(places)('killed at $name, the next start leaves files and conversation in step', async (at) => {
  const { name, phase, outcome } = at
  const id = await threeTurns(name)
  const before = treeIn(name)
  crashAt(at)

  await expect(rpc.confirm(id, 2, putBack(name))).rejects.toThrow('fetch failed')
  expect(await world.host.exited).toBe('SIGKILL')
  if (phase === 'op-done') {
    expect(phasesOf(world)).toEqual(['op-begin', ...Array.from({ length: FILE_STEPS }, () => 'file'), 'op-applied', 'marker', 'flushed', 'op-done'])
  }
  const isFinished = markersOf(world.sessionLog(id)).length === 1
  if (outcome !== 'either') expect(isFinished).toBe(outcome === 'finished')

  await world.restartHostAlone()
  await expect.poll(() => openOps(world)).toEqual([])
  const log = world.sessionLog(id)
  const after = treeIn(name)
  expect(after).toEqual(isFinished ? beforeTurn2 : before)
  expect(markersOf(log)).toHaveLength(isFinished ? 1 : 0)
  sessions.set(name, { id, before, after, log, isFinished })
})

test.each(undoPlaces)('an undo killed at $name leaves all files or none', async (at) => {
  const { name, outcome } = at
  const id = await threeTurns(name)
  const before = treeIn(name)
  await rpc.confirm(id, 2, putBack(name))
  crashAt(at)

  await expect(rpc.command(id, '/rollback undo')).rejects.toThrow('fetch failed')
  await world.restartHostAlone()
  await expect.poll(() => openOps(world)).toEqual([])
  const isUndone = outcome === 'finished'
  const after = treeIn(name)
  expect(after).toEqual(isUndone ? before : beforeTurn2)
  sessions.set(name, { id, before, after, log: world.sessionLog(id), isFinished: isUndone })
})

test('one more start changes nothing', async () => {
  const packs = join(world.home, 'data', 'turnback', 'v1', 'packs')
  const stored = treeOf(packs)
  await world.restartHost('SIGTERM')

  for (const [name, { id, after, log }] of sessions) {
    expect(treeIn(name)).toEqual(after)
    expect(world.sessionLog(id)).toEqual(log)
  }
  expect(sessions.size).toBe(places.length + undoPlaces.length)
  expect(treeOf(packs)).toEqual(stored)
})

describe.each(places)('after the kill at $name', ({ name }) => {
  test('the session opens in the page and goes on with what it should know', async () => {
    const { isFinished } = sessions.get(name)!
    // After a kill the host may know the first prompt only, not the title.
    await ui.openSession(world.page, new RegExp(`Session ${name}-t1|Task 1 in ${name}\\.`))
    await world.page.getByText(`Task 1 in ${name}.`).first().waitFor()
    const answer = world.page.getByText(`The answer of turn three in ${name}.`).filter({ visible: true })
    await expect.poll(() => answer.count()).toBe(isFinished ? 0 : 1)
    await world.ask('Go on. [scenario:next]')
    const request = world.lastRequestTexts().join('\n')

    expect(request).toContain(`Task 1 in ${name}.`)
    expect(request.includes(`Task 2 in ${name}.`)).toBe(!isFinished)
    expect(request.includes(`The answer of turn three in ${name}.`)).toBe(!isFinished)
    expect(world.pageErrors).toEqual([])
  })

  test('nothing is lost: the undo brings back the user\'s bytes, or the same rollback works now', async () => {
    const { id, isFinished, before } = sessions.get(name)!
    const reply = isFinished ? await rpc.command(id, '/rollback undo') : await rpc.confirm(id, 2, putBack(name))

    expect(reply).toMatchObject({ kind: 'success' })
    expect(treeIn(name)).toEqual(isFinished ? before : beforeTurn2)
    expect(openOps(world)).toEqual([])
  })
})

test.each(undoPlaces)('after $name: undone means undone, taken back can be undone again', async ({ name }) => {
  const { id, before, isFinished } = sessions.get(name)!
  const reply = await rpc.command(id, '/rollback undo')

  expect(reply.kind).toBe(isFinished ? 'error' : 'success')
  expect(treeIn(name)).toEqual(before)
})

// In a home of its own: a session loses its title with the process, and so do the copies that the undos above have made.
describe('a host killed while a turn runs, after the turn has written a file', () => {
  let world: World
  beforeAll(async () => { world = await startWorld({ scenarios: general }) })
  afterAll(() => world?.dispose())

  test('the turn can be rolled back', async () => {
    await ui.sendPrompt(world.page, 'This will be cut off. [scenario:cut]')
    await world.model.held()
    expect(world.read('cut/new.txt')).toBe('half\n')
    await world.restartHost('SIGKILL')
    await ui.openSession(world.page, /^(Session cut|This will be cut off|workspace \S)/)

    await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
    await world.page.getByRole('dialog').getByRole('button', { name: 'Roll back 1 turn and 1 file' }).click()
    await world.page.getByRole('dialog').getByText('1 file is as it was before.').waitFor()

    expect(existsSync(join(world.workspace, 'cut'))).toBe(false)
    await ui.screenshot(world.page, 'crash-cut-turn-rolled-back')
  })
})

/** Our rollbacks in a log, as the host stored them. */
function markersOf(log: readonly LogLine[]): readonly LogLine[] {
  return log.filter(line => line.type === 'user/message' && String(line.data?.['id']).startsWith('turnback:'))
}

const phasesOf = ({ host }: World): readonly string[] => [...host.log().matchAll(/\[turnback\/phase\] (\S+)/g)].map(match => match[1]!)

const openOps = ({ home }: World): readonly string[] => {
  const folder = join(home, 'data', 'turnback', 'v1', 'ops')
  return existsSync(folder) ? readdirSync(folder) : []
}
