/** The host half's wiring: services in, listeners and registrations out. Decisions are in src/, work in the rooms. */
import { randomUUID } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import manifest from '../package.json' with { type: 'json' }
import type { SessionId } from '../src/ids.ts'
import { COMMAND, PROTOCOL, type Locale } from '../src/protocol/requests.ts'
import { ok } from '../src/result.ts'
import { translate } from '../locales/translate.ts'
import { makeBrackets } from './capture/brackets.ts'
import { makeCapture } from './capture/capture.ts'
import { makeStateCache } from './capture/fingerprint.ts'
import { makeKnownWrites } from './capture/known-writes.ts'
import { settingsOf } from './config.ts'
import { watchAgents } from './dsh/agent-events.ts'
import { openChannel } from './dsh/channel.ts'
import { registerCommand } from './dsh/commands.ts'
import { makeHealth } from './dsh/health.ts'
import type { ForeignAgents, ForeignSession, ForeignSessions, HostContext } from './dsh/host-types.ts'
import { watchBackground } from './dsh/jobs.ts'
import { untilLive } from './dsh/live-session.ts'
import { hintModel } from './dsh/model-hint.ts'
import { watchObservations } from './dsh/observations.ts'
import { registerProjection } from './dsh/projection.ts'
import { makeSessionCopies } from './dsh/session-copy.ts'
import { idOf } from './dsh/session-log.ts'
import { readHeaders } from './dsh/stored-sessions.ts'
import { watchToolCalls } from './dsh/tool-calls.ts'
import { makeCheckpoints } from './rollback/checkpoints.ts'
import { makeCommand } from './rollback/command.ts'
import type { RollbackDeps } from './rollback/deps.ts'
import { makeDiffs } from './rollback/diff.ts'
import { watchRecovery } from './rollback/recovery.ts'
import { makeProgress } from './rollback/progress.ts'
import { makeRollbackService } from './rollback/rollback-service.ts'
import { makePathIndex } from './store/path-index.ts'
import { openStore } from './store/store.ts'
import { dshHome } from './store/store-layout.ts'

export { Config } from './config.ts'
export const name = 'turnback'

/** Services that every supported profile has; the rest is asked for when it is needed. */
export const inject = ['sessions', 'agents', 'commands']

/** Called by the DSH loader with the row's config. Never throws. */
export function apply(ctx: HostContext, config: unknown): void {
  const health = makeHealth()
  try {
    start(ctx, health, settingsOf(config))
  } catch (error) {
    // A plugin that fails to activate stops the whole host; ours rather does nothing and says why.
    health.report('start', error)
  }
}

/** The age limit is looked at when the host has started, and now and then. */
const TIDY_AFTER_MS = 30_000
const TIDY_EVERY_MS = 60 * 60_000
/** After so long without a record the store makes its segments smaller. */
const QUIET_MS = 20_000

function start(ctx: HostContext, health: ReturnType<typeof makeHealth>, settings: ReturnType<typeof settingsOf>): void {
  const store = openStore({
    root: settings.storeRoot, limits: () => ({ maxBytes: settings.maxStoreBytes, maxDays: settings.maxStoreDays }),
    quietMs: QUIET_MS,
    // Told once and no more: nothing is lost, and the next quiet moment tries again.
    onProblem: (error) => {
      health.report('re-encode', error)
      health.clear('re-encode')
    },
  })
  const sessions = ctx.get('sessions') as ForeignSessions
  const agents = ctx.get('agents') as ForeignAgents
  const observations = watchObservations(ctx, health)
  const speech = makeSpeech()
  const workspaceOf = ({ header }: ForeignSession) => (header.cwd === undefined ? undefined : realFolder(header.cwd))
  const journalOf = (session: ForeignSession) => store.journal(idOf(session), workspaceOf(session) ?? '/')
  const home = realFolder(dshHome(process.env))
  const writes = makeKnownWrites(Date.now)
  const background = watchBackground(ctx, health)
  const { maxFileBytes, maxBracketFiles: maxFiles, maxBracketBytes: maxNewBytes, maxBracketMs: maxMs } = settings
  const brackets = makeBrackets({
    sessions, health, background, journalOf, workspaceOf, maxFileBytes, budget: { maxFiles, maxNewBytes, maxMs },
    dshHome: home, indexFolder: store.layout.indexes, ignoreFolders: settings.ignoreFolders, now: Date.now,
    isWritten: writes.isWritten,
  })
  const capture = makeCapture({ sessions, health, observations, brackets, writes, journalOf, maxFileBytes, dshHome: home, now: Date.now })
  // Taken once: each time a context is asked for a member it makes an error with a stack first, and a rollback of 2,000 files has 16,000 steps.
  const emit = ctx.emit.bind(ctx)
  const deps: RollbackDeps = {
    ctx, sessions, agents, store, pathIndex: makePathIndex(store), health, observations, workspaceOf, maxFileBytes: settings.maxFileBytes, states: makeStateCache(),
    progress: makeProgress(), copies: makeSessionCopies(ctx, sessions, health), headerOf: readHeaders(ctx),
    journalOf: session => writes.ofOps(journalOf(session)),
    captured: capture.settled,
    localeOf: speech.of,
    now: Date.now,
    newId: () => randomUUID().replaceAll('-', '').slice(0, 16),
    onPhase: health.contain('phase', (phase, op) => { emit('turnback/phase', { phase, op }) }),
  }
  const service = makeRollbackService(deps)
  const diffs = makeDiffs(deps)
  const checkpoints = makeCheckpoints(deps)

  const live = (id: SessionId) => untilLive(sessions, agents, id)

  watchToolCalls(ctx, capture, background, health)
  watchAgents(ctx, health, 'capture before a step', { appeared: () => {}, beforeStep: agent => capture.beforeStep(agent.session) })
  if (settings.modelHint) hintModel(ctx, health)
  watchRecovery(deps)
  registerProjection(ctx, health)
  const texts = { description: translate('en', 'command.description'), hint: translate('en', 'command.hint') }
  const command = registerCommand(ctx, health, texts, makeCommand(deps, service))
  openChannel(ctx, health, {
    hello: async ({ locale, sessionId }) => {
      if (locale !== undefined) speech.set(locale, sessionId)
      return ok({ protocol: PROTOCOL, version: manifest.version, command: command ?? COMMAND, problems: [...health.problems()] })
    },
    timeline: async ({ sessionId }) => service.timeline(await live(sessionId)),
    preview: async ({ sessionId, turn, scope }) => service.preview(await live(sessionId), turn, scope),
    plan: ({ sessionId, ...request }) => service.plan(sessionId, request),
    retry: ({ sessionId, running }) => service.planRetry(sessionId, running),
    history: async ({ sessionId, ...ask }) => checkpoints.history(await live(sessionId), ask),
    checkpoint: async ({ sessionId, ...ask }) => checkpoints.checkpoint(await live(sessionId), ask),
    diff: async ({ sessionId, ...ask }) => (ask.until === undefined ? diffs : checkpoints).diff(await live(sessionId), ask),
    counts: async ({ sessionId, ...ask }) => (ask.until === undefined ? diffs : checkpoints).counts(await live(sessionId), ask),
    outcome: ({ sessionId, ...ask }) => service.outcome(sessionId, ask),
    progress: async ({ sessionId }) => ok(deps.progress.of(sessionId)),
    stop: async ({ sessionId }) => ok({ isStopping: deps.progress.stop(sessionId) }),
  })
  ctx.effect(() => {
    const tidy = (): void => { void store.tidy().then((done) => { if (!done.ok) health.report('store', done.failure.facts.detail ?? done.failure.code) }) }
    const timers = [setTimeout(tidy, TIDY_AFTER_MS), setInterval(tidy, TIDY_EVERY_MS)]
    for (const timer of timers) timer.unref()
    return () => timers.forEach(timer => clearTimeout(timer))
  }, 'turnback: age limit of the store')
  ctx.effect(() => async () => {
    await health.contain('capture at the end', capture.dispose)()
    await brackets.dispose()
    await store.close()
  }, 'turnback: store')
}

/** The page tells its language in `hello`; a session that no page spoke for gets the last one heard. */
function makeSpeech() {
  const bySession = new Map<SessionId, Locale>()
  let last: Locale = 'en'
  return {
    of: (session: SessionId): Locale => bySession.get(session) ?? last,
    set: (locale: Locale, session: SessionId | undefined): void => {
      last = locale
      if (session !== undefined) bySession.set(session, locale)
    },
  }
}

/** The real path of a folder that may not exist yet. */
function realFolder(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}
