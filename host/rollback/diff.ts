import { setImmediate as nextTask } from 'node:timers/promises'
import { dirname } from 'node:path'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import { diffTexts } from '../../src/diff/line-diff.ts'
import type { Seq, SessionId } from '../../src/ids.ts'
import { MAX_TEXT_BYTES, type FileChange, type LineCount } from '../../src/protocol/diff.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { isFolderRemoval, pathsInSpan, planRestore } from '../../src/restore/plan.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { judgeTarget, readConversation } from '../../src/turn/rollback-target.ts'
import { readEvents } from '../dsh/session-log.ts'
import type { RollbackDeps } from './deps.ts'
import { lookAt } from './paths-now.ts'
import { contentOf, textOf, type Side } from './file-content.ts'
import { readRecords, type Records } from './records.ts'

/** What a rollback would do to the content of single files. Both members read only, and look at the named paths alone. */
export interface Diffs {
  diff(id: SessionId, ask: { readonly turn: number; readonly path: string }): Promise<Result<FileChange, Failure>>
  counts(id: SessionId, ask: { readonly turn: number; readonly paths: readonly string[] }): Promise<Result<{ counts: LineCount[] }, Failure>>
}

/** Counting is a courtesy: it gives way to the host's work, and what takes longer is left out. */
const COUNT_BYTES = 512 * 1024
const COUNT_BOUNDS = { timeoutMs: 40, maxEdits: 2000 }
const COUNT_MS = 1000

export function makeDiffs(deps: RollbackDeps): Diffs {
  return {
    diff: async (id, { turn, path }) => {
      const span = await spanOf(deps, id, turn)
      if (!span.ok) return span
      const sides = await sidesOf(deps, span.value, path)
      if (sides === undefined) return fail(failure('unknown-path', { path }))
      const { now, goal } = sides
      return ok({ current: now.state, goal: goal.state, content: contentOf(now, goal) })
    },

    counts: async (id, { turn, paths }) => {
      const span = await spanOf(deps, id, turn)
      if (!span.ok) return span
      const counts = await countAll(deps, paths, async (path, maxBytes) => {
        const sides = await sidesOf(deps, span.value, path, maxBytes)
        return sides && { before: sides.now, after: sides.goal }
      })
      return ok({ counts })
    },
  }
}

/** A turn to go back to, and what is recorded from there on. */
interface Span {
  readonly startSeq: Seq
  readonly records: Records
  readonly distrusted: ReadonlySet<string>
  readonly paths: ReadonlySet<string>
}

/** Refuses a turn that cannot be gone back to, as the preview does; a job that still runs is no obstacle to a look. */
async function spanOf(deps: RollbackDeps, id: SessionId, turn: number): Promise<Result<Span, Failure>> {
  const session = deps.sessions.get(id) ?? deps.agents.get(id)?.session
  if (session === undefined) return fail(failure('unknown-session'))
  const target = judgeTarget(readConversation(readEvents(session)), turn)
  if (!target.ok) return target
  const records = await readRecords(deps, session)
  if (!records.ok) return records
  const { startSeq } = target.value.turn
  return ok({
    startSeq, records: records.value, distrusted: records.value.distrustedFrom(startSeq), paths: new Set(pathsInSpan(records.value.ledger, startSeq)),
  })
}

/** Undefined for a path that is no row of the preview. A file over `maxBytes` is not read; over the size of a text, neither is its goal. */
async function sidesOf(deps: RollbackDeps, span: Span, path: string, maxBytes = deps.maxFileBytes): Promise<{ now: Side; goal: Side } | undefined> {
  if (!span.paths.has(path)) return undefined
  // The folders above, where they are rows: a link there that goes, too, hides nothing afterwards.
  const looked = [...foldersAbove(path).filter(folder => span.paths.has(folder)), path]
  const current = new Map<string, FileState>()
  let bytes: Buffer | undefined
  for (const one of looked) {
    const seen = await lookAt(one, Math.min(maxBytes, deps.maxFileBytes))
    current.set(one, seen.state)
    bytes = seen.bytes
  }
  const { ledger } = span.records
  const paths = new Map(looked.map(one => [one, ledger.paths.get(one)!]))
  const row = planRestore({ ...ledger, paths }, span.startSeq, { current, distrusted: span.distrusted }).rows.find(found => found.path === path)!
  if (isFolderRemoval(row)) return undefined
  const { goal } = row
  const isSame = goal.kind === 'file' && row.current.kind === 'file' && goal.digest === row.current.digest
  const wanted = goal.kind === 'file' && goal.bytes <= Math.min(maxBytes, MAX_TEXT_BYTES)
  return {
    now: { state: row.current, bytes: row.current.kind === 'file' ? bytes : undefined },
    goal: { state: goal, bytes: isSame ? bytes : wanted ? await span.records.readBlob(goal.digest) : undefined },
  }
}

/** Lines that come and go at each path whose sides are had; what takes too long is left out. */
export async function countAll(
  deps: Pick<RollbackDeps, 'now'>, paths: readonly string[],
  sidesAt: (path: string, maxBytes: number) => Promise<{ readonly before: Side; readonly after: Side } | undefined>,
): Promise<LineCount[]> {
  const counts: LineCount[] = []
  const startedAtMs = deps.now()
  for (const path of paths) {
    if (deps.now() - startedAtMs > COUNT_MS) break
    await nextTask()
    const sides = await sidesAt(path, COUNT_BYTES)
    const counted = sides === undefined ? undefined : countLines(sides.before, sides.after)
    if (counted !== undefined) counts.push({ path, ...counted })
  }
  return counts
}

function countLines(now: Side, goal: Side): { added: number; removed: number } | undefined {
  if (now.state.kind === 'unknown' || goal.state.kind === 'unknown') return undefined
  const [before, after] = [textOf(now), textOf(goal)]
  if (before === undefined || after === undefined) return undefined
  const diff = diffTexts(before, after, COUNT_BOUNDS)
  return diff.kind === 'binary' ? undefined : { added: diff.added, removed: diff.removed }
}

function foldersAbove(path: string): readonly string[] {
  const folders: string[] = []
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) folders.unshift(folder)
  return folders
}
