import { createHash } from 'node:crypto'
import { absent, type FileState } from '../../src/checkpoint/file-state.ts'
import type { ChangeEntry, JournalEntry, OpRow, Outcome, TurnRef } from '../../src/checkpoint/journal-entry.ts'
import { digest, opId, sessionId, type OpId } from '../../src/ids.ts'

export const root = sessionId('root')

/** A file with this text, or the absence of one. */
export const file = (text: string, mode = 0o644): FileState => ({
  kind: 'file', digest: digest(createHash('sha256').update(text).digest('hex')), bytes: Buffer.byteLength(text), mode,
})
export const stateOf = (text: string | undefined): FileState => (text === undefined ? absent : file(text))

/** `turn/start` seq of the turn with this number, in every journal made here. */
export const startSeqOf = (turn: number): number => turn * 100

interface CallOptions {
  readonly tool?: string
  readonly session?: string
  readonly late?: boolean
  readonly absentFolders?: readonly string[]
}

/** Builds a session's journal entry by entry: `aJournal().turn(1).writes('/w/a', '1', '2').entries`. */
export function aJournal() {
  const entries: JournalEntry[] = []
  let number = 1
  let count = 0

  const journal = {
    entries: entries as readonly JournalEntry[],
    turn(next: number) {
      number = next
      return journal
    },
    /** One call that found `found` and left `left`; a text stands for a file, undefined for none. */
    writes(path: string, found: string | undefined | FileState, left: string | undefined | FileState, options: CallOptions = {}) {
      const id = journal.begins(path, found, options)
      entries.push({ kind: 'after', of: id, state: asState(left), atMs: count })
      return journal
    },
    /** A path that changed while a command ran. */
    changes(path: string, found: string | undefined | FileState, left: string | undefined | FileState, options: CallOptions & Pick<ChangeEntry, 'doubt'> = {}) {
      count += 1
      entries.push({
        kind: 'change', id: `r${count}`, turn: turnRef(options), call: callRef({ tool: 'bash', ...options }), origin: 'shell', path,
        before: asState(found), after: asState(left), absentFolders: [...options.absentFolders ?? []], atMs: count,
        ...options.doubt === undefined ? {} : { doubt: options.doubt },
      })
      return journal
    },
    /** A call whose end was never seen. */
    cutOff(path: string, found: string | undefined | FileState, options: CallOptions = {}) {
      journal.begins(path, found, options)
      return journal
    },
    begins(path: string, found: string | undefined | FileState, options: CallOptions = {}): string {
      count += 1
      entries.push({
        kind: 'before', id: `r${count}`, turn: turnRef(options), call: callRef(options), origin: 'tool', path,
        state: asState(found), absentFolders: [...options.absentFolders ?? []], atMs: count,
      })
      return `r${count}`
    },
    ends(id: string, left: string | undefined | FileState) {
      entries.push({ kind: 'after', of: id, state: asState(left), atMs: count })
      return journal
    },
    sees(tool: string, options: CallOptions = {}) {
      count += 1
      entries.push({ kind: 'seen', turn: turnRef(options), call: callRef({ ...options, tool }), atMs: count })
      return journal
    },
    /** A rollback that got as far as `outcomes` says; `folders` that it removed, with their modes. */
    rollback(target: number, rows: readonly OpRow[], outcomes: readonly Outcome[], decided: readonly Outcome[] = [], folders: readonly [string, number][] = []): OpId {
      const op = journal.beginsRollback(target, rows, decided)
      entries.push({ kind: 'op-applied', op, outcomes: [...outcomes], removedFolders: folders.map(([path, mode]) => ({ path, mode })), atMs: count })
      entries.push({ kind: 'op-done', op, outcomes: [...outcomes], atMs: count })
      return op
    },
    beginsRollback(target: number, rows: readonly OpRow[], decided: readonly Outcome[] = []): OpId {
      const op = nextOp()
      entries.push({
        kind: 'op-begin', op, act: 'rollback', scope: 'both', rows: [...rows], decided: [...decided], foldersToRemove: [], atMs: count,
        target: { startSeq: startSeqOf(target), number: target, withdrawn: Array.from({ length: number - target + 1 }, (_, at) => target + at) },
      })
      return op
    },
    undo(of: OpId, rows: readonly OpRow[], outcomes: readonly Outcome[], decided: readonly Outcome[] = []): OpId {
      const op = nextOp()
      entries.push({ kind: 'op-begin', op, act: 'undo', of, scope: 'files', rows: [...rows], decided: [...decided], foldersToRemove: [], atMs: count })
      entries.push({ kind: 'op-done', op, outcomes: [...outcomes], atMs: count })
      return op
    },
    /** What failed in a rollback to before `target` was tried again. */
    retry(of: OpId, target: number, rows: readonly OpRow[], outcomes: readonly Outcome[], folders: readonly [string, number][] = []): OpId {
      const op = nextOp()
      entries.push({
        kind: 'op-begin', op, act: 'retry', of, scope: 'files', rows: [...rows], decided: [], foldersToRemove: [], atMs: count,
        target: { startSeq: startSeqOf(target), number: target, withdrawn: [] },
      })
      entries.push({ kind: 'op-applied', op, outcomes: [...outcomes], removedFolders: folders.map(([path, mode]) => ({ path, mode })), atMs: count })
      entries.push({ kind: 'op-done', op, outcomes: [...outcomes], atMs: count })
      return op
    },
    takesBack(op: OpId) {
      entries.push({ kind: 'op-taken-back', op, outcomes: [], atMs: count })
      return journal
    },
  }
  return journal

  function nextOp(): OpId {
    count += 1
    return opId(`op${String(count).padStart(8, '0')}`)
  }

  function turnRef({ late }: CallOptions): TurnRef {
    return { startSeq: startSeqOf(number), number, ...late === true ? { late } : {} }
  }

  function callRef({ tool = 'write', session = root }: CallOptions) {
    return { callId: `call-${count}`, tool, sessionId: sessionId(session) }
  }
}

const asState = (state: string | undefined | FileState): FileState => (typeof state === 'object' ? state : stateOf(state))

/** A row as an op records it. */
export const opRow = (path: string, was: FileState, goal: FileState, absentFolders: readonly string[] = []): OpRow => ({
  path, was, goal, temp: `${path}.tmp`, absentFolders: [...absentFolders],
  action: goal.kind === 'absent' ? 'delete' : was.kind === 'absent' ? 'recreate' : 'write',
})
export const restored = (path: string): Outcome => ({ path, result: 'restored' })
