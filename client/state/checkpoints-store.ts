import { batch, computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals'
import { hasWords } from '../../src/checkpoint/has-words.ts'
import type { TextDiff } from '../../src/diff/line-diff.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import type { Remote } from '../dsh/remote.ts'
import { createDiffStore, type About, type DiffStore } from './diff-store.ts'
import { patchText, type PatchText } from './patch-text.ts'
import { changedOutcomes } from './rollback-flow.ts'
import { railItems, type RailItem } from './rail.ts'
import type { RollbackStore } from './rollback-store.ts'

/** The end of what is compared; undefined for the selected turn alone. */
export type Until = number | 'now' | undefined

/** The files of the selected turn, or of the stretch that begins with it. */
export type Detail =
  | { readonly kind: 'none' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `more`: files that are not listed. */
  | { readonly kind: 'ready'; readonly rows: readonly ComparedRow[]; readonly more: number }

/** Which entries are listed. `path`: only what changed this one file. */
export interface Filter {
  readonly kind: 'all' | 'tool' | 'shell' | 'gaps'
  /** Words of a path. */
  readonly words: string
  readonly path?: ComparedRow | undefined
}

export interface CheckpointsStoreDeps {
  readonly store: RollbackStore
  readonly remote: Pick<Remote, 'call'>
  compare(before: string, after: string, signal: AbortSignal): Promise<TextDiff>
}

/** What the Checkpoints view of one session shows. It outlives the view, which goes with its tab. */
export interface CheckpointsStore {
  readonly store: RollbackStore
  readonly items: ReadonlySignal<readonly RailItem[]>
  /** Those of them that the filter lets through. */
  readonly listed: ReadonlySignal<readonly RailItem[]>
  readonly filter: ReadonlySignal<Filter>
  /** The host could not say which turns the words or the file are of; then all are listed. */
  readonly filterFailure: ReadonlySignal<Failure | undefined>
  /** The newest entry until another one is chosen; stays chosen while others come. */
  readonly selected: ReadonlySignal<RailItem | undefined>
  readonly until: ReadonlySignal<Until>
  readonly detail: ReadonlySignal<Detail>
  /** The file whose lines are shown: the first one until another is chosen. */
  readonly file: ReadonlySignal<ComparedRow | undefined>
  readonly diffs: DiffStore
  setFilter(filter: Partial<Filter>): void
  select(key: string): void
  selectFile(path: string): void
  compareUntil(until: Until): void
  /** These files as a patch. */
  patch(rows: readonly ComparedRow[]): Promise<PatchText>
  /** Asks again for the files. */
  retry(): void
  /** Keeps everything as it is in the host until the returned function is called. */
  follow(): () => void
  dispose(): void
}

/** Words come letter by letter; they are asked for together. */
const FIND_MS = 150

/** Asks for nothing before `follow`. */
export function createCheckpointsStore({ store, remote, compare }: CheckpointsStoreDeps): CheckpointsStore {
  const { sessionId } = store
  const chosen = signal<string | undefined>(undefined)
  const until = signal<Until>(undefined)
  const detail = signal<Detail>({ kind: 'none' })
  const chosenFile = signal<string | undefined>(undefined)
  const about = signal<About | undefined>(undefined)
  const items = computed(() => {
    const known = store.timeline.value
    return known.kind === 'known' ? railItems(known.turns, known.ops) : []
  })
  const selected = computed(() => items.value.find(({ key }) => key === chosen.value) ?? items.value[0])
  const filter = signal<Filter>({ kind: 'all', words: '' })
  const filterFailure = signal<Failure | undefined>(undefined)
  /** Turns that the words or the file are of; undefined when nobody asked. */
  const found = signal<ReadonlySet<number> | undefined>(undefined)
  const listed = computed(() => items.value.filter(item => isListed(item, filter.value, found.value, store.shownPath)))
  const file = computed(() => {
    const now = detail.value
    if (now.kind !== 'ready') return undefined
    const rowAt = (wanted: string | undefined) => now.rows.find(({ path }) => path === wanted)
    return rowAt(chosenFile.value) ?? rowAt(filter.value.path?.path) ?? now.rows[0]
  })
  const tries = signal(0)
  let asked = 0
  let shown = ''
  let world = 0

  /** `key`: of what; other files under the same key replace those that are shown, and until then those stay. */
  async function load(turn: number, end: Until, key: string) {
    const request = ++asked
    if (shown !== key || detail.peek().kind !== 'ready') {
      detail.value = { kind: 'loading' }
      about.value = undefined
    }
    shown = key
    const reply = await remote.call('checkpoint', { sessionId, turn, ...(end === undefined ? {} : { until: end }) })
    if (request !== asked) return
    const before = detail.peek()
    if (!reply.ok) {
      detail.value = { kind: 'failed', failure: reply.failure }
      return
    }
    if (before.kind === 'ready' && JSON.stringify(before.rows) === JSON.stringify(reply.value.rows)) return
    world += 1
    about.value = { turn, until: end ?? turn, token: String(world) }
    detail.value = { kind: 'ready', ...reply.value }
  }

  /** What the detail rests on: the same words ask nothing anew, except that "now" is another moment each time. */
  const basis = computed(() => {
    const item = selected.value
    if (item?.kind !== 'turn') return undefined
    const end = until.value
    const world = end === undefined ? item.turn : store.timeline.value
    return { turn: item.turn.turn, end, key: `${item.key} ${end}`, words: JSON.stringify([end, tries.value, world]) }
  })

  /** Asks once the words have stopped coming; what is returned takes the question back. */
  function find({ words, path }: { readonly words: string; readonly path: string | undefined }): () => void {
    if (words === '' && path === undefined) {
      found.value = undefined
      filterFailure.value = undefined
      return () => {}
    }
    const abort = new AbortController()
    const timer = setTimeout(async () => {
      const reply = await remote.call('history', { sessionId, words, ...(path === undefined ? {} : { path }) }, abort.signal)
      if (abort.signal.aborted) return
      batch(() => {
        found.value = reply.ok ? new Set(reply.value.turns) : undefined
        filterFailure.value = reply.ok ? undefined : reply.failure
      })
    }, FIND_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }

  let followers = 0
  let stop = () => {}
  const start = () => {
    // A turn that begins or ends is another state of the session; markers and ops are followed by the session's store.
    const stopTurns = effect(() => {
      void store.running.value
      untracked(store.loadOps)
    })
    const stopFinding = effect(() => {
      const { words: wanted, path } = filter.value
      // Another turn may be of them, too.
      void store.timeline.value
      return find({ words: wanted.trim(), path: path?.path })
    })
    let words = ''
    const stopDetail = effect(() => {
      const now = basis.value
      if (chosen.peek() === undefined && selected.peek() !== undefined) chosen.value = selected.peek()!.key
      if (now === undefined) {
        asked += 1
        words = ''
        shown = ''
        about.value = undefined
        detail.value = { kind: 'none' }
        return
      }
      if (now.words === words && now.key === shown) return
      words = now.words
      untracked(() => void load(now.turn, now.end, now.key))
    })
    return () => {
      stopTurns()
      stopFinding()
      stopDetail()
    }
  }

  const diffs = createDiffStore({ sessionId, remote, about, compare })
  return {
    store,
    items,
    listed,
    filter,
    filterFailure,
    selected,
    until,
    detail,
    file,
    diffs,
    setFilter(change) {
      filter.value = { ...filter.peek(), ...change }
    },
    select(key) {
      if (key === selected.peek()?.key) return
      batch(() => {
        chosenFile.value = undefined
        until.value = undefined
        chosen.value = key
      })
    },
    selectFile(path) {
      chosenFile.value = path
    },
    compareUntil(end) {
      until.value = end
    },
    patch(rows) {
      const asked = about.peek()
      const { signal } = new AbortController()
      return patchText(rows, {
        async changeOf({ path }) {
          const known = diffs.entries.peek().get(path)
          if (known?.kind === 'ready') return known.change
          if (asked === undefined) return undefined
          const reply = await remote.call('diff', { sessionId, turn: asked.turn, until: asked.until, path })
          return reply.ok ? reply.value : undefined
        },
        compare: (before, after) => compare(before, after, signal),
      })
    },
    retry() {
      tries.value += 1
    },
    follow() {
      if (followers === 0) stop = start()
      followers += 1
      let isFollowing = true
      return () => {
        if (!isFollowing) return
        isFollowing = false
        followers -= 1
        if (followers === 0) stop()
      }
    },
    dispose() {
      stop()
      diffs.dispose()
    },
  }
}

function isListed(item: RailItem, { kind, words, path }: Filter, found: ReadonlySet<number> | undefined, shown: (path: string) => string): boolean {
  if (item.kind === 'op') {
    if (kind !== 'all') return false
    if (found === undefined) return true
    return changedOutcomes(item.op).some(outcome => (path === undefined ? hasWords(shown(outcome.path), words.trim()) : outcome.path === path.path))
  }
  const { turn } = item
  if (found !== undefined && !found.has(turn.startSeq)) return false
  switch (kind) {
    case 'all': return true
    case 'gaps': return turn.gaps.length > 0
    default: return (turn.changed?.[kind] ?? 0) > 0
  }
}
