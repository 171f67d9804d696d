import { join } from 'node:path'
import { dsh, serviceOf, type Foreign } from '../contract/support/dsh-packages.ts'
import type { World } from './in-process-host.ts'

/** What the web profile mounts beside the services of the in-process host, so that sessions have workspaces, titles and an API. */
export async function mountWebServices(ctx: Foreign, world: Pick<World, 'home' | 'ws'>, { api = true }: { readonly api?: boolean } = {}): Promise<void> {
  const mount = async (module: string, config?: unknown): Promise<void> => {
    const found = await dsh(module)
    await ctx.plugin(typeof found.default === 'function' ? found.default : found, config)
  }
  await mount('dsh-session-title', { fallbackMaxWords: 5, fallbackMaxBytes: 40, maxTitleBytes: 80 })
  await mount('dsh-agent-default-model', { provider: 'scripted', model: 'm' })
  await mount('dsh-storage')
  await mount('dsh-storage-json', { root: join(world.home, 'storages') })
  await mount('dsh-storage-domain', { backend: 'json' })
  await mount('dsh-workspace')
  await ctx.plugin(await serviceOf('agentPresets', { resolve: async () => ({ id: 'scripted' }), mount: async () => {} }))
  if (api) {
    await mount('dsh-attachment-local', { dshHome: world.home })
    await mount('dsh-session-query-sqlite', { path: ':memory:', openAt: 'never' })
    await mount('dsh-user-questions')
    await mount('dsh-host-directory-picker-browse', {})
    await mount('dsh-host-apiproxy', { nativeOpen: false })
  }
  await ctx.workspaceRegistry.create(world.ws)
}
