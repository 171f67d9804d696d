// node scripts/screens.mjs: takes the README's pictures anew, from the packed plugin in a real host. Needs a build.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packPlugin, startHost } from '../tests/support/dsh-host.ts'
import { startMockModel } from '../tests/support/mock-model.ts'
import * as ui from '../tests/support/ui.ts'
import { files, route as demoRoute, scenarios as demoScenarios } from './demo-story.mjs'

const folder = fileURLToPath(new URL('../tests/e2e/screens', import.meta.url))
const maxBytes = 150_000

/** The demo's first two turns, and a third with one of every kind of row the dialog has. */
const drawing = {
  prompt: 'Add a drawing and tidy up',
  steps: [
    { text: 'I look at the notes first.', tools: [tool('read', { file_path: 'notes.txt' }), tool('read', { file_path: 'README.md' })] },
    { tools: [
      tool('write', { file_path: 'drawings/boat.svg', content: '<svg viewBox="0 0 8 4"><path d="M0 2h8L6 4H2z"/></svg>\n' }),
      tool('edit', { file_path: 'README.md', old_string: '# Paper boats', new_string: '# Paper boats\n\n![A boat](drawings/boat.svg)' }),
      tool('write', { file_path: 'notes.txt', content: 'Use thin paper.\nDraw before folding.\n' }),
      tool('bash', { command: 'rm -f old-draft.txt', description: 'Remove the old draft' }),
    ] },
    { text: 'There is a drawing in drawings/boat.svg, and the old draft is gone.' },
  ],
}
const prompts = ['Add a greeting', 'Make the steps shorter', drawing.prompt]

const base = realpathSync(mkdtempSync(join(tmpdir(), 'turnback-screens-')))
const workspace = join(base, 'paper-boats')
mkdirSync(workspace)
for (const [name, content] of Object.entries({ ...files, 'notes.txt': 'Use thin paper.\n' })) writeFileSync(join(workspace, name), content)

const model = await startMockModel({
  scenarios: { ...demoScenarios, [drawing.prompt]: drawing.steps },
  route: text => text === drawing.prompt ? drawing.prompt : demoRoute(text),
  title: () => 'Paper boats',
})
const host = await startHost({
  home: join(base, 'home'), workspace, modelUrl: model.url, plugins: [await packPlugin()], skipNotice: true, openWorkspace: true,
})
const browser = await ui.launchBrowser()
try {
  const page = await ui.openApp(browser, host.url, { viewport: { width: 1280, height: 900 } })
  await ui.composer(page).waitFor()
  for (const prompt of prompts) {
    await ui.sendPrompt(page, prompt)
    await ui.waitForIdle(page)
  }
  writeFileSync(join(workspace, 'notes.txt'), 'Use thin paper.\nDraw before folding.\nAsk Ada for the blue sheets.\n')

  await page.getByRole('button', { name: 'Roll back to before turn 2', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('notes.txt').waitFor()
  await take(page, 'dialog')

  await dialog.getByRole('button', { name: /^Roll back 2 turns/ }).click()
  const done = page.getByRole('dialog', { name: 'Rolled back to before turn 2' })
  await done.getByRole('button', { name: 'Close' }).last().click()
  await done.waitFor({ state: 'hidden' })
  await page.getByText('2 turns rolled back').waitFor()
  await take(page, 'after')
} finally {
  await browser.close()
  await host.stop()
  await model.close()
  rmSync(base, { recursive: true, force: true, maxRetries: 5 })
}

async function take(page, name) {
  // No pointer over anything, no caret, no animation half way.
  await page.mouse.move(0, 0)
  await page.waitForTimeout(500)
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${name}.png`)
  await page.screenshot({ path, animations: 'disabled', caret: 'hide' })
  const { size } = statSync(path)
  if (size > maxBytes) throw new Error(`${path} has ${size} bytes, more than ${maxBytes}`)
  console.log(`${path} (${size} bytes)`)
}

function tool(name, args) {
  return { name, args }
}
