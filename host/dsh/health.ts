/**
 * What is not as we expect it of this DSH: reported once per contract in the console and shown by
 * `hello`, so that a missing piece is a sentence on the screen and not an exception in the host.
 */
export interface Problem {
  readonly contract: string
  readonly detail: string
}

export interface Health {
  report(contract: string, cause: unknown): void
  /** The problem is over (a store that can be written again). */
  clear(contract: string): void
  problems(): readonly Problem[]
  /** A listener that cannot throw or reject into the host: a fault of ours is reported and answers `undefined`. */
  contain<Args extends unknown[], T>(contract: string, listener: (...args: Args) => T): (...args: Args) => T | undefined
}

/** A problem that comes and goes (a store that small records still fit in) is not told each time. */
const SAME_AGAIN_MS = 60 * 60_000

/** `log` is given each contract's first problem, and its next one after a `clear`; the same words again after an hour. */
export function makeHealth(log: (line: string) => void = line => { console.error(line) }): Health {
  const problems = new Map<string, Problem>()
  const told = new Map<string, { readonly line: string; readonly atMs: number }>()
  const report = (contract: string, cause: unknown): void => {
    if (problems.has(contract)) return
    const detail = cause instanceof Error ? cause.message : String(cause)
    problems.set(contract, { contract, detail })
    const line = `[turnback] ${contract}: ${cause instanceof Error ? cause.stack ?? detail : detail}`
    const last = told.get(contract)
    if (last?.line === line && Date.now() - last.atMs < SAME_AGAIN_MS) return
    told.set(contract, { line, atMs: Date.now() })
    log(line)
  }
  return {
    report,
    clear: (contract) => { problems.delete(contract) },
    problems: () => [...problems.values()],
    contain: (contract, listener) => (...args) => {
      try {
        const result = listener(...args)
        if (result instanceof Promise) return result.catch((error: unknown) => { report(contract, error) }) as typeof result
        return result
      } catch (error) {
        // The host must go on whatever we got wrong; the report is how anybody learns of it.
        report(contract, error)
        return undefined
      }
    },
  }
}
