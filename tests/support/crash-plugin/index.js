import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Kills the host in the middle of a rollback, as a power cut would. The file `crash-at.json` in the DSH home names
 * the place: `{"phase": "file", "count": 3}` is the third time that `turnback/phase` reports `file`. The file is
 * removed before the kill, so that the next start goes on living. Every phase is printed, so that a test can see them.
 */
export const name = 'turnback-crash'

export function apply(ctx) {
  const file = join(process.env.DSH_HOME, 'crash-at.json')
  let seen = 0
  ctx.on('turnback/phase', ({ phase }) => {
    console.log(`[turnback/phase] ${phase}`)
    const at = wanted(file)
    if (at === undefined || at.phase !== phase) return
    seen += 1
    if (seen < at.count) return
    rmSync(file)
    process.kill(process.pid, 'SIGKILL')
  })
}

function wanted(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}
