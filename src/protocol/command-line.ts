import { opId, planId, type OpId, type PlanId } from '../ids.ts'
import { fail, ok, type Result } from '../result.ts'
import { failure, type Failure } from './failure.ts'

/** What a typed `/rollback …` asks for. */
export type Command =
  | { readonly kind: 'bare' }
  | { readonly kind: 'turn'; readonly turn: number; readonly branch?: true }
  | { readonly kind: 'plan'; readonly planId: PlanId }
  | { readonly kind: 'list' }
  | { readonly kind: 'preview'; readonly turn: number }
  | { readonly kind: 'undo'; readonly op?: OpId }
  | { readonly kind: 'help' }

/**
 * Reads the words after the command name; blank means the bare form, because the client passes `/rollback ` on as one blank.
 * Failure `bad-request` with `detail`: `turn-number` (word is no turn number), `extra` (words too many), `word` (unknown), `missing-turn`, `missing-plan`.
 */
export function parseCommandLine(rawInput: string): Result<Command, Failure> {
  const [word, ...rest] = rawInput.trim().split(/\s+/).filter(text => text !== '')
  if (word === undefined) return ok({ kind: 'bare' })
  switch (word) {
    case 'undo': {
      const [id, extra] = rest
      if (id === undefined) return ok({ kind: 'undo' })
      if (!/^[0-9a-z]{8,32}$/.test(id)) return bad('extra', id)
      return extra === undefined ? ok({ kind: 'undo', op: opId(id) }) : bad('extra', extra)
    }
    case 'list':
    case 'help':
      return rest.length === 0 ? ok({ kind: word }) : bad('extra', rest[0]!)
    case 'preview': {
      if (rest[0] === undefined) return bad('missing-turn', word)
      return oneTurn('preview', rest[0], rest.slice(1))
    }
    case '--plan': {
      const [id, extra] = rest
      if (id === undefined || !/^[0-9a-z]{8,32}$/.test(id)) return bad('missing-plan', id ?? word)
      return extra === undefined ? ok({ kind: 'plan', planId: planId(id) }) : bad('extra', extra)
    }
    default: {
      if (rest[0] !== 'branch') return oneTurn('turn', word, rest)
      const turn = oneTurn('turn', word, rest.slice(1))
      return turn.ok && turn.value.kind === 'turn' ? ok({ ...turn.value, branch: true }) : turn
    }
  }
}

function oneTurn(kind: 'turn' | 'preview', word: string, rest: readonly string[]): Result<Command, Failure> {
  if (!/^[1-9]\d{0,8}$/.test(word)) return bad(/^[-+]?\d+(\.\d+)?$/.test(word) ? 'turn-number' : 'word', word)
  return rest[0] === undefined ? ok({ kind, turn: Number(word) }) : bad('extra', rest[0])
}

const bad = (detail: string, word: string) => fail(failure('bad-request', { detail, word: word.slice(0, 40) }))
