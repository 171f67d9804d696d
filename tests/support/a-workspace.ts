import { absent, type FileState } from '../../src/checkpoint/file-state.ts'
import type { JournalEntry, Outcome } from '../../src/checkpoint/journal-entry.ts'
import type { OpId } from '../../src/ids.ts'
import { foldLedger, type Ledger } from '../../src/ledger/ledger.ts'
import { decidedOutcomes, pathsInSpan, planRestore, planUndo, type RestorePlan } from '../../src/restore/plan.ts'
import { aJournal, opRow, startSeqOf, stateOf } from './a-journal.ts'

type Texts = Readonly<Record<string, string | undefined>>

/**
 * A disk in memory, one session that writes on it with file tools, and a user who writes on it by hand.
 * Rolling back plans with the real core and then does what the plan says, no more.
 */
export function aWorkspace(start: Texts = {}) {
  const disk = new Map<string, FileState>(Object.entries(start).map(([path, text]) => [path, stateOf(text)]))
  const journal = aJournal()
  let turn = 0

  const look = (path: string): FileState => disk.get(path) ?? absent
  const looks = (paths: readonly string[]) => new Map(paths.map(path => [path, look(path)]))
  const put = (path: string, state: FileState): void => {
    if (state.kind === 'absent') disk.delete(path)
    else disk.set(path, state)
  }

  const world = {
    get entries(): readonly JournalEntry[] {
      return journal.entries
    },
    get turn() {
      return turn
    },
    ledger: (): Ledger => foldLedger(journal.entries),
    look,
    /** Every path with its state, sorted. */
    files: (): readonly (readonly [string, FileState])[] => [...disk].sort(([a], [b]) => (a < b ? -1 : 1)),
    begins() {
      turn += 1
      journal.turn(turn)
      return world
    },
    /** The next turn, in which file tools leave these texts; undefined deletes. */
    turnWrites(texts: Texts) {
      world.begins()
      for (const [path, text] of Object.entries(texts)) world.writes(path, text)
      return world
    },
    writes(path: string, text: string | undefined) {
      const found = look(path)
      put(path, stateOf(text))
      journal.writes(path, found, look(path))
      return world
    },
    /** The host dies during a call: nobody looks at the path afterwards. `text`: what the call still wrote. */
    dies(path: string, text: { readonly wrote?: string } = {}) {
      journal.cutOff(path, look(path))
      if (text.wrote !== undefined) put(path, stateOf(text.wrote))
      return world
    },
    user(texts: Texts) {
      for (const [path, text] of Object.entries(texts)) put(path, stateOf(text))
      return world
    },
    plan(target: number, putBack: readonly string[] = []): RestorePlan {
      const ledger = world.ledger()
      const startSeq = startSeqOf(target)
      return planRestore(ledger, startSeq, { current: looks(pathsInSpan(ledger, startSeq)), putBack: new Set(putBack) })
    },
    /** Rolls the files back to before `target`; `failing` paths cannot be written. */
    rollsBack(target: number, putBack: readonly string[] = [], failing: ReadonlySet<string> = new Set()): { plan: RestorePlan; op: OpId } {
      const plan = world.plan(target, putBack)
      const { rows, outcomes } = apply(plan, failing)
      const decided = decidedOutcomes(plan)
      return { plan, op: journal.rollback(target, rows, [...outcomes, ...decided], decided) }
    },
    undoes(op: OpId, putBack: readonly string[] = []): { plan: RestorePlan; op: OpId } {
      const standing = world.ledger().ops.find(candidate => candidate.begin.op === op)!
      const plan = planUndo(standing, looks(standing.begin.rows.map(row => row.path)), new Set(putBack))
      const { rows, outcomes } = apply(plan, new Set())
      const decided = decidedOutcomes(plan)
      return { plan, op: journal.undo(op, rows, [...outcomes, ...decided], decided) }
    },
  }
  return world

  function apply(plan: RestorePlan, failing: ReadonlySet<string>) {
    const due = plan.rows.filter(row => ['write', 'recreate', 'delete'].includes(row.decision.kind))
    for (const row of due) if (!failing.has(row.path)) put(row.path, row.goal)
    return {
      rows: due.map(row => opRow(row.path, row.current, row.goal)),
      outcomes: due.map((row): Outcome => ({ path: row.path, result: failing.has(row.path) ? 'failed' : 'restored' })),
    }
  }
}

export type Workspace = ReturnType<typeof aWorkspace>
