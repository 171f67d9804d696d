import type * as NodePromises from 'node:fs/promises'

/** One call of ours on the disk: `fn` of `node:fs/promises`, or `file.<fn>` on an open file with the path it was opened by. */
export type DiskCall = { readonly fn: string; readonly path: string }

/** What a test does with the calls. Made with `vi.hoisted(() => ({ ... }))`, because mocks are set up before anything else. */
export interface DiskHooks {
  calls: DiskCall[]
  /** Bytes that reads of open files gave, by path. */
  bytesRead: Map<string, number>
  /** Runs before each call; what it throws is the result of the call. */
  before?: ((call: DiskCall) => void) | undefined
}

/**
 * `node:fs/promises` with somebody looking on, for `vi.mock('node:fs/promises', …)`. Only our own modules get it:
 * the host's packages are loaded by Node itself.
 */
export function watchedDisk(real: typeof NodePromises, hooks: DiskHooks): typeof NodePromises {
  const see = (fn: string, path: string): void => {
    hooks.calls.push({ fn, path })
    hooks.before?.({ fn, path })
  }
  const watchedFile = (file: NodePromises.FileHandle, path: string): NodePromises.FileHandle => new Proxy(file, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        // Closing always works: a test must not run out of handles.
        if (name !== 'close') see(`file.${String(name)}`, path)
        const result: unknown = await member.apply(target, args)
        if (name === 'read') hooks.bytesRead.set(path, (hooks.bytesRead.get(path) ?? 0) + (result as { bytesRead: number }).bytesRead)
        return result
      }
    },
  })
  const watched = Object.fromEntries(Object.entries(real).map(([fn, member]) => [fn, typeof member !== 'function' ? member : async (...args: unknown[]) => {
    const path = String(args[0])
    see(fn, path)
    const result: unknown = await (member as (...all: unknown[]) => unknown)(...args)
    return fn === 'open' ? watchedFile(result as NodePromises.FileHandle, path) : result
  }]))
  return { ...watched, default: watched } as unknown as typeof NodePromises
}

/** An error as the system gives it. */
export const errno = (code: string, what = ''): Error => Object.assign(new Error(`${code}: injected, ${what}`), { code })
