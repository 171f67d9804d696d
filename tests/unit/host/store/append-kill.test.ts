import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { aSession, aStore, before, blob, positionOf, readAll, workspace } from './store-world.ts'

const appender = join(import.meta.dirname, 'appender.ts')

test('a process killed while it appends loses nothing that was acknowledged', async () => {
  const world = await aStore()
  let acknowledged = 0

  for (let run = 0; run < 3; run += 1) {
    const child = spawn(process.execPath, ['--no-warnings', appender, world.root, String(acknowledged)], { stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      if (out.split('\n').length > 15 + 7 * run) child.kill('SIGKILL')
    })
    await once(child, 'close')
    const last = Number(out.slice(0, out.lastIndexOf('\n')).split('\n').at(-1))

    const journal = world.open().journal(aSession, workspace)
    const read = await readAll(journal)
    // What was under way when the process died may be there or not; never half, never out of order.
    expect(read.names.length - last).toBeOneOf([0, 1])
    expect(read).toMatchObject({ names: read.names.map((_, index) => `f${index}`), holes: [] })
    for (const name of read.names) expect(await journal.readBlob(blob(name.repeat(5_000)).digest)).toBeDefined()
    acknowledged = read.names.length
  }

  const journal = world.open().journal(aSession, workspace)
  await positionOf(journal, { entries: [before('last')] })
  expect((await readAll(journal)).names).toHaveLength(acknowledged + 1)
})
