import { join } from 'node:path'
import type { JournalEntry } from '../../../src/checkpoint/journal-entry.ts'
import { sessionId } from '../../../src/ids.ts'
import { openStore } from '../../../host/store/store.ts'
import type { Chat, World } from '../../support/in-process-host.ts'

type Kind = JournalEntry['kind']
type EntryOf<K extends Kind> = Extract<JournalEntry, { kind: K }>

/** What is on disk of a session by now, oldest first, read as another process would. */
export async function journalOf<K extends Kind>(world: World, chat: Pick<Chat, 'id'>, kind: K): Promise<readonly EntryOf<K>[]> {
  const store = openStore({ root: join(world.home, 'data/turnback/v1') })
  const read = await store.journal(sessionId(chat.id), world.ws).read()
  await store.close()
  if (!read.ok) throw new Error(JSON.stringify(read.failure))
  return read.value.entries.map(({ entry }) => entry).filter((entry): entry is EntryOf<K> => entry.kind === kind)
}

/** Bytes of a stored state as text. */
export async function stored(world: World, chat: Pick<Chat, 'id'>, state: { kind: string; digest?: unknown }): Promise<string | undefined> {
  const store = openStore({ root: join(world.home, 'data/turnback/v1') })
  const bytes = await store.journal(sessionId(chat.id), world.ws).readBlob(state.digest as never)
  await store.close()
  return bytes?.toString()
}
