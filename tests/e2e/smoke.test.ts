import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../support/e2e-world.ts'

let world: World

beforeAll(async () => {
  world = await startWorld({ files: { 'existing.txt': 'alpha\nbeta\n' } })
})
afterAll(() => world?.dispose())

test('the page boots with the packed plugin and no slot of it is broken', async () => {
  const loaded = await world.page.evaluate(() => JSON.stringify((window as { __DSH_BOOT__?: unknown }).__DSH_BOOT__))

  expect(loaded).toContain('dsh-turnback')
  expect(await world.page.getByText('Failed to load plugins').count()).toBe(0)
  expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
})

test('a scripted turn changes files and its log can be read', async () => {
  await world.ask('Please work. [scenario:work]')

  await world.page.getByText('All three changes are done.').waitFor()
  expect(world.read('new.txt')).toBe('first line\nsecond line\n')
  expect(world.read('existing.txt')).toBe('ALPHA\nbeta\n')
  expect(world.read('bash.txt')).toBe('from-bash\n')
  expect(world.sessionLog().map(line => line.type)).toContain('turn/end')
  expect(world.lastRequestTexts().filter(text => text.includes('Please work.'))).toHaveLength(1)
})

test('the session is still there after a restart, and nothing went wrong in the page or on the wire', async () => {
  await world.restartHost()
  await world.page.getByRole('treeitem', { name: /Session work/ }).first().click()
  await world.page.getByText('All three changes are done.').waitFor()

  expect(await world.page.locator('[data-slot-error]').count()).toBe(0)
  expect(world.pageErrors).toEqual([])
  expect(world.model.unexpected).toEqual([])
})
