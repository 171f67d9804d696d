// Keeps the arrows between the rooms true: src <- host, src <- client, locales <- both, never host <-> client, and
// nothing of the product imports scripts or tests. Only the entries and the dsh/ rooms know DSH.
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { importsOf, parseFile, report, root, sourceFiles } from './syntax.mjs'

/** Per room: the rooms it may import, the packages it may import, and whether Node's modules are allowed. */
const rooms = {
  src: { rooms: ['src'], packages: ['valibot', 'diff'], node: false },
  // The tables of texts are checked against the unions of the core, so they may see its types.
  locales: { rooms: ['locales'], typeRooms: ['src'], packages: [], node: false },
  // The host half reports the version, which the manifest holds; it is bundled like everything else.
  host: { rooms: ['host', 'src', 'locales', 'package.json'], packages: ['valibot', 'diff'], node: true },
  client: { rooms: ['client', 'src', 'locales'], packages: ['preact', '@preact/signals', 'valibot', 'diff'], node: false },
}

/** The files that may name DSH packages. */
const knowsDsh = /^(host|client)\/(index\.tsx?$|dsh\/)/
/** React is only touched where a host slot is joined. */
const knowsReact = /^client\/(index\.tsx?$|dsh\/)/
/** Settings of the build run in Node and are part of no room. */
const isBuildConfig = /^(host|client)\/vite\.config\.ts$/

const findings = []
const files = sourceFiles(...Object.keys(rooms)).filter(path => !isBuildConfig.test(path))
for (const path of files) {
  const { text, program } = parseFile(path)
  const room = path.split('/')[0]
  for (const { from, typeOnly } of importsOf(program)) {
    const complaint = from.startsWith('.') ? relativeComplaint(path, room, from, typeOnly) : packageComplaint(path, room, from)
    if (complaint !== undefined) findings.push(`${path}: ${complaint}`)
  }
  if (text.includes('@deepseek-ai/') && !knowsDsh.test(path)) findings.push(`${path}: names a DSH package; only the dsh rooms do`)
}
report(findings, `${files.length} files keep the layers`)

function relativeComplaint(path, room, from, typeOnly) {
  const target = join(root, dirname(path), from).slice(root.length).split('/')[0]
  const allowed = [...rooms[room].rooms, ...(typeOnly ? rooms[room].typeRooms ?? [] : [])]
  return allowed.includes(target) ? undefined : `${room} may not import from ${target} (${from})`
}

function packageComplaint(path, room, from) {
  if (isBuiltin(from)) return rooms[room].node ? undefined : `${room} may not use ${from}`
  const name = from.split('/').slice(0, from.startsWith('@') ? 2 : 1).join('/')
  if (rooms[room].packages.includes(name)) return undefined
  if (name === 'react' && knowsReact.test(path)) return undefined
  if (name.startsWith('@deepseek-ai/') && knowsDsh.test(path)) return undefined
  return `${room} may not import ${name}`
}
