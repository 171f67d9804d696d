// node scripts/all-screens.mjs [folder]: pictures of every state in both languages, light and dark, 1280 and 480 pixels wide,
// from the packed plugin in a real host, for a person to look through. Needs a build. Default folder: .cache/all-screens.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packPlugin, startHost } from '../tests/support/dsh-host.ts'
import { startMockModel } from '../tests/support/mock-model.ts'
import * as ui from '../tests/support/ui.ts'

const folder = resolve(process.argv[2] ?? '.cache/all-screens')
const tool = (name, args) => ({ name, args })
const read = path => tool('read', { file_path: path })
const edit = (path, from, to) => tool('edit', { file_path: path, old_string: from, new_string: to })
const write = (path, content) => tool('write', { file_path: path, content })
const bash = (command, more = {}) => tool('bash', { command, description: 'Work in the shell', ...more })

const prompts = ['Add a greeting', 'Make the steps shorter', 'Add a drawing and tidy up']
const scenarios = {
  greet: [{ tools: [write('greeting.txt', 'Hello, sailor!\n')] }, { text: 'There is a greeting now.' }],
  short: [
    { text: 'I read the notes first.', tools: [read('boat.txt'), read('notes.txt')] },
    { tools: [edit('boat.txt', 'Fold a sheet in half.', 'Fold a sheet.'), edit('notes.txt', 'Use thin paper.', 'Use thin paper. Draw before folding.')] },
    { text: 'The steps are shorter.' },
  ],
  draw: [
    { tools: [write('drawings/boat.svg', '<svg viewBox="0 0 8 4"><path d="M0 2h8L6 4H2z"/></svg>\n'), bash('rm -f old-draft.txt; cp pixel.png drawings/pixel.png; for i in $(seq 1 260); do echo $i > many$i.txt; done')] },
    { text: 'There is a drawing, and the old draft is gone.' },
  ],
  job: [{ tools: [bash('sleep 40', { run_in_background: true })] }, { text: 'It runs in the background.' }],
}
const byWords = { 'Add a greeting': 'greet', 'Make the steps shorter': 'short', 'Add a drawing and tidy up': 'draw', 'Watch the folder': 'job' }
const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64')

const names = {
  'en-US': { back: turn => `Roll back to before turn ${turn}`, close: 'Close', cancel: 'Cancel', show: 'Show', files: 'Files only', branch: 'As a branch', tab: 'Checkpoints' },
  'zh-CN': { back: turn => `回退到第 ${turn} 轮之前`, close: '关闭', cancel: '取消', show: '显示', files: '仅文件', branch: '开分支', tab: '检查点' },
}

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-screens-')))
const workspace = join(base, 'paper-boats')
mkdirSync(workspace)
const model = await startMockModel({ scenarios, route: text => byWords[text], title: () => 'Paper boats' })
const host = await startHost({ home: join(base, 'home'), workspace, modelUrl: model.url, plugins: [await packPlugin()], skipNotice: true, openWorkspace: true })
const browser = await ui.launchBrowser()
try {
  for (const locale of ['en-US', 'zh-CN']) for (const colorScheme of ['light', 'dark']) for (const width of [1280, 480]) await shoot({ locale, colorScheme, width })
} finally {
  await browser.close()
  await host.stop()
  await model.close()
  rmSync(base, { recursive: true, force: true, maxRetries: 5 })
}

async function shoot({ locale, colorScheme, width }) {
  for (const [name, content] of Object.entries({ 'boat.txt': 'Fold a sheet in half.\nFold the corners.\n', 'notes.txt': 'Use thin paper.\n', 'old-draft.txt': 'Old.\n', 'pixel.png': pixel })) writeFileSync(join(workspace, name), content)
  const word = names[locale]
  const page = await ui.openApp(browser, host.url, { locale, colorScheme, viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' })
  const take = async (name) => {
    await page.waitForTimeout(300)
    await page.screenshot({ path: join(folder, `${name}-${locale.slice(0, 2)}-${colorScheme}-${width}.png`), animations: 'disabled', caret: 'hide' })
  }
  const dialog = page.getByRole('dialog')
  const open = async (turn) => {
    await page.getByRole('button', { name: word.back(turn), exact: true }).last().click()
    await dialog.getByRole('radio').first().waitFor()
  }
  const leave = async (name) => {
    await dialog.getByRole('button', { name, exact: true }).last().click()
    await dialog.waitFor({ state: 'hidden' })
  }
  try {
    await ui.newSession(page)
    for (const prompt of prompts) {
      await ui.sendPrompt(page, prompt)
      await ui.waitForIdle(page)
    }
    writeFileSync(join(workspace, 'notes.txt'), 'Use thin paper. Draw before folding.\nAsk for the blue sheets.\n')
    await page.setViewportSize({ width, height: 900 })

    await page.getByRole('button', { name: word.back(3), exact: true }).hover()
    await take('button')
    await page.mouse.move(0, 0)
    await open(2)
    await take('dialog')
    const paths = dialog.getByRole('listitem').filter({ hasText: 'boat.txt' }).getByRole('button')
    if (await paths.count() > 0) {
      await paths.first().click()
      await page.waitForTimeout(700)
      await take('dialog-diff')
      await paths.first().click()
    }
    await dialog.getByText(word.files, { exact: true }).click()
    await page.waitForTimeout(500)
    await take('dialog-files')
    await dialog.getByText(word.branch, { exact: true }).click()
    await page.waitForTimeout(500)
    await take('dialog-branch')
    await leave(word.cancel)

    await ui.composer(page).fill('/rollback')
    await page.waitForTimeout(300)
    await page.keyboard.press('Enter')
    await page.getByRole('option').nth(2).waitFor()
    await take('picker')
    await page.keyboard.press('Escape')
    await ui.composer(page).fill('')

    const tab = page.getByText(word.tab, { exact: true }).first()
    if (await tab.count() > 0) {
      await tab.click()
      await page.waitForTimeout(1_500)
      await take('checkpoints')
      await page.getByText(locale === 'en-US' ? 'Chat' : '对话', { exact: true }).first().click()
      await page.waitForTimeout(500)
    }

    await ui.sendPrompt(page, 'Watch the folder')
    await ui.waitForIdle(page)
    await open(4)
    await take('dialog-running')
    await leave(word.cancel)

    await open(2)
    const tick = dialog.getByRole('checkbox').first()
    if (await tick.count() > 0) await tick.check()
    await dialog.getByRole('button').last().click()
    await take('progress')
    await dialog.getByRole('radio').first().waitFor({ state: 'detached' })
    await take('result')
    await leave(word.close)
    await take('bar')
    await page.getByRole('button', { name: word.show, exact: true }).last().click()
    await take('shown')
    await open(1)
    const again = dialog.getByRole('checkbox').first()
    if (await again.count() > 0) await again.check()
    await dialog.getByRole('button').last().click()
    await dialog.getByRole('radio').first().waitFor({ state: 'detached' })
    await leave(word.close)
    await take('hero')
    console.log(`${locale} ${colorScheme} ${width}`)
  } catch (error) {
    await take('failed')
    console.error(`${locale} ${colorScheme} ${width}: ${error.message.split('\n')[0]}`)
    process.exitCode = 1
  } finally {
    await page.close()
  }
}
