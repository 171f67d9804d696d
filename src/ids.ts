/** Branded ids: strings that cannot be mixed up. The cast happens once, where the string comes in. */
declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** DSH session id, as in `session.header.id`. */
export type SessionId = Branded<'SessionId'>
/** Lower-case hex SHA-256 of a file's raw bytes. */
export type Digest = Branded<'Digest'>
/** Id of one recorded rollback or undo. */
export type OpId = Branded<'OpId'>
/** Id of a plan kept in host memory for `/rollback --plan`. */
export type PlanId = Branded<'PlanId'>

/** An event's position in a session log; turn numbers repeat across forks, a turn's `turn/start` seq does not. */
export type Seq = number

export const sessionId = (text: string): SessionId => text as SessionId
export const digest = (text: string): Digest => text as Digest
export const opId = (text: string): OpId => text as OpId
export const planId = (text: string): PlanId => text as PlanId
