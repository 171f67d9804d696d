import type { Seq } from '../ids.ts'

/** A row of the chat as far as hiding is concerned. `anchorSeq` may be fractional; `turn` is missing at the window's edge. */
export interface ChatRow {
  readonly key: string
  readonly kind: string
  readonly anchorSeq: number
  readonly turn?: number
  /** A run of our own command; `sourceEventSeq` when it answered with an event. */
  readonly command?: { readonly answered: boolean; readonly sourceEventSeq?: Seq }
}

/** A rollback of the conversation: the marker at `seq` withdrew everything from `startSeq`, the start of `turn`. */
export interface MarkerSpan {
  readonly seq: Seq
  readonly startSeq: Seq
  readonly turn: number
}

export interface Hidden {
  readonly keys: readonly string[]
  readonly turns: readonly number[]
  /** Withdrawn as well, but somebody wants to read them: keys and turns as above. */
  readonly dimmed?: { readonly keys: readonly string[]; readonly turns: readonly number[] }
}

/** Kinds of rows that are ours; they do not count as conversation. */
export const MARKER_ROW = 'turnback-marker'
export const TURN_ROW = 'turnback-turn'
/** Rows newer hosts draw for the system prompt: they stay, and are no conversation either. */
const BACKGROUND_ROWS: ReadonlySet<string> = new Set([MARKER_ROW, TURN_ROW, 'system-prompt'])

/**
 * The rows that rollbacks withdrew. Two rules, because each alone misses rows: by position (a user
 * row at the edge of the loaded window has no turn, a command row never has one) and by turn (a row
 * that arrives after the marker but belongs to a withdrawn turn). A later marker whose span holds an
 * earlier marker hides its row as well. Our own command's row goes when a marker says the same.
 *
 * `shown`: markers whose rows somebody wants to read. What another marker withdrew too stays hidden.
 */
export function hiddenRows(rows: readonly ChatRow[], markers: readonly MarkerSpan[], shown: ReadonlySet<Seq> = new Set()): Hidden {
  const all = withdrawnRows(rows, markers, markers)
  if (!markers.some(({ seq }) => shown.has(seq))) return all
  const hidden = withdrawnRows(rows, markers.filter(({ seq }) => !shown.has(seq)), markers)
  const [keys, turns] = [new Set(hidden.keys), new Set(hidden.turns)]
  return { ...hidden, dimmed: { keys: all.keys.filter(key => !keys.has(key)), turns: all.turns.filter(turn => !turns.has(turn)) } }
}

function withdrawnRows(rows: readonly ChatRow[], markers: readonly MarkerSpan[], said: readonly MarkerSpan[]): Hidden {
  const spans = markers.map(marker => withLastTurn(marker, rows))
  const markerSeqs = new Set(said.map(marker => marker.seq))
  const keys: string[] = []
  const turns = new Set<number>()
  for (const span of spans) for (let turn = span.turn; turn <= span.lastTurn; turn++) turns.add(turn)
  for (const row of rows) {
    const withdrawn = spans.some(span => row.anchorSeq >= span.startSeq && row.anchorSeq < span.seq)
    const ofWithdrawnTurn = row.turn !== undefined && turns.has(row.turn)
    const saidByMarker = row.command?.sourceEventSeq !== undefined && markerSeqs.has(row.command.sourceEventSeq)
    if (withdrawn || ofWithdrawnTurn || saidByMarker) keys.push(row.key)
  }
  return { keys, turns: [...turns].sort((a, b) => a - b) }
}

/** True when no row of a conversation is left to see, so that the marker may draw a fresh start. */
export function nothingLeft(rows: readonly ChatRow[], hidden: Hidden): boolean {
  const gone = new Set(hidden.keys)
  return rows.every(row => gone.has(row.key) || BACKGROUND_ROWS.has(row.kind))
}

/** Turn numbers go on after a rollback, so the last withdrawn turn is the last one seen before the marker. */
function withLastTurn(marker: MarkerSpan, rows: readonly ChatRow[]): MarkerSpan & { readonly lastTurn: number } {
  let lastTurn = marker.turn
  for (const row of rows) {
    const before = row.anchorSeq >= marker.startSeq && row.anchorSeq < marker.seq
    if (before && row.turn !== undefined && row.turn > lastTurn) lastTurn = row.turn
  }
  return { ...marker, lastTurn }
}
