import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { packPlugin, readSessionLog, startHost, storedSessionIds, type Host, type LogLine } from './dsh-host.ts'
import { isConversation, startMockModel, textOf, type MockModel, type MockModelOptions } from './mock-model.ts'
import * as ui from './ui.ts'

/** One line of set-up for an end-to-end test: home, workspace, scripted model, packed plugin, real host, real page. */

export interface WorldOptions {
  /** Files of the workspace before the first turn. */
  readonly files?: Readonly<Record<string, string>>
  /** How the page is opened. */
  readonly page?: ui.PageOptions
  /** More scenarios for the scripted model. */
  readonly scenarios?: MockModelOptions['scenarios']
  /** More environment of the host. */
  readonly env?: Readonly<Record<string, string>>
  /** Called with the new workspace before the host starts, e.g. to make it a git work tree. */
  readonly prepare?: (workspace: string) => void | Promise<void>
  /** What to install; the packed project when not given. */
  readonly plugins?: readonly string[]
}

export interface World {
  readonly home: string
  readonly workspace: string
  readonly model: MockModel
  readonly browser: Browser
  /** The current host and page; both change with `restartHost`. */
  readonly host: Host
  readonly page: Page
  /** Errors the page has thrown or logged, plain connection noise while the host is down left out. */
  readonly pageErrors: readonly string[]
  /** Send a prompt and wait for the end of its turn. */
  ask(prompt: string): Promise<void>
  /** Content of a workspace file; undefined when there is none. */
  read(path: string): string | undefined
  write(path: string, content: string): void
  /** Messages of the latest conversation request, each as `role: text`. */
  lastRequestTexts(): readonly string[]
  /** Ids of the stored sessions that have a log. */
  sessionIds(): readonly string[]
  /** Stored log of a session; of the only one when no id is given. */
  sessionLog(sessionId?: string): readonly LogLine[]
  /** Stop the host (SIGKILL plays a crash), start it on the same home, and open a fresh page. */
  restartHost(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /** The same without a page, which takes half the time; `openPage` opens one when it is wanted. */
  restartHostAlone(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
  openPage(): Promise<void>
  dispose(): Promise<void>
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  // The real path: the host resolves links, and on some systems the temporary folder is one.
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-e2e-')))
  const home = join(base, 'home')
  const workspace = join(base, 'workspace')
  const cleanUp: (() => unknown)[] = [() => rmSync(base, { recursive: true, force: true, maxRetries: 5 })]
  const dispose = async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  }
  const pageErrors: string[] = []

  const startHere = (model: MockModel, plugins: readonly string[]) => startHost({
    home, workspace, modelUrl: model.url, plugins, skipNotice: true, openWorkspace: true, ...(options.env && { env: options.env }),
  })
  const openHere = async (browser: Browser, url: string) => {
    const page = await ui.openApp(browser, url, options.page)
    page.on('pageerror', error => pageErrors.push(String(error)))
    page.on('console', (message) => {
      const text = `${message.text()} (${message.location().url})`
      if (message.type() === 'error' && !isConnectionNoise(text)) pageErrors.push(text)
    })
    return page
  }

  try {
    mkdirSync(workspace, { recursive: true })
    for (const [path, content] of Object.entries(options.files ?? {})) place(join(workspace, path), content)
    await options.prepare?.(workspace)
    const model = await startMockModel(options.scenarios && { scenarios: options.scenarios })
    cleanUp.push(() => model.close())
    let host = await startHere(model, options.plugins ?? [await packPlugin()])
    cleanUp.push(() => host.stop())
    const browser = await ui.launchBrowser()
    cleanUp.push(() => browser.close())
    let page = await openHere(browser, host.url)
    await ui.composer(page).waitFor()
    const restartHostAlone = async (signal?: 'SIGTERM' | 'SIGKILL') => {
      // What a page says while its host goes away is no fault.
      const said = pageErrors.length
      await host.stop(signal)
      await page.close()
      pageErrors.splice(said)
      host = await startHere(model, [])
    }

    return {
      home,
      workspace,
      model,
      browser,
      get host() { return host },
      get page() { return page },
      pageErrors,
      async ask(prompt) {
        await ui.sendPrompt(page, prompt)
        await ui.waitForIdle(page)
      },
      read(path) {
        const file = join(workspace, path)
        return existsSync(file) ? readFileSync(file, 'utf8') : undefined
      },
      write: (path, content) => place(join(workspace, path), content),
      lastRequestTexts() {
        const request = model.requests.findLast(isConversation)
        return (request?.body.messages ?? []).map(message => `${message.role}: ${textOf(message)}`)
      },
      sessionIds: () => storedSessionIds(home),
      sessionLog(sessionId) {
        const ids = sessionId === undefined ? storedSessionIds(home) : [sessionId]
        if (ids.length !== 1 || ids[0] === undefined) throw new Error(`name a session: ${ids.join(', ') || 'none is stored'}`)
        return readSessionLog(home, ids[0])
      },
      async restartHost(signal) {
        await restartHostAlone(signal)
        page = await openHere(browser, host.url)
      },
      restartHostAlone,
      async openPage() {
        await page.close()
        page = await openHere(browser, host.url)
      },
      dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

function place(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

function isConnectionNoise(text: string): boolean {
  // HTTP errors read "the server responded with a status of"; only broken connections have a net:: code.
  return ['connection lost', 'net::ERR_', 'WebSocket connection', 'Failed to fetch'].some(words => text.includes(words))
}
