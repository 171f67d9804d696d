import { setImmediate } from 'node:timers/promises'

/** Looks that wait for nothing give way to others after so many milliseconds. */
const BREATH_MS = 10

/** To be awaited between pieces of such work; gives way when it is time. */
export function makeBreath(): () => Promise<void> {
  let breathedMs = performance.now()
  return async () => {
    if (performance.now() - breathedMs < BREATH_MS) return
    await setImmediate()
    breathedMs = performance.now()
  }
}
