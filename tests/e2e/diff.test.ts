import { afterAll, beforeAll, expect, test } from 'vitest'
import { violations } from '../support/axe.ts'
import { startWorld, type World } from '../support/e2e-world.ts'

/** A file's diff in the real page: what it reads over the host's channel, compares in a worker and draws. */

const lines = (count: number, lineOf: (at: number) => string) => Array.from({ length: count }, (_, at) => `${lineOf(at + 1)}\n`).join('')
let world: World

beforeAll(async () => {
  world = await startWorld({
    files: { 'small.txt': 'one\r\ntwo\n', 'long.txt': lines(20_000, at => `line ${at}`) },
    scenarios: {
      change: [
        { tools: [{ name: 'bash', args: { command: `printf 'one\\nTWO\\n' > small.txt; sed -i 's/^line \\(.*77\\)$/changed \\1/' long.txt`, description: 'Change both' } }] },
        { text: 'Changed.' },
      ],
    },
  })
  await world.ask('Change both. [scenario:change]')
  await world.page.getByText('Changed.').waitFor()
})
afterAll(() => world?.dispose())

const dialog = () => world.page.getByRole('dialog')
const opener = (path: string) => dialog().getByRole('button', { name: `Changes in ${path}` })
const region = (path: string) => dialog().getByRole('region', { name: `Changes in ${path}` })
const lineOf = (path: string, text: RegExp) => region(path).locator('[data-kind=added]', { hasText: text })

test('shows the lines that a rollback takes and brings, and is accessible', async () => {
  await world.page.getByRole('button', { name: 'Roll back to before turn 1', exact: true }).click()

  await opener('small.txt').click()

  await expect.poll(() => region('small.txt').locator('[data-kind]').evaluateAll(rows => rows.map(row => row.lastElementChild!.textContent))).toEqual([
    'Line 1 goes: one', 'Line 2 goes: TWO', 'Line 1 comes: oneCR', 'Line 2 comes: two',
  ])
  await dialog().getByText('+2 −2').waitFor()
  expect(await violations(world.page, 'dialog')).toEqual([])
})

test('a diff of 20,000 lines is found in a worker, which ends, and only the lines in sight are drawn', async () => {
  const workers: string[] = []
  world.page.on('worker', worker => workers.push(worker.url()))

  await opener('long.txt').click()

  await lineOf('long.txt', /: line 77$/).waitFor()
  expect(workers).toEqual([expect.stringMatching(/^blob:/)])
  await expect.poll(() => world.page.workers().length).toBe(0)
  expect(await region('long.txt').locator('[data-kind]').count()).toBeLessThan(400)
  await region('long.txt').evaluate((element) => { element.scrollTop = element.scrollHeight })
  await lineOf('long.txt', /: line 19977$/).waitFor()
  expect(world.pageErrors).toEqual([])
})
