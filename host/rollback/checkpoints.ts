import { changesByTurn, compareTurns, type ComparedPath } from '../../src/checkpoint/compare.ts'
import { hasWords } from '../../src/checkpoint/has-words.ts'
import { sameState } from '../../src/checkpoint/file-state.ts'
import type { SessionId } from '../../src/ids.ts'
import { MAX_COMMANDS, MAX_COMPARED, type ComparedRow } from '../../src/protocol/checkpoints.ts'
import { MAX_TEXT_BYTES, type FileChange, type LineCount } from '../../src/protocol/diff.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import { findTurn, indexTurns } from '../../src/turn/turn-index.ts'
import { readEvents } from '../dsh/session-log.ts'
import type { RollbackDeps } from './deps.ts'
import { countAll } from './diff.ts'
import { shownPath } from './draft.ts'
import { lookAt } from './paths-now.ts'
import { contentOf, type Side } from './file-content.ts'
import { readRecords, type Records } from './records.ts'

/** From before a turn to after another, or to now; without `until` the one turn. */
export interface Stretch {
  readonly turn: number
  readonly until?: number | 'now' | undefined
}

/** What happened to files, whatever became of the turns since. Reads only. */
export interface Checkpoints {
  checkpoint(id: SessionId, ask: Stretch): Promise<Result<{ rows: ComparedRow[]; more: number }, Failure>>
  history(id: SessionId, ask: { readonly path?: string | undefined; readonly words: string }): Promise<Result<{ turns: number[] }, Failure>>
  diff(id: SessionId, ask: Stretch & { readonly path: string }): Promise<Result<FileChange, Failure>>
  counts(id: SessionId, ask: Stretch & { readonly paths: readonly string[] }): Promise<Result<{ counts: LineCount[] }, Failure>>
}

export function makeCheckpoints(deps: RollbackDeps): Checkpoints {
  return {
    checkpoint: async (id, ask) => {
      const found = await compared(deps, id, ask)
      if (!found.ok) return found
      const { records, workspace } = found.value
      const paths = ask.until === 'now' ? await asNow(deps, found.value.paths) : found.value.paths
      const words = new Map(records.ledger.brackets.map(({ call, words: said }) => [call.callId, said]))
      const rows = paths.slice(0, MAX_COMPARED).map(({ path, before, after, origins, callIds }): ComparedRow => {
        const commands = [...new Set(callIds.flatMap(callId => words.get(callId) ?? []))].slice(0, MAX_COMMANDS)
        return { path, shown: shownPath(path, workspace), before, after, origins: [...origins], ...(commands.length === 0 ? {} : { commands }) }
      })
      return ok({ rows: rows.sort((a, b) => (a.shown < b.shown ? -1 : 1)), more: paths.length - rows.length })
    },

    history: async (id, { path, words }) => {
      const session = deps.sessions.get(id) ?? deps.agents.get(id)?.session
      if (session === undefined) return fail(failure('unknown-session'))
      await deps.captured()
      const records = await readRecords(deps, session)
      if (!records.ok) return records
      const workspace = deps.workspaceOf(session)
      const isMeant = (one: string): boolean => (path === undefined ? hasWords(shownPath(one, workspace), words) : one === path)
      return ok({ turns: [...changesByTurn(records.value.entries)].filter(([, paths]) => [...paths.keys()].some(isMeant)).map(([startSeq]) => startSeq) })
    },

    diff: async (id, { path, ...ask }) => {
      const found = await compared(deps, id, ask)
      if (!found.ok) return found
      const row = found.value.paths.find(other => other.path === path)
      if (row === undefined) return fail(failure('unknown-path', { path }))
      const { before, after } = await sidesOf(deps, found.value.records, row, ask.until === 'now')
      return ok({ current: before.state, goal: after.state, content: contentOf(before, after) })
    },

    counts: async (id, { paths, ...ask }) => {
      const found = await compared(deps, id, ask)
      if (!found.ok) return found
      const rows = new Map(found.value.paths.map(row => [row.path, row]))
      return ok({
        counts: await countAll(deps, paths, async (path, maxBytes) => {
          const row = rows.get(path)
          return row && sidesOf(deps, found.value.records, row, ask.until === 'now', maxBytes)
        }),
      })
    },
  }
}

interface Compared {
  readonly records: Records
  readonly workspace: string | undefined
  readonly paths: readonly ComparedPath[]
}

async function compared(deps: RollbackDeps, id: SessionId, { turn, until = turn }: Stretch): Promise<Result<Compared, Failure>> {
  const session = deps.sessions.get(id) ?? deps.agents.get(id)?.session
  if (session === undefined) return fail(failure('unknown-session'))
  const turns = indexTurns(readEvents(session))
  const from = findTurn(turns, turn)
  const to = until === 'now' ? undefined : findTurn(turns, until)
  if (from === undefined || (to === undefined && until !== 'now')) {
    return fail(failure('unknown-turn', { turn: from === undefined ? turn : Number(until), last: turns.at(-1)?.number ?? 0 }))
  }
  await deps.captured()
  const records = await readRecords(deps, session)
  if (!records.ok) return records
  return ok({ records: records.value, workspace: deps.workspaceOf(session), paths: compareTurns(records.value.entries, from, to) })
}

/** The ends as they are on the disk. */
async function asNow(deps: RollbackDeps, paths: readonly ComparedPath[]): Promise<readonly ComparedPath[]> {
  const rows: ComparedPath[] = []
  for (const row of paths) {
    const after = (await lookAt(row.path, deps.maxFileBytes)).state
    if (!sameState(row.before, after)) rows.push({ ...row, after })
  }
  return rows
}

/** A file over `maxBytes`, or over the size of a text, is not read. */
async function sidesOf(deps: RollbackDeps, records: Records, row: ComparedPath, isNow: boolean, maxBytes = deps.maxFileBytes): Promise<{ before: Side; after: Side }> {
  const saved = async (state: ComparedPath['before']): Promise<Side> => ({
    state, bytes: state.kind === 'file' && state.bytes <= Math.min(maxBytes, MAX_TEXT_BYTES) ? await records.readBlob(state.digest) : undefined,
  })
  const before = await saved(row.before)
  if (!isNow) return { before, after: await saved(row.after) }
  const { state, bytes } = await lookAt(row.path, Math.min(maxBytes, deps.maxFileBytes))
  return { before, after: { state, bytes } }
}
