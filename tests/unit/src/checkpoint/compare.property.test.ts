import fc from 'fast-check'
import { expect, test } from 'vitest'
import { absent, sameState, type FileState } from '../../../../src/checkpoint/file-state.ts'
import { compareTurns, type TurnPlace } from '../../../../src/checkpoint/compare.ts'
import { startSeqOf } from '../../../support/a-journal.ts'
import { aWorkspace } from '../../../support/a-workspace.ts'
import { lawRuns, lawTimeoutMs } from '../../../support/runs.ts'

/** The journal's answer against a model that keeps the whole disk at the start and the end of every turn. */

const paths = ['/w/a', '/w/b', '/w/c', '/w/d/e']
const start = { '/w/a': 'a0', '/w/b': 'b0' }

type Step =
  | { readonly kind: 'turn' }
  | { readonly kind: 'tool'; readonly path: string; readonly text: string | undefined }
  | { readonly kind: 'rollback'; readonly turn: number; readonly failing: readonly string[] }
  | { readonly kind: 'undo' }

// Few texts, so that a path often comes back to a state it had before.
const text = fc.option(fc.constantFrom('1', '2', '3'), { nil: undefined, freq: 4 })
const history: fc.Arbitrary<readonly Step[]> = fc.array(fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('tool' as const), path: fc.constantFrom(...paths), text }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('turn' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rollback' as const), turn: fc.nat(100), failing: fc.subarray(paths) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('undo' as const) }) },
), { maxLength: 40 })

type Disk = ReadonlyMap<string, FileState>

/** A history played out. */
function play(steps: readonly Step[]) {
  const world = aWorkspace(start).begins()
  const disk = (): Disk => new Map(world.files())
  const nowMs = () => (world.entries.at(-1)?.kind === undefined ? 0 : Math.max(...world.entries.map(({ atMs }) => atMs)))
  const places: TurnPlace[] = [{ startSeq: startSeqOf(1), atMs: 0 }]
  const began: Disk[] = [disk()]
  const ended: Disk[] = []
  const changed: Set<string>[] = [new Set()]
  const ops: ReturnType<typeof world.rollsBack>['op'][] = []
  let isOpen = true
  /** A turn has ended when the next thing is no call of it. */
  const close = () => {
    if (isOpen) ended.push(disk())
    isOpen = false
  }
  const open = () => {
    world.begins()
    places.push({ startSeq: startSeqOf(world.turn), atMs: nowMs() + 0.5 })
    began.push(disk())
    changed.push(new Set())
    isOpen = true
  }
  for (const step of steps) {
    switch (step.kind) {
      case 'turn':
        close()
        open()
        break
      case 'tool': {
        if (!isOpen) open()
        const before = world.look(step.path)
        world.writes(step.path, step.text)
        if (!sameState(before, world.look(step.path))) changed.at(-1)!.add(step.path)
        break
      }
      case 'rollback':
        close()
        ops.push(world.rollsBack(1 + step.turn % world.turn, [], new Set(step.failing)).op)
        break
      case 'undo': {
        const op = ops.pop()
        if (op === undefined) break
        close()
        world.undoes(op)
      }
    }
  }
  close()
  return { world, places, began, ended, changed }
}

const differing = (before: Disk, after: Disk) => paths.flatMap((path) => {
  const [from, to] = [before.get(path) ?? absent, after.get(path) ?? absent]
  return sameState(from, to) ? [] : [{ path, before: from, after: to }]
})
const told = (rows: ReturnType<typeof compareTurns>) =>
  rows.map(({ path, before, after }) => ({ path, before, after })).sort((a, b) => (a.path < b.path ? -1 : 1))

test('between any two turns the records tell exactly what differs, rollbacks and undos in between included', () => {
  fc.assert(fc.property(history, fc.nat(100), fc.nat(100), (steps, one, other) => {
    const { world, places, began, ended } = play(steps)
    const [a, b] = [one % places.length, other % places.length].sort((x, y) => x - y) as [number, number]
    if (a === b) return

    expect(told(compareTurns(world.entries, places[a]!, places[b]))).toEqual(differing(began[a]!, ended[b]!))
  }), lawRuns)
}, lawTimeoutMs)

test('from any turn to the end of the records they tell what differs from the disk now', () => {
  fc.assert(fc.property(history, fc.nat(100), (steps, one) => {
    const { world, places, began } = play(steps)
    const a = one % places.length

    const moved = compareTurns(world.entries, places[a]!, undefined).filter(({ before, after }) => !sameState(before, after))
    expect(told(moved)).toEqual(differing(began[a]!, new Map(world.files())))
  }), lawRuns)
}, lawTimeoutMs)

test('a turn has every path it changed, with what it found and what it left, whatever became of it since', () => {
  fc.assert(fc.property(history, fc.nat(100), (steps, one) => {
    const { world, places, began, ended, changed } = play(steps)
    const a = one % places.length
    const rows = told(compareTurns(world.entries, places[a]!, places[a]))

    expect(rows.map(({ path }) => path)).toEqual([...changed[a]!].sort())
    for (const { path, before, after } of rows) {
      expect(before).toEqual(began[a]!.get(path) ?? absent)
      expect(after).toEqual(ended[a]!.get(path) ?? absent)
    }
  }), lawRuns)
}, lawTimeoutMs)
