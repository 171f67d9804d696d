import type { SessionId } from '../../src/ids.ts'
import type { Locale } from '../../src/protocol/requests.ts'
import type { StateCache } from '../capture/fingerprint.ts'
import type { Health } from '../dsh/health.ts'
import type { ForeignAgents, ForeignHeader, ForeignSession, ForeignSessions, HostContext } from '../dsh/host-types.ts'
import type { Observations } from '../dsh/observations.ts'
import type { SessionCopies } from '../dsh/session-copy.ts'
import type { PathIndex } from '../store/path-index.ts'
import type { SessionJournal } from '../store/session-journal.ts'
import type { TurnbackStore } from '../store/store.ts'
import type { Progress } from './progress.ts'

/** What the rollback room works with; one object for the life of the plugin. */
export interface RollbackDeps {
  readonly ctx: HostContext
  readonly sessions: ForeignSessions
  readonly agents: ForeignAgents
  readonly store: TurnbackStore
  /** What the sessions of a workspace did to its paths. */
  readonly pathIndex: PathIndex
  readonly health: Health
  readonly observations: Observations
  readonly copies: SessionCopies
  readonly progress: Progress
  readonly maxFileBytes: number
  /** Header of a session that need not be live; undefined where the host does not know it. */
  headerOf(id: string): Promise<ForeignHeader | undefined>
  /** States of paths by fingerprint, for plans. */
  readonly states: StateCache
  journalOf(session: ForeignSession): SessionJournal
  /** Real path of the session's workspace; undefined for a session without one. */
  workspaceOf(session: ForeignSession): string | undefined
  /** Resolves when every capture under way is on disk, and what others did to this session's paths is noted. */
  captured(session?: ForeignSession): Promise<void>
  /** The language the session's page speaks. */
  localeOf(session: SessionId): Locale
  now(): number
  /** 16 characters of [0-9a-f]. */
  newId(): string
  /** Told at each phase of an op, after the phase is durable; see ARCHITECTURE.md. */
  onPhase(phase: Phase, op: string): void
}

/** Where an op stands. The names are also the values of the event `turnback/phase`. */
export type Phase = 'op-begin' | 'file' | 'op-applied' | 'marker' | 'flushed' | 'op-done'
