import type { GitTree } from './git-tree.ts'

/** Raw bytes of blobs, all in memory at once: leave out what is too large by the entry's `size`. A missing one is not in the map. */
export async function readBlobs(tree: GitTree, oids: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
  const wanted = [...new Set(oids)]
  const blobs = new Map<string, Buffer>()
  if (wanted.length === 0) return blobs
  // When git stops at a damaged object, what it wrote before is whole and the rest is missing.
  const { stdout } = await tree.ask(['cat-file', '--batch'], { input: Buffer.from(`${wanted.join('\n')}\n`) })
  for (let at = 0; at < stdout.length;) {
    const lineEnd = stdout.indexOf(10, at)
    if (lineEnd < 0) break
    const [oid, type, size] = stdout.toString('latin1', at, lineEnd).split(' ')
    at = lineEnd + 1
    if (size === undefined) continue
    const end = at + Number(size)
    if (end >= stdout.length) break
    if (type === 'blob') blobs.set(oid!, stdout.subarray(at, end))
    at = end + 1
  }
  return blobs
}

/** Of `paths`, those that the present rules ignore, tracked or not; all of them when git does not say. */
export async function ignoredPaths({ ask }: GitTree, paths: readonly string[]): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set()
  const input = Buffer.from(paths.map(path => `./${path}\0`).join(''))
  const { code, stdout } = await ask(['check-ignore', '--no-index', '-z', '--stdin'], { input })
  if (code > 1) return new Set(paths)
  return new Set(stdout.toString().split('\0').map(path => path.replace(/^\.\//, '')))
}

/**
 * Paths that differ between two commits, with the id of the blob in the first one, undefined for a path that is new.
 * An undefined commit has no files. Nothing where git cannot read them.
 */
export async function committedBetween({ ask }: GitTree, from: string | undefined, to: string | undefined): Promise<ReadonlyMap<string, string | undefined>> {
  const only = from ?? to
  if (only === undefined) return new Map()
  const asked = await ask(from === undefined || to === undefined
    ? ['ls-tree', '-r', '-z', only]
    : ['diff-tree', '-r', '-z', '--raw', '--no-renames', from, to])
  if (asked.code !== 0) return new Map()
  const fields = asked.stdout.toString().split('\0').slice(0, -1)
  if (from === undefined || to === undefined) {
    return new Map(fields.map((field): [string, string | undefined] => {
      const tab = field.indexOf('\t')
      return [field.slice(tab + 1), from === undefined ? undefined : field.slice(0, tab).split(' ')[2]]
    }))
  }
  const changes = new Map<string, string | undefined>()
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const oid = fields[at]!.split(' ')[2]
    changes.set(fields[at + 1]!, oid === undefined || /^0+$/.test(oid) ? undefined : oid)
  }
  return changes
}
