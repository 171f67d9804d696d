import { effect, signal, type ReadonlySignal } from '@preact/signals'
import { segmentsOf, type Segment } from '../../src/diff/hunks.ts'
import type { TextDiff } from '../../src/diff/line-diff.ts'
import { formOf, splitLines, type TextForm } from '../../src/diff/lines.ts'
import { MAX_COUNTED, type FileChange, type LineCount } from '../../src/protocol/diff.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { RequestInput } from '../../src/protocol/requests.ts'
import type { Remote } from '../dsh/remote.ts'

/** The texts of one path, compared and cut for showing. */
export interface TextView {
  /** Lines with their ends. */
  readonly before: readonly string[]
  readonly after: readonly string[]
  readonly segments: readonly Segment[]
  readonly added: number
  readonly removed: number
  /** Not the fewest lines: a bound was reached before they were found. */
  readonly isCoarse: boolean
  readonly forms: { readonly before: TextForm; readonly after: TextForm }
}

export type DiffEntry =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `text` is there for texts of at most `MAX_LINES` lines on either side. */
  | { readonly kind: 'ready'; readonly change: FileChange; readonly text?: TextView }

/** The rollback that is looked at, or the past: from before `turn` to after `until`. Another token is another state of the world. */
export interface About {
  readonly turn: number
  readonly until?: number | 'now'
  readonly token: string
}

export interface DiffStoreDeps {
  readonly sessionId: string
  readonly remote: Pick<Remote, 'call'>
  /** Undefined while nothing is looked at. */
  readonly about: ReadonlySignal<About | undefined>
  compare(before: string, after: string, signal: AbortSignal): Promise<TextDiff>
}

/** Diffs and line counts of the files of one preview, each asked for when somebody wants to see it. */
export interface DiffStore {
  readonly entries: ReadonlySignal<ReadonlyMap<string, DiffEntry>>
  readonly counts: ReadonlySignal<ReadonlyMap<string, LineCount>>
  /** Somebody looks at this path until the returned function is called. */
  open(path: string): () => void
  retry(path: string): void
  /** Asked together with what else is wanted in this moment, and once per path. */
  wantCount(path: string): void
  dispose(): void
}

/** Diffs that nobody looks at any more and that are kept all the same. */
const KEPT = 12
export const MAX_LINES = 100_000
/** Rows come into view one after another; they are counted together. */
const GATHER_MS = 60

const nothing = <T,>(): ReadonlyMap<string, T> => new Map()

export function createDiffStore({ sessionId, remote, about, compare }: DiffStoreDeps): DiffStore {
  const entries = signal<ReadonlyMap<string, DiffEntry>>(nothing())
  const counts = signal<ReadonlyMap<string, LineCount>>(nothing())
  /** How many look at a path, and what stops its loading. */
  const held = new Map<string, number>()
  const loading = new Map<string, AbortController>()
  const asked = new Set<string>()
  let wanted: string[] = []
  let gathering: ReturnType<typeof setTimeout> | undefined
  let world = new AbortController()
  let known: About | undefined

  const put = (path: string, entry: DiffEntry | undefined) => {
    const next = new Map(entries.peek())
    next.delete(path)
    if (entry !== undefined) next.set(path, entry)
    const idle = [...next.keys()].filter(other => !held.has(other))
    for (const oldest of idle.slice(0, Math.max(0, idle.length - KEPT))) next.delete(oldest)
    entries.value = next
  }

  async function load(path: string) {
    if (known === undefined) return
    loading.get(path)?.abort()
    const stop = new AbortController()
    loading.set(path, stop)
    put(path, { kind: 'loading' })
    const entry = await entryOf(remote, compare, { ...askOf(known), path }, stop.signal)
    // Aborted: another preview, another try, or nobody looks any more.
    if (entry === undefined || loading.get(path) !== stop) return
    loading.delete(path)
    put(path, entry)
  }

  const askOf = ({ turn, until }: About) => ({ sessionId, turn, ...(until === undefined ? {} : { until }) })

  async function count(asked: About) {
    gathering = undefined
    const here = world.signal
    while (wanted.length > 0) {
      const paths = wanted.slice(0, MAX_COUNTED)
      wanted = wanted.slice(MAX_COUNTED)
      const reply = await remote.call('counts', { ...askOf(asked), paths }, here)
      // A number that is missing is missed by nobody, so a failure is not told.
      if (here.aborted || !reply.ok) return
      counts.value = new Map([...counts.peek(), ...reply.value.counts.map(found => [found.path, found] as const)])
    }
  }

  function forget() {
    world.abort()
    world = new AbortController()
    for (const stop of loading.values()) stop.abort()
    loading.clear()
    asked.clear()
    wanted = []
    clearTimeout(gathering)
    gathering = undefined
    entries.value = nothing()
    counts.value = nothing()
  }

  const stopFollowing = effect(() => {
    const next = about.value
    if (next?.token === known?.token && next?.turn === known?.turn) return
    known = next
    forget()
    for (const path of held.keys()) void load(path)
  })

  return {
    entries,
    counts,
    open(path) {
      held.set(path, (held.get(path) ?? 0) + 1)
      if (!entries.peek().has(path)) void load(path)
      let isOpen = true
      return () => {
        if (!isOpen) return
        isOpen = false
        const left = held.get(path)! - 1
        if (left > 0) return void held.set(path, left)
        held.delete(path)
        loading.get(path)?.abort()
        // What was on its way is asked for again; what is there may be wanted once more.
        put(path, loading.delete(path) ? undefined : entries.peek().get(path))
      }
    },
    retry: path => void load(path),
    wantCount(path) {
      if (known === undefined || asked.has(path)) return
      const asking = known
      asked.add(path)
      wanted.push(path)
      gathering ??= setTimeout(() => void count(asking), GATHER_MS)
    },
    dispose() {
      stopFollowing()
      forget()
    },
  }
}

/** Undefined when aborted. */
async function entryOf(
  remote: DiffStoreDeps['remote'],
  compare: DiffStoreDeps['compare'],
  request: RequestInput<'diff'>,
  stop: AbortSignal,
): Promise<DiffEntry | undefined> {
  const reply = await remote.call('diff', request, stop)
  if (stop.aborted) return undefined
  if (!reply.ok) return { kind: 'failed', failure: reply.failure }
  const change = reply.value
  if (change.content.kind !== 'text') return { kind: 'ready', change }
  const { before, after } = change.content
  try {
    const diff = await compare(before, after, stop)
    if (stop.aborted) return undefined
    if (diff.kind === 'binary' || Math.max(diff.oldLines, diff.newLines) > MAX_LINES) return { kind: 'ready', change }
    // Each step for itself takes no more than some milliseconds; together they could cost a frame.
    const sides = [splitLines(before)]
    await pause()
    sides.push(splitLines(after))
    await pause()
    const segments = segmentsOf(diff)
    await pause()
    const text: TextView = {
      before: sides[0]!,
      after: sides[1]!,
      segments,
      added: diff.added,
      removed: diff.removed,
      isCoarse: diff.kind === 'too-different',
      forms: { before: formOf(before), after: formOf(after) },
    }
    return stop.aborted ? undefined : { kind: 'ready', change, text }
  } catch (cause) {
    if (stop.aborted) return undefined
    return { kind: 'failed', failure: failure('internal', { detail: String(cause) }) }
  }
}

const pause = () => new Promise<void>(resolve => setTimeout(resolve, 0))
