import { fileURLToPath } from 'node:url'
import type * as NodeFs from 'node:fs'
import type * as NodePromises from 'node:fs/promises'

/**
 * One call of ours on the disk: `fn` is a function of `node:fs/promises`, or `file.<fn>` on an open file, with the
 * path it was opened by. A call of `node:fs` that waits counts under the same name.
 */
export type DiskCall = { readonly fn: string; readonly path: string }

/** What a test does with the calls. Made with `vi.hoisted`, because mocks are set up before anything else. */
export interface DiskHooks {
  calls: DiskCall[]
  /** Bytes that reads of open files gave, by path. */
  bytesRead: Map<string, number>
  /** Runs before each call; what it throws is the result of the call. */
  before?: ((call: DiskCall) => void) | undefined
}

type Fn = (...args: unknown[]) => unknown

const see = (hooks: DiskHooks, fn: string, path: string): void => {
  hooks.calls.push({ fn, path })
  hooks.before?.({ fn, path })
}
const count = (hooks: DiskHooks, path: string, bytes: number): void => { hooks.bytesRead.set(path, (hooks.bytesRead.get(path) ?? 0) + bytes) }

/**
 * `node:fs/promises` with somebody looking on, for `vi.mock('node:fs/promises', …)`. Only our own modules get it:
 * the host's packages are loaded by Node itself.
 */
export function watchedDisk(real: typeof NodePromises, hooks: DiskHooks): typeof NodePromises {
  const watchedFile = (file: NodePromises.FileHandle, path: string): NodePromises.FileHandle => new Proxy(file, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        // Closing always works: a test must not run out of handles.
        if (name !== 'close') see(hooks, `file.${String(name)}`, path)
        const result: unknown = await member.apply(target, args)
        if (name === 'read') count(hooks, path, (result as { bytesRead: number }).bytesRead)
        return result
      }
    },
  })
  const watched = Object.fromEntries(Object.entries(real).map(([fn, member]) => [fn, typeof member !== 'function' ? member : async (...args: unknown[]) => {
    const path = String(args[0])
    see(hooks, fn, path)
    const result: unknown = await (member as Fn)(...args)
    return fn === 'open' ? watchedFile(result as NodePromises.FileHandle, path) : result
  }]))
  return { ...watched, default: watched } as unknown as typeof NodePromises
}

const hostFolder = fileURLToPath(new URL('../../host/', import.meta.url))
const FD_CALLS = ['readSync', 'writeSync', 'fstatSync', 'fsyncSync', 'fdatasyncSync', 'ftruncateSync']

/** `node:fs` likewise, for `vi.mock('node:fs', …)`: the calls that wait, where code of `host/` makes them; a test's own are none of ours. */
export function watchedSyncDisk(real: typeof NodeFs, hooks: DiskHooks): typeof NodeFs {
  const opened = new Map<number, string>()
  /** Asked by the stand-in for a call: our caller's caller. */
  const isOurs = (): boolean => {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 3
    const { stack = '' } = new Error('caller')
    Error.stackTraceLimit = stackTraceLimit
    return (stack.split('\n')[3] ?? '').includes(hostFolder)
  }
  const watched = Object.fromEntries(Object.entries(real).map(([name, member]) => {
    if (typeof member !== 'function' || !name.endsWith('Sync') || name === 'closeSync') return [name, member]
    const isOfFile = FD_CALLS.includes(name)
    const wrapped: Fn = (...args) => {
      if (!isOurs()) return (member as Fn)(...args)
      const path = typeof args[0] === 'number' ? opened.get(args[0]) ?? '' : String(args[0])
      see(hooks, isOfFile ? `file.${name.replace(/^f(?=stat|sync|data|trun)|Sync$/g, '')}` : name.slice(0, -4), path)
      const result = (member as Fn)(...args)
      if (name === 'openSync') opened.set(result as number, path)
      if (name === 'readSync') count(hooks, path, result as number)
      if (name === 'readFileSync') count(hooks, path, (result as string | Buffer).length)
      return result
    }
    // `realpathSync.native` and the like.
    return [name, Object.assign(wrapped, member)]
  }))
  return { ...watched, default: watched } as unknown as typeof NodeFs
}

/** An error as the system gives it. */
export const errno = (code: string, what = ''): Error => Object.assign(new Error(`${code}: injected, ${what}`), { code })
