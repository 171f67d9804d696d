import { batch, computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals'
import type { TextDiff } from '../../src/diff/line-diff.ts'
import type { ComparedRow } from '../../src/protocol/checkpoints.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import type { Remote } from '../dsh/remote.ts'
import { createDiffStore, type About, type DiffStore } from './diff-store.ts'
import { patchText, type PatchText } from './patch-text.ts'
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

export interface CheckpointsStoreDeps {
  readonly store: RollbackStore
  readonly remote: Pick<Remote, 'call'>
  compare(before: string, after: string, signal: AbortSignal): Promise<TextDiff>
}

/** What the Checkpoints view of one session shows. It outlives the view, which goes with its tab. */
export interface CheckpointsStore {
  readonly store: RollbackStore
  readonly items: ReadonlySignal<readonly RailItem[]>
  /** The newest entry until another one is chosen; stays chosen while others come. */
  readonly selected: ReadonlySignal<RailItem | undefined>
  readonly until: ReadonlySignal<Until>
  readonly detail: ReadonlySignal<Detail>
  /** The file whose lines are shown: the first one until another is chosen. */
  readonly file: ReadonlySignal<ComparedRow | undefined>
  readonly diffs: DiffStore
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
  const file = computed(() => {
    const now = detail.value
    return now.kind === 'ready' ? (now.rows.find(({ path }) => path === chosenFile.value) ?? now.rows[0]) : undefined
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

  let followers = 0
  let stop = () => {}
  const start = () => {
    // A turn that begins or ends is another state of the session; markers and ops are followed by the session's store.
    const stopTurns = effect(() => {
      void store.running.value
      untracked(store.loadOps)
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
      stopDetail()
    }
  }

  const diffs = createDiffStore({ sessionId, remote, about, compare })
  return {
    store,
    items,
    selected,
    until,
    detail,
    file,
    diffs,
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
