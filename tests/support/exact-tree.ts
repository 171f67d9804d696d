import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A folder as a value, by path: `folder MODE`, `link TARGET`, or `file MODE CONTENT` (a digest where the content is
 * long). Links are not followed and empty folders count. Git's own files are left out.
 */
export type ExactTree = Readonly<Record<string, string>>

export function exactTreeOf(folder: string, below = ''): ExactTree {
  const tree: Record<string, string> = {}
  for (const name of readdirSync(join(folder, below)).toSorted()) {
    const path = join(below, name)
    if (path === '.git') continue
    const full = join(folder, path)
    const stat = lstatSync(full)
    const mode = (stat.mode & 0o7777).toString(8)
    if (stat.isSymbolicLink()) tree[path] = `link ${readlinkSync(full)}`
    else if (stat.isDirectory()) Object.assign(tree, { [path]: `folder ${mode}` }, exactTreeOf(folder, path))
    else tree[path] = `file ${mode} ${shortened(readFileSync(full))}`
  }
  return tree
}

function shortened(bytes: Buffer): string {
  return bytes.length <= 200 ? bytes.toString('latin1') : `sha256 ${createHash('sha256').update(bytes).digest('hex')}`
}
