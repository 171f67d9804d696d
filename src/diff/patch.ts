import type { FileState } from '../checkpoint/file-state.ts'
import { hunksOf, linesOf } from './hunks.ts'
import type { LineDiff } from './line-diff.ts'
import { splitLines } from './lines.ts'

/** One path of a patch; texts are those of files, of a link its target, and empty for what is not there. */
export interface PatchFile {
  /** Relative, with slashes. */
  readonly path: string
  readonly before: FileState
  readonly after: FileState
  readonly texts: { readonly before: string; readonly after: string }
}

/**
 * The change of one path in the form that `git apply` reads; a file that became a link, or the other way round, goes and
 * comes again. Git knows no permissions but "executable", so a change of others says nothing: an empty patch. Undefined
 * for what a patch cannot say: folders, states that are not known, and paths that are not relative.
 */
export function gitPatch(file: PatchFile, compare: (before: string, after: string) => LineDiff): string | undefined {
  const { path, before, after, texts } = file
  const [from, to] = [modeOf(before), modeOf(after)]
  if (from === undefined || to === undefined || path === '' || path.startsWith('/')) return undefined
  if (from !== 'none' && to !== 'none' && (from === LINK) !== (to === LINK)) {
    return piece(path, { from, to: 'none' }, texts.before, '', compare) + piece(path, { from: 'none', to }, '', texts.after, compare)
  }
  return piece(path, { from, to }, texts.before, texts.after, compare)
}

const LINK = '120000'
type Mode = 'none' | '100644' | '100755' | typeof LINK

function modeOf(state: FileState): Mode | undefined {
  switch (state.kind) {
    case 'absent': return 'none'
    case 'file': return (state.mode & 0o100) === 0 ? '100644' : '100755'
    case 'link': return LINK
    default: return undefined
  }
}

function piece(path: string, { from, to }: { readonly from: Mode; readonly to: Mode }, before: string, after: string, compare: (before: string, after: string) => LineDiff): string {
  const names = { old: quoted(`a/${path}`), new: quoted(`b/${path}`) }
  const hunks = before === after ? [] : hunkLines(before, after, compare(before, after))
  const head = from === 'none' ? [`new file mode ${to}`] : to === 'none' ? [`deleted file mode ${from}`] : from === to ? [] : [`old mode ${from}`, `new mode ${to}`]
  if (hunks.length === 0 && head.length === 0) return ''
  const sides = hunks.length === 0 ? [] : [`--- ${from === 'none' ? '/dev/null' : ended(names.old)}`, `+++ ${to === 'none' ? '/dev/null' : ended(names.new)}`]
  return `${[`diff --git ${names.old} ${names.new}`, ...head, ...sides].join('\n')}\n${hunks.join('')}`
}

function hunkLines(before: string, after: string, diff: LineDiff): string[] {
  const old = splitLines(before)
  const now = splitLines(after)
  return hunksOf(diff).flatMap(hunk => [
    `@@ -${range(hunk.oldStart, hunk.oldCount)} +${range(hunk.newStart, hunk.newCount)} @@\n`,
    ...linesOf(hunk).map((line) => {
      switch (line.kind) {
        case 'same': return row(' ', old[line.old - 1]!)
        case 'removed': return row('-', old[line.old - 1]!)
        case 'added': return row('+', now[line.new - 1]!)
      }
    }),
  ])
}

/** Lines count from 1; of none it is the line before them. */
const range = (start: number, count: number): string => `${count === 0 ? start : start + 1},${count}`

const row = (sign: string, line: string): string => (line.endsWith('\n') ? `${sign}${line}` : `${sign}${line}\n\\ No newline at end of file\n`)

/** After a name with blanks a tab says where it ends. */
const ended = (name: string): string => (name.includes(' ') && !name.startsWith('"') ? `${name}\t` : name)

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"', '\\': '\\\\', '\x07': '\\a', '\b': '\\b', '\t': '\\t', '\n': '\\n', '\v': '\\v', '\f': '\\f', '\r': '\\r',
}

/** Names that would not survive a line stand in quotes, as git writes them. */
function quoted(name: string): string {
  // oxlint-disable-next-line no-control-regex
  const special = /["\\\x00-\x1f\x7f]/g
  if (!special.test(name)) return name
  return `"${name.replace(special, one => escapes[one] ?? `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`)}"`
}
