import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { packPlugin, startHost, type Host } from '../support/dsh-host.ts'
import { startMockModel, type Step } from '../support/mock-model.ts'
import { sessionRpc } from '../support/session-rpc.ts'
import * as ui from '../support/ui.ts'
import type { Bench, Measurement } from './run.ts'
import { median, rounded } from './side-by-side.ts'

/** The page in real Chromium on the real host. Needs a build, the host and a browser, which `npm run bench` brings. */

const ROUNDS = 9
const run = (command: string): Step => ({ tools: [{ name: 'bash', args: { command, description: 'Work in the shell' } }] })

/** A home and a workspace for a bench, and all that is started on them; gone when it ends. */
export async function onDisk<T>(scenarios: Record<string, Step[]>, work: (site: Site) => Promise<T>): Promise<T> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-bench-')))
  const workspace = join(base, 'workspace')
  mkdirSync(workspace)
  const model = await startMockModel({ scenarios })
  const ends: (() => unknown)[] = [() => model.close()]
  const browser = await ui.launchBrowser()
  ends.push(() => browser.close())
  try {
    return await work({
      base, workspace, browser,
      async start(home, plugins) {
        const host = await startHost({ home, workspace, modelUrl: model.url, plugins, skipNotice: true, openWorkspace: true })
        ends.push(() => host.stop())
        return host
      },
    })
  } finally {
    for (const end of ends.reverse()) await end()
    rmSync(base, { recursive: true, force: true, maxRetries: 5 })
  }
}
interface Site {
  readonly base: string
  readonly workspace: string
  readonly browser: Browser
  start(home: string, plugins: readonly string[]): Promise<Host>
}

interface TraceEvent { readonly name: string; readonly pid: number; readonly tid: number; readonly dur?: number; readonly tdur?: number; readonly args?: { readonly name?: string } }

/** The longest task of the page's main thread during `work`, milliseconds, and the most processor time that one took. */
export async function longestTask(browser: Browser, page: Page, work: () => Promise<void>): Promise<{ wall: number; cpu: number }> {
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] })
  await work()
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString('utf8')) as { traceEvents: readonly TraceEvent[] }
  const mains = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`))
  const tasks = traceEvents.filter(({ name, pid, tid, dur }) => dur !== undefined && name.endsWith('RunTask') && mains.has(`${pid} ${tid}`))
  if (tasks.length === 0) throw new Error('bench: the trace has no tasks')
  return { wall: Math.max(...tasks.map(({ dur }) => dur!)) / 1000, cpu: Math.max(...tasks.map(({ tdur }) => tdur ?? 0)) / 1000 }
}

const FILES = 2_000

function dialog(): Promise<Measurement> {
  const prompt = 'Make the files. [scenario:many]'
  return onDisk({ many: [run(`for i in $(seq 1 ${FILES}); do echo $i > file$i.txt; done`), { text: 'Done.' }] }, async ({ base, browser, start }) => {
    const host = await start(join(base, 'home'), [await packPlugin()])
    const page = await ui.openApp(browser, host.url)
    await ui.composer(page).waitFor()
    await ui.sendPrompt(page, prompt)
    await ui.waitForIdle(page, 120_000)
    const tasks: { wall: number; cpu: number }[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      tasks.push(await longestTask(browser, page, async () => {
        await page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
        const shown = page.getByRole('dialog')
        await shown.getByRole('button', { name: new RegExp(`Delete files made in these turns ${FILES}`) }).click()
        await shown.getByText('file1.txt', { exact: true }).waitFor()
        for (let step = 0; step < 20; step += 1) {
          await page.mouse.move(700, 500)
          await page.mouse.wheel(0, step < 15 ? 1_000 : 10_000)
          await page.waitForTimeout(30)
        }
      }))
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
    return { value: rounded(median(tasks.map(({ wall }) => wall))), unit: 'ms, longest task of the main thread', limit: 50, input: `a dialog with ${FILES} rows opened and scrolled through, median of ${ROUNDS}; of processor time ${rounded(median(tasks.map(({ cpu }) => cpu)))} ms` }
  })
}

const LINES = 20_000

function diff(): Promise<Measurement> {
  const command = `seq 1 ${LINES} | sed 's/^/line /; s/7$/7 changed/' > long.txt`
  return onDisk({ long: [run(command), { text: 'Done.' }] }, async ({ base, workspace, browser, start }) => {
    writeFileSync(join(workspace, 'long.txt'), Array.from({ length: LINES }, (_, at) => `line ${at + 1}\n`).join(''))
    const host = await start(join(base, 'home'), [await packPlugin()])
    const page = await ui.openApp(browser, host.url)
    await ui.composer(page).waitFor()
    await ui.sendPrompt(page, 'Write it anew. [scenario:long]')
    await ui.waitForIdle(page, 120_000)
    const tasks: { wall: number; cpu: number }[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      await page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()
      const shown = page.getByRole('dialog')
      const opener = shown.getByRole('button', { name: 'Changes in long.txt' })
      await opener.waitFor()
      tasks.push(await longestTask(browser, page, async () => {
        await opener.click()
        const region = shown.getByRole('region', { name: 'Changes in long.txt' })
        await region.locator('[data-kind]').first().waitFor()
        for (let step = 1; step <= 10; step += 1) {
          await region.evaluate((element, part) => { element.scrollTop = element.scrollHeight * part }, step / 10)
          await page.waitForTimeout(30)
        }
      }))
      await page.keyboard.press('Escape')
      await shown.waitFor({ state: 'hidden' })
    }
    return {
      value: rounded(median(tasks.map(({ wall }) => wall))), unit: 'ms, longest task of the main thread', limit: 50,
      input: `the diff of a file of ${LINES} lines, every tenth changed, opened and scrolled through, median of ${ROUNDS}; of processor time ${rounded(median(tasks.map(({ cpu }) => cpu)))} ms`,
    }
  })
}

const TURNS = 300

function transcript(): Promise<Measurement> {
  const scenarios = { talk: [{ text: 'An answer of a line or two, as most of them are.\n\nAnd a second paragraph.' }] }
  return onDisk(scenarios, async ({ base, browser, start }) => {
    const homes = { ours: join(base, 'with'), theirs: join(base, 'without') }
    const first = await start(homes.theirs, [])
    const rpc = sessionRpc(homes.theirs, () => first.url)
    const id = await rpc.create()
    for (let turn = 1; turn <= TURNS; turn += 1) await rpc.ask(id, `Question ${turn}. [scenario:talk]`)
    await first.stop()
    cpSync(homes.theirs, homes.ours, { recursive: true, verbatimSymlinks: true })
    const pages = {
      ours: await ui.openApp(browser, (await start(homes.ours, [await packPlugin()])).url),
      theirs: await ui.openApp(browser, (await start(homes.theirs, [])).url),
    }
    const last = `Question ${TURNS}. [scenario:talk]`
    for (const page of [pages.ours, pages.theirs]) {
      await page.getByRole('treeitem').filter({ hasText: 'Session talk' }).last().click()
      await page.getByText(last, { exact: true }).last().waitFor()
    }
    const times = { ours: [] as number[], theirs: [] as number[] }
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const side of ['ours', 'theirs'] as const) {
        const page = pages[side]
        const start = performance.now()
        await page.reload()
        await page.getByText(last, { exact: true }).last().waitFor()
        await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
        if (round >= 0) times[side].push(performance.now() - start)
      }
    }
    const [ours, theirs] = [median(times.ours), median(times.theirs)]
    return { value: rounded(ours / theirs), unit: 'times', limit: 1.15, baseline: { name: 'without the plugin', value: 1 }, input: `the page with a chat of ${TURNS} turns loaded anew, ${Math.round(ours)} ms to ${Math.round(theirs)} ms, medians of ${ROUNDS}` }
  })
}

async function bundle(): Promise<Measurement> {
  const bytes = gzipSync(readFileSync(new URL('../../lib/client.js', import.meta.url)), { level: 9 }).length
  return { value: rounded(bytes / 1024), unit: 'KiB', limit: 45, input: 'lib/client.js, gzip' }
}

export const benches: readonly Bench[] = [
  { name: 'bundle_gzip_kb', run: bundle },
  { name: 'dialog_2000_task_ms', run: dialog },
  { name: 'diff_20k_task_ms', run: diff },
  { name: 'transcript_300', run: transcript },
]
