// npm run demo [-- folder] [-- --port N] [-- --keep] [-- --once]
// The built plugin in a real DSH web host of its own, with a scripted model (or the real one, when DEEPSEEK_API_KEY is
// set). --keep keeps home and sample files of the last demo, --once stops again after it has started (for checks).
import { mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { packPlugin, startHost } from '../tests/support/dsh-host.ts'
import { startMockModel } from '../tests/support/mock-model.ts'
import { files, route, scenarios, title, tour } from './demo-story.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '0' },
    keep: { type: 'boolean', default: false },
    once: { type: 'boolean', default: false },
  },
})
const home = fileURLToPath(new URL('../.cache/demo/home', import.meta.url))
// Outside of the project: its own git work tree would otherwise be around the sample files.
const sample = join(tmpdir(), 'turnback-demo')
const given = positionals[0]
const realModel = Boolean(process.env.DEEPSEEK_API_KEY)

if (!values.keep) rmSync(home, { recursive: true, force: true })
const workspace = given === undefined ? prepareSample() : resolve(process.env.INIT_CWD ?? '.', given)

const model = realModel ? undefined : await startMockModel({ scenarios, route, title })
const host = await startHost({
  home,
  workspace,
  port: Number(values.port),
  plugins: [await packPlugin()],
  skipNotice: true,
  openWorkspace: true,
  ...(model && { modelUrl: model.url }),
})

console.log(tour)
console.log(`Workspace  ${workspace}`)
console.log(`Model      ${realModel ? 'the real one (DEEPSEEK_API_KEY is set)' : 'scripted, no network'}`)
console.log(`Open       ${host.url}`)
console.log('\nCtrl-C stops it.')

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop)
if (values.once) await stop()
const code = await host.exited
await model?.close()
process.exitCode = code === 0 || code === 'SIGINT' || code === 'SIGTERM' ? 0 : 1

/** The host got a Ctrl-C from the terminal itself; a second request to stop does no harm. */
async function stop() {
  await host.stop()
}

function prepareSample() {
  if (!values.keep) rmSync(sample, { recursive: true, force: true })
  mkdirSync(sample, { recursive: true })
  if (!values.keep) for (const [name, content] of Object.entries(files)) writeFileSync(join(sample, name), content)
  return realpathSync(sample)
}
