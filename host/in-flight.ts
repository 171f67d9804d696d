/** How much may be under way: `max` pieces of work, together of `maxWeight` at most; a heavier one goes alone. */
export interface Bounds<T> {
  readonly max: number
  readonly maxWeight: number
  /** In the same unit as `maxWeight`, for example bytes in memory. */
  weightOf(item: T): number
}

/**
 * Runs `work` for each item, begun in order, several at a time. The results are in the order of the items. After an
 * error no other is begun, and it is thrown when those under way have ended: then nothing goes on behind the caller's back.
 */
export async function inFlight<T, R>(items: readonly T[], { max, maxWeight, weightOf }: Bounds<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const underWay = new Set<Promise<void>>()
  const errors: unknown[] = []
  let weight = 0
  const isFull = (more: number): boolean => underWay.size > 0 && (underWay.size >= max || weight + more > maxWeight)
  for (const [at, item] of items.entries()) {
    const its = weightOf(item)
    while (isFull(its)) await Promise.race(underWay)
    if (errors.length > 0) break
    weight += its
    const run = async (): Promise<void> => {
      try {
        results[at] = await work(item)
      } catch (error) {
        errors.push(error)
      }
      weight -= its
      underWay.delete(one)
    }
    const one: Promise<void> = Promise.resolve().then(run)
    underWay.add(one)
  }
  await Promise.all(underWay)
  if (errors.length > 0) throw errors[0]
  return results
}
