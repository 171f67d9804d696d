import { execFileSync } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { absent, type FileState } from '../../../../src/checkpoint/file-state.ts'
import { diffTexts, type LineDiff } from '../../../../src/diff/line-diff.ts'
import { gitPatch } from '../../../../src/diff/patch.ts'
import { file } from '../../../support/a-journal.ts'

/** Patches, and what the real git makes of them. */

const folders: string[] = []
afterAll(() => folders.forEach(folder => rmSync(folder, { recursive: true, force: true })))

type Entry = { readonly text: string; readonly mode?: number } | { readonly target: string }
type Tree = Readonly<Record<string, Entry>>

const stateOf = (entry: Entry | undefined): FileState =>
  entry === undefined ? absent : 'target' in entry ? { kind: 'link', target: entry.target } : file(entry.text, entry.mode ?? 0o644)
const textOf = (entry: Entry | undefined): string => (entry === undefined ? '' : 'target' in entry ? entry.target : entry.text)
const compare = (before: string, after: string) => diffTexts(before, after) as LineDiff

const patchOf = (before: Tree, after: Tree): string => [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  .map(path => gitPatch({ path, before: stateOf(before[path]), after: stateOf(after[path]), texts: { before: textOf(before[path]), after: textOf(after[path]) } }, compare)!)
  .join('')

function put(folder: string, tree: Tree): void {
  for (const [path, entry] of Object.entries(tree)) {
    const at = join(folder, path)
    mkdirSync(dirname(at), { recursive: true })
    if ('target' in entry) symlinkSync(entry.target, at)
    else {
      writeFileSync(at, entry.text)
      chmodSync(at, entry.mode ?? 0o644)
    }
  }
}

function look(folder: string): Tree {
  const tree: Record<string, Entry> = {}
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const at = join(folder, path)
    const stat = lstatSync(at)
    if (stat.isSymbolicLink()) tree[path] = { target: readlinkSync(at) }
    else if (stat.isFile()) tree[path] = { text: readFileSync(at, 'utf8'), mode: (stat.mode & 0o100) === 0 ? 0o644 : 0o755 }
  }
  return tree
}

/** The tree after `git apply`; throws what git says when it refuses. */
function applied(before: Tree, patch: string, ...flags: readonly string[]): Tree {
  const folder = mkdtempSync(join(tmpdir(), 'turnback-patch-'))
  folders.push(folder)
  put(folder, before)
  if (patch !== '') {
    execFileSync('git', ['apply', ...flags, '-'], {
      cwd: folder, input: patch, stdio: ['pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH, GIT_CEILING_DIRECTORIES: tmpdir(), GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
    })
  }
  return look(folder)
}

const text = (content: string, mode = 0o644): Entry => ({ text: content, mode })
const lines = (count: number, change: (line: number) => string = String) => Array.from({ length: count }, (_, at) => `${change(at)}\n`).join('')

test.each<[string, Tree, Tree]>([
  ['changed lines far apart', { a: text(lines(60)) }, { a: text(lines(60, line => (line % 25 === 3 ? `x${line}` : String(line)))) }],
  ['CRLF, and a change of line ends', { a: text('one\r\ntwo\r\n'), b: text('one\r\ntwo\r\n') }, { a: text('one\r\nTWO\r\n'), b: text('one\ntwo\n') }],
  ['no newline at the end, on either side and on both', { a: text('x'), b: text('x\n'), c: text('1\nx'), d: text('y\n1') }, { a: text('x\n'), b: text('x'), c: text('2\nx'), d: text('z\n1') }],
  ['new and deleted files, empty ones too', { a: text('was\n'), empty: text('') }, { b: text('is\n'), none: text('') }],
  ['a file that becomes empty, and one that was', { a: text('1\n'), b: text('') }, { a: text(''), b: text('1\n') }],
  ['the executable bit, alone and with lines', { a: text('1\n'), b: text('1\n', 0o755) }, { a: text('1\n', 0o755), b: text('2\n') }],
  ['a new executable', {}, { 'bin/run': text('true\n', 0o755) }],
  ['links', { a: { target: 'x' }, b: { target: 'gone' } }, { a: { target: 'y' }, c: { target: 'new place' } }],
  ['a file that becomes a link, and the other way round', { a: text('text\n'), b: { target: 'a' } }, { a: { target: 'b' }, b: text('text\n') }],
  ['a rename, as one that goes and one that comes', { 'old name.txt': text(lines(20)) }, { 'dir/new name.txt': text(lines(20)) }],
  ['names with blanks, quotes, backslashes, tabs and line feeds', { 'a b ': text('1\n'), '"q"': text('1\n'), 'b\\s': text('1\n'), 't\tt': text('1\n'), 'l\nl': text('1\n') },
    { 'a b ': text('2\n'), '"q"': text('2\n'), 'b\\s': text('2\n'), 't\tt': text('2\n'), 'n\x01\x7f': text('2\n') }],
  ['names and texts in other scripts', { '轮/é.txt': text('轮一\n😀\n') }, { '轮/é.txt': text('轮二\n😀\n') }],
  ['a byte order mark', { a: text('\uFEFFone\n') }, { a: text('one\n') }],
  ['lines that look like parts of a patch', { a: text('--- a/a\n+++ b/a\n@@ -1 +1 @@\n\\ No newline at end of file\n') }, { a: text('-- a/a\n+++ b/a\n@@ -1 +2 @@\n') }],
])('git apply makes of one side the other, and back: %s', (_name, before, after) => {
  const patch = patchOf(before, after)

  expect(applied(before, patch)).toEqual(look2(after))
  expect(applied(after, patch, '-R')).toEqual(look2(before))
})

/** A tree as `look` would find it. */
const look2 = (tree: Tree): Tree => Object.fromEntries(Object.entries(tree).map(([path, entry]) => [path, 'target' in entry ? entry : { text: entry.text, mode: entry.mode ?? 0o644 }]))

test('what git has no words for is no patch, and other permissions are an empty one', () => {
  const texts = { before: '', after: '' }
  expect(gitPatch({ path: 'd', before: { kind: 'folder' }, after: absent, texts }, compare)).toBeUndefined()
  expect(gitPatch({ path: 'u', before: { kind: 'unknown', reason: 'too-large' }, after: absent, texts }, compare)).toBeUndefined()
  expect(gitPatch({ path: '/etc/hosts', before: absent, after: file('x'), texts: { before: '', after: 'x' } }, compare)).toBeUndefined()
  expect(gitPatch({ path: 'p', before: file('x'), after: file('x', 0o600), texts: { before: 'x', after: 'x' } }, compare)).toBe('')
})

test('any two trees of texts: git apply makes of one the other', () => {
  const content = fc.array(fc.constantFrom('a', 'b', 'c', '', 'x\r'), { maxLength: 12 }).chain(all => fc.boolean().map(isOpen => all.join('\n') + (isOpen || all.length === 0 ? '' : '\n')))
  const entry = fc.oneof(fc.record({ text: content, mode: fc.constantFrom(0o644, 0o755) }), fc.constantFrom({ target: 'a' }, { target: 'b/c' }))
  const tree = fc.dictionary(fc.constantFrom('a', 'b c', 'd/e', '"'), entry, { maxKeys: 4, noNullPrototype: true })

  fc.assert(fc.property(tree, tree, (before, after) => {
    const patch = patchOf(before, after)
    expect(applied(before, patch)).toEqual(look2(after))
  }), { numRuns: 40 })
}, 60_000)
