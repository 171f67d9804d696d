// What the checks read: source files, and the nodes of their syntax trees.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** Paths of the .ts, .tsx and .mjs files below the folders, relative to the project, in order. */
export function sourceFiles(...folders) {
  return folders.flatMap(folder => readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && /\.(ts|tsx|mjs)$/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name).slice(root.length))
    .filter(path => !path.includes('node_modules')))
    .sort()
}

/** Parses one file; throws with its name when it does not parse. */
export function parseFile(path) {
  const text = readFileSync(join(root, path), 'utf8')
  return { text, program: parseText(path, text) }
}

export function parseText(name, text) {
  const { program, errors } = parseSync(name, text)
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`)
  return program
}

/** Every node of a tree, parents first. */
export function* nodesOf(node) {
  if (typeof node?.type === 'string') yield node
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) for (const item of value) { if (item && typeof item === 'object') yield* nodesOf(item) }
    else if (value && typeof value === 'object') yield* nodesOf(value)
  }
}

/** What a file imports or re-exports: the specifier, and whether only types come from it. */
export function importsOf(program) {
  return [...nodesOf(program)].flatMap((node) => {
    switch (node.type) {
      case 'ImportDeclaration': return [{ from: node.source.value, typeOnly: node.importKind === 'type' }]
      case 'ExportAllDeclaration': return [{ from: node.source.value, typeOnly: node.exportKind === 'type' }]
      case 'ExportNamedDeclaration':
        return node.source ? [{ from: node.source.value, typeOnly: node.exportKind === 'type' }] : []
      case 'ImportExpression': return [{ from: String(node.source.value), typeOnly: false }]
      case 'TSImportType': return [{ from: String((node.source ?? node.argument)?.value), typeOnly: true }]
      default: return []
    }
  })
}

/** Prints the findings and sets the exit code; `ok` is the sentence when there are none. */
export function report(findings, ok) {
  for (const finding of findings) console.error(finding)
  if (findings.length > 0) process.exitCode = 1
  else console.log(ok)
}
