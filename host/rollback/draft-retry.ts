import { failedPaths, retryableOp, type StandingOp } from '../../src/ledger/ledger.ts'
import type { OpId } from '../../src/ids.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { planRetry, type RestorePlan } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import type { RollbackDeps } from './deps.ts'
import { lookAtAll } from './paths-now.ts'
import type { Records } from './records.ts'

/** The paths of a rollback that failed, thought through once more as the disk is now. */
export interface RetryDraft {
  readonly again: StandingOp
  readonly plan: RestorePlan
}

/** Reads only. `of`: only if that is still the rollback to try again. Failure `nothing-to-retry`. */
export async function draftRetry(deps: RollbackDeps, { ledger }: Records, of?: OpId): Promise<Result<RetryDraft, Failure>> {
  const again = retryableOp(ledger)
  if (again === undefined || (of !== undefined && again.begin.op !== of)) return fail(failure('nothing-to-retry'))
  const failed = failedPaths(ledger.ops, again)
  const rows = new Set(again.begin.rows.map(({ path }) => path))
  const current = await lookAtAll(deps, failed.filter(path => rows.has(path)))
  return ok({ again, plan: planRetry(again, failed, current) })
}
