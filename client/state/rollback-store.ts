import { batch, computed, signal, type ReadonlySignal } from '@preact/signals'
import type { Scope } from '../../src/checkpoint/journal-entry.ts'
import type { Failure } from '../../src/protocol/failure.ts'
import { COMMAND, type OpSummary, type TurnRow } from '../../src/protocol/requests.ts'
import { ok, type Result } from '../../src/result.ts'
import { hiddenRows, nothingLeft, type Hidden } from '../../src/surface/hidden.ts'
import type { Composer } from '../dsh/composer.ts'
import type { CommandRun, Remote } from '../dsh/remote.ts'
import type { PageMarker, SessionView, WithdrawnPrompt } from '../dsh/session-view.ts'
import { compareTexts } from './compare.ts'
import { createDiffStore, type About, type DiffStore } from './diff-store.ts'
import { idle, nextPhase, scopeOf, selectionOf, type Around, type FlowEvent, type Mode, type Phase, type Problem } from './rollback-flow.ts'

export interface RollbackStoreDeps {
  readonly sessionId: string
  readonly remote: Remote
  readonly view: SessionView
  /** Looked up when needed: the session's composer may come and go. */
  composer(): Composer | undefined
  /** The name our command has in this host. */
  command(): string
  /** The chat's end comes into view, where the bar is; the rows the reader had before them may be gone. */
  showEnd(): void
  /** Shows another session of this page. */
  openSession(id: string): void
  /** Puts a session away for good; undefined where the page cannot. */
  archiver(): ((id: string) => Promise<void>) | undefined
  /** Puts a text into another session's composer as soon as it has one, unless something is written there. */
  placeDraft(id: string, text: string): void
  /** The session's workspace, for paths as shown. */
  workspace(): string | undefined
  /** A refusal in the page's language. */
  say(failure: Failure): string
}

/** Everything the page knows about rollbacks of one session. Made once per session; `dispose` ends its subscription. */
export interface RollbackStore {
  readonly sessionId: string
  readonly phase: ReadonlySignal<Phase>
  /** Diffs of the files of the preview that is looked at. */
  readonly diffs: DiffStore
  readonly running: ReadonlySignal<boolean>
  readonly offered: ReadonlySignal<boolean>
  readonly markers: ReadonlySignal<readonly PageMarker[]>
  readonly hidden: ReadonlySignal<Hidden>
  /** Markers whose withdrawn rows are shown, dimmed, until the page is left. */
  readonly shown: ReadonlySignal<ReadonlySet<number>>
  /** No row of the conversation is left to see. */
  readonly empty: ReadonlySignal<boolean>
  /** The session's turns and ops, as far as they were asked for. */
  readonly timeline: ReadonlySignal<Timeline>
  /** Rollbacks and undos, as far as they were asked for. */
  readonly ops: ReadonlySignal<readonly OpSummary[]>
  /** What each turn changed, by number. As far as asked for, and as it was then. */
  readonly facts: ReadonlySignal<ReadonlyMap<number, TurnRow>>
  /** A withdrawn prompt that did not go into the composer because of a draft there. */
  readonly waitingPrompt: ReadonlySignal<string | undefined>
  /** After a swap it is the person's own draft that waits. */
  readonly isDraftWaiting: ReadonlySignal<boolean>
  readonly barUndo: ReadonlySignal<'idle' | 'running'>
  turnOfMessage(messageId: string): number | undefined
  /** All turns as the host knows them, also those that are not loaded in the chat. */
  turns(signal: AbortSignal): Promise<Result<readonly TurnRow[], Failure>>
  /** Relative to the workspace when inside it. */
  shownPath(path: string): string
  /** `only`: of the files this one alone, and not the conversation. */
  open(turn: number, opener?: HTMLElement, only?: string): void
  /** Put these files back, or leave them as they are. */
  choose(paths: readonly string[], isBack: boolean): void
  /** Conversation and files, one of them, or a branch. */
  setMode(mode: Mode): void
  setAround(around: Partial<Around>): void
  /** Tries the files that failed once more. */
  tryAgain(): Promise<void>
  confirm(): Promise<void>
  /** Stops what is being carried out, unless it writes already. */
  stop(): Promise<void>
  retry(): void
  /** Undo from the dialog's result. */
  undo(): Promise<void>
  /** Undo from a marker's bar; the command's row says what happened, and where the chat is hidden, a refusal is told. */
  undoFromBar(isChatHidden?: boolean): Promise<void>
  insertPrompt(): void
  /** The withdrawn prompt takes the draft's place; the draft is what can be brought back then, by the same way. */
  swapPrompt(): void
  /** Opens the session in which the conversation goes on, where the command that has just run made or named one. */
  followCopy(): Promise<void>
  openSession(id: string): void
  canArchive(): boolean
  /** Puts this session, whose conversation goes on in `copy`, away, and shows that one. */
  archive(copy: string): Promise<void>
  /** A typed command rolled back: its marker is the event `markerSeq`, which may still be on its way. */
  rolledBackByCommand(markerSeq: number): void
  close(): void
  /** Once the dialog is gone: back to the button it was opened from, or to the composer after a rollback. */
  returnFocus(): void
  loadOps(): void
  toggleShown(markerSeq: number): void
  /** Asks for `facts` unless they are known and no turn has ended since. */
  wantFacts(): void
  dispose(): void
}

/** What the host last told of the session's turns and ops. `failure`: the last time it was asked for them, it could not tell. */
export type Timeline =
  | { readonly kind: 'unasked' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'known'; readonly turns: readonly TurnRow[]; readonly ops: readonly OpSummary[]; readonly failure?: Failure }

/** How often a long rollback is asked how far it is. */
const PROGRESS_MS = 500

const nothingHidden: Hidden = { keys: [], turns: [] }

/** Follows the session from now on; asks the host for nothing before `open` or `loadOps`. */
export function createRollbackStore(deps: RollbackStoreDeps): RollbackStore {
  const { sessionId, remote, view } = deps
  const phase = signal<Phase>(idle)
  const about = computed(() => lookedAt(phase.value))
  const diffs = createDiffStore({ sessionId, remote, about, compare: compareTexts })
  const running = signal(view.isRunning())
  const offered = signal(view.isOffered())
  const markers = signal<readonly PageMarker[]>([])
  const hidden = signal<Hidden>(nothingHidden)
  const shown = signal<ReadonlySet<number>>(new Set())
  const empty = signal(false)
  const timeline = signal<Timeline>({ kind: 'unasked' })
  const ops = signal<readonly OpSummary[]>([])
  const facts = signal<ReadonlyMap<number, TurnRow>>(new Map())
  let areFactsFresh = false
  const waitingPrompt = signal<string | undefined>(undefined)
  const isDraftWaiting = signal(false)
  const barUndo = signal<'idle' | 'running'>('idle')
  let lastRequest = 0
  let opener: HTMLElement | undefined
  let onlyFile: string | undefined
  let abort: AbortController | undefined
  let opsAsked = false
  let timelinesAsked = 0
  let awaitedMarker: number | undefined

  const send = (event: FlowEvent) => {
    phase.value = nextPhase(phase.peek(), event)
  }
  const refused = (request: number, problem: Problem) => send({ kind: 'problem', request, problem })

  // The host publishes for every streamed chunk; rows are walked again only when one was added or
  // moved, a marker came, or a run of our command has not answered yet.
  let seenOrder: readonly string[] = []
  let unanswered = 0
  const look = (isForced = false) =>
    batch(() => {
      running.value = view.isRunning()
      if (running.value) areFactsFresh = false
      offered.value = view.isOffered()
      const order = view.order()
      const found = view.markers()
      const newMarkers = !sameMarkers(found, markers.peek())
      if (!isForced && !newMarkers && unanswered === 0 && sameOrder(order, seenOrder)) return
      seenOrder = order
      if (newMarkers) markers.value = found
      const rows = view.rows(ourCommands(deps.command()))
      const open = rows.filter(row => row.command?.answered === false).length
      const answered = open < unanswered
      unanswered = open
      const next = hiddenRows(rows, found, shown.peek())
      if (!sameHidden(next, hidden.peek())) hidden.value = next
      empty.value = found.length > 0 && !view.hasMore() && nothingLeft(rows, next)
      // The marker comes before the host has noted the op as done; the command's answer comes after.
      if ((newMarkers || answered) && opsAsked) loadOps()
      promptOfAwaited()
    })
  look()
  const unsubscribe = view.subscribe(() => look())

  function loadOps() {
    opsAsked = true
    areFactsFresh = true
    const asked = ++timelinesAsked
    void remote.call('timeline', { sessionId }).then(reply => {
      // A later question has a later answer.
      if (asked !== timelinesAsked) return
      if (!reply.ok) {
        areFactsFresh = false
        const known = timeline.peek()
        timeline.value = { ...(known.kind === 'known' ? known : { kind: 'failed' }), failure: reply.failure }
        return
      }
      batch(() => {
        timeline.value = { kind: 'known', ...reply.value }
        ops.value = reply.value.ops
        facts.value = new Map(reply.value.turns.map(row => [row.turn, row]))
      })
    })
  }

  async function preview(turn: number) {
    const request = ++lastRequest
    send({ kind: 'opened', turn, request, only: onlyFile })
    await ask(turn, onlyFile === undefined ? 'both' : 'files', request)
  }

  async function ask(turn: number, scope: Scope, request: number) {
    abort?.abort()
    abort = new AbortController()
    const reply = await remote.call('preview', { sessionId, turn, scope }, abort.signal)
    if (reply.ok) send({ kind: 'previewed', request, preview: reply.value })
    else refused(request, { kind: 'failure', failure: reply.failure })
  }

  /** Most rollbacks are over before the first question. */
  const followProgress = (request: number) =>
    setInterval(() => {
      void remote.call('progress', { sessionId }).then(reply => {
        if (reply.ok && reply.value.stage !== undefined) send({ kind: 'progress', request, progress: reply.value })
      })
    }, PROGRESS_MS)

  async function confirm() {
    const ready = phase.peek()
    if (ready.kind !== 'ready' || ready.awaited !== undefined) return
    const { preview: seen } = ready
    const request = ++lastRequest
    send({ kind: 'confirmed', request })
    const planned = await remote.call('plan', {
      sessionId,
      turn: ready.turn,
      scope: seen.scope,
      token: seen.token,
      ...selectionOf(seen, ready.choices),
      ...ready.around,
      branch: ready.mode === 'branch',
    })
    if (!planned.ok) return refused(request, { kind: 'failure', failure: planned.failure })
    if (planned.value.kind === 'stale') return send({ kind: 'stale', request, preview: planned.value.preview })
    const { planId } = planned.value
    const follow = followProgress(request)
    const run = await remote.run(sessionId, `/${deps.command()} --plan ${planId}`).finally(() => clearInterval(follow))
    if (run.kind === 'refused') return refused(request, { kind: 'said', text: run.text })
    const outcome = await remote.call('outcome', { sessionId, planId })
    const op = outcome.ok ? outcome.value.op : undefined
    // When the connection broke, only the host knows whether it was carried out.
    if (run.kind === 'failed' && op === undefined) return refused(request, { kind: 'failure', failure: run.failure })
    send({ kind: 'applied', request, ...(op === undefined ? {} : { op }) })
    loadOps()
    if (op?.copy !== undefined) {
      deps.openSession(op.copy)
      if (seen.prompt.text.trim() !== '') deps.placeDraft(op.copy, seen.prompt.text)
      return
    }
    if (seen.scope !== 'files') await restorePrompt(seen.prompt)
  }

  /** The withdrawn prompt goes into an empty composer only; a draft is the person's and stays. */
  async function restorePrompt(prompt: WithdrawnPrompt) {
    const composer = deps.composer()
    const text = prompt.text.trim() === '' ? undefined : prompt.text
    waitingPrompt.value = undefined
    isDraftWaiting.value = false
    if (text === undefined && prompt.images.length === 0) return
    if (composer === undefined || composer.draft().trim() !== '') {
      waitingPrompt.value = text
      return send({
        kind: 'prompt',
        prompt: text === undefined ? 'none' : 'beside-draft',
        lostImages: prompt.images.length,
      })
    }
    if (text !== undefined) composer.setDraft(text)
    const lostImages = prompt.images.length === 0 ? 0 : await composer.addImages(prompt.images)
    send({ kind: 'prompt', prompt: text === undefined ? 'none' : 'restored', lostImages })
  }

  function promptOfAwaited() {
    const marker = markers.peek().find(({ seq }) => seq === awaitedMarker)
    if (marker === undefined) return
    awaitedMarker = undefined
    deps.showEnd()
    const prompt = view.promptAt(marker)
    if (prompt === undefined) return
    void (deps.composer()?.settled() ?? Promise.resolve()).then(() => restorePrompt(prompt))
  }

  const runUndo = () => remote.run(sessionId, `/${deps.command()} undo`)

  async function followCopy() {
    const last = await remote.call('outcome', { sessionId })
    if (last.ok && last.value.op?.copy !== undefined) deps.openSession(last.value.op.copy)
  }

  return {
    sessionId,
    phase,
    diffs,
    running,
    offered,
    markers,
    hidden,
    shown,
    empty,
    timeline,
    ops,
    facts,
    waitingPrompt,
    isDraftWaiting,
    barUndo,
    loadOps,
    toggleShown(seq) {
      const next = new Set(shown.peek())
      if (!next.delete(seq)) next.add(seq)
      shown.value = next
      look(true)
    },
    wantFacts() {
      if (!areFactsFresh && !running.peek()) loadOps()
    },
    confirm,
    followCopy,
    openSession: id => deps.openSession(id),
    canArchive: () => deps.archiver() !== undefined,
    async archive(copy) {
      const archiver = deps.archiver()
      if (archiver === undefined) return
      const composer = deps.composer()
      deps.openSession(copy)
      await archiver(sessionId).catch((error: unknown) => composer?.notify('error', error instanceof Error ? error.message : String(error)))
    },
    turnOfMessage: messageId => view.turnOfMessage(messageId),
    async turns(signal) {
      const reply = await remote.call('timeline', { sessionId }, signal)
      return reply.ok ? ok(reply.value.turns) : reply
    },
    shownPath(path) {
      const folder = deps.workspace()
      return folder !== undefined && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path
    },
    open(turn, from, only) {
      opener = from
      onlyFile = only
      void preview(turn)
    },
    choose: (paths, isBack) => send({ kind: 'chosen', paths, isBack }),
    setMode(mode) {
      const ready = phase.peek()
      if (ready.kind !== 'ready' || mode === (ready.awaited?.mode ?? ready.mode)) return
      const request = ++lastRequest
      send({ kind: 'moded', mode, request })
      void ask(ready.turn, scopeOf(mode), request)
    },
    setAround: around => send({ kind: 'around', around }),
    async stop() {
      const current = phase.peek()
      if (current.kind !== 'applying' || current.isStopping === true) return
      const reply = await remote.call('stop', { sessionId })
      if (reply.ok && reply.value.isStopping) send({ kind: 'stopping', request: current.request })
    },
    async tryAgain() {
      const done = phase.peek()
      if (done.kind !== 'done' || done.op === undefined) return
      send({ kind: 'again', again: { kind: 'running' } })
      const run = await remote.run(sessionId, `/${deps.command()} retry`)
      const outcome = await remote.call('outcome', { sessionId, op: done.op.op })
      send({
        kind: 'again',
        again: run.kind === 'done' ? { kind: 'done', text: run.text } : { kind: 'failed', problem: problemOf(run) },
        ...(outcome.ok ? { op: outcome.value.op } : {}),
      })
      loadOps()
    },
    retry() {
      const current = phase.peek()
      if (current.kind === 'failed') void preview(current.turn)
    },
    async undo() {
      send({ kind: 'undo', undo: { kind: 'running' } })
      const run = await runUndo()
      send({
        kind: 'undo',
        undo: run.kind === 'done' ? { kind: 'done', text: run.text } : { kind: 'failed', problem: problemOf(run) },
      })
      loadOps()
      if (run.kind === 'done') await followCopy()
    },
    async undoFromBar(isChatHidden = false) {
      if (barUndo.peek() === 'running') return
      barUndo.value = 'running'
      const run = await runUndo()
      barUndo.value = 'idle'
      // The command's own row shows its answer; what never ran has no row.
      if (run.kind === 'failed') deps.composer()?.notify('error', deps.say(run.failure))
      if (run.kind === 'refused' && isChatHidden) deps.composer()?.notify('error', run.text)
      loadOps()
      if (run.kind === 'done') await followCopy()
    },
    swapPrompt() {
      const composer = deps.composer()
      const text = waitingPrompt.peek()
      if (composer === undefined || text === undefined) return
      waitingPrompt.value = composer.draft()
      composer.setDraft(text)
      isDraftWaiting.value = !isDraftWaiting.peek()
    },
    insertPrompt() {
      const composer = deps.composer()
      const text = waitingPrompt.peek()
      if (composer === undefined || text === undefined) return
      const draft = composer.draft()
      composer.setDraft(draft.trim() === '' ? text : `${draft}\n\n${text}`)
      isDraftWaiting.value = false
      waitingPrompt.value = undefined
      const current = phase.peek()
      if (current.kind === 'done') send({ kind: 'prompt', prompt: 'restored', lostImages: current.lostImages })
    },
    rolledBackByCommand(markerSeq) {
      awaitedMarker = markerSeq
      promptOfAwaited()
    },
    close() {
      const before = phase.peek()
      if (before.kind === 'idle' || before.kind === 'applying') return
      abort?.abort()
      send({ kind: 'closed' })
      if (before.kind !== 'done') return
      opener = undefined
      deps.showEnd()
    },
    returnFocus() {
      if (opener?.isConnected === true) opener.focus()
      else deps.composer()?.focus()
      opener = undefined
    },
    dispose() {
      abort?.abort()
      diffs.dispose()
      unsubscribe()
    },
  }
}

const lookedAt = (phase: Phase): About | undefined =>
  phase.kind === 'ready' || phase.kind === 'applying' ? { turn: phase.preview.target.turn, token: phase.preview.token } : undefined

/** The command and its second name: both may stand in one session's history. */
const ourCommands = (name: string): ReadonlySet<string> => new Set([COMMAND, name])

function problemOf(run: Exclude<CommandRun, { kind: 'done' }>): Problem {
  return run.kind === 'refused' ? { kind: 'said', text: run.text } : { kind: 'failure', failure: run.failure }
}

const sameOrder = (a: readonly string[], b: readonly string[]) =>
  a === b || (a.length === b.length && a.every((key, i) => key === b[i]))
const sameMarkers = (a: readonly PageMarker[], b: readonly PageMarker[]) =>
  a.length === b.length && a.every((marker, i) => marker.seq === b[i]!.seq)
const sameHidden = (a: Hidden, b: Hidden) =>
  sameRows(a, b) && (a.dimmed === b.dimmed || (a.dimmed !== undefined && b.dimmed !== undefined && sameRows(a.dimmed, b.dimmed)))
const sameRows = (a: Pick<Hidden, 'keys' | 'turns'>, b: Pick<Hidden, 'keys' | 'turns'>) =>
  sameOrder(a.keys, b.keys) && a.turns.length === b.turns.length && a.turns.every((turn, i) => turn === b.turns[i])
