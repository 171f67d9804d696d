import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A folder as a value: each file's content (one character per byte, so that nothing is lost) and each folder as `null`. */
export type Tree = Readonly<Record<string, string | null>>

export function treeOf(folder: string): Tree {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()
  return Object.fromEntries(entries.map((path) => {
    const full = join(folder, path)
    return [path, statSync(full).isDirectory() ? null : readFileSync(full, 'latin1')]
  }))
}
