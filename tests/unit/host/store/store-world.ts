import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { SessionJournal } from '../../../../host/store/session-journal.ts'
import { openStore, type StoreOptions, type TurnbackStore } from '../../../../host/store/store.ts'

export { aSession, before, blob, frameOf, workspace, type Blob } from './store-content.ts'

/** A store folder that goes away with the test; `open` is a start of the host on it. */
export async function aStore(): Promise<{
  root: string
  open(options?: StoreOptions): TurnbackStore
  packs(): Promise<string[]>
  pack(name: string): Promise<Buffer>
}> {
  const home = await mkdtemp(join(tmpdir(), 'turnback-store-'))
  const root = join(home, 'data', 'turnback', 'v1')
  const opened: TurnbackStore[] = []
  onTestFinished(async () => {
    await Promise.all(opened.map((store) => store.close()))
    await rm(home, { recursive: true })
  })
  return {
    root,
    open(options = {}) {
      const store = openStore({ root, ...options })
      opened.push(store)
      return store
    },
    packs: async () => (await readdir(join(root, 'packs'))).sort(),
    pack: (name) => readFile(join(root, 'packs', name)),
  }
}

export async function positionOf(journal: SessionJournal, batch: Parameters<SessionJournal['append']>[0]): Promise<number> {
  const appended = await journal.append(batch)
  if (!appended.ok) throw new Error(JSON.stringify(appended.failure))
  return appended.value.position
}

export async function readAll(journal: SessionJournal): Promise<{ names: string[]; positions: number[]; holes: string[]; after: number[]; position: number }> {
  const read = await journal.read()
  if (!read.ok) throw new Error(JSON.stringify(read.failure))
  const { entries, holes, position } = read.value
  return {
    names: entries.map(({ entry }) => (entry.kind === 'before' ? entry.path.slice(3) : entry.kind)),
    positions: entries.map((entry) => entry.position),
    holes: holes.map(({ detail }) => detail),
    after: holes.map(({ afterPosition }) => afterPosition),
    position,
  }
}
