import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type Locator, type Page } from 'playwright-core'

/**
 * The DSH web page through roles and accessible names; its class names are hashed. The functions know both languages
 * of the host, so a test chooses the language with `openApp` alone.
 */

const screens = fileURLToPath(new URL('../../.cache/screens', import.meta.url))

/** Accessible names of the host's own controls, English and Chinese. */
const names = {
  sessions: /^(Sessions|会话)$/,
  openSidebar: /^(Open sidebar|打开侧边栏)$/,
  moreSessions: /^(Show \d+ more sessions?|(显示|展开).*\d+.*会话)$/,
  newSession: /^(New session|新建会话)$/,
  blankComposer: /^(Describe what you want to build|描述你想要构建的内容)/,
  send: /^(Send message|发送消息)$/,
  stop: /^(Stop generating|停止生成)$/,
}

export interface PageOptions {
  readonly locale?: 'en-US' | 'zh-CN'
  readonly colorScheme?: 'light' | 'dark'
  readonly reducedMotion?: 'reduce' | 'no-preference'
  readonly viewport?: { readonly width: number, readonly height: number }
}

/** Headless Chromium ($CHROMIUM, or `chromium` on PATH) that calls nobody but the page it is given. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  })
}

/** Open the app in a fresh browser profile and wait until it has booted. Throws when a plugin stopped the page. */
export async function openApp(browser: Browser, url: string, options: PageOptions = {}): Promise<Page> {
  const page = await browser.newPage({
    locale: options.locale ?? 'en-US',
    colorScheme: options.colorScheme ?? 'light',
    reducedMotion: options.reducedMotion ?? 'no-preference',
    viewport: options.viewport ?? { width: 1400, height: 900 },
  })
  await page.goto(url)
  await waitForBoot(page)
  return page
}

/** Also after `page.reload()`. A narrow page has no sidebar, so the composer is as good a sign as the session list. */
export async function waitForBoot(page: Page): Promise<void> {
  const failure = page.getByText('Failed to load plugins')
  const sessions = page.getByRole('tree', { name: names.sessions })
  await sessions.or(page.locator('textarea')).or(failure).first().waitFor()
  if (await failure.count() > 0) throw new Error(`the page did not boot: ${await page.locator('body').innerText()}`)
}

/** Start another session in the current workspace. */
export async function newSession(page: Page): Promise<void> {
  await page.getByRole('button', { name: names.newSession }).first().click()
  await page.getByPlaceholder(names.blankComposer).waitFor()
}

/** Open a listed session by its title (`Session NAME` for the scripted model). */
export async function openSession(page: Page, title: string | RegExp): Promise<void> {
  const row = page.getByRole('treeitem', { name: title }).first()
  const sidebar = page.getByRole('button', { name: names.openSidebar })
  const more = page.getByRole('button', { name: names.moreSessions })
  await row.or(sidebar).or(more).first().waitFor()
  if (!await row.isVisible() && await sidebar.isVisible()) await sidebar.click()
  if (!await row.isVisible() && await more.isVisible()) await more.click()
  await row.click()
}

/** The message box of the open session. */
export function composer(page: Page): Locator {
  return page.locator('textarea:enabled').last()
}

/** Send a prompt and wait until it stands in the transcript. */
export async function sendPrompt(page: Page, text: string): Promise<void> {
  await composer(page).fill(text)
  await page.getByRole('button', { name: names.send }).click()
  await page.getByText(text, { exact: true }).last().waitFor()
}

/** Run a slash command from the composer. The host would send an unknown one to the model as text. */
export async function runCommand(page: Page, line: string): Promise<void> {
  await composer(page).fill(line)
  await composer(page).press('Enter')
}

/** Wait until no turn runs: the stop button is gone and stays gone (between two steps it may blink). */
export async function waitForIdle(page: Page, timeoutMs = 30_000): Promise<void> {
  const stop = page.getByRole('button', { name: names.stop })
  const deadlineMs = Date.now() + timeoutMs
  for (let quiet = 0; quiet < 5;) {
    if (Date.now() > deadlineMs) throw new Error(`the turn did not end within ${timeoutMs} ms`)
    quiet = await stop.count() === 0 ? quiet + 1 : 0
    await page.waitForTimeout(100)
  }
}

/** Stop the running turn. */
export async function stopTurn(page: Page): Promise<void> {
  await page.getByRole('button', { name: names.stop }).click()
  await waitForIdle(page)
}

/** Save a picture of the page as .cache/screens/NAME.png. */
export async function screenshot(page: Page, name: string): Promise<string> {
  mkdirSync(screens, { recursive: true })
  const path = join(screens, `${name}.png`)
  await page.screenshot({ path, animations: 'disabled' })
  return path
}

function chromiumPath(): string {
  const given = process.env['CHROMIUM']
  if (given) return given
  const found = (process.env['PATH'] ?? '').split(delimiter).map(folder => join(folder, 'chromium')).find(existsSync)
  if (found === undefined) throw new Error('no chromium on PATH: install it or set CHROMIUM to its path')
  return found
}
