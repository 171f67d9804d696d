// Is the packed file what a user can install? Its contents, its manifest, the form of the browser half, and then the
// file itself in a fresh home of the real host with a real page.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isBuiltin } from 'node:module'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { startWorld } from '../tests/support/e2e-world.ts'
import { importsOf, nodesOf, parseText, report, root } from './syntax.mjs'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const read = path => readFileSync(join(root, path), 'utf8')

const findings = [
  ...contents(),
  ...await manifestFindings(),
  ...hostHalf(read('lib/index.js')),
  ...browserHalf(read('lib/client.js')),
]
// A package with one of these faults can stop the user's whole page; there is no point in starting it.
if (findings.length === 0) findings.push(...await installed())
report(findings, 'the packed file installs, boots and answers')

/** Exactly the files a user needs: nothing forgotten, nothing that does not belong. */
function contents() {
  const packed = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], { cwd: root, encoding: 'utf8' }))
  const paths = packed[0].files.map(file => file.path)
  const needed = ['LICENSE', 'README.md', 'cordis.patch.yml', 'lib/client.js', 'lib/index.js', 'package.json']
  const allowed = path => needed.includes(path) || /^(README[^/]*|CHANGELOG)\.md$/.test(path)
  return [
    ...needed.filter(path => !paths.includes(path)).map(path => `the packed file lacks ${path}`),
    ...paths.filter(path => !allowed(path)).map(path => `the packed file has ${path}, which nobody needs`),
  ]
}

async function manifestFindings() {
  const { messages } = await publint({ pkgDir: root, strict: true })
  // The browser half is a classic script that the page loads by itself; Node never does, so its format is no fault.
  const real = messages.filter(({ code, path }) => !(code === 'FILE_INVALID_FORMAT' && path.includes('./client')))
  const found = real.map(message => `package.json: ${formatMessage(message, manifest)}`)
  if (Object.keys(manifest.dependencies ?? {}).length > 0) found.push('package.json: there must be no dependencies; bundle them')
  if (!read('cordis.patch.yml').includes(`name: ${manifest.name}\n`)) found.push('cordis.patch.yml: no row loads the package')
  return found
}

function hostHalf(code) {
  const found = common('lib/index.js', code)
  const foreign = importsOf(parseText('index.js', code)).map(({ from }) => from).filter(from => !isBuiltin(from))
  if (foreign.length > 0) found.push(`lib/index.js: imports ${foreign.join(', ')}`)
  return found
}

/** The page runs several plugins as one script: one statement, and only modules that its table has. */
function browserHalf(code) {
  const name = 'lib/client.js'
  const program = parseText('client.js', code)
  const call = program.body[0]?.expression
  if (program.body.length !== 1 || call?.type !== 'CallExpression'
    || code.slice(call.callee.start, call.callee.end) !== 'window.__ModuleLoader__.load') {
    return [`${name}: must be one call of window.__ModuleLoader__.load and nothing else`]
  }
  const found = common(name, code)
  const id = call.arguments[0].properties.find(property => property.key.name === 'id')?.value.value
  if (id !== manifest.name) found.push(`${name}: registers as ${id}, the package is ${manifest.name}`)
  const served = ['react', '@deepseek-ai/dsh-client-ui-primitives']
  for (const node of nodesOf(program)) {
    if (node.type === 'ImportExpression') found.push(`${name}: imports at run time`)
    if (node.type !== 'CallExpression' || node.callee.name !== 'require') continue
    const wanted = node.arguments[0]?.value
    if (!served.includes(wanted)) found.push(`${name}: requires ${wanted}, which not every page serves`)
  }
  if (/react\.(production|development)|react-dom/.test(code)) found.push(`${name}: React is bundled`)
  if (/\bprocess\.env\b/.test(code)) found.push(`${name}: reads process.env; the page has no process`)
  return found
}

function common(name, code) {
  return [
    ...(code.includes(root) ? [`${name}: names the folder it was built in`] : []),
    ...(code.includes('sourceMappingURL') ? [`${name}: points to a source map that is not shipped`] : []),
  ]
}

async function installed() {
  const world = await startWorld({ files: { 'existing.txt': 'alpha\n' } })
  try {
    await world.ask('Say hello. [scenario:hello]')
    await world.page.getByText('Hello from the scripted model.').waitFor()
    await world.ask('Please work. [scenario:work]')
    const files = () => ['existing.txt', 'new.txt', 'bash.txt'].map(name => world.read(name))
    const changed = files()
    await rollBackTurn2(world.page)
    const restored = files()
    const broken = await world.page.locator('[data-slot-error]').count()
    const styles = await world.page.locator(`style[data-plugin="${manifest.name}"]`).count()
    return [
      ...(changed[0] === 'ALPHA\n' && !changed.includes(undefined) ? [] : [`the scripted turn left ${JSON.stringify(changed)}`]),
      ...(restored[0] === 'alpha\n' && restored.filter(Boolean).length === 1 ? [] : [`the rollback left ${JSON.stringify(restored)}`]),
      ...(broken > 0 ? [`${broken} slots of the page are broken`] : []),
      ...(styles > 1 ? [`the page has ${styles} style tags of the plugin`] : []),
      ...world.pageErrors.map(error => `the page logged: ${error}`),
    ]
  } finally {
    await world.dispose()
  }
}

/** From the button to the result. */
async function rollBackTurn2(page) {
  await page.getByRole('button', { name: 'Roll back to before turn 2', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Roll back to before turn 2' })
  await dialog.getByRole('button', { name: /^Roll back 1 turn/ }).click()
  const done = page.getByRole('dialog', { name: 'Rolled back to before turn 2' })
  await done.getByRole('button', { name: 'Close' }).last().click()
}
