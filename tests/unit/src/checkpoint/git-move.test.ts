import { describe, expect, test } from 'vitest'
import { gitMoves, placeOf, type HeadNow } from '../../../../src/checkpoint/git-move.ts'
import type { BracketEntry } from '../../../../src/checkpoint/journal-entry.ts'
import { root, startSeqOf } from '../../../support/a-journal.ts'

const a = 'a'.repeat(40)
const b = 'b'.repeat(40)
const c = 'c'.repeat(40)
const main = 'refs/heads/main'
const side = 'refs/heads/side'

type Place = readonly [ref: string | undefined, commit: string | undefined]

/** A command in `turn` that moved HEAD from one place to another. */
const move = (from: Place, to: Place, { turn = 1, words = 'git x' } = {}): BracketEntry => ({
  kind: 'bracket', turn: { startSeq: startSeqOf(turn), number: turn }, call: { callId: 'c', tool: 'bash', sessionId: root }, words, how: 'git', gaps: [], atMs: 0,
  head: Object.fromEntries(Object.entries({ fromRef: from[0], from: from[1], ref: to[0], to: to[1] }).filter(([, value]) => value !== undefined)),
})
const at = ([ref, head]: Place): HeadNow => ({ ref, head })

interface Given { readonly now?: Place | undefined; readonly hasKept?: boolean }
const adviceAfter = (moves: readonly BracketEntry[], { now, hasKept = false }: Given = {}): string | undefined => {
  const { head } = moves.at(-1)!
  return gitMoves({ brackets: moves, startSeq: 0, now: at(now ?? [head!.ref, head!.to]), hasKept }).at(-1)!.advice
}

describe('how HEAD gets back', () => {
  test.each<[string, readonly BracketEntry[], Given, string | undefined]>([
    ['from another branch: a switch', [move([side, a], [main, b])], { hasKept: true }, 'git switch side'],
    ['from a new branch at the same commit: a switch', [move([main, a], [side, a])], {}, 'git switch main'],
    ['to a detached HEAD: its commit', [move([undefined, a], [main, b])], {}, `git switch --detach ${a.slice(0, 12)}`],
    ['from a detached HEAD to the branch', [move([main, a], [undefined, b])], { hasKept: true }, 'git switch main'],
    ['after a commit: HEAD and index alone, no file', [move([main, a], [main, b])], {}, `git reset ${a.slice(0, 12)}`],
    ['after a pull that changed files: the files with it, other changes kept', [move([main, a], [main, b])], { hasKept: true }, `git reset --keep ${a.slice(0, 12)}`],
    ['after a commit on a detached HEAD', [move([undefined, a], [undefined, b])], {}, `git reset ${a.slice(0, 12)}`],
    ['after a checkout from one commit to another', [move([undefined, a], [undefined, b])], { hasKept: true }, `git switch --detach ${a.slice(0, 12)}`],
    ['after the first commit of all', [move([main, undefined], [main, a])], {}, 'git update-ref -d HEAD'],
    ['after a first commit that brought files along: nothing is sure', [move([main, undefined], [main, a])], { hasKept: true }, undefined],
    ['from a branch that had no commit: a switch to it would remove every file', [move([main, undefined], [side, a])], {}, undefined],
    ['over several moves: all the way at once', [move([main, a], [main, b]), move([main, b], [main, c])], {}, `git reset ${a.slice(0, 12)}`],
    ['over several branches', [move([main, a], [side, b]), move([side, b], [undefined, c])], {}, 'git switch main'],
    ['to a branch that had moved before it was left', [move([main, a], [main, b]), move([main, b], [side, c])], {}, `git switch main && git reset ${a.slice(0, 12)}`],
    ['there and back again: it is where it was', [move([main, a], [side, b]), move([side, b], [main, a])], {}, undefined],
    ['where somebody has moved it since', [move([main, a], [main, b])], { now: [main, c] }, undefined],
    ['where somebody has switched since', [move([main, a], [main, b])], { now: [side, b] }, undefined],
    ['with a name that a shell would read otherwise', [move(['refs/heads/it\'s $HOME', a], [main, b])], {}, 'git switch \'it\'\\\'\'s $HOME\''],
    ['with a name that git would take for an option', [move(['refs/heads/-f', a], [main, b])], {}, undefined],
  ])('%s', (_what, moves, given, advice) => {
    expect(adviceAfter(moves, given)).toBe(advice)
  })

  test('is not said when nobody can tell where HEAD is', () => {
    expect(gitMoves({ brackets: [move([main, a], [side, b])], startSeq: 0, now: undefined, hasKept: false })[0]).not.toHaveProperty('advice')
  })
})

test('moves of earlier turns are left out, and only the last one carries the advice', () => {
  const brackets = [move([main, a], [main, b]), move([main, b], [side, b], { turn: 2, words: 'git switch -c side' }), move([side, b], [side, c], { turn: 3, words: 'git commit' })]

  expect(gitMoves({ brackets, startSeq: startSeqOf(2), now: at([side, c]), hasKept: false })).toEqual([
    { turn: 2, words: 'git switch -c side', from: b, to: b, fromRef: 'main', toRef: 'side' },
    { turn: 3, words: 'git commit', from: b, to: c, fromRef: 'side', toRef: 'side', advice: 'git switch main' },
  ])
})

test('a command that did not move HEAD is no move', () => {
  const { head: _none, ...still } = move([main, a], [main, b])

  expect(gitMoves({ brackets: [still], startSeq: 0, now: at([main, a]), hasKept: false })).toEqual([])
})

test('a place is named by its branch and its commit', () => {
  expect([placeOf('main', a), placeOf(undefined, a), placeOf('main', undefined)]).toEqual(['main (aaaaaaa)', 'aaaaaaa', 'main'])
})
