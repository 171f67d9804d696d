import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyFiles } from '../../../../host/restore/apply.ts'
import { takeBackFiles } from '../../../../host/restore/take-back.ts'
import { sameState, type FileState } from '../../../../src/checkpoint/file-state.ts'
import { lawTimeoutMs } from '../../../support/runs.ts'
import { absent, anOpWorld, type OpWorld } from './op-world.ts'

const isLong = process.env.TURNBACK_LONG === '1'
const names = ['a', 'b', 'sub/c', 'sub/d', 'deep/er/e', 'deep/f'] as const
/** What a path was and what it is to be; the disk is laid so that all of it can be had. */
const stateArb = fc.oneof(
  fc.constant({ kind: 'absent' } as const),
  fc.record({ kind: fc.constant('file' as const), content: fc.constantFrom('', 'one', 'two\r\n'), mode: fc.constantFrom(0o644, 0o755, 0o600) }),
  fc.record({ kind: fc.constant('link' as const), target: fc.constantFrom('nowhere', 'a') }),
)
type State = typeof stateArb extends fc.Arbitrary<infer T> ? T : never
const planArb = fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), was: stateArb, goal: stateArb }), { selector: row => row.name, minLength: 1 })

const stateIn = (w: OpWorld, state: State): FileState =>
  state.kind === 'file' ? w.file(state.content, state.mode) : state.kind === 'link' ? w.link(state.target) : absent

const foldersOf = (name: string): string[] => name.split('/').slice(0, -1).map((_part, at, parts) => parts.slice(0, at + 1).join('/'))

test('applying a plan twice is applying it once, nothing is left to do after it, and taking it back gives the start', async () => {
  await fc.assert(fc.asyncProperty(planArb, fc.boolean(), async (plan, isOneByOne) => {
    const w = await anOpWorld()
    try {
      await w.lay('user.txt', w.file('u'))
      for (const { name, was } of plan) await w.lay(name, stateIn(w, was))
      const there = Object.keys(await w.snapshot())
      const rows = plan.map(({ name, was, goal }) =>
        w.row(name, stateIn(w, was), stateIn(w, goal), goal.kind === 'absent' ? [] : foldersOf(name).filter(folder => !there.includes(folder))))
      const changing = rows.filter(({ was, goal }) => !sameState(was, goal))
      const removed = plan.filter(({ was, goal }) => was.kind !== 'absent' && goal.kind === 'absent').flatMap(({ name }) => foldersOf(name))
      const begin = w.begin(changing, removed.filter((folder, at) => removed.indexOf(folder) === at))
      const deps = isOneByOne ? { ...w.deps, rowsAtATime: 1 } : w.deps
      const start = await w.snapshot()

      const { outcomes, removedFolders } = await applyFiles(begin, deps)
      const once = await w.snapshot()
      const steps: unknown[] = []
      const twice = await applyFiles(begin, { ...deps, onStep: (step) => { if (step.when === 'after') steps.push(step) } })

      expect(outcomes.map(({ result }) => result)).toEqual(changing.map(() => 'restored'))
      expect(twice.outcomes).toEqual(outcomes)
      expect(steps).toEqual([])
      expect(await w.snapshot()).toEqual(once)
      for (const { name, goal } of plan) expect(sameState(await w.stateOf(name), stateIn(w, goal))).toBe(true)

      await takeBackFiles(begin, { ...w.deps, removedFolders })
      expect(await w.snapshot()).toEqual(start)
    } finally {
      await w.clean()
    }
  }), { numRuns: isLong ? 2_000 : 60 })
}, lawTimeoutMs * 3)
