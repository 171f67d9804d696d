/** What of the host was not as expected; said once in the console, kept for the health report. */
export interface Health {
  readonly problems: readonly { readonly part: string; readonly detail: string }[]
  report(part: string, cause: unknown): void
  /** Runs `work`; a throw is reported and never reaches the host, because it would stop the whole page. */
  guard<T>(part: string, work: () => T): T | undefined
}

/** `log` is given each problem once. */
export function createHealth(log: (line: string) => void): Health {
  const problems: { part: string; detail: string }[] = []
  const report = (part: string, cause: unknown) => {
    const detail = cause instanceof Error ? cause.message : String(cause)
    if (problems.some(known => known.part === part && known.detail === detail)) return
    problems.push({ part, detail })
    log(`[turnback] ${part}: ${detail}`)
  }
  return {
    problems,
    report,
    guard(part, work) {
      try {
        return work()
      } catch (cause) {
        report(part, cause)
        return undefined
      }
    },
  }
}
