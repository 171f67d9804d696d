import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { violations } from '../support/axe.ts'
import { startWorld, type World } from '../support/e2e-world.ts'
import { edit, read, runs, steps, write } from '../support/tool-steps.ts'
import * as ui from '../support/ui.ts'

/**
 * The Checkpoints view in the real page. What it says is held against a git history of the same folder that the test
 * makes itself, a commit after every turn, in a repository of its own that the plugin knows nothing of.
 */
const files = { 'a.txt': 'one\ntwo\nthree\n', 'old.txt': 'old\n', 'run.sh': 'true\n' }
const turns = [
  steps(read('a.txt'), edit('a.txt', 'two', 'TWO'), write('new/n.txt', 'n\n')),
  steps(runs('rm old.txt; printf "x\\r\\ny" > crlf.txt; chmod 755 run.sh')),
  steps(runs('for i in $(seq 1 12); do echo $i > many$i.txt; done; mv crlf.txt moved.txt')),
]

function gitBeside(world: World) {
  const gitWith = (env: object, input: string | undefined, ...args: string[]) => execFileSync('git', ['--git-dir', join(world.workspace, '..', 'witness.git'), '--work-tree', world.workspace, ...args], {
    encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'], ...(input === undefined ? {} : { input }), env: { ...process.env, ...env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
  })
  const git = (...args: string[]) => gitWith({}, undefined, ...args)
  git('init', '-q')
  return {
    commit(name: string) {
      git('add', '-A')
      git('-c', 'user.name=w', '-c', 'user.email=w@w', 'commit', '-q', '--allow-empty', '-m', name)
      git('tag', name)
    },
    treeOf: (name: string) => git('rev-parse', `${name}^{tree}`).trim(),
    /** The tree that a patch makes of another, in an index of its own. */
    applied(name: string, patch: string) {
      const index = { GIT_INDEX_FILE: join(world.workspace, '..', 'witness.index') }
      gitWith(index, undefined, 'read-tree', name)
      gitWith(index, patch, 'apply', '--cached', '-')
      return gitWith(index, undefined, 'write-tree').trim()
    },
    /** Newest first. */
    commitsOf: (path: string) => git('log', '--format=%s', '--', path).trim().split('\n'),
    /** Path, then lines that came and went. */
    changed: (from: string, to: string) => git('diff', '--no-renames', '--numstat', from, to).trim().split('\n').filter(line => line !== '').map((line) => {
      const [added, removed, path] = line.split('\t')
      return `${path} +${added} −${removed}`
    }).sort(),
  }
}

const view = (world: World) => world.page.locator('[data-turnback-view]')
const rail = (world: World) => view(world).getByRole('listbox', { name: 'Turns, newest first' })
const fileList = (world: World) => view(world).getByRole('listbox', { name: 'Changed files' })
const shownFiles = async (world: World, count: number) => {
  await expect.poll(() => fileList(world).getByRole('option').count()).toBe(count)
  const options = fileList(world).getByRole('option')
  await expect.poll(async () => (await options.allInnerTexts()).every(text => /\+\d+ −\d+/.test(text))).toBe(true)
  const paths = await options.locator('span[title]').evaluateAll(spans => spans.map(span => span.getAttribute('title')))
  return (await options.allInnerTexts()).map((text, at) => `${paths[at]} ${/\+\d+ −\d+/.exec(text)?.[0]}`).sort()
}

describe('the view of a session', () => {
  let world: World
  let git: ReturnType<typeof gitBeside>
  beforeAll(async () => {
    world = await startWorld({
      files, scenarios: Object.fromEntries(turns.map((turn, at) => [`t${at + 1}`, turn])),
      prepare: workspace => chmodSync(join(workspace, 'run.sh'), 0o644),
    })
    git = gitBeside(world)
    git.commit('t0')
    for (const at of [1, 2, 3]) {
      await world.ask(`Task ${at}. [scenario:t${at}]`)
      git.commit(`t${at}`)
    }
    await world.page.getByRole('tab', { name: 'Checkpoints' }).click()
    await rail(world).waitFor()
  })
  afterAll(() => world?.dispose())

  test('stands between the chat and the trajectory', async () => {
    expect(await world.page.getByRole('tab').allInnerTexts()).toEqual(['Chat', 'Checkpoints', 'Trajectory'])
  })

  test('lists the turns newest first with what each changed, as git has it', async () => {
    const counts = [1, 2, 3].map(at => git.changed(`t${at - 1}`, `t${at}`).length)
    const texts = (await rail(world).getByRole('option').allInnerTexts()).map(text => text.split('\n').map(line => line.trim()).filter(line => line !== ''))

    expect(texts.map(lines => lines[1])).toEqual(['Task 3. [scenario:t3]', 'Task 2. [scenario:t2]', 'Task 1. [scenario:t1]'])
    expect(texts.map(lines => Number(/(\d+) files/.exec(lines.join(' '))?.[1]))).toEqual(counts.toReversed())
    await ui.screenshot(world.page, 'view-turns')
  })

  test('every turn has the files and the line counts that git has', async () => {
    for (const at of [3, 2, 1]) {
      await rail(world).getByText(`Task ${at}.`).click()
      const expected = git.changed(`t${at - 1}`, `t${at}`)
      // A change of permissions alone has no lines.
      expect(await shownFiles(world, expected.length)).toEqual(expected)
    }
  })

  test('axe finds nothing', async () => {
    expect(await violations(world.page, '[data-turnback-view]')).toEqual([])
  })

  test('two points are compared as git compares them', async () => {
    await rail(world).getByText('Task 1.').click()
    await view(world).getByLabel('Compare').selectOption({ label: 'From here to now' })
    const expected = git.changed('t0', 't3').filter(line => !line.startsWith('run.sh'))

    expect((await shownFiles(world, expected.length + 1)).filter(line => !line.startsWith('run.sh'))).toEqual(expected)
    await ui.screenshot(world.page, 'view-compare')
  })

  test('a copied patch takes the folder from one side to the other with git apply', async () => {
    await world.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    for (const at of [3, 2, 1]) {
      await rail(world).getByText(`Task ${at}.`).click()
      await fileList(world).waitFor()
      await expect.poll(() => view(world).getByRole('heading', { level: 2 }).innerText()).toBe(`Turn ${at}`)
      await view(world).getByRole('button', { name: 'Copy patch of all' }).click()
      await view(world).getByText('Patch copied.').waitFor()
      const patch = await world.page.evaluate(() => navigator.clipboard.readText())
      expect(git.applied(`t${at - 1}`, patch)).toBe(git.treeOf(`t${at}`))
    }
  })

  test('one file is restored from here: the dialog has that one chosen, and the conversation stays', async () => {
    await rail(world).getByText('Task 3.').click()
    await fileList(world).getByRole('option', { name: /many7\.txt/ }).click()
    await view(world).getByRole('button', { name: 'Restore this file' }).click()
    const dialog = world.page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Put back 1 file' }).click()
    await dialog.getByText('1 file is as it was before.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await dialog.waitFor({ state: 'hidden' })
    git.commit('one-back')

    expect(git.changed('t3', 'one-back')).toEqual(['many7.txt +0 −1'])
    await expect.poll(() => rail(world).getByRole('option').first().innerText()).toContain('Files put back to before turn 3')
    expect(world.pageErrors).toEqual([])
  })

  test('and that is undone from here', async () => {
    await rail(world).getByText('Files put back to before turn 3').click()
    await view(world).getByRole('button', { name: 'Undo file changes' }).click()
    await expect.poll(() => rail(world).getByRole('option').first().innerText()).toContain('A rollback was undone')
    git.commit('undone')

    expect(git.changed('t3', 'undone')).toEqual([])
    expect(await rail(world).getByRole('option').nth(1).innerText()).toContain('undone since')
    expect(await rail(world).getByRole('option').allInnerTexts().then(texts => texts.filter(text => text.includes('already rolled back')))).toEqual([])
  })

  test('a rollback from here opens the dialog, and stands in the list afterwards, with the turns as they were', async () => {
    await rail(world).getByText('Task 2.').click()
    await view(world).getByRole('button', { name: 'Roll back to before this turn' }).click()
    const dialog = world.page.getByRole('dialog')
    await dialog.getByRole('button', { name: /^Roll back 2 turns/ }).click()
    await dialog.getByText(/files are as they were before/).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await dialog.waitFor({ state: 'hidden' })
    git.commit('rolled-back')
    expect(git.changed('t1', 'rolled-back')).toEqual([])

    await expect.poll(() => rail(world).getByRole('option').first().innerText()).toContain('Rolled back to before turn 2')
    expect(await rail(world).getByRole('option', { selected: true }).innerText()).toContain('Task 2.')
    await expect.poll(async () => (await rail(world).getByRole('option').allInnerTexts()).map(text => text.includes('already rolled back'))).toEqual([false, false, false, true, true, false])
    for (const at of [3, 2]) {
      await rail(world).getByText(`Task ${at}.`).click()
      const expected = git.changed(`t${at - 1}`, `t${at}`)
      expect(await shownFiles(world, expected.length)).toEqual(expected)
    }
    await rail(world).getByText('Rolled back to before turn 2').click()
    await view(world).getByRole('heading', { name: 'Rolled back to before turn 2' }).waitFor()
    await ui.screenshot(world.page, 'view-rollback')
    expect(await violations(world.page, '[data-turnback-view]')).toEqual([])
  })

  test('a turn that ends while the view is open joins the list, and the chosen one stays', async () => {
    await rail(world).getByText('Task 1.').click()
    await world.ask('Task 1 again. [scenario:t2]')
    git.commit('t4')

    await expect.poll(() => rail(world).getByRole('option').first().innerText()).toContain('Task 1 again.')
    expect(await rail(world).getByRole('option', { selected: true }).innerText()).toContain('Task 1.')
    await rail(world).getByText('Task 1 again.').click()
    const expected = git.changed('rolled-back', 't4')
    expect(await shownFiles(world, expected.length)).toEqual(expected)
    expect(world.pageErrors).toEqual([])
  })

  test('worked by keys alone', async () => {
    await rail(world).focus()
    await world.page.keyboard.press('End')
    await expect.poll(() => rail(world).getByRole('option', { selected: true }).innerText()).toContain('Task 1.')
    await world.page.keyboard.press('Enter')
    expect(await world.page.evaluate(() => document.activeElement?.textContent)).toBe('Turn 1')
    await fileList(world).focus()
    await world.page.keyboard.press('ArrowDown')
    await view(world).getByRole('heading', { name: 'new/n.txt' }).waitFor()
  })

  test('turns are filtered by words of a path, and the history of a file is what git log has', async () => {
    await view(world).getByRole('searchbox', { name: 'Filter by file' }).fill('many TXT')
    await expect.poll(async () => (await rail(world).getByRole('option').allInnerTexts()).filter(text => /\nTask/.test(text)).length).toBe(1)
    await view(world).getByRole('searchbox', { name: 'Filter by file' }).fill('')
    await rail(world).getByText('Task 1 again.').click()
    await fileList(world).getByRole('option', { name: /^crlf\.txt/ }).click()
    await view(world).getByRole('button', { name: 'History of this file' }).click()

    // Commits of turns; those after a rollback are in the list as the rollback.
    const expected = git.commitsOf('crlf.txt').filter(name => /^t\d$/.test(name)).map(name => (name === 't4' ? 'Task 1 again' : `Task ${name.slice(1)}`))
    expect(expected).toEqual(['Task 1 again', 'Task 3', 'Task 2'])
    await expect.poll(async () => (await rail(world).getByRole('option').allInnerTexts()).flatMap(text => /Task \d( again)?/.exec(text)?.[0] ?? [])).toEqual(expected)
    await rail(world).getByText('Task 3.').click()
    await view(world).getByRole('heading', { name: 'crlf.txt' }).waitFor()
    await ui.screenshot(world.page, 'view-history')
    await view(world).getByRole('button', { name: 'Only crlf.txt' }).click()
    await expect.poll(() => rail(world).getByRole('option').count()).toBe(7)
  })

  test('in Chinese, too', async () => {
    const page = await ui.openApp(world.browser, world.host.url, { locale: 'zh-CN', viewport: { width: 1280, height: 800 } })
    await ui.openSession(page, /Session t1/)
    await page.getByRole('tab', { name: '检查点' }).click()
    await page.getByRole('listbox', { name: '改动的文件' }).waitFor()
    await ui.screenshot(page, 'view-zh')
    expect(await page.locator('[data-turnback-view]').innerText()).not.toMatch(/Turn|file|Restore/)
    expect(await violations(page, '[data-turnback-view]')).toEqual([])
    await page.close()
  })

  test('dark and narrow it stands one below the other', async () => {
    await world.page.emulateMedia({ colorScheme: 'dark' })
    await world.page.setViewportSize({ width: 480, height: 860 })
    await world.page.waitForTimeout(300)
    await ui.screenshot(world.page, 'view-480-dark')
    const [list, detail] = await Promise.all([rail(world).boundingBox(), view(world).getByRole('heading', { name: /^Turn \d/ }).boundingBox()])
    expect(detail!.y).toBeGreaterThan(list!.y)
    expect(await world.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(480)
    expect(await violations(world.page, '[data-turnback-view]')).toEqual([])
  })

  test('after a restart of the host everything is there again', async () => {
    await world.restartHost()
    await ui.openSession(world.page, /Session t1/)
    await world.page.getByRole('tab', { name: 'Checkpoints' }).click()
    await expect.poll(() => rail(world).getByRole('option').count()).toBe(7)

    for (const at of [3, 2, 1]) {
      await rail(world).getByText(`Task ${at}.`).click()
      const expected = git.changed(`t${at - 1}`, `t${at}`)
      expect(await shownFiles(world, expected.length)).toEqual(expected)
    }
  })
})
