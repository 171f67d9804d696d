import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * Runs every `*.bench.ts` beside this file and prints what they measured: a line each, or with `--json` one object.
 * A word as argument chooses the benchmarks whose name contains it.
 */

/** What a bench file exports as `benches`. */
export interface Bench {
  /** Sentence with the input's size, unique. */
  readonly name: string
  /** Numbers by name; the unit is part of the name (`medianMs`, `storedBytes`). */
  run(): Promise<Readonly<Record<string, number>>>
}

const { values, positionals } = parseArgs({ options: { json: { type: 'boolean', default: false } }, allowPositionals: true })
const folder = fileURLToPath(new URL('.', import.meta.url))
const results: Record<string, Readonly<Record<string, number>>> = {}

for (const file of readdirSync(folder).filter(name => name.endsWith('.bench.ts')).toSorted()) {
  const { benches } = await import(new URL(file, import.meta.url).href) as { benches: readonly Bench[] }
  for (const bench of benches.filter(({ name }) => positionals.every(word => name.includes(word)))) {
    const numbers = await bench.run()
    results[bench.name] = numbers
    if (values.json) continue
    console.log(`${bench.name}: ${Object.entries(numbers).map(([name, value]) => `${name} ${value}`).join(', ')}`)
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2))
