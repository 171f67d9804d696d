import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { startChat } from './a-chat.ts'

/** Opens session `s1` of a home, goes back to before turn 1 and prints the peak of memory over what the idle host takes: `{"peakMb": …}`. */
const { act, home, ws, settings } = JSON.parse(process.argv[2]!) as { act: 'preview' | 'rollback'; home: string; ws: string; settings: object }

const statusMb = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024

const chat = await startChat(home, ws, settings)
await sleep(1_000)
const idleMb = statusMb('VmRSS')
// The peak counts from here on.
writeFileSync('/proc/self/clear_refs', '5')
if (act === 'preview') {
  const { rows } = await chat.ask('preview', { turn: 1 })
  if (rows.length !== 2_000) throw new Error(`bench: ${rows.length} rows`)
} else {
  const { kind, text } = await chat.command('/rollback 1')
  if (kind !== 'success') throw new Error(`bench: ${text}`)
}
console.log(JSON.stringify({ peakMb: Math.round(statusMb('VmHWM') - idleMb) }))
await chat.stop()
