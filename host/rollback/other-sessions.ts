import type { FileState } from '../../src/checkpoint/file-state.ts'
import type { Seq, SessionId } from '../../src/ids.ts'
import { inSpan, type CallRecord, type Ledger } from '../../src/ledger/ledger.ts'
import type { OtherWrite } from '../../src/restore/plan.ts'
import { idOf, inheritedLength } from '../dsh/session-log.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import type { RecordedWrite } from '../store/path-index.ts'
import type { RollbackDeps } from './deps.ts'
import { parentOf } from './records.ts'

/** Two looks at one change by two hosts are no further apart, unless a record says that its command ran for long. */
const SAME_CHANGE_MS = 30_000

type Deps = Pick<RollbackDeps, 'pathIndex' | 'workspaceOf' | 'sessions' | 'headerOf'>

/** What other sessions of this workspace did to `paths`, open or not, in this host or another on the same home. */
export async function writesOfOthers(
  deps: Deps, { session, ledger, startSeq, paths }: { readonly session: ForeignSession; readonly ledger: Ledger; readonly startSeq: Seq; readonly paths: readonly string[] },
): Promise<ReadonlyMap<string, readonly OtherWrite[]>> {
  const workspace = deps.workspaceOf(session)
  if (workspace === undefined || paths.length === 0) return new Map()
  const inherited = await inheritedFrom(deps, session)
  const found = await deps.pathIndex.writesTo(new Set(paths), { workspace, except: new Set([idOf(session)]) })
  return new Map([...found].map(([path, writes]) => {
    const ours = byChange(inSpan(ledger.paths.get(path)!, startSeq))
    const theirs = writes.filter(write => write.startSeq >= (inherited.get(write.session) ?? 0))
    return [path, theirs.flatMap(write => asOther(write, ours.get(changeKey(write)) ?? []))]
  }))
}

/** Sessions that this one was forked from, and below which seq their records are its own. */
async function inheritedFrom(deps: Deps, session: ForeignSession): Promise<ReadonlyMap<SessionId, Seq>> {
  const lengths = new Map<SessionId, Seq>()
  let least = Infinity
  for (let at = session; ;) {
    const parent = await parentOf(deps, at)
    if (parent === undefined || lengths.has(idOf(parent))) return lengths
    least = Math.min(least, inheritedLength(at))
    lengths.set(idOf(parent), least)
    at = parent
  }
}

/** `same`: our records of that very change. A call that named the path is believed before a look around a command. */
function asOther(write: RecordedWrite, same: readonly CallRecord[]): readonly OtherWrite[] {
  const { after, atMs } = write
  // An op that began after our last look is not what we saw.
  const couldBe = same.filter(ours => write.origin !== 'op' || atMs <= ours.atMs)
  const beside = couldBe.filter(ours => write.doubt === 'long' || ours.doubt === 'long' || Math.abs(ours.atMs - atMs) <= SAME_CHANGE_MS)
  if (write.origin === 'shell' && beside.some(({ origin }) => origin === 'tool')) return []
  if (beside.some(({ origin }) => origin === 'shell')) return [{ after, atMs, isShared: true }]
  // What a session took back stands for nothing of its own in the file.
  return write.origin === 'op' ? [] : [{ after, atMs }]
}

function byChange(records: readonly CallRecord[]): ReadonlyMap<string, readonly CallRecord[]> {
  const changes = new Map<string, CallRecord[]>()
  for (const record of records) {
    const same = changes.get(changeKey(record))
    if (same === undefined) changes.set(changeKey(record), [record])
    else same.push(record)
  }
  return changes
}

const changeKey = ({ before, after }: Pick<CallRecord, 'before' | 'after'>): string => `${stateKey(before)} ${stateKey(after)}`

/** Equal for equal states. An unknown state gets a key of its own. */
function stateKey(state: FileState | undefined): string {
  switch (state?.kind) {
    case 'file': return `${state.digest} ${state.mode}`
    case 'link': return `link ${state.target}`
    case 'absent': case 'folder': return state.kind
    default: return `unknown ${unknowns++}`
  }
}
let unknowns = 0
