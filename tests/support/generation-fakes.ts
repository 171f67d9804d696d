import type { ForeignEvent, ForeignSession } from '../../host/dsh/host-types.ts'

/** The log formats of the supported DSH generations: 0 up to 0.1.1, 2 and 3 with 0.1.5, 4 from 0.1.7 on. */
export type Format = 0 | 1 | 2 | 3 | 4

export interface FakeSession extends ForeignSession {
  readonly log: readonly ForeignEvent[]
  /** What the log writer of the generation would refuse to store; empty when all is well. */
  refusedByWriter(): readonly string[]
}

type Data = Readonly<Record<string, unknown>>
const surfaceTypes = new Set(['user/message', 'assistant/message', 'tool/result', 'system/message', 'developer/message'])

/**
 * A session as a generation has it, with the rules its `append` enforces (DSH core/session surface.ts of each
 * generation) and, apart from them, those its log writer and the later migrations enforce. Events are private
 * from format 3 on, the replace op is spelled by format, and node 0 is the system prompt from format 3 on.
 */
export function fakeSession(format: Format, id = `fake-${format}`): FakeSession {
  const log: ForeignEvent[] = []
  let nodes: number[] = []
  let generation = 0
  const refuse = (rule: string): never => { throw new Error(rule) }

  const append = (type: string, data: unknown, options: { surfaceOp?: unknown; sourceEventSeqs?: readonly number[] } = {}) => {
    const seq = log.length
    const { surfaceOp, sourceEventSeqs } = options
    if (surfaceTypes.has(type) !== (surfaceOp !== undefined)) refuse(`${type} is ${surfaceOp === undefined ? '' : 'not '}surface-eligible`)
    if (JSON.stringify(JSON.parse(JSON.stringify(data))) !== JSON.stringify(data)) refuse('carries non-JSON-serializable data')
    if (typeof surfaceOp === 'object' && surfaceOp !== null) replace(type, surfaceOp as Data, sourceEventSeqs ?? [], seq)
    else if (surfaceOp === 'append') nodes = [...nodes, seq]
    log.push(Object.freeze({
      seq, type, time: seq, data,
      ...(surfaceOp === undefined ? {} : { surfaceOp }), ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs }),
    }))
    return { seq }
  }

  const replace = (type: string, op: Data, sources: readonly number[], seq: number): void => {
    const [first, last] = format >= 3 ? ['startSeq', 'endSeq'] : ['start', 'end']
    if (Object.keys(op).sort().join() !== ['op', first!, last!].sort().join() || op.op !== 'replace') refuse('carries an invalid replace surfaceOp')
    const from = nodes.indexOf(op[first!] as number)
    const to = nodes.indexOf(op[last!] as number)
    if (from < 0) refuse(`start seq ${String(op[first!])} not found in surface`)
    if (to < from) refuse(`start seq ${String(op[first!])} is after end seq ${String(op[last!])}`)
    if (new Set(sources).size !== sources.length) refuse('must not contain duplicates')
    if (sources.some(source => source >= seq)) refuse('must reference earlier events')
    const missing = nodes.slice(from, to + 1).filter(node => !sources.includes(node))
    if (missing.length > 0) refuse(`must include every shadowed surface node; missing ${missing.join()}`)
    if (format >= 3 && from === 0 && type !== 'system/message') refuse('node 0 holds the system prompt and may be rewritten only by a system/message')
    nodes = [...nodes.slice(0, from), seq, ...nodes.slice(to + 1)]
    generation += 1
  }

  return {
    id,
    header: { version: format, id, cwd: '/w' },
    ...(format < 2 ? { events: log } : { snapshotEvents: () => [...log] }),
    get surface() {
      return { nodes, ...(format < 2 ? { replaceGeneration: generation } : { replaceGeneration: generation, contentGeneration: generation }) }
    },
    append,
    log,
    refusedByWriter: () => log.flatMap(event => writerRules(format, event)),
  }
}

/**
 * What is accepted in memory and makes the session unwritable or unreadable later: the v4 writer's "producer-owned
 * source kind", the v0→v1 migration's "unexpected member", the v2→v3 migration's "unclassified message source".
 */
function writerRules(format: Format, event: ForeignEvent): readonly string[] {
  if (!known.has(event.type)) return [`unknown event type ${event.type}`]
  if (!event.type.endsWith('/message')) return []
  const data = event.data as Data
  const source = ((data.message as Data | undefined) ?? data).source as Data
  const members = Object.keys(source)
  if (format >= 4) return source.kind === 'plugin' || members.includes('plugin') ? ['requires a producer-owned source kind'] : []
  if (source.kind === 'plugin') {
    const more = members.filter(member => !['kind', 'plugin', 'form', 'sections', 'summary'].includes(member))
    return more.length > 0 ? [`unexpected member ${more.join()}`] : []
  }
  return ['user', 'model', 'tool', 'system-prompt'].includes(String(source.kind)) ? [] : ['cannot safely transform unclassified message source']
}

const known = new Set([...surfaceTypes, 'turn/start', 'turn/end', 'step/start', 'step/end', 'compaction/prune', 'compaction/start', 'compaction/end'])

/** Turns of one prompt and one answer, as the generation logs them. */
export function withTurns(session: FakeSession, count: number): FakeSession {
  const format = session.header.version
  for (let turn = 1; turn <= count; turn += 1) {
    session.append('turn/start', { turn })
    session.append('step/start', { turn, step: 1 })
    if (turn === 1 && format >= 3) session.append('system/message', message('system', { kind: 'system-prompt' }, 'You are scripted.'), { surfaceOp: 'append' })
    session.append('user/message', message('user', { kind: 'user' }, `prompt ${turn}`), { surfaceOp: 'append' })
    session.append('assistant/message', { turn, step: 1, message: message('assistant', { kind: 'model' }, `answer ${turn}`) }, { surfaceOp: 'append' })
    session.append('step/end', { turn, step: 1 })
    session.append('turn/end', { turn, reason: { kind: 'completed' } })
  }
  return session
}

const message = (role: string, source: Data, text: string) => ({ id: `m-${text}`, role, source, content: [{ type: 'text', text }] })
