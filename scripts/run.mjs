// Every `npm run NAME` is `node scripts/run.mjs NAME [args]`. It brings what NAME needs (packages, the DSH host, a
// build, a browser), once, and then runs it. Built-ins only, and it must run on Node 20 in a fresh clone.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = join(root, 'node_modules', '.bin')
const cache = join(root, '.cache')
const hostFolder = join(root, 'tests', 'e2e', 'host')
// `npm run --silent` also silences the npm and pnpm we start; then nobody would learn why an installation failed.
const env = { ...process.env, npm_config_loglevel: 'error' }

const node = (script, ...args) => ['node', '--disable-warning=ExperimentalWarning', script, ...args]
const vitest = (...projects) => ['vitest', 'run', ...projects.flatMap(name => ['--project', name])]

/** What can be run: the command, and what must be there before it. */
const tasks = {
  'build': { needs: ['packages', 'build'] },
  'demo': { needs: ['packages', 'host', 'build'], command: node('scripts/demo.mjs') },
  'bench': { needs: ['packages', 'host', 'build', 'browser'], command: node('tests/bench/run.ts') },
  'inspect': { needs: ['packages'], command: node('scripts/inspect-store.ts') },
  'check:types': { needs: ['packages'], command: ['tsc', '-p', '.'] },
  'check:lint': { needs: ['packages'], command: ['oxlint', '--deny-warnings'] },
  'check:layers': { needs: ['packages'], command: node('scripts/check-layers.mjs') },
  'check:locales': { needs: ['packages'], command: node('scripts/check-locales.mjs') },
  'check:readme': { needs: ['packages'], command: node('scripts/check-readme.mjs') },
  'check:package': { needs: ['packages', 'host', 'build', 'browser'], command: node('scripts/check-package.mjs') },
  'test:unit': { needs: ['packages'], command: vitest('unit') },
  'test:contract': { needs: ['packages', 'host'], command: vitest('contract') },
  'test:component': { needs: ['packages'], command: vitest('component') },
  'test:e2e': { needs: ['packages', 'host', 'build', 'browser'], command: vitest('e2e') },
}

/** The parts of `npm test`, in order; all of them run, whatever fails. One Vitest run serves the three fast rooms. */
const suite = [
  { name: 'build', ...tasks['build'] },
  ...['check:types', 'check:lint', 'check:layers', 'check:locales', 'check:readme'].map(name => ({ name, ...tasks[name] })),
  { name: 'test', needs: ['packages', 'host'], command: vitest('unit', 'contract', 'component'), counted: true },
  { name: 'test:e2e', ...tasks['test:e2e'], counted: true },
  { name: 'check:package', ...tasks['check:package'] },
]

/** Thrown when something NAME needs cannot be had; the message says what to do. */
class Missing extends Error {}

const needs = {
  /** npm's own record of what is installed is compared with the lockfile: no stamp of ours can be out of date. */
  async packages() {
    if (!packagesInstalled()) await locked('packages', async () => {
      if (packagesInstalled()) return
      say('installing packages (npm ci)')
      if (await run(['npm', 'ci'], { quiet: true }) !== 0) throw new Missing('npm ci failed')
    })
    useNode22()
  },

  async host() {
    const stamp = join(hostFolder, 'node_modules', '.turnback-stamp')
    const wanted = hashOf([join(hostFolder, 'pnpm-lock.yaml')])
    const done = () => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted
    if (done()) return
    await locked('host', async () => {
      if (done()) return
      say('installing the DSH host for the tests (pnpm install in tests/e2e/host)')
      const install = ['pnpm', 'install', '--frozen-lockfile', '--ignore-scripts', '--ignore-workspace', '--reporter=append-only']
      if (await run(install, { quiet: true, cwd: hostFolder }) !== 0) throw new Missing('pnpm install failed')
      writeFileSync(stamp, wanted)
    })
  },

  async build() {
    const stamp = join(cache, 'build-stamp')
    if (name === 'build') rmSync(stamp, { force: true })
    const sources = ['src', 'host', 'client', 'locales', 'scripts/build.mjs', 'package.json', 'package-lock.json']
    const wanted = hashOf(sources.map(path => join(root, path)))
    const done = () => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted
      && ['index.js', 'client.js'].every(name => existsSync(join(root, 'lib', name)))
    if (done()) return
    await locked('build', async () => {
      if (done()) return
      say('building')
      if (await run(node('scripts/build.mjs'), { quiet: true }) !== 0) throw new Missing('the build failed')
      writeFileSync(stamp, wanted)
    })
  },

  async browser() {
    const install = ['apt-get', 'install', '-y', '--no-install-recommends', 'chromium']
    if (findBrowser()) return
    if (process.env.CHROMIUM) throw new Missing(`CHROMIUM names ${process.env.CHROMIUM}, which is not there`)
    if (process.getuid?.() !== 0 || !onPath('apt-get')) {
      throw new Missing('the end-to-end tests need Chromium. Install it and run this again:\n'
        + `  sudo apt-get update && sudo ${install.join(' ')}\n`
        + 'or set CHROMIUM to the path of a Chromium you have.')
    }
    await locked('browser', async () => {
      if (findBrowser()) return
      say('installing Chromium (apt-get)')
      const quiet = { quiet: true, env: { ...env, DEBIAN_FRONTEND: 'noninteractive' } }
      const ok = await run(['apt-get', 'update'], quiet) === 0 && await run(install, quiet) === 0
      if (!ok || !findBrowser()) throw new Missing(`Chromium could not be installed: ${install.join(' ')}`)
    })
  },
}

const brought = {}
const [name = '', ...args] = process.argv.slice(2)
// The terminal sends Ctrl-C to the children too: they end by themselves, and we after them.
process.on('SIGINT', () => {})
process.chdir(root)
mkdirSync(cache, { recursive: true })
process.exitCode = await main()

async function main() {
  if (name === 'test' || name === 'test:long') {
    if (name === 'test:long') env.TURNBACK_LONG = '1'
    return runSuite()
  }
  const task = tasks[name]
  if (task === undefined) {
    console.error(`unknown task ${name}; there are: ${[...Object.keys(tasks), 'test', 'test:long'].join(', ')}`)
    return 2
  }
  return runTask(withArguments(task, args))
}

function withArguments({ needs: wanted, command }, more) {
  return { needs: wanted, command: command && [...command, ...more] }
}

async function runTask({ needs: wanted, command }) {
  try {
    for (const need of wanted) await bring(need)
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    console.error(error.message)
    return 1
  }
  return command === undefined ? 0 : run(command)
}

/** Each thing is brought once; what could not be had is not tried again for the next part. */
function bring(need) {
  brought[need] ??= needs[need]()
  return brought[need]
}

async function runSuite() {
  const results = join(cache, 'results')
  rmSync(results, { recursive: true, force: true })
  mkdirSync(results, { recursive: true })
  const total = { passed: 0, failed: 0 }
  const failures = []
  for (const step of suite) {
    say(step.name)
    const startedMs = Date.now()
    const report = join(results, `${step.name.replace(':', '-')}.json`)
    const extra = step.counted ? ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`] : []
    const code = await runTask(withArguments(step, extra))
    const count = step.counted ? countOf(report, code) : { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1 }
    total.passed += count.passed
    total.failed += count.failed
    if (code !== 0 || count.failed > 0) failures.push(step.name)
    say(`${step.name}: ${code === 0 ? 'ok' : 'FAILED'} in ${((Date.now() - startedMs) / 1000).toFixed(1)} s`)
  }
  if (failures.length > 0) say(`failed: ${failures.join(', ')}`)
  console.log(`${total.passed} passed, ${total.failed} failed`)
  return failures.length > 0 ? 1 : 0
}

/** Tests of one Vitest run. A run that fails without a failed test (a file that does not load) counts as one failure. */
function countOf(report, code) {
  if (!existsSync(report)) return { passed: 0, failed: 1 }
  const { numPassedTests: passed, numFailedTests: failed } = JSON.parse(readFileSync(report, 'utf8'))
  return { passed, failed: failed === 0 && code !== 0 ? 1 : failed }
}

/** Run a command to its end; its exit code. Quiet ones write to stderr, so that a task's own output stays clean. */
function run([command, ...rest], { quiet = false, cwd = root, env: its = env } = {}) {
  return new Promise((done) => {
    const child = spawn(command, rest, { cwd, env: its, stdio: ['inherit', quiet ? 2 : 'inherit', 'inherit'] })
    const stop = () => child.kill('SIGTERM')
    process.on('SIGTERM', stop)
    const end = (code) => {
      process.off('SIGTERM', stop)
      done(code)
    }
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`)
      end(127)
    })
    child.on('exit', (code, signal) => end(code ?? (signal === 'SIGINT' ? 130 : 1)))
  })
}

function packagesInstalled() {
  const record = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(record)) return false
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const present = JSON.parse(readFileSync(record, 'utf8')).packages
  return Object.entries(wanted).every(([path, { version, optional, devOptional }]) =>
    path === '' || present[path]?.version === version
    || (present[path] === undefined && (optional || devOptional)))
}

/** The Node that comes with the packages, first on PATH; another one only when it is new enough. */
function useNode22() {
  const own = join(bin, 'node')
  const works = existsSync(own) && spawnSync(own, ['--version']).status === 0
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (!works && (major < 22 || (major === 22 && minor < 22))) {
    throw new Missing(`Node 22.22 or later is needed; this is ${process.versions.node}, and no package brings Node`
      + ` for ${process.platform} ${process.arch}. Install it from https://nodejs.org and run this again.`)
  }
  const first = works ? [bin] : [dirname(process.execPath), bin]
  const rest = (process.env.PATH ?? '').split(delimiter).filter(folder => !first.includes(folder))
  env.PATH = [...first, ...rest].join(delimiter)
}

/** Sets CHROMIUM for what we start. */
function findBrowser() {
  const given = process.env.CHROMIUM
  const found = given ? (existsSync(given) ? given : undefined)
    : ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'].map(onPath).find(Boolean)
  if (found !== undefined) env.CHROMIUM = found
  return found
}

function onPath(command) {
  return (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, command)).find(existsSync)
}

/** Hash of names and contents of files and folders. */
function hashOf(paths) {
  const hash = createHash('sha256')
  const add = (path) => {
    if (!existsSync(path)) return
    if (statSync(path).isDirectory()) return readdirSync(path).sort().forEach(child => add(join(path, child)))
    hash.update(path).update('\0').update(readFileSync(path)).update('\0')
  }
  paths.forEach(add)
  return hash.digest('hex')
}

/** One process at a time prepares a thing; the others wait and then find it done. */
async function locked(thing, action) {
  const lock = join(cache, `${thing}.lock`)
  const mine = `${lock}.${process.pid}`
  // Linked into place, so that a lock always names its holder.
  writeFileSync(mine, String(process.pid))
  try {
    for (let waits = 0; !tryLink(mine, lock); waits++) {
      const holder = readLock(lock)
      if (holder !== '' && !isAlive(Number(holder))) rmSync(lock, { force: true })
      else await sleep(200)
      if (waits === 50) say(`waiting for process ${holder}, which prepares the same (${lock})`)
    }
    try {
      await action()
    } finally {
      rmSync(lock, { force: true })
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

function tryLink(from, to) {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    return false
  }
}

/** Empty when the holder has just let go. */
function readLock(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    return ''
  }
}

function isAlive(pid) {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function say(text) {
  console.error(`\n> ${text}`)
}
