import { openStore } from '../../../../host/store/store.ts'
import { aSession, before, blob, workspace } from './store-content.ts'

/** A process that appends entries `f<from>`, `f<from+1>`, ... and prints how many are acknowledged, until it is killed. */
const [root, from] = process.argv.slice(2)
const journal = openStore({ root }).journal(aSession, workspace)
for (let index = Number(from); ; index += 1) {
  const content = blob(`f${index}`.repeat(5_000))
  const appended = await journal.append({ entries: [before(`f${index}`, content)], blobs: [content] })
  if (!appended.ok) throw new Error(JSON.stringify(appended.failure))
  process.stdout.write(`${index + 1}\n`)
}
