/** How often a law is tried: 300 times, and with `TURNBACK_LONG=1` (npm run test:long) 50,000 times. */
const isLong = process.env.TURNBACK_LONG === '1'
export const lawRuns = { numRuns: isLong ? 50_000 : 300 }
/** For `test`: a law may take this long. */
export const lawTimeoutMs = isLong ? 1_800_000 : 20_000
