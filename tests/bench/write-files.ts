import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Files `from` to `to` of a generated folder, with text that `words` tell apart. */
export interface Generated {
  readonly ws: string
  readonly words: string
  readonly from?: number
  readonly to: number
  readonly bytes: number
}

export const pathOf = (ws: string, at: number): string => join(ws, `d${at % 40}`, `f${at}.txt`)
export const textOf = (words: string, at: number, bytes: number): string => {
  const line = `${words} ${at} of a generated file\n`
  return line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes)
}

export function writeFiles({ ws, words, from = 0, to, bytes }: Generated): void {
  for (let at = from; at < to; at++) {
    mkdirSync(dirname(pathOf(ws, at)), { recursive: true })
    writeFileSync(pathOf(ws, at), textOf(words, at, bytes))
  }
}

// As a command of a turn: the argument is what to write.
if (import.meta.main) writeFiles(JSON.parse(process.argv[2]!) as Generated)
