import type { BracketEntry } from './journal-entry.ts'
import type { Seq } from '../ids.ts'

/** A move of HEAD by a command, as a person is told of it. Refs are short names, undefined when detached; commits are whole ids. */
export interface MovedHead {
  readonly turn: number
  readonly words: string
  readonly from?: string
  readonly to?: string
  readonly fromRef?: string
  readonly toRef?: string
  /** A git command that undoes this move and those before it. We never run it. */
  readonly advice?: string
}

/** Where HEAD is now: a full ref name, undefined when detached, and a commit, undefined for a branch without one. */
export interface HeadNow {
  readonly head: string | undefined
  readonly ref: string | undefined
}

export interface GitMoveInput {
  readonly brackets: readonly BracketEntry[]
  readonly startSeq: Seq
  /** Undefined when it is not known. */
  readonly now: HeadNow | undefined
  /** Files that such a move changed are kept as they are. */
  readonly hasKept: boolean
}

type Head = NonNullable<BracketEntry['head']>

/** Moves of HEAD in the turns from `startSeq` on, oldest first. */
export const movesFrom = (brackets: readonly BracketEntry[], startSeq: Seq): readonly (BracketEntry & { readonly head: Head })[] =>
  brackets.flatMap(bracket => (bracket.head !== undefined && bracket.turn.startSeq >= startSeq ? [{ ...bracket, head: bracket.head }] : []))

/** The moves in words' parts. The last one carries the advice for the whole way back. */
export function gitMoves({ brackets, startSeq, now, hasKept }: GitMoveInput): readonly MovedHead[] {
  const moves = movesFrom(brackets, startSeq)
  const advice = adviceFor(moves.map(({ head }) => head), now, hasKept)
  return moves.map(({ turn, words, head: { from, to, fromRef, ref } }, at) => ({
    turn: turn.number, words,
    ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }),
    ...(fromRef === undefined ? {} : { fromRef: shortRef(fromRef) }), ...(ref === undefined ? {} : { toRef: shortRef(ref) }),
    ...(advice === undefined || at < moves.length - 1 ? {} : { advice }),
  }))
}

/**
 * How a person gets HEAD back to where it was before the first move. Nothing where HEAD is not where the last
 * one left it: somebody moved it since, or it is that of a repository inside the workspace, and a command that
 * was right then may throw away work now.
 */
function adviceFor(heads: readonly Head[], now: HeadNow | undefined, hasKept: boolean): string | undefined {
  const first = heads[0]
  const last = heads.at(-1)
  if (first === undefined || last === undefined || now === undefined || now.head !== last.to || now.ref !== last.ref) return undefined
  const { from, fromRef } = first
  if (from === last.to && fromRef === last.ref) return undefined
  if (fromRef === last.ref) {
    // The first commit of a branch: without its ref the branch has none again, and index and files stay.
    if (from === undefined) return hasKept || fromRef === undefined ? undefined : 'git update-ref -d HEAD'
    return hasKept && fromRef === undefined ? detachAt(from) : resetTo(from, hasKept)
  }
  // A branch without a commit cannot be switched to again: that would take every tracked file away.
  if (from === undefined) return undefined
  if (fromRef === undefined) return detachAt(from)
  const branch = shortRef(fromRef)
  if (!fromRef.startsWith('refs/heads/') || branch.startsWith('-')) return undefined
  // The branch may have moved too before HEAD left it.
  const left = heads.findLast(head => head.fromRef === fromRef)?.from
  const back = `git switch ${quoted(branch)}`
  return left === from ? back : `${back} && ${resetTo(from, hasKept)}`
}

/** `--keep` brings the files of the move back and refuses where they have other changes; without it only HEAD and the index move. */
const resetTo = (commit: string, withFiles: boolean): string => `git reset ${withFiles ? '--keep ' : ''}${shortCommit(commit)}`
const detachAt = (commit: string): string => `git switch --detach ${shortCommit(commit)}`

/** Long enough to name one commit of a large repository. */
const shortCommit = (commit: string): string => commit.slice(0, 12)

const shortRef = (ref: string): string => ref.replace(/^refs\/(heads\/)?/, '')

/** As a POSIX shell reads one word. */
const quoted = (word: string): string => (/^[\w./@%+=:,-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`)

/** A place of HEAD as a person reads it: `main (abc1234)`, or the commit alone when detached. */
export function placeOf(ref: string | undefined, commit: string | undefined): string {
  const short = commit?.slice(0, 7)
  if (ref === undefined) return short ?? '?'
  return short === undefined ? ref : `${ref} (${short})`
}
