import type { ForeignEvent } from '../../host/dsh/host-types.ts'

/**
 * What the log migrations and writers of later DSH hosts refuse in a log of today's (format 0), as far as their rules
 * are known: a member or a kind of a message's source that nobody classified, a replacement
 * that is not spelled with three keys or does not name all that it replaces. Empty when all is well.
 */
export function refusedLater(events: readonly ForeignEvent[]): readonly string[] {
  let nodes: number[] = []
  return events.flatMap((event) => {
    const { seq, type, surfaceOp, sourceEventSeqs = [] } = event
    const problems = [...sourceProblems(event)]
    if (surfaceOp === 'append') nodes = [...nodes, seq]
    if (typeof surfaceOp === 'object' && surfaceOp !== null) {
      const { op, start, end } = surfaceOp as { op?: unknown; start?: number; end?: number }
      const [from, to] = [nodes.indexOf(start ?? -1), nodes.indexOf(end ?? -1)]
      if (op !== 'replace' || Object.keys(surfaceOp).length !== 3) problems.push('a surfaceOp of another shape')
      if (from < 0 || to < from) problems.push(`a range that is not on the surface: ${String(start)} to ${String(end)}`)
      if (nodes.slice(from, to + 1).some(node => !sourceEventSeqs.includes(node))) problems.push('a replaced node that is no source')
      if (new Set(sourceEventSeqs).size !== sourceEventSeqs.length || sourceEventSeqs.some(source => source >= seq)) problems.push('sources that are not unique and earlier')
      if (type === 'assistant/message') problems.push('an assistant message in place of others')
      nodes = [...nodes.slice(0, from), seq, ...nodes.slice(to + 1)]
    }
    return problems.map(problem => `event ${seq}, ${type}: ${problem}`)
  })
}

/** Members of the source of a plugin's message that the steps to later formats take. */
const members = new Set(['kind', 'plugin', 'form', 'sections', 'summary'])
const kinds = new Set(['user', 'model', 'tool', 'plugin', 'system-prompt'])

function sourceProblems({ type, data }: ForeignEvent): readonly string[] {
  if (!type.endsWith('/message')) return []
  const held = data as { source?: object; message?: { source?: object } }
  const source = (held.source ?? held.message?.source ?? {}) as { kind?: unknown; plugin?: unknown }
  if (!kinds.has(String(source.kind))) return [`a source of kind ${String(source.kind)}`]
  // The host's own have forms of their own, which its migrations know.
  if (source.kind !== 'plugin' || source.plugin === 'compact' || String(source.plugin).startsWith('@deepseek-ai/')) return []
  return [
    ...Object.keys(source).filter(member => !members.has(member)).map(member => `the source has a member ${member}`),
    ...(typeof source.plugin === 'string' && source.plugin !== '' ? [] : ['the source names no plugin']),
  ]
}
