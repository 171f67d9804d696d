import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { violations } from '../support/axe.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import type { Step } from '../support/mock-model.ts'
import * as ui from '../support/ui.ts'

/** The dialog, the list of turns and what stays afterwards, in the real page: choices, keys, and what a screen reader is told. */

const read = (path: string) => ({ name: 'read', args: { file_path: path } })
const write = (path: string, content: string) => ({ name: 'write', args: { file_path: path, content } })
const edit = (path: string, from: string, to: string) => ({ name: 'edit', args: { file_path: path, old_string: from, new_string: to } })
const run = (command: string) => ({ name: 'bash', args: { command, description: 'Work in the shell' } })
const scenarios: Record<string, Step[]> = {
  t1: [{ tools: [write('one.txt', '1\n')] }, { text: 'Turn one is done.' }],
  t2: [
    { tools: [read('a.txt'), read('b.txt'), read('mine.txt')] },
    { tools: [edit('a.txt', 'a', 'A'), edit('b.txt', 'b', 'B'), edit('mine.txt', 'm', 'M'), write('new/n.txt', 'n\n'), run('rm old.txt')] },
    { text: 'Turn two is done.' },
  ],
  many: [{ tools: [run('for i in $(seq 1 300); do echo $i > many$i.txt; done')] }, { text: 'Turn three is done.' }],
}
const files = { 'a.txt': 'a\n', 'b.txt': 'b\n', 'mine.txt': 'm\n', 'old.txt': 'old\n' }
const dialog = (world: World) => world.page.getByRole('dialog')
const openDialog = async (world: World, turn: number) => {
  await world.page.getByRole('button', { name: `Roll back to before turn ${turn}`, exact: true }).click()
  await dialog(world).getByRole('radio', { name: 'Conversation and files' }).waitFor()
}
const leave = async (world: World, name = 'Close') => {
  await dialog(world).getByRole('button', { name }).last().click()
  await dialog(world).waitFor({ state: 'hidden' })
}

describe('choices', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ scenarios, files })
    await world.ask('First task. [scenario:t1]')
    await world.ask('Second task. [scenario:t2]')
    world.write('mine.txt', 'my own\n')
  })
  afterAll(() => world?.dispose())

  test('the button says what its turn changed', async () => {
    const button = world.page.getByRole('button', { name: 'Roll back to before turn 2', exact: true })
    await button.hover()
    await expect.poll(() => button.getAttribute('title')).toBe('Roll back to before turn 2 · 5 files')
  })

  test('files only, one of them left out: the conversation and that file stay', async () => {
    const before = world.lastRequestTexts().length
    await openDialog(world, 2)
    await dialog(world).getByText('Files only').click()
    await dialog(world).getByText('The conversation stays as it is').waitFor()
    await dialog(world).getByRole('checkbox', { name: 'Put back b.txt' }).uncheck()
    await ui.screenshot(world.page, 'selection')
    await dialog(world).getByRole('button', { name: 'Put back 3 files' }).click()
    await dialog(world).getByText('3 files are as they were before.').waitFor()
    await leave(world)

    expect(['a.txt', 'b.txt', 'mine.txt', 'old.txt', 'new/n.txt'].map(world.read)).toEqual(['a\n', 'B\n', 'my own\n', 'old\n', undefined])
    expect(await world.page.getByText('turn rolled back').count()).toBe(0)
    await world.ask('Go on.')
    expect(world.lastRequestTexts().length).toBe(before + 2)
  })

  test('what was left out goes back later, and the conflict by choice', async () => {
    await openDialog(world, 2)
    await dialog(world).getByText('b.txt').waitFor()
    expect(await dialog(world).getByRole('checkbox', { name: 'Put back a.txt' }).count()).toBe(0)
    await dialog(world).getByRole('group', { name: 'What to do with mine.txt' }).getByText('Put back').click()
    await dialog(world).getByRole('button', { name: 'Roll back 2 turns and 2 files' }).click()
    await dialog(world).getByText('2 files are as they were before.').waitFor()
    await leave(world)

    expect(['b.txt', 'mine.txt'].map(world.read)).toEqual(['b\n', 'm\n'])
    await world.page.getByText('2 turns rolled back').waitFor()
  })

  test('conversation only leaves every file', async () => {
    await world.ask('Again. [scenario:t2]')
    expect(world.read('a.txt')).toBe('A\n')
    await openDialog(world, 4)
    await dialog(world).getByText('Conversation only').click()
    await dialog(world).getByText('No file is touched.').waitFor()
    await dialog(world).getByRole('button', { name: 'Roll back 1 turn, leave the files' }).click()
    await dialog(world).getByText('1 turn left the conversation.').waitFor()
    await leave(world)

    expect(['a.txt', 'b.txt', 'new/n.txt'].map(world.read)).toEqual(['A\n', 'B\n', 'n\n'])
    await world.ask('Next.')
    expect(world.lastRequestTexts().join('\n')).not.toContain('Again.')
    expect(world.pageErrors).toEqual([])
  })

  test('withdrawn turns can be read again where they were, dimmed, and their button leads nowhere', async () => {
    const words = world.page.getByText('Again. [scenario:t2]', { exact: true }).last()
    expect(await words.isVisible()).toBe(false)
    await world.page.getByRole('button', { name: 'Show', exact: true }).last().click()
    await words.waitFor()
    await ui.screenshot(world.page, 'shown')
    expect(await world.page.getByRole('button', { name: 'Roll back to before turn 4', exact: true }).getAttribute('aria-disabled')).toBe('true')
    await world.page.getByRole('button', { name: 'Hide again' }).click()
    await words.waitFor({ state: 'hidden' })
  })

  test('the bare command opens the list of turns, worked by keys alone, and a choice opens the dialog', async () => {
    await ui.runCommand(world.page, '/rollback')
    const list = world.page.getByRole('listbox').last()
    await list.getByText('Next.').waitFor()
    expect((await list.getByRole('option').allInnerTexts()).map(text => text.split('\n')[0])).toEqual([
      'Before the last turn (5): Next.', 'Before turn 4: Again. [scenario:t2]', 'Before turn 3: Go on.',
      'Before turn 2: Second task. [scenario:t2]', 'Before turn 1: First task. [scenario:t1]',
    ])
    await world.page.keyboard.type('second')
    await world.page.keyboard.press('Enter')
    await world.page.getByText('Turn 2 was already rolled back.').waitFor()
    expect(await dialog(world).count()).toBe(0)

    await world.page.keyboard.press('Control+A')
    await world.page.keyboard.type('first')
    await world.page.keyboard.press('Enter')
    await dialog(world).getByText('Roll back to before turn 1').waitFor()
    await world.page.keyboard.press('Escape')
    await dialog(world).waitFor({ state: 'hidden' })
    expect(await ui.composer(world.page).inputValue()).toBe('')
    await expect.poll(() => world.page.evaluate(() => document.activeElement?.tagName)).toBe('TEXTAREA')
  })
})

describe.each([
  ['en-US', 'light', 1280], ['zh-CN', 'dark', 480],
] as const)('axe-core finds nothing, %s, %s, %i px', (locale, colorScheme, width) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ scenarios, files, page: { locale, colorScheme, viewport: { width, height: 900 }, reducedMotion: 'reduce' } })
    await world.ask('First task. [scenario:t1]')
    await world.ask('Second task. [scenario:t2]')
    await world.ask('Third task. [scenario:many]')
    world.write('mine.txt', 'my own\n')
  })
  afterAll(() => world?.dispose())

  const button = (turn: number) => world.page.getByRole('button', { name: new RegExp(`^(Roll back to before turn ${turn}|回退到第 ${turn} 轮之前)$`) })
  const primary = () => dialog(world).getByRole('button').last()
  const result = () => world.page.getByRole('dialog', { name: /^(Rolled back|已回退)/ })
  const look = (name: string) => ui.screenshot(world.page, `axe-${name}-${locale}-${colorScheme}-${width}`)

  test('in the button, the dialog in each scope, the result, the bar and the welcome block', async () => {
    expect(await violations(world.page, 'button[aria-label$="2"], button[aria-label*="第 2 轮"]')).toEqual([])
    await button(2).click()
    await dialog(world).getByText('mine.txt').waitFor()
    await look('dialog')
    expect(await violations(world.page, 'dialog')).toEqual([])
    for (const at of [1, 2, 0]) {
      await dialog(world).getByRole('radio').nth(at).click({ force: true })
      await expect.poll(() => primary().getAttribute('aria-disabled')).toBe('false')
      expect(await violations(world.page, 'dialog')).toEqual([])
    }
    await primary().click()
    await result().waitFor()
    await look('result')
    expect(await violations(world.page, 'dialog')).toEqual([])
    await primary().click()
    await dialog(world).waitFor({ state: 'hidden' })
    await look('bar')
    expect(await violations(world.page, '[data-turnback]')).toEqual([])

    await button(1).click()
    await dialog(world).getByText('one.txt').waitFor()
    await primary().click()
    await result().waitFor()
    await primary().click()
    await dialog(world).waitFor({ state: 'hidden' })
    await world.page.getByText(/^(A fresh start|重新开始)$/).waitFor()
    await look('hero')
    expect(await violations(world.page, '[data-turnback]')).toEqual([])
  }, 120_000)
})
