import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Step } from '../support/mock-model.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import * as ui from '../support/ui.ts'

const crlf = '\uFEFFone\r\ntwo\r\nthree\r\n'
const scenarios: Record<string, Step[]> = {
  t1: [{ tools: [{ name: 'write', args: { file_path: 'a.txt', content: 'a1\n' } }] }, { text: 'Turn one is done.' }],
  t2: [
    { tools: [
      { name: 'edit', args: { file_path: 'a.txt', old_string: 'a1', new_string: 'a2' } },
      { name: 'write', args: { file_path: 'lib/deep/n1.txt', content: 'n1\n' } },
      { name: 'write', args: { file_path: 'lib/deep/n2.txt', content: 'n2\n' } },
      { name: 'read', args: { file_path: 'hand.txt' } },
    ] },
    { tools: [{ name: 'edit', args: { file_path: 'hand.txt', old_string: 'h0', new_string: 'h2' } }] },
    { text: 'Turn two is done.' },
  ],
  t3: [
    { tools: [{ name: 'read', args: { file_path: 'crlf.txt' } }] },
    { tools: [{ name: 'edit', args: { file_path: 'crlf.txt', old_string: 'two', new_string: 'TWO' } }] },
    { text: 'Turn three is done.' },
  ],
  next: [{ text: 'The next turn is done.' }],
}

let world: World
beforeAll(async () => {
  world = await startWorld({ scenarios, files: { 'crlf.txt': crlf, 'hand.txt': 'h0\n' } })
  await world.ask('First task. [scenario:t1]')
  await world.ask('Second task. [scenario:t2]')
  await world.ask('Third task. [scenario:t3]')
  writeFileSync(join(world.workspace, 'hand.txt'), 'h2 and my own words\n')
})
afterAll(() => world?.dispose())

const rollbackButton = (turn: number) => world.page.getByRole('button', { name: `Roll back to before turn ${turn}` })

test('every finished turn has one rollback button', async () => {
  for (const turn of [1, 2, 3]) await expect.poll(() => rollbackButton(turn).count()).toBe(1)
})

test('the dialog shows what would happen and a confirm does it', async () => {
  await rollbackButton(2).click()
  const dialog = world.page.getByRole('dialog')
  await dialog.getByText('a.txt').waitFor()
  await ui.screenshot(world.page, 'dialog-ready')
  await dialog.getByRole('button', { name: /^Roll back/ }).click()
  await dialog.getByRole('button', { name: 'Close' }).last().waitFor()
  await ui.screenshot(world.page, 'dialog-done')

  expect(readFileSync(join(world.workspace, 'a.txt'), 'utf8')).toBe('a1\n')
  expect(existsSync(join(world.workspace, 'lib'))).toBe(false)
  expect(readFileSync(join(world.workspace, 'crlf.txt'), 'utf8')).toBe(crlf)
  expect(readFileSync(join(world.workspace, 'hand.txt'), 'utf8')).toBe('h2 and my own words\n')
})
