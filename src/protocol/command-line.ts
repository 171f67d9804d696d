import type { Scope } from '../checkpoint/journal-entry.ts'
import { opId, planId, type OpId, type PlanId } from '../ids.ts'
import { fail, ok, type Result } from '../result.ts'
import { failure, type Failure } from './failure.ts'
import type { QueuedChoice, RunningChoice } from './requests.ts'

/** What a typed `/rollback …` asks for. */
export type Command =
  | { readonly kind: 'bare' }
  | TurnCommand
  | { readonly kind: 'plan'; readonly planId: PlanId }
  | { readonly kind: 'list' }
  | { readonly kind: 'preview'; readonly turn: number; readonly scope: Scope }
  | { readonly kind: 'undo'; readonly op: OpId | undefined; readonly running: RunningChoice }
  | { readonly kind: 'retry'; readonly running: RunningChoice }
  | { readonly kind: 'help' }

export interface TurnCommand {
  readonly kind: 'turn'
  readonly turn: number
  readonly scope: Scope
  /** The conversation goes on in a new session; the scope of what happens here is the files then. */
  readonly branch: boolean
  /** Paths as typed, absolute or relative to the workspace; undefined for all. */
  readonly only: readonly string[] | undefined
  readonly running: RunningChoice
  readonly queued: QueuedChoice
}

/** What may stand behind a turn's number. */
const scopeWords: ReadonlyMap<string, { readonly scope: Scope; readonly branch?: true }> = new Map([
  ['both', { scope: 'both' }],
  ['files', { scope: 'files' }],
  ['conversation', { scope: 'conversation' }],
  ['branch', { scope: 'files', branch: true }],
])

/**
 * Reads the words after the command name; blank means the bare form, because the client passes `/rollback ` on as one blank.
 * Failure `bad-request` with `detail`: `turn-number` (word is no turn number), `extra` (words too many), `word` (unknown), `missing-turn`,
 * `missing-plan`, `missing-path` (`--only` without one), `only-conversation` (no files in that scope), `quote` (not closed).
 */
export function parseCommandLine(rawInput: string): Result<Command, Failure> {
  const read = wordsOf(rawInput)
  if (!read.ok) return read
  const [first, ...rest] = read.value
  if (first === undefined) return ok({ kind: 'bare' })
  const word = first.text
  switch (word) {
    case 'list':
    case 'help':
      return rest.length === 0 ? ok({ kind: word }) : bad('extra', rest[0]!.text)
    case 'undo': {
      const named = rest[0]?.text.startsWith('--') === false ? rest[0].text : undefined
      if (named !== undefined && !/^[0-9a-z]{8,32}$/.test(named)) return bad('extra', named)
      const running = runningOf(named === undefined ? rest : rest.slice(1))
      return running.ok ? ok({ kind: 'undo', op: named === undefined ? undefined : opId(named), running: running.value }) : running
    }
    case 'retry': {
      const running = runningOf(rest)
      return running.ok ? ok({ kind: 'retry', running: running.value }) : running
    }
    case 'preview': {
      const [number, scopeWord, extra] = rest
      if (number === undefined) return bad('missing-turn', word)
      const turn = turnNumber(number.text)
      if (!turn.ok) return turn
      const named = scopeWord === undefined ? { scope: 'both' as const } : scopeWords.get(scopeWord.text)
      if (named === undefined) return bad('extra', scopeWord!.text)
      return extra === undefined ? ok({ kind: 'preview', turn: turn.value, scope: named.scope }) : bad('extra', extra.text)
    }
    case '--plan': {
      const [id, extra] = rest
      if (id === undefined || !/^[0-9a-z]{8,32}$/.test(id.text)) return bad('missing-plan', id?.text ?? word)
      return extra === undefined ? ok({ kind: 'plan', planId: planId(id.text) }) : bad('extra', extra.text)
    }
    default:
      return turnCommand(word, rest)
  }
}

function runningOf([first, ...rest]: readonly Word[]): Result<RunningChoice, Failure> {
  if (first === undefined) return ok('refuse')
  const extra = isOption(first, '--continue') ? rest[0] : first
  return extra === undefined ? ok('continue') : bad('extra', extra.text)
}

function turnCommand(number: string, rest: readonly Word[]): Result<TurnCommand, Failure> {
  const turn = turnNumber(number)
  if (!turn.ok) return turn
  const named = rest[0] === undefined ? undefined : scopeWords.get(rest[0].text)
  const scope = named?.scope ?? 'both'
  let only: string[] | undefined
  let running: RunningChoice = 'refuse'
  let queued: QueuedChoice = 'keep'
  for (let at = named === undefined ? 0 : 1; at < rest.length; at++) {
    const word = rest[at]!
    if (isOption(word, '--only')) {
      const end = rest.findIndex((next, place) => place > at && next.text.startsWith('--') && !next.isQuoted)
      const paths = rest.slice(at + 1, end < 0 ? undefined : end).map(({ text }) => text)
      if (paths.length === 0 || paths.includes('')) return bad('missing-path', word.text)
      if (scope === 'conversation') return bad('only-conversation', paths[0]!)
      only = [...only ?? [], ...paths]
      at += paths.length
    } else if (isOption(word, '--continue')) running = 'continue'
    else if (isOption(word, '--drop-queued')) queued = 'drop'
    else return bad('extra', word.text)
  }
  return ok({ kind: 'turn', turn: turn.value, scope, branch: named?.branch === true, only, running, queued })
}

function turnNumber(word: string): Result<number, Failure> {
  if (/^[1-9]\d{0,8}$/.test(word)) return ok(Number(word))
  return bad(/^[-+]?\d+(\.\d+)?$/.test(word) ? 'turn-number' : 'word', word)
}

interface Word {
  readonly text: string
  /** A quoted word is never an option. */
  readonly isQuoted: boolean
}

const isOption = ({ text, isQuoted }: Word, option: string): boolean => !isQuoted && text === option

/** Also the pairs that a Chinese keyboard types. */
const quotes: ReadonlyMap<string, string> = new Map([['"', '"'], ['\'', '\''], ['“', '”'], ['‘', '’']])

/**
 * Words are parted by blanks. One that begins with a quote goes up to the closing one, so that a path may have blanks;
 * elsewhere in a word a quote is a character like any other, as in `it's.txt`.
 */
function wordsOf(line: string): Result<readonly Word[], Failure> {
  const words: Word[] = []
  let rest = line.trim()
  while (rest !== '') {
    const closing = quotes.get(rest[0]!)
    const end = closing === undefined ? rest.search(/\s|$/) : rest.indexOf(closing, 1)
    if (end < 0) return bad('quote', rest)
    words.push({ text: rest.slice(closing === undefined ? 0 : 1, end), isQuoted: closing !== undefined })
    rest = rest.slice(closing === undefined ? end : end + 1).trimStart()
  }
  return ok(words)
}

const bad = (detail: string, word: string) => fail(failure('bad-request', { detail, word: word.slice(0, 40) }))
