import type { Gap } from './gap.ts'

/** A file that stands in a list with its own reason. */
export interface NamedFile {
  /** As the gaps name it. */
  readonly name: string
  readonly reason: string
}

/**
 * What is left to say of `gaps` beside a list of files that names some of them with the same reason. Of a gap
 * that was too long to name all its files, the listed ones are taken to be among them.
 */
export function gapsBeside(gaps: readonly Gap[], listed: readonly NamedFile[]): readonly Gap[] {
  const byReason = new Map<string, Set<string>>()
  for (const { name, reason } of listed) byReason.set(reason, (byReason.get(reason) ?? new Set()).add(name))
  return gaps.flatMap((gap) => {
    const said = byReason.get(gap.reason)
    if (said === undefined) return [gap]
    const names = gap.names.filter(name => !said.has(name))
    const isWhole = gap.names.length === gap.count
    const count = isWhole ? names.length : Math.max(gap.count - said.size, names.length)
    return count === 0 ? [] : [{ ...gap, count, names }]
  })
}
