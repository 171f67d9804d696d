/** Middle value; of an even number of values the lower one of the two in the middle. */
export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!

/**
 * Runs both sides in turn, so that a machine that gets slower slows both. Medians in milliseconds of `rounds`
 * counted rounds; one round before them is not counted.
 */
export async function sideBySide(rounds: number, ours: () => Promise<unknown>, theirs: () => Promise<unknown>): Promise<{ ours: number; theirs: number }> {
  const times = { ours: [] as number[], theirs: [] as number[] }
  for (let round = -1; round < rounds; round++) {
    for (const [side, run] of [['ours', ours], ['theirs', theirs]] as const) {
      const start = performance.now()
      await run()
      if (round >= 0) times[side].push(performance.now() - start)
    }
  }
  return { ours: median(times.ours), theirs: median(times.theirs) }
}

/** Two decimals: more would be noise. */
export const rounded = (value: number): number => Math.round(value * 100) / 100
