import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Seq } from '../../../../src/ids.ts'
import { foldSurface } from '../../../../src/surface/origin-span.ts'
import { cutBefore } from '../../../../src/surface/range.ts'
import type { LogEvent } from '../../../../src/turn/log-event.ts'
import { judgeTarget, readConversation, turnState } from '../../../../src/turn/rollback-target.ts'
import { lawRuns, lawTimeoutMs } from '../../../support/runs.ts'

/** One step of a random log. Numbers choose among what is there, whatever that is. */
type Step =
  | { readonly kind: 'turn'; readonly messages: number }
  | { readonly kind: 'note' }
  | { readonly kind: 'compact'; readonly from: number; readonly length: number }
  | { readonly kind: 'prune'; readonly at: number }
  | { readonly kind: 'rollback'; readonly turn: number }
  | { readonly kind: 'refused'; readonly op: unknown }

const pick = fc.nat(1000)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('turn' as const), messages: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('note' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('compact' as const), from: pick, length: pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('prune' as const), at: pick }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('rollback' as const), turn: pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refused' as const), op: fc.oneof(
    fc.record({ op: fc.constant('replace'), start: fc.constant(-1), end: pick }),
    fc.record({ op: fc.constant('replace'), startSeq: pick.map(seq => seq + 100_000), endSeq: fc.constant(0) }),
    fc.constantFrom('prepend', null, 7, {}, { op: 'replace' }),
  ) }) },
)
const recipe = fc.record({ hasSystem: fc.boolean(), steps: fc.array(step, { maxLength: 25 }) })
type Recipe = typeof recipe extends fc.Arbitrary<infer T> ? T : never

/** The other implementation: a node is the set of first-hand events it stands for. */
interface Naive {
  readonly seq: Seq
  readonly stands: readonly Seq[]
  readonly by: 'message' | 'system' | 'marker' | 'replacement'
}

/** Writes a log and, beside it, the surface as the other implementation sees it. */
class LogWriter {
  readonly events: LogEvent[] = []
  readonly turnStarts: Seq[] = []
  nodes: Naive[] = []
  #turn = 0
  readonly #spelling: readonly [string, string]

  constructor({ hasSystem, steps }: Recipe) {
    this.#spelling = hasSystem ? ['startSeq', 'endSeq'] : ['start', 'end']
    if (hasSystem) this.#append('system/message')
    for (const next of steps) this.#take(next)
  }

  /** Appends our marker over what a truncation to before `startSeq` takes, in the simplest way: everything that stands for none of the past. */
  rollback(startSeq: Seq, turn: number): boolean {
    const at = this.nodes.findIndex(node => node.by !== 'system' && node.stands.some(seq => seq >= startSeq))
    if (at < 0 || this.nodes.slice(at).some(node => node.stands.some(seq => seq < startSeq))) return false
    const id = `turnback:1:${startSeq}:${turn}:op${String(this.events.length).padStart(8, '0')}`
    this.#replace(at, this.nodes.length - at, 'marker', { id, source: { kind: 'plugin:dsh-turnback' } })
    return true
  }

  #take(next: Step): void {
    const free = this.nodes[0]?.by === 'system' ? 1 : 0
    const count = this.nodes.length - free
    switch (next.kind) {
      case 'turn':
        this.#turn += 1
        this.turnStarts.push(this.events.length)
        this.#plain('turn/start', { turn: this.#turn })
        for (let n = 0; n < next.messages; n++) this.#append(n === 0 ? 'user/message' : n === 1 ? 'assistant/message' : 'tool/result')
        this.#plain('turn/end', { turn: this.#turn })
        return
      case 'note':
        this.#append('user/message')
        return
      case 'compact':
        if (count > 0) {
          const from = next.from % count
          this.#replace(free + from, 1 + next.length % (count - from), 'replacement', {})
        }
        return
      case 'prune':
        if (count > 0) this.#replace(free + next.at % count, 1, 'replacement', {})
        return
      case 'rollback': {
        const index = next.turn % Math.max(1, this.turnStarts.length)
        if (this.turnStarts.length > 0) this.rollback(this.turnStarts[index]!, index + 1)
        return
      }
      case 'refused':
        this.events.push({ seq: this.events.length, type: 'user/message', time: 0, data: {}, surfaceOp: next.op })
    }
  }

  #plain(type: string, data: unknown): void {
    this.events.push({ seq: this.events.length, type, time: 0, data })
  }

  #append(type: string): void {
    const seq = this.events.length
    this.events.push({ seq, type, time: 0, data: { source: { kind: 'user' }, content: [] }, surfaceOp: 'append' })
    this.nodes.push({ seq, stands: [seq], by: type === 'system/message' ? 'system' : 'message' })
  }

  #replace(at: number, count: number, by: 'marker' | 'replacement', data: unknown): void {
    const seq = this.events.length
    const covered = this.nodes.slice(at, at + count)
    const [start, end] = this.#spelling
    this.events.push({ seq, type: 'user/message', time: 0, data, surfaceOp: { op: 'replace', [start]: covered[0]!.seq, [end]: covered.at(-1)!.seq } })
    this.nodes = [...this.nodes.slice(0, at), { seq, by, stands: covered.flatMap(node => node.stands) }, ...this.nodes.slice(at + count)]
  }
}

const law = (name: string, check: (log: LogWriter) => void): void =>
  test(name, () => fc.assert(fc.property(recipe, given => check(new LogWriter(given))), lawRuns), lawTimeoutMs)

const spans = (nodes: readonly Naive[]) => nodes.map(({ seq, stands, by }) => ({ seq, min: Math.min(...stands), max: Math.max(...stands), by }))

law('the fold agrees with one that keeps every first-hand event', log => {
  expect(foldSurface(log.events).nodes).toEqual(spans(log.nodes))
})

law('a cut is the end of the surface, begins at the boundary and never crosses it', log => {
  const surface = foldSurface(log.events)
  for (const startSeq of log.turnStarts) {
    const cut = cutBefore(surface, startSeq)
    if (cut.kind !== 'cut') continue

    const rest = log.nodes.slice(0, log.nodes.length - cut.nodes.length)
    expect(cut.nodes).toEqual(log.nodes.slice(rest.length).map(node => node.seq))
    expect(log.nodes.slice(rest.length).flatMap(node => node.stands).every(seq => seq >= startSeq)).toBe(true)
    expect(rest.filter(node => node.by !== 'system').flatMap(node => node.stands).every(seq => seq < startSeq)).toBe(true)
    expect(log.nodes.slice(rest.length)[0]!.by).not.toBe('system')
  }
})

law('a marker leaves what the log would show had it ended before the turn, and itself', log => {
  const boundary = log.turnStarts.at(log.events.length % Math.max(1, log.turnStarts.length))
  if (boundary === undefined) return
  const before = foldSurface(log.events)
  // Had the log ended there: no message after it, and no replacement of such messages alone. One of the past, written later, stays.
  const later = new Set(before.replacements.filter(replacement => replacement.min >= boundary).map(replacement => replacement.seq))
  const truncated = log.events.filter(event => !(event.surfaceOp === 'append' && event.seq >= boundary) && !later.has(event.seq))
  const cut = cutBefore(before, boundary)
  const events = [...log.events]
  if (!log.rollback(boundary, 1)) {
    expect(cut.kind).not.toBe('cut')
    return
  }
  const marker = log.events.at(-1)!
  const after = foldSurface([...events, marker])

  expect(after.nodes.slice(0, -1)).toEqual(foldSurface(truncated).nodes)
  expect(after.nodes.at(-1)).toMatchObject({ seq: marker.seq, by: 'marker' })
  expect(after.replacements.at(-1)!.shadowed).toEqual(cut.kind === 'cut' ? cut.nodes : [])
})

law('a turn that can be gone back to is available or has newer turns after its rollback', log => {
  const conversation = readConversation(log.events)
  for (const turn of conversation.turns) {
    const target = judgeTarget(conversation, turn.number)
    const state = turnState(conversation, turn)
    if (target.ok) {
      expect(target.value.withdrawn.length).toBeGreaterThan(0)
      expect(target.value.withdrawn.every(candidate => candidate.startSeq >= turn.startSeq)).toBe(true)
      expect(target.value.withdrawn.includes(turn)).toBe(state === 'available')
    } else {
      expect([target.failure.code, state]).toBeOneOf([
        ['already-rolled-back', 'rolled-back'], ['already-rolled-back', 'compacted'], ['compacted', 'compacted'], ['nothing-to-roll-back', 'available'],
      ])
    }
  }
})

law('a rollback done cannot be done again, and its turns are rolled back', log => {
  const start = log.turnStarts.at(log.events.length % Math.max(1, log.turnStarts.length))
  const before = readConversation(log.events.slice())
  const turn = before.turns.find(candidate => candidate.startSeq === start)
  if (turn === undefined) return
  const target = judgeTarget(before, turn.number)
  if (!target.ok) return
  log.rollback(turn.startSeq, turn.number)
  const after = readConversation(log.events)

  expect(judgeTarget(after, turn.number)).toMatchObject({ ok: false, failure: { code: 'already-rolled-back' } })
  for (const withdrawn of target.value.withdrawn) expect(turnState(after, after.turns.find(found => found.startSeq === withdrawn.startSeq)!)).toBe('rolled-back')
  for (const earlier of before.turns.filter(candidate => candidate.startSeq < turn.startSeq)) {
    expect(turnState(after, after.turns.find(found => found.startSeq === earlier.startSeq)!)).toBeOneOf([turnState(before, earlier), 'rolled-back'])
  }
})

law('no beginning of a log makes the fold or the judgement throw', log => {
  for (let length = 0; length <= log.events.length; length += 3) {
    const conversation = readConversation(log.events.slice(0, length))
    for (const turn of conversation.turns) judgeTarget(conversation, turn.number)
    expect(conversation.surface.nodes.length).toBeLessThanOrEqual(length)
  }
})
