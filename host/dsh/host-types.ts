/**
 * The members of DSH that the host half relies on, in the loosest shape that is true for every
 * supported generation. Other rooms hand such values on; what their members mean is known to the files of this room.
 * Source: DSH core/session, core/agent, core/tools, interaction/commands, client/connection.
 */
export type Dispose = () => unknown

export interface HostContext {
  on(event: string, listener: (...args: never[]) => unknown, options?: { prepend?: boolean }): Dispose
  effect(run: () => unknown, label?: string): unknown
  inject(names: readonly string[], run: (ctx: HostContext) => void): unknown
  get(name: string): unknown
  emit(event: string, ...args: unknown[]): unknown
  readonly root?: Pick<HostContext, 'get'>
}

export interface ForeignHeader {
  readonly version: number
  readonly id: string
  /** Unix ms */
  readonly createdAt?: number
  readonly cwd?: string
  readonly parentSession?: string
  readonly origin?: string
  readonly seedLength?: number
  readonly inheritedEventCount?: number
  readonly agentPreset?: string
}

export interface ForeignEvent {
  readonly seq: number
  readonly type: string
  readonly time: number
  readonly data: unknown
  readonly surfaceOp?: unknown
  readonly sourceEventSeqs?: readonly number[]
}

export interface ForeignSession {
  readonly id: string
  readonly header: ForeignHeader
  /** Up to 0.1.1. */
  readonly events?: readonly ForeignEvent[]
  /** From 0.1.5 on. */
  snapshotEvents?(): readonly ForeignEvent[]
  /** Up to 0.1.1: what the last model request was made with. */
  requestHeader?(): { readonly config?: { readonly provider?: string; readonly model?: string } } | undefined
  readonly surface: { readonly nodes: readonly number[]; readonly replaceGeneration?: number; readonly contentGeneration?: number }
  append(type: string, data: unknown, options?: { surfaceOp?: unknown; sourceEventSeqs?: readonly number[] }): { readonly seq: number }
}

export interface ForeignSessions {
  get(id: string): ForeignSession | undefined
  list(): readonly ForeignSession[]
  flush(session: ForeignSession): Promise<boolean>
}

export interface ForeignMessage {
  readonly id?: string
  readonly content?: readonly { readonly type?: string; readonly text?: string }[]
}

export interface ForeignAgent {
  readonly id: string
  readonly status: string
  readonly session: ForeignSession
  readonly inbox?: {
    readonly nextTurn?: readonly ForeignMessage[]
    readonly nextStep?: readonly ForeignMessage[]
    remove?(id: string): boolean
  }
  runMaintenance<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T>
}

export interface ForeignAgents {
  get(id: string): ForeignAgent | undefined
  list(): readonly ForeignAgent[]
}

export interface ForeignTarget {
  readonly targetKey: string
  readonly displayPath: string
}

/** A tool execution, also the actor of the fs events. */
export interface ForeignExecution {
  readonly callId: string
  readonly name: string
  readonly arguments?: unknown
  readonly agent?: ForeignAgent
}
