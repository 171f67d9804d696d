// Builds both halves into lib/: index.js (host, ESM for Node) and client.js (one loader statement for the page).
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))

rmSync(new URL('../lib', import.meta.url), { recursive: true, force: true })
for (const half of ['host', 'client']) {
  await build({ root, configFile: `${root}${half}/vite.config.ts`, logLevel: 'warn' })
}
