import { hostname } from 'node:os'
import * as v from 'valibot'
import { errorCode, type StoreFs } from './store-fs.ts'

/** Names one run of a process, also when its pid is given to another one later. */
export const ProcessMarkSchema = v.object({
  pid: v.number(),
  /** When the process started, in a form only good for comparing; empty where the system does not tell. */
  started: v.string(),
  host: v.string(),
})
export type ProcessMark = v.InferOutput<typeof ProcessMarkSchema>

export const thisHost = hostname

export const processMark = async (fs: StoreFs): Promise<ProcessMark> =>
  ({ pid: process.pid, started: await startOf(fs, process.pid), host: thisHost() })

/** Only of this machine: nobody can be asked about another one. */
export const isRunning = async (fs: StoreFs, { pid, started }: ProcessMark): Promise<boolean> =>
  isAlive(pid) && (await startOf(fs, pid)) === started

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM' // somebody else's process
  }
}

/**
 * Tells two processes with the same pid apart. Linux: boot id and field 22 of /proc/<pid>/stat, start time
 * in ticks since boot (proc_pid_stat(5)); fields are counted behind the name, which may hold anything.
 */
async function startOf(fs: StoreFs, pid: number): Promise<string> {
  if (process.platform !== 'linux') return ''
  try {
    const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8')
    const boot = await fs.readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    return `${boot.trim()} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return '' // no /proc, or the process has just ended: no start equals that of a lock's holder
  }
}
