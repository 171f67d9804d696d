// Builds both halves into lib/: index.js (host, ESM for Node) and client.js (one loader statement for the page).
// They are built aside and renamed into place, so that a host which serves lib/ never sees a half-written file.
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
const lib = join(root, 'lib')
const aside = join(root, '.cache', `build-${process.pid}`)

try {
  for (const half of ['host', 'client']) {
    await build({ root, configFile: join(root, half, 'vite.config.ts'), logLevel: 'warn', build: { outDir: aside } })
  }
  mkdirSync(lib, { recursive: true })
  const made = readdirSync(aside)
  for (const name of made) renameSync(join(aside, name), join(lib, name))
  for (const name of readdirSync(lib)) if (!made.includes(name)) rmSync(join(lib, name), { recursive: true })
} finally {
  rmSync(aside, { recursive: true, force: true })
}
