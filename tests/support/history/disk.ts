import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A folder as a value: what each path below it is, in words that are equal only for equal states. */
export type Tree = ReadonlyMap<string, string>
export const FOLDER = 'folder'

/** Everything below `root` but what git keeps for itself; a folder's mode is in `folderModes`. */
export function treeOf(root: string): Tree {
  const tree = new Map<string, string>()
  const enter = (folder: string): void => {
    for (const name of readdirSync(join(root, folder)).sort()) {
      if (name === '.git') continue
      const path = folder === '' ? name : `${folder}/${name}`
      const stat = lstatSync(join(root, path))
      tree.set(path, stat.isDirectory() ? FOLDER : wordsOf(join(root, path), stat.mode, stat.isSymbolicLink()))
      if (stat.isDirectory()) enter(path)
    }
  }
  enter('')
  return tree
}

const wordsOf = (path: string, mode: number, isLink: boolean): string =>
  isLink ? `link ${readlinkSync(path)}` : `file ${(mode & 0o7777).toString(8)} ${readFileSync(path, 'latin1')}`

/** The bytes of a file's words; undefined for anything else. */
export const bytesIn = (words: string | undefined): Buffer | undefined => {
  const found = words === undefined ? null : /^file [0-7]+ /.exec(words)
  return found === null ? undefined : Buffer.from(words!.slice(found[0].length), 'latin1')
}

export const folderModes = (root: string, tree: Tree): ReadonlyMap<string, number> =>
  new Map([...tree].filter(([, words]) => words === FOLDER).map(([path]) => [path, lstatSync(join(root, path)).mode & 0o7777]))

/** Paths that are not the same in both. */
export const differing = (one: Tree, other: Tree): readonly string[] =>
  [...new Set([...one.keys(), ...other.keys()])].filter(path => one.get(path) !== other.get(path))

/** A folder holds nothing that could be lost: what is in it has a place of its own. */
export const isFolderOnly = (words: string | undefined): boolean => words === undefined || words === FOLDER

export const isHolding = (tree: Tree, folder: string): boolean => [...tree.keys()].some(path => path.startsWith(`${folder}/`))

/** One change of the disk, by whomever. `content` is a number: some are the same whoever writes them, most are nobody else's. */
export type Edit =
  | { readonly do: 'write'; readonly path: string; readonly content: number; readonly mode: number }
  | { readonly do: 'chmod'; readonly path: string; readonly mode: number }
  | { readonly do: 'link'; readonly path: string; readonly target: string }
  | { readonly do: 'folder'; readonly path: string }
  | { readonly do: 'delete'; readonly path: string }
  | { readonly do: 'move'; readonly path: string; readonly to: string }

const contents = [Buffer.alloc(0), Buffer.from('one\n'), Buffer.from('two\r\nзавтра\r\n'), Buffer.from([0, 255, 13, 10, 0, 128])]
let serial = 0
export const contentOf = (content: number): Buffer => contents[content] ?? Buffer.from(`${content} ${serial++}\n`)

/** Errors that a command meets where the folder is not as it thought; it then goes on with the next thing. */
const EXPECTED = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EEXIST', 'ENOTEMPTY', 'EINVAL', 'ELOOP', 'EPERM'])

/** Does it as far as it can be done. */
export function perform(root: string, edit: Edit | { readonly do: 'put'; readonly path: string; readonly bytes: Buffer }): void {
  const path = join(root, edit.path)
  try {
    switch (edit.do) {
      case 'write':
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, contentOf(edit.content))
        return chmodSync(path, edit.mode)
      case 'put':
        mkdirSync(dirname(path), { recursive: true })
        return writeFileSync(path, edit.bytes)
      case 'chmod': return chmodSync(path, edit.mode | (lstatSync(path).isDirectory() ? 0o700 : 0))
      case 'link':
        mkdirSync(dirname(path), { recursive: true })
        if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) rmSync(path, { force: true })
        return symlinkSync(edit.target, path)
      case 'folder': return void mkdirSync(path, { recursive: true })
      case 'delete': return rmSync(path, { recursive: true, force: true })
      case 'move':
        mkdirSync(dirname(join(root, edit.to)), { recursive: true })
        return renameSync(path, join(root, edit.to))
    }
  } catch (error) {
    if (!EXPECTED.has((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
