import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { Selected } from '../../src/restore/selection.ts'
import { fail, type Result } from '../../src/result.ts'
import { cutBeforeTurn } from '../../src/turn/session-cut.ts'
import { translator } from '../../locales/translate.ts'
import { idOf } from '../dsh/session-log.ts'
import { copyTitle } from './copy-title.ts'
import type { RollbackDeps } from './deps.ts'
import type { Draft } from './draft.ts'
import type { Operation } from './op-end.ts'
import { runRollback } from './operation.ts'

/**
 * Goes on from before a turn in a session of its own: the conversation as a copy, the files in place by an op of this
 * session, whose log gets no marker. The copy comes first, so that without one nothing is done; where the files then
 * cannot be put back it leaves the list again. `draft` is of the files alone; otherwise as `runRollback`.
 */
export async function runBranch(deps: RollbackDeps, draft: Draft, selected: Selected, signal: AbortSignal): Promise<Result<Operation, Failure>> {
  const { session, target, conversation } = draft
  const cut = cutBeforeTurn(conversation.events, target.turn.startSeq)
  if (!cut.ok) return fail(failure('no-copy', { detail: cut.failure }))
  const title = copyTitle(deps, translator(deps.localeOf(idOf(session))), session, { kind: 'branch', turn: target.turn.number })
  const copy = await deps.copies.make({ source: session, cut: cut.value, title })
  if (!copy.ok) return copy
  const done = await runRollback(deps, draft, selected, signal, copy.value)
  if (!done.ok) {
    await deps.copies.archive(copy.value)
    return done
  }
  return { ok: true, value: { ...done.value, copyTitle: title } }
}
