import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { errnoOf } from '../restore/file-system.ts'
import type { IndexEntry, IndexView } from './git-index-copy.ts'
import { answer } from './git-run.ts'
import type { GitTree } from './git-tree.ts'
import { versionOf } from './stat-now.ts'

/** What was learned of a tree, for as long as somebody holds it. */
interface Memory {
  config: { readonly version: string, readonly files: readonly string[], readonly isConverting: boolean, readonly attributesFile: string } | undefined
  /** Of files of attributes, by path: whether they say anything that changes bytes. */
  readonly files: Map<string, { readonly version: string, readonly isRelevant: boolean }>
  /** Of blobs, by object id; undefined for what is none. */
  readonly sizes: Map<string, number | undefined>
  /** The answer, for one version of the rules and of the index. */
  version: string
  entries: IndexView['entries'] | undefined
  checked: ReadonlyMap<string, { readonly entry: IndexEntry, readonly isConverted: boolean }>
  converted: ReadonlySet<string>
}

const memories = new WeakMap<GitTree, Memory>()

/**
 * Tracked files whose blob may not be their bytes: git has or had a conversion for them (filter, ident, encoding,
 * line ends), or there is no such blob. Empty at no cost where no rule speaks of any; otherwise only entries and
 * rules that are new are asked for. No filter runs.
 */
export async function convertedPaths(tree: GitTree, view: IndexView, untracked: readonly string[]): Promise<ReadonlySet<string>> {
  const memory = memoryOf(tree)
  const config = await learnConfig(tree)
  const named = [...view.attributeFiles, ...untracked].filter(isAttributes).map(path => join(tree.root, path))
  const outside = [...foldersAbove(tree).map(folder => join(folder, '.gitattributes')),
    join(tree.commonDir, 'info/attributes'), config.attributesFile, '/etc/gitattributes']
  let isRelevant = config.isConverting
  // One that is in the index and not on the disk is read from the index.
  for (const file of named) if (await saysSomething(file, memory, true)) isRelevant = true
  for (const file of outside) if (await saysSomething(file, memory, false)) isRelevant = true
  if (!isRelevant) return NONE

  const version = [config.version, ...[...named, ...outside].map(versionOf)].join('\n')
  if (memory.version === version && memory.entries === view.entries) return memory.converted
  const old: Memory['checked'] = memory.version === version ? memory.checked : new Map()
  const files = [...view.entries].filter(([, { mode }]) => mode === '100644' || mode === '100755')
  const fresh = files.filter(([path, { oid, size }]) => {
    const known = old.get(path)?.entry
    return known === undefined || known.oid !== oid || known.size !== size
  })
  const [attributed] = await Promise.all([
    attributedPaths(tree, fresh.map(([path]) => path)),
    learnSizes(tree, memory.sizes, fresh.map(([, { oid }]) => oid)),
  ])
  // Line ends: git records the size of the working file, so the two differ when any were converted.
  const found = new Map(fresh.map(([path, entry]) =>
    [path, { entry, isConverted: attributed.has(path) || memory.sizes.get(entry.oid) !== entry.size }]))
  const checked = new Map(files.map(([path]) => [path, found.get(path) ?? old.get(path)!]))
  const converted = new Set([...checked].filter(([, { isConverted }]) => isConverted).map(([path]) => path))
  memories.set(tree, { ...memory, version, entries: view.entries, checked, converted })
  return converted
}

/** The settings that matter here; may be learned beforehand, while git is busy with other things. */
export async function learnConfig(tree: GitTree): Promise<NonNullable<Memory['config']>> {
  const memory = memoryOf(tree)
  return memory.config = await configOf(tree, memory.config)
}

const NONE: ReadonlySet<string> = new Set()
/** Of gitattributes(5): what makes bytes differ, and macros, which may stand for it. */
const RELEVANT = /filter|ident|encoding|text|eol|crlf|\[attr\]/
const ATTRIBUTES = ['filter', 'ident', 'working-tree-encoding']
const NOT_SET = new Set(['unspecified', 'unset'])

const isAttributes = (path: string): boolean => path === '.gitattributes' || path.endsWith('/.gitattributes')

function memoryOf(tree: GitTree): Memory {
  const known = memories.get(tree)
  if (known !== undefined) return known
  const memory: Memory = { config: undefined, files: new Map(), sizes: new Map(), version: '', entries: undefined, checked: new Map(), converted: NONE }
  memories.set(tree, memory)
  return memory
}

/** Folders of the tree that the workspace, a part of it, lies in. */
function foldersAbove({ root, pathspec }: GitTree): string[] {
  const folders: string[] = []
  const prefix = pathspec[1]
  if (prefix === undefined) return folders
  for (let folder = dirname(prefix); folder !== '.'; folder = dirname(folder)) folders.push(join(root, folder))
  return [...folders, root]
}

/** `~/.gitconfig` and the like, whether they exist or not. */
function usualConfigs({ commonDir, gitDir }: GitTree): string[] {
  const settings = process.env.XDG_CONFIG_HOME ?? join(homedir(), '.config')
  return ['/etc/gitconfig', join(homedir(), '.gitconfig'), join(settings, 'git/config'), join(commonDir, 'config'), join(gitDir, 'config.worktree')]
}

/** Asked of git when a file that the settings come from is another one than before. */
async function configOf(tree: GitTree, known: Memory['config']): Promise<NonNullable<Memory['config']>> {
  const usual = usualConfigs(tree)
  const versionOfAll = (files: readonly string[]): string => files.map(versionOf).join('\n')
  if (known !== undefined && versionOfAll(known.files) === known.version) return known
  const fields = (await answer(tree.ask(['config', '--null', '--show-origin', '--list']))).toString().split('\0')
  const files = new Set(usual)
  const values = new Map<string, string>()
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const origin = /^file:(.*)$/s.exec(fields[at]!)?.[1]
    if (origin !== undefined) files.add(resolve(tree.root, origin))
    const [key, ...value] = fields[at + 1]!.split('\n')
    values.set(key!, value.join('\n'))
  }
  const named = values.get('core.attributesfile')?.replace(/^~\//, `${homedir()}/`)
  const settings = process.env.XDG_CONFIG_HOME ?? join(homedir(), '.config')
  const lineEnds = values.get('core.autocrlf')
  return {
    version: versionOfAll([...files]), files: [...files],
    isConverting: lineEnds !== undefined && !['false', 'no', 'off', '0'].includes(lineEnds.toLowerCase()),
    attributesFile: named === undefined ? join(settings, 'git/attributes') : resolve(tree.root, named),
  }
}

async function saysSomething(file: string, { files }: Memory, isRelevantIfGone: boolean): Promise<boolean> {
  const version = versionOf(file)
  if (version === '') return isRelevantIfGone
  const known = files.get(file)
  if (known?.version === version) return known.isRelevant
  const isRelevant = RELEVANT.test(await textOf(file))
  files.set(file, { version, isRelevant })
  return isRelevant
}

/** A file that cannot be read may say anything. */
async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'latin1')
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return 'filter'
  }
}

async function attributedPaths({ ask, copy }: GitTree, paths: readonly string[]): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return NONE
  const input = Buffer.from(paths.map(path => `${path}\0`).join(''))
  const fields = (await answer(ask(['check-attr', '-z', '--stdin', ...ATTRIBUTES], { input, indexFile: copy.file }))).toString().split('\0')
  const found = new Set<string>()
  for (let at = 0; at + 2 < fields.length; at += 3) if (!NOT_SET.has(fields[at + 2]!)) found.add(fields[at]!)
  return found
}

async function learnSizes({ ask }: GitTree, sizes: Memory['sizes'], oids: readonly string[]): Promise<void> {
  const wanted = [...new Set(oids)].filter(oid => !sizes.has(oid))
  if (wanted.length === 0) return
  const { stdout } = await ask(['cat-file', '--batch-check'], { input: Buffer.from(wanted.map(oid => `${oid}\n`).join('')) })
  for (const line of stdout.toString('latin1').split('\n')) {
    const [oid, type, size] = line.split(' ')
    if (oid !== undefined && oid !== '') sizes.set(oid, type === 'blob' ? Number(size) % 2 ** 32 : undefined)
  }
}
