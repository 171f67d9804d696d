import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * Runs every `*.bench.ts` beside this file and prints what they measured: a line each, or with `--json` one object.
 * A word as argument chooses the benchmarks whose name contains it.
 */

/** One number, judged against a limit and shown beside a named baseline where there is one. */
export interface Measurement {
  readonly value: number
  readonly unit: string
  /** The largest value that is good enough. */
  readonly limit?: number
  /** What the value is compared with, and its own value in the same unit. */
  readonly baseline?: { readonly name: string, readonly value: number }
  /** The input and its size, in words. */
  readonly input: string
}

/** What a bench file exports as `benches`. */
export interface Bench {
  /** Unique; the key of the JSON output. */
  readonly name: string
  run(): Promise<Measurement>
}

const { values, positionals } = parseArgs({ options: { json: { type: 'boolean', default: false } }, allowPositionals: true })
const folder = fileURLToPath(new URL('.', import.meta.url))
const results: Record<string, Measurement> = {}

for (const file of readdirSync(folder).filter(name => name.endsWith('.bench.ts')).toSorted()) {
  const { benches } = await import(new URL(file, import.meta.url).href) as { benches: readonly Bench[] }
  for (const bench of benches.filter(({ name }) => positionals.every(word => name.includes(word)))) {
    const measured = await bench.run()
    results[bench.name] = measured
    if (!values.json) console.log(line(bench.name, measured))
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2))

function line(name: string, { value, unit, limit, baseline, input }: Measurement): string {
  const beside = baseline && `${baseline.name}: ${baseline.value} ${unit}`
  return [`${name}: ${value} ${unit}`, limit !== undefined && `limit ${limit}`, beside, input].filter(Boolean).join(' · ')
}
