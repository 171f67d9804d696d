import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/**
 * The published DSH packages of the host under tests/e2e/host, loaded in this process. All of them resolve
 * from that one tree, so that there is a single cordis and a single session package.
 */
const resolver = createRequire(new URL('../../e2e/host/package.json', import.meta.url))

// The shapes are DSH's own and not ours to restate; what we rely on of them is in host/dsh and is asserted by the tests.
// oxlint-disable-next-line typescript/no-explicit-any
export type Foreign = any

/** A module of the scope `@deepseek-ai`, by name without it: `dsh-session`, `dsh-session/invariant`. */
export const dsh = (name: string): Promise<Foreign> =>
  import(/* @vite-ignore */ pathToFileURL(resolver.resolve(`@deepseek-ai/${name}`)).href)

/** What a service named `name` looks like to cordis, with `members` on it. */
export async function serviceOf(name: string, members: object): Promise<Foreign> {
  const { Service } = await dsh('cordis')
  return class extends Service {
    constructor(ctx: Foreign) {
      super(ctx, name)
      Object.assign(this, members)
    }
  }
}
