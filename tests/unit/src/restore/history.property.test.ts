import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sameState, unknown, unknownReasons, type FileState } from '../../../../src/checkpoint/file-state.ts'
import type { JournalEntry } from '../../../../src/checkpoint/journal-entry.ts'
import type { OpId } from '../../../../src/ids.ts'
import { foldLedger } from '../../../../src/ledger/ledger.ts'
import { isFolderRemoval, pathsInSpan, planRestore, type RestorePlan } from '../../../../src/restore/plan.ts'
import { file, startSeqOf } from '../../../support/a-journal.ts'
import { aWorkspace, type Workspace } from '../../../support/a-workspace.ts'
import { lawRuns, lawTimeoutMs } from '../../../support/runs.ts'

/** Paths both write, and one that only the user does. */
const shared = ['/w/a', '/w/b', '/w/c', '/w/d/e']
const usersOwn = '/w/mine'
const start = { '/w/a': 'a0', '/w/b': 'b0', [usersOwn]: 'm0' }

type Step =
  | { readonly kind: 'turn' }
  | { readonly kind: 'tool' | 'user'; readonly path: string; readonly text: string | undefined }
  | { readonly kind: 'crash'; readonly path: string; readonly text: string | undefined }
  | { readonly kind: 'rollback'; readonly turn: number; readonly putBack: readonly string[]; readonly failing: readonly string[] }
  | { readonly kind: 'undo'; readonly putBack: readonly string[] }

// Few texts, so that a path often comes back to a state it had before.
const text = fc.option(fc.constantFrom('1', '2', '3'), { nil: undefined, freq: 4 })
const somePaths = fc.subarray(shared)
const tool = fc.record({ kind: fc.constant('tool' as const), path: fc.constantFrom(...shared), text })
// The user has words of their own, so that a path is often what no call ever left.
const userText = fc.option(fc.constantFrom('1', '2', 'u1', 'u2', 'u3'), { nil: undefined, freq: 4 })
const user = fc.record({ kind: fc.constant('user' as const), path: fc.constantFrom(...shared, usersOwn), text: userText })
const crash = fc.record({ kind: fc.constant('crash' as const), path: fc.constantFrom(...shared), text })
const turn = fc.record({ kind: fc.constant('turn' as const) })
const rollback = fc.record({
  kind: fc.constant('rollback' as const), turn: fc.nat(1000), putBack: somePaths,
  failing: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: somePaths }),
})
const undo = fc.record({ kind: fc.constant('undo' as const), putBack: somePaths })

const history = (...more: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<readonly Step[]> =>
  fc.array(fc.oneof({ weight: 6, arbitrary: tool }, { weight: 3, arbitrary: turn }, ...more.map(arbitrary => ({ weight: 2, arbitrary }))), { maxLength: 30 })
const anything = history(user, crash, rollback, undo)
const toolsOnly = history(fc.record({ kind: fc.constant('rollback' as const), turn: fc.nat(1000), putBack: fc.constant([]), failing: fc.constant([]) }))

/** A history played out, with what has to be known to judge it. */
class Play {
  readonly world: Workspace = aWorkspace(start).begins()
  /** Turns that can be gone back to, oldest first. */
  live: number[] = [1]
  /** The disk when each turn began. */
  readonly atStart = new Map([[1, this.world.files()]])
  /** The user made this path what it is, and it is no state that the session ever left there. */
  readonly usersState = new Map<string, FileState>()
  readonly #touched = new Set<string>()
  /**
   * Every state the session left there: after calls, after rollbacks and undos, and what a cut-off call found.
   * A user who makes exactly one of them again cannot be told from the session, and its bytes are stored.
   */
  readonly #sessionLeft = new Map<string, readonly FileState[]>()
  /** Rollbacks that an undo can take back, with the turns each withdrew. */
  #ops: { readonly op: OpId; readonly withdrawn: readonly number[] }[] = []

  constructor(steps: readonly Step[]) {
    for (const step of steps) this.take(step)
  }

  get untouched(): readonly string[] {
    return [...shared, usersOwn].filter(path => !this.#touched.has(path))
  }

  take(step: Step): void {
    switch (step.kind) {
      case 'turn':
        this.world.begins()
        this.live.push(this.world.turn)
        this.atStart.set(this.world.turn, this.world.files())
        return
      case 'tool':
        this.#ensureTurn()
        this.world.writes(step.path, step.text)
        this.#leave(step.path)
        return
      case 'crash': {
        this.#ensureTurn()
        const found = this.world.look(step.path)
        this.world.dies(step.path, step.text === undefined ? {} : { wrote: step.text })
        this.#leave(step.path, found)
        return
      }
      case 'user': {
        this.world.user({ [step.path]: step.text })
        const left = this.#sessionLeft.get(step.path)
        const now = this.world.look(step.path)
        if (left === undefined || left.some(state => sameState(state, now))) this.usersState.delete(step.path)
        else this.usersState.set(step.path, now)
        return
      }
      case 'rollback':
        if (this.live.length > 0) this.rollsBack(this.live[step.turn % this.live.length]!, step.putBack, step.failing)
        return
      case 'undo': {
        const last = this.#ops.pop()
        if (last === undefined) return
        const { plan } = this.world.undoes(last.op, step.putBack)
        this.live = [...this.live, ...last.withdrawn].sort((a, b) => a - b)
        this.#done(plan, new Set())
      }
    }
  }

  rollsBack(target: number, putBack: readonly string[] = [], failing: readonly string[] = []): { plan: RestorePlan; op: OpId } {
    const done = this.world.rollsBack(target, putBack, new Set(failing))
    this.#ops.push({ op: done.op, withdrawn: this.live.filter(number => number >= target) })
    this.live = this.live.filter(number => number < target)
    this.#done(done.plan, new Set(failing))
    return done
  }

  #leave(path: string, ...more: readonly FileState[]): void {
    this.#touched.add(path)
    this.#sessionLeft.set(path, [...this.#sessionLeft.get(path) ?? [], this.world.look(path), ...more])
    this.usersState.delete(path)
  }

  /** A call belongs to a turn that counts; after a rollback the next call opens one. */
  #ensureTurn(): void {
    if (!this.live.includes(this.world.turn)) this.take({ kind: 'turn' })
  }

  #done(plan: RestorePlan, failing: ReadonlySet<string>): void {
    for (const { path, decision } of plan.rows) {
      if (['keep', 'skip'].includes(decision.kind) || failing.has(path)) continue
      this.#leave(path)
    }
  }
}

const law = (name: string, steps: fc.Arbitrary<readonly Step[]>, check: (play: Play, choice: number, chosen: readonly string[]) => void): void =>
  test(name, () => fc.assert(fc.property(steps, fc.nat(1000), somePaths, (given, choice, chosen) => {
    const play = new Play(given)
    if (play.live.length > 0) check(play, play.live[choice % play.live.length]!, chosen)
  }), lawRuns), lawTimeoutMs)

const kinds = (plan: RestorePlan) => plan.rows.map(row => [row.path, row.decision.kind])
const acts = ['write', 'recreate', 'delete']

describe('whatever happened', () => {
  law('a path no tool ever touched is never listed and never changed', anything, (play, target, chosen) => {
    const before = play.untouched.map(play.world.look)
    const { plan } = play.rollsBack(target, [...chosen, usersOwn])

    expect(plan.rows.map(row => row.path).filter(path => play.untouched.includes(path))).toEqual([])
    expect(play.untouched.map(play.world.look)).toEqual(before)
  })

  law('what the user made of a path stays by default', anything, (play, target) => {
    const mine = new Map(play.usersState)
    const { plan } = play.rollsBack(target)

    for (const [path, state] of mine) {
      expect(play.world.look(path)).toEqual(state)
      expect(plan.rows.find(row => row.path === path)?.decision.kind ?? 'keep').toBeOneOf(['keep', 'none'])
    }
  })

  law('a path that was written is what it was when the span first touched it', anything, (play, target, chosen) => {
    const first = new Map<string, FileState>()
    const { paths } = play.world.ledger()
    for (const { path, records } of paths.values()) {
      const found = records.find(record => record.turn.number >= target)
      if (found !== undefined) first.set(path, found.before)
    }
    const { plan } = play.rollsBack(target, chosen)

    expect(plan.rows.map(row => row.path)).toEqual([...first.keys()].sort())
    for (const row of plan.rows) {
      if (['keep', 'skip'].includes(row.decision.kind)) expect(play.world.look(row.path)).toEqual(row.current)
      else expect(play.world.look(row.path)).toEqual(first.get(row.path))
    }
  })

  law('planning again right after has nothing left to write', anything, (play, target, chosen) => {
    play.rollsBack(target, chosen)

    expect(play.world.plan(target).rows.filter(row => acts.includes(row.decision.kind))).toEqual([])
  })

  law('a rollback and its undo leave every path and every decision as they were', anything, (play, target, chosen) => {
    const before = { files: play.world.files(), plans: play.live.map(turn => play.world.plan(turn)) }
    const live = play.live
    const { op } = play.rollsBack(target, chosen)
    const { plan } = play.world.undoes(op)

    expect(plan.rows.filter(row => !acts.includes(row.decision.kind))).toEqual([])
    expect(play.world.files()).toEqual(before.files)
    expect(live.map(turn => play.world.plan(turn))).toEqual(before.plans)
  })

  law('the undo of an undo is the rollback again', anything, (play, target, chosen) => {
    const live = play.live
    const { op } = play.rollsBack(target, chosen)
    const before = { files: play.world.files(), plans: live.map(turn => kinds(play.world.plan(turn))) }
    const { op: undone } = play.world.undoes(op)
    play.world.undoes(undone)

    expect(play.world.files()).toEqual(before.files)
    expect(live.map(turn => kinds(play.world.plan(turn)))).toEqual(before.plans)
  })

  law('every beginning of the journal folds', anything, play => {
    const { entries } = play.world
    for (let length = 0; length <= entries.length; length++) {
      const { paths, ops, open } = foldLedger(entries.slice(0, length))

      expect([...paths.values()].every(({ records }) => records.length > 0 && new Set(records.map(record => record.id)).size === records.length)).toBe(true)
      expect(ops.length + open.length).toBe(entries.slice(0, length).filter(entry => entry.kind === 'op-begin').length)
    }
  })
})

describe('when only the tools write', () => {
  law('every rollback brings the whole disk back to the start of its turn', toolsOnly, (play, target) => {
    const { plan } = play.rollsBack(target)

    expect(play.world.files()).toEqual(play.atStart.get(target))
    expect(plan.rows.filter(row => row.conflict !== undefined && row.decision.kind !== 'none')).toEqual([])
  })

  test('two rollbacks in a row are the one to the earlier turn', () => {
    fc.assert(fc.property(toolsOnly, fc.nat(1000), fc.nat(1000), (given, one, other) => {
      const [direct, stepwise] = [new Play(given), new Play(given)]
      const { live } = direct
      if (live.length === 0) return
      const [earlier, later] = [one % live.length, other % live.length].sort((a, b) => a - b).map(at => live[at]!)
      direct.rollsBack(earlier!)
      stepwise.rollsBack(later!)
      stepwise.rollsBack(earlier!)

      expect(stepwise.world.files()).toEqual(direct.world.files())
      expect(stepwise.world.ledger().paths).toEqual(direct.world.ledger().paths)
    }), lawRuns)
  }, lawTimeoutMs)
})

describe('with records missing and any state on the disk', () => {
  const anyState: fc.Arbitrary<FileState> = fc.oneof(
    fc.constantFrom('1', '2', '3').map(words => file(words)),
    fc.constantFrom<FileState>({ kind: 'absent' }, { kind: 'folder' }, { kind: 'link', target: '/x' }, file('1', 0o755)),
    fc.constantFrom(...unknownReasons).map(unknown),
  )

  test('nothing is written where a state is not known, and nothing where it is right already', () => {
    fc.assert(fc.property(anything, fc.infiniteStream(fc.boolean()), fc.infiniteStream(anyState), somePaths, (given, drop, states, chosen) => {
      const next = <T>(stream: Iterator<T>): T => stream.next().value as T
      const entries = new Play(given).world.entries.filter(() => !next(drop)).map((entry): JournalEntry =>
        entry.kind === 'before' || entry.kind === 'after' ? { ...entry, state: next(states) } : entry)
      const ledger = foldLedger(entries)
      const now = new Map(pathsInSpan(ledger, startSeqOf(1)).map(path => [path, next(states)]))
      const plan = planRestore(ledger, startSeqOf(1), { current: now, putBack: new Set(chosen) })

      for (const { path, goal, current, decision, conflict } of plan.rows) {
        const writes = acts.includes(decision.kind)
        if (goal.kind === 'unknown' || current.kind === 'unknown') expect(decision.kind).toBe('skip')
        else expect(decision.kind === 'none').toBe(sameState(goal, current) || isFolderRemoval({ goal, current, decision }))
        if (writes && conflict !== undefined) expect(chosen).toContain(path)
        // A folder that no call of the session left is never taken away.
        const left = ledger.paths.get(path)!.records.at(-1)!.after
        if (writes && current.kind === 'folder') expect(left?.kind ?? 'folder').toBe('folder')
      }
    }), lawRuns)
  }, lawTimeoutMs)
})
