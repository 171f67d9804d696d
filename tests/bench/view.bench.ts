import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { timelineOf } from '../../host/rollback/timeline.ts'
import type { JournalEntry } from '../../src/checkpoint/journal-entry.ts'
import { foldLedger } from '../../src/ledger/ledger.ts'
import { aJournal, root, stateOf } from '../support/a-journal.ts'
import { aLog } from '../support/a-log.ts'
import { packPlugin } from '../support/dsh-host.ts'
import * as ui from '../support/ui.ts'
import { longestTask, onDisk } from './page.bench.ts'
import type { Bench, Measurement } from './run.ts'
import { median, rounded } from './side-by-side.ts'

/**
 * The Checkpoints view of a long session. The turns are folded by the host half's own code from a log and a journal in
 * memory; the page is given that answer in the place of its host's, because a thousand real turns take an hour.
 */
const TURNS = 1_000
const FILES = 10
const ROUNDS = 9

function longTimeline() {
  const log = aLog()
  const journal = aJournal()
  for (let turn = 1; turn <= TURNS; turn += 1) {
    log.turn(`Task ${turn}: change what has to be changed in these files`).says('Done, as you asked.')
    journal.turn(turn)
    for (let at = 0; at < FILES; at += 1) journal.changes(`/w/src/part${(turn + at) % 97}/file${at}.ts`, `${turn - 1}\n`, `${turn}\n`)
  }
  const events = log.done()
  const starts = events.filter(({ type }) => type === 'turn/start').map(({ seq }) => seq)
  const entries = journal.entries.map((entry): JournalEntry => ('turn' in entry ? { ...entry, turn: { ...entry.turn, startSeq: starts[entry.turn.number - 1]! } } : entry))
  return timelineOf(root, events, { ledger: foldLedger(entries), entries }, undefined)
}

async function bytes(): Promise<Measurement> {
  const size = Buffer.byteLength(JSON.stringify(longTimeline()))
  return { value: rounded(size / 1000), unit: 'kB', limit: 400, input: `${TURNS} turns with ${FILES} files each, as the page gets them, not compressed` }
}

/** The page's questions about turns are answered with the long session's. */
async function answer(page: Page): Promise<void> {
  const rows = Array.from({ length: FILES }, (_, at) => ({ path: `/w/file${at}.ts`, shown: `file${at}.ts`, before: stateOf('1\n'), after: stateOf('2\n'), origins: ['shell'] }))
  const values: Record<string, unknown> = {
    timeline: longTimeline(), checkpoint: { rows, more: 0 }, counts: { counts: [] },
    diff: { current: stateOf('1\n'), goal: stateOf('2\n'), content: { kind: 'text', before: '1\n', after: '2\n' } },
  }
  await page.route(/\/turnback\/(timeline|checkpoint|counts|diff)$/, async (route) => {
    const { rpcId } = route.request().postDataJSON() as { rpcId: string }
    const value = values[route.request().url().split('/').at(-1)!]
    await route.fulfill({ json: { type: 'server-response', rpcId, result: { ok: true, value: { ok: true, value } } } })
  })
}

function withView<T>(work: (page: Page, browser: Parameters<typeof longestTask>[0]) => Promise<T>): Promise<T> {
  return onDisk({ talk: [{ text: 'An answer.' }] }, async ({ base, browser, start }) => {
    const host = await start(join(base, 'home'), [await packPlugin()])
    const page = await ui.openApp(browser, host.url)
    await ui.composer(page).waitFor()
    await ui.sendPrompt(page, 'Begin. [scenario:talk]')
    await ui.waitForIdle(page)
    await answer(page)
    return work(page, browser)
  })
}

/** Milliseconds in the page from the click to two frames after the list is there. */
const open = (page: Page): Promise<number> => page.evaluate(() => new Promise<number>((done) => {
  const start = performance.now()
  if (document.querySelector('[data-turnback-view]') !== null) throw new Error('bench: the view is open already')
  const tab = [...document.querySelectorAll<HTMLElement>('[role=tab]')].find(({ textContent }) => textContent === 'Checkpoints')!
  tab.click()
  const look = () => {
    if (document.querySelector('[data-turnback-view] [role=option]') === null) return void requestAnimationFrame(look)
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)))
  }
  look()
}))

/** The same for a plain list of the same rows, all of them, made from the same answer. */
const openBare = (page: Page): Promise<number> => page.evaluate(async () => {
  const start = performance.now()
  const reply = await fetch('/turnback/timeline', { method: 'POST', body: JSON.stringify({ rpcId: 'bare' }) })
  const { result } = await reply.json() as { result: { value: { value: { turns: { turn: number; title: string; files: number; atMs: number }[] } } } }
  const list = document.createElement('ul')
  list.style.cssText = 'position:fixed;inset:76px 0 0 280px;overflow:auto;background:canvas'
  const format = new Intl.DateTimeFormat()
  for (const turn of result.value.value.turns) {
    const item = document.createElement('li')
    for (const words of [String(turn.turn), turn.title, format.format(turn.atMs), `${turn.files} files`]) item.append(Object.assign(document.createElement('span'), { textContent: words }))
    list.append(item)
  }
  document.body.append(list)
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
  const took = performance.now() - start
  list.remove()
  return took
})

function opening(): Promise<Measurement> {
  return withView(async (page) => {
    const times = { ours: [] as number[], bare: [] as number[] }
    for (let round = -1; round < ROUNDS; round += 1) {
      // A fresh page each time, with the chat before it: what was read once stays, and so does the chosen tab.
      await page.getByRole('tab', { name: 'Chat' }).click()
      await page.reload()
      await ui.waitForBoot(page)
      await page.getByRole('tab', { name: 'Checkpoints' }).waitFor()
      // What the page does at its start is nobody's here.
      await page.waitForTimeout(1_000)
      // Whoever comes second finds a warm page, so they take turns.
      const order = round % 2 === 0 ? (['ours', 'bare'] as const) : (['bare', 'ours'] as const)
      for (const side of order) {
        const took = await (side === 'ours' ? open : openBare)(page)
        if (round >= 0) times[side].push(took)
      }
    }
    const [ours, bare] = [median(times.ours), median(times.bare)]
    return { value: rounded(ours / bare), unit: 'times', limit: 1.5, baseline: { name: 'a bare list of the same rows', value: 1 }, input: `${TURNS} turns, ${Math.round(ours)} ms to ${Math.round(bare)} ms, medians of ${ROUNDS}` }
  })
}

function scrolling(): Promise<Measurement> {
  return withView(async (page, browser) => {
    await page.getByRole('tab', { name: 'Checkpoints' }).click()
    const rail = page.getByRole('listbox', { name: 'Turns, newest first' })
    await rail.waitFor()
    const box = (await rail.locator('xpath=..').boundingBox())!
    const tasks: { wall: number; cpu: number }[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      tasks.push(await longestTask(browser, page, async () => {
        await page.mouse.move(box.x + 100, box.y + 200)
        for (let step = 0; step < 20; step += 1) {
          await page.mouse.wheel(0, (step < 15 ? 1_000 : 10_000) * (round % 2 === 0 ? 1 : -1))
          await page.waitForTimeout(30)
        }
      }))
    }
    return { value: rounded(median(tasks.map(({ wall }) => wall))), unit: 'ms, longest task of the main thread', limit: 50, input: `${TURNS} turns scrolled through, median of ${ROUNDS}; of processor time ${rounded(median(tasks.map(({ cpu }) => cpu)))} ms` }
  })
}

export const benches: readonly Bench[] = [
  { name: 'timeline_kb', run: bytes },
  { name: 'timeline_open', run: opening },
  { name: 'timeline_scroll_task_ms', run: scrolling },
]
