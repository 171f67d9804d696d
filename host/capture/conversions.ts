import { answer } from './git-run.ts'
import type { GitLook } from './git-index.ts'
import type { GitTree } from './git-tree.ts'

/** Of `paths`, those whose blob may not be the file's bytes: a conversion is configured or took place, or there is no such blob. */
export async function convertedPaths(tree: GitTree, look: GitLook, paths: readonly string[]): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set()
  const input = Buffer.from(paths.map(path => `${path}\0`).join(''))
  const oids = [...new Set(paths.flatMap(path => look.index.get(path)?.oid ?? []))]
  const attributes = ['filter', 'ident', 'working-tree-encoding']
  const [now, staged, sizes] = await Promise.all([
    answer(tree.ask(['check-attr', '-z', '--stdin', ...attributes], { input })),
    // The command may have changed or deleted the file of attributes.
    answer(tree.ask(['check-attr', '-z', '--stdin', '--cached', ...attributes], { input, indexFile: tree.copy.file })),
    tree.ask(['cat-file', '--batch-check'], { input: Buffer.from(oids.map(oid => `${oid}\n`).join('')) }),
  ])

  const converted = new Set<string>()
  for (const output of [now, staged]) {
    const fields = output.toString().split('\0')
    for (let i = 0; i + 2 < fields.length; i += 3) if (!NOT_SET.has(fields[i + 2]!)) converted.add(fields[i]!)
  }
  const sizeOf = new Map<string, number>()
  for (const line of sizes.stdout.toString('latin1').split('\n')) {
    const [oid, type, size] = line.split(' ')
    if (type === 'blob') sizeOf.set(oid!, Number(size) % 2 ** 32)
  }
  // Line ends: git records the size of the working file, so the two differ when any were converted.
  for (const path of paths) {
    const entry = look.index.get(path)
    if (entry === undefined || sizeOf.get(entry.oid) !== entry.size) converted.add(path)
  }
  return converted
}

const NOT_SET = new Set(['unspecified', 'unset'])
