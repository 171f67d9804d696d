import { signal } from '@preact/signals'
import type { Composer } from '../../client/dsh/composer.ts'
import type { CommandRun, Remote } from '../../client/dsh/remote.ts'
import type { PageMarker, SessionView } from '../../client/dsh/session-view.ts'
import { createRollbackStore, type RollbackStoreDeps } from '../../client/state/rollback-store.ts'
import { translateFailure, translator } from '../../locales/translate.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import { digest, opId, planId } from '../../src/ids.ts'
import type { FileChange } from '../../src/protocol/diff.ts'
import type { Endpoint, OpSummary, Preview, PreviewRow } from '../../src/protocol/requests.ts'
import { fail, ok, type Result } from '../../src/result.ts'
import type { ChatRow } from '../../src/surface/hidden.ts'

/** Worlds for component tests: stores are real, the host's answers are scripted. */

export const en = signal(translator('en'))
export const zh = signal(translator('zh'))

const file = (bytes: number) => ({ kind: 'file', digest: digest('a'.repeat(64)), bytes, mode: 0o644 }) as const

export function aRow(shown: string, action: PreviewRow['action'], more: Partial<PreviewRow> = {}): PreviewRow {
  return { path: `/w/${shown}`, shown, action, goal: file(1), current: file(2), turns: [2], origin: 'tool', ...more }
}

export const aConflict = (shown: string, more: Partial<PreviewRow> = {}): PreviewRow =>
  aRow(shown, 'keep', { conflict: 'changed-since', putBackAction: 'write', ...more })

export function aPreview(more: Partial<Preview> = {}): Preview {
  return {
    token: 't1',
    scope: 'both',
    target: { turn: 2, startSeq: 20, title: 'second', atMs: 0 },
    lastTurn: 3,
    turns: [
      { turn: 2, title: 'second prompt' },
      { turn: 3, title: 'third prompt' },
    ],
    messages: 6,
    rows: [aRow('a.txt', 'write'), aRow('new/b.txt', 'delete')],
    folders: [],
    gaps: [],
    hasCommands: false,
    gitMoves: [],
    queued: [],
    canDropQueued: true,
    running: [],
    isReadOnly: false,
    untouched: [],
    prompt: { text: '', images: [] },
    ...more,
  }
}

export function anOp(more: Partial<OpSummary> = {}): OpSummary {
  return {
    op: opId('op000000'),
    act: 'rollback',
    scope: 'both',
    target: { startSeq: 20, number: 2, withdrawn: [2, 3] },
    gaps: [],
    markerSeq: 40,
    outcomes: [
      { path: '/w/a.txt', result: 'restored', action: 'write' },
      { path: '/w/new/b.txt', result: 'restored', action: 'delete' },
    ],
    undone: false,
    atMs: 1,
    ...more,
  }
}

type Answer = Result<unknown, Failure> | Promise<Result<unknown, Failure>>

/** Answers per endpoint, taken in order; the last one stays. What was asked is kept. */
export function scriptedRemote(
  script: { readonly [E in Endpoint]?: readonly Answer[] } & { readonly run?: readonly (CommandRun | Promise<CommandRun>)[] } = {},
) {
  const asked: { endpoint: string; request: Record<string, unknown> }[] = []
  const lines: string[] = []
  const used = new Map<string, number>()
  const take = <T>(name: string, answers: readonly T[] | undefined): T | undefined => {
    const index = used.get(name) ?? 0
    used.set(name, index + 1)
    return answers?.[Math.min(index, answers.length - 1)]
  }
  const remote: Remote = {
    async call(endpoint, request) {
      asked.push({ endpoint, request: request as Record<string, unknown> })
      return (await (take(endpoint, script[endpoint]) ?? fail(failure('host-missing')))) as never
    },
    async run(_session, line) {
      lines.push(line)
      return (await take('run', script.run)) ?? { kind: 'failed', failure: failure('host-missing') }
    },
  }
  return { remote, asked, lines }
}

/** A rollback that goes well from the preview to the result. */
export const goingWell = (preview: Preview, op: OpSummary = anOp()) =>
  ({
    preview: [ok(preview)],
    plan: [ok({ kind: 'planned', planId: planId('plan0000'), expiresAtMs: 1 })],
    run: [{ kind: 'done', text: 'Rolled back.' }],
    outcome: [ok({ op })],
    timeline: [ok({ turns: [], ops: [op] })],
  }) as const

export function fakeView(
  start: {
    rows?: readonly ChatRow[]
    markers?: readonly PageMarker[]
    running?: boolean
    offered?: boolean
    prompt?: { text: string; images: string[] }
  } = {},
) {
  const state = {
    rows: [] as readonly ChatRow[],
    markers: [] as readonly PageMarker[],
    running: false,
    offered: true,
    prompt: undefined as { text: string; images: string[] } | undefined,
    ...start,
  }
  const listeners = new Set<() => void>()
  let walks = 0
  const view: SessionView = {
    isRunning: () => state.running,
    isOffered: () => state.offered,
    hasMore: () => false,
    order: () => state.rows.map(row => row.key),
    rows: () => {
      walks++
      return state.rows
    },
    markers: () => state.markers,
    promptAt: () => state.prompt,
    turnOfMessage: messageId => ({ 'message-2': 2 })[messageId],
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return {
    view,
    /** How often all rows were walked. */
    walks: () => walks,
    listening: () => listeners.size,
    publish(change: Partial<typeof state> = {}) {
      Object.assign(state, change)
      for (const listener of [...listeners]) listener()
    },
  }
}

export function fakeComposer(draft = '') {
  const state = {
    draft,
    focused: 0,
    notices: [] as string[],
    images: [] as string[],
    settled: Promise.resolve() as Promise<void>,
  }
  const composer: Composer = {
    draft: () => state.draft,
    settled: () => state.settled,
    setDraft: text => {
      state.draft = text
    },
    async addImages(ids) {
      const usable = ids.filter(id => !id.startsWith('lost'))
      state.images.push(...usable)
      return ids.length - usable.length
    },
    focus: () => {
      state.focused++
    },
    notify: (_level, text) => state.notices.push(text),
  }
  return { composer, state }
}

export function aStore(deps: Partial<RollbackStoreDeps> & Pick<RollbackStoreDeps, 'remote'>) {
  return createRollbackStore({
    sessionId: 'session-1',
    view: fakeView().view,
    composer: () => undefined,
    command: () => 'rollback',
    showEnd: () => {},
    openSession: () => {},
    placeDraft: () => {},
    archiver: () => undefined,
    workspace: () => '/w',
    say: refusal => translateFailure('en', refusal).text,
    ...deps,
  })
}

/** Lets pending replies arrive and what they caused be drawn. */
export const settle = () => new Promise<void>(resolve => setTimeout(resolve, 0))

export function later<T>() {
  let resolve!: (value: T) => void
  const promise = new Promise<T>(done => {
    resolve = done
  })
  return { promise, resolve }
}

/** What the host answers for a text file: `before` is on the disk, `after` is what comes back. */
export function aText(before: string, after: string, more: Partial<FileChange> = {}): FileChange {
  return { current: file(before.length), goal: file(after.length), content: { kind: 'text', before, after }, ...more }
}
