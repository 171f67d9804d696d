import fc from 'fast-check'
import { describe, test } from 'vitest'
import { history } from '../../../support/history/arbitraries.ts'
import { Play } from '../../../support/history/play.ts'

/** `TURNBACK_SEED` plays the histories of an earlier run again. */
const seed = Number(process.env.TURNBACK_SEED ?? Date.now() % 0x7fffffff)
const isLong = process.env.TURNBACK_LONG === '1'

/** Each history ends with a rollback to every turn of both sessions and its undo. */
const plays = (what: string, runs: number, hasGit: boolean): void =>
  test(what, async () => {
    console.log(`${runs} histories, seed ${seed}`)
    await fc.assert(fc.asyncProperty(history, steps => Play.run(steps, { hasGit })), { seed, numRuns: runs })
  }, isLong ? 3 * 3_600_000 : 300_000)

describe('a rollback to any turn gives the files back that are the session\'s and leaves the rest as it is', () => {
  plays('in a plain folder', isLong ? 50_000 : 500, false)
  plays('in a git work tree', isLong ? 500 : 8, true)
})
