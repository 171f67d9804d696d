import type { Seq } from '../../src/ids.ts'
import type { LogEvent } from '../../src/turn/log-event.ts'
import { markerTexts } from '../../src/surface/marker.ts'

/** 0: DSH 0.1.0-rc.8 and 0.1.1. 4: DSH 0.1.7 and later. */
export type LogFormat = 0 | 4

interface Node {
  readonly seq: Seq
  /** Oldest first-hand event it stands for. */
  readonly from: Seq
}

interface CallEnd {
  readonly error?: boolean
  readonly code?: string
}

/**
 * Builds a session log event by event as DSH writes it (core/session types.ts), numbered without gaps:
 * `aLog().turn('fix it').writes('a.ts').done()`. A turn ends where the next thing outside it begins.
 * Each step writes the surface events that DSH requires, so the log folds in the host too.
 */
export function aLog(format: LogFormat = 0) {
  const events: LogEvent[] = []
  const starts = new Map<number, Seq>()
  let nodes: Node[] = []
  let turn = 0
  let open = false
  let callCount = 0

  const log = {
    /** A turn with its prompt and, in the first one, the runtime context (and the system prompt from format 3 on). */
    turn(text: string, prompt: { images?: readonly string[]; silent?: boolean } = {}) {
      endTurn()
      turn += 1
      open = true
      starts.set(turn, append('turn/start', { turn }).seq)
      append('step/start', { turn, step: 1 })
      if (format === 4 && nodes.length === 0) surface('system/message', message('system', { kind: 'system-prompt' }, 'You are helpful.'))
      if (prompt.silent !== true) surface('user/message', promptMessage(text, prompt.images ?? []))
      if (turn === 1) surface('user/message', message('user', plugin('@deepseek-ai/dsh-system-prompt'), 'cwd: /w'))
      return log
    },
    /** A turn that was stopped before anything reached the model. */
    emptyTurn() {
      endTurn()
      turn += 1
      open = true
      starts.set(turn, append('turn/start', { turn }).seq)
      return log
    },
    /** The next turn counts from here, as in a fork that starts its own numbers. */
    numbersFrom(number: number) {
      endTurn()
      turn = number - 1
      return log
    },
    steers(text: string) {
      surface('user/message', promptMessage(text, []))
      return log
    },
    says(text: string) {
      surface('assistant/message', { turn, step: 1, message: message('assistant', { kind: 'model' }, text) })
      return log
    },
    writes(path: string, end?: CallEnd) {
      return log.calls('write', { file_path: path, content: 'x' }, end)
    },
    runs(command: string, end?: CallEnd) {
      return log.calls('bash', { command }, end)
    },
    calls(name: string, args: Readonly<Record<string, unknown>> | string, end: CallEnd = {}) {
      const callId = log.starts(name, args)
      const error = end.code === undefined ? {} : { error: { name: 'E', code: end.code } }
      surface('tool/result', { turn, step: 1, message: resultMessage(callId, end), ...error })
      return log
    },
    /** A call without its result; returns the call id. */
    starts(name: string, args: Readonly<Record<string, unknown>> | string): string {
      callCount += 1
      const callId = `call-${callCount}`
      const text = typeof args === 'string' ? args : JSON.stringify(args)
      append('tool/call', { turn, step: 1, callId, name, arguments: text })
      return callId
    },
    /** A call made by the program of a `run_code` call. */
    dispatches(name: string, args: Readonly<Record<string, unknown>>, end: CallEnd = {}) {
      callCount += 1
      const [start, settle] = format === 0 ? ['tool/code-dispatch-start', 'tool/code-dispatch'] : ['tool/ptc-dispatch-start', 'tool/ptc-dispatch']
      const data = { parentCallId: 'call-0', subCallId: `call-0:code:${callCount}`, name, arguments: args }
      append(start!, data)
      append(settle!, { ...data, content: [], isError: end.error === true })
      return log
    },
    /** The last tool result of the surface, shortened in place by the host's pruner. */
    prunesLastResult() {
      const node = nodes.findLast(({ seq }) => events[seq]!.type === 'tool/result')!
      replace('tool/result', events[node.seq]!.data, [node])
      return log
    },
    /** The turns from `first` to `last` as one summary; what stands for later events stays. */
    compacts(first: number, last: number) {
      endTurn()
      const after = starts.get(last + 1) ?? Infinity
      append('compaction/start', { compactionId: 'c', turn: null })
      const covered = nodes.filter(({ seq, from }) => from >= starts.get(first)! && from < after && events[seq]!.type !== 'system/message')
      replace('user/message', message('user', plugin('compact'), 'summary'), covered)
      append('compaction/end', { compactionId: 'c' })
      return log
    },
    /** Our marker over everything from the turn's start on. */
    rollsBack(number: number, op = `op${String(events.length).padStart(8, '0')}`) {
      endTurn()
      append('command/run', { name: 'rollback', args: ` ${number}` })
      const startSeq = starts.get(number)!
      const covered = nodes.filter(({ from }) => from >= startSeq)
      replace('user/message', markerMessage(`turnback:1:${startSeq}:${number}:${op}`), covered)
      return log
    },
    /** Any event outside a turn. */
    notes(type: string, data: unknown = {}) {
      endTurn()
      append(type, data)
      return log
    },
    /** Any event, as it is, at the next seq. */
    raw(event: Omit<LogEvent, 'seq' | 'time'>) {
      events.push({ seq: events.length, time: events.length, ...event })
      return log
    },
    startOf: (number: number): Seq => starts.get(number)!,
    surfaceSeqs: (): readonly Seq[] => nodes.map(node => node.seq),
    /** The log with its last turn still running. */
    running: (): readonly LogEvent[] => [...events],
    done(): readonly LogEvent[] {
      endTurn()
      return [...events]
    },
  }
  return log

  function append(type: string, data: unknown): LogEvent {
    const event = { seq: events.length, type, time: 1_700_000_000_000 + events.length * 1000, data }
    events.push(event)
    return event
  }

  function surface(type: string, data: unknown): void {
    const seq = events.length
    events.push({ seq, type, time: 1_700_000_000_000 + seq * 1000, data, surfaceOp: 'append' })
    nodes = [...nodes, { seq, from: seq }]
  }

  function replace(type: string, data: unknown, covered: readonly Node[]): void {
    const [start, end] = [covered[0]!.seq, covered.at(-1)!.seq]
    const surfaceOp = format === 0 ? { op: 'replace', start, end } : { op: 'replace', startSeq: start, endSeq: end }
    const seq = events.length
    events.push({ seq, type, time: 1_700_000_000_000 + seq * 1000, data, surfaceOp, sourceEventSeqs: covered.map(node => node.seq) })
    const at = nodes.indexOf(covered[0]!)
    nodes = nodes.toSpliced(at, covered.length, { seq, from: Math.min(...covered.map(node => node.from)) })
  }

  function endTurn(): void {
    if (open) append('turn/end', { turn, reason: { kind: 'completed' } })
    open = false
  }

  function message(role: string, source: unknown, text: string) {
    return { id: `m${events.length}`, role, source, content: [{ type: 'text', text }] }
  }

  function promptMessage(text: string, images: readonly string[]) {
    const pictures = images.map(attachmentId => ({ type: 'image', attachment: { attachmentId } }))
    const words = text === '' ? [] : [{ type: 'text', text }]
    return { ...message('user', { kind: 'user' }, text), content: [...words, ...pictures] }
  }

  function markerMessage(id: string) {
    return { ...message('user', plugin('dsh-turnback'), markerTexts['all-files']), id }
  }

  function plugin(name: string) {
    return format === 0 ? { kind: 'plugin', plugin: name } : { kind: `plugin:${name}` }
  }

  function resultMessage(callId: string, { error = false }: CallEnd) {
    const id = `m${events.length}`
    const content = [{ type: 'text', text: 'done' }]
    const block = { type: 'tool-result', toolCallId: callId, isError: error, content }
    return format === 0
      ? { id, role: 'user', source: { kind: 'tool', callId }, content: [block] }
      : { id, role: 'tool', source: { kind: 'tool' }, toolCallId: callId, isError: error, content }
  }
}
