import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openStore } from '../../host/store/store.ts'
import { sessionId } from '../../src/ids.ts'
import type { LineCount } from '../../src/protocol/diff.ts'
import { file } from '../support/a-journal.ts'
import { aWorld, runs, writes, type Chat, type HostOptions, type World } from '../support/in-process-host.ts'

/** What the page is told of a file before it goes back: the bytes on the disk and those of before the turn. */

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/** A turn in which a command changes the workspace. */
async function changed(files: Readonly<Record<string, string | Buffer>>, change: (world: World) => string, options: HostOptions = {}): Promise<{ world: World; chat: Chat }> {
  const world = aWorld()
  for (const [path, content] of Object.entries(files)) world.write(path, content)
  const chat = await (await world.start(options)).open()
  await chat.turn('change it', runs(change(world)))
  return { world, chat }
}
const diffOf = ({ world, chat }: { world: World; chat: Chat }, path: string, turn = 1) =>
  chat.host.ask('diff', { sessionId: chat.id, turn, path: path.startsWith('/') ? path : join(world.ws, path) })
const printf = (path: string, bytes: Buffer) => `printf '${[...bytes].map(byte => `\\${byte.toString(8).padStart(3, '0')}`).join('')}' > ${path}`

describe('the diff of one file of a preview', () => {
  it('has the text on the disk and the one of before the turn, to the byte', async () => {
    const before = '\uFEFFone\r\ntwo\r\n轮'
    const at = await changed({ 'a.txt': before }, () => 'printf "one\\nTWO\\n" > a.txt')

    expect(await diffOf(at, 'a.txt')).toMatchObject({
      ok: true, value: { current: { kind: 'file', bytes: 8 }, goal: { kind: 'file' }, content: { kind: 'text', before: 'one\nTWO\n', after: before } },
    })
  })

  it('is that of the disk as it is now, not as the turn left it', async () => {
    const at = await changed({ 'a.txt': '1\n' }, () => 'echo 2 > a.txt')
    at.world.write('a.txt', 'mine\n')

    expect(await diffOf(at, 'a.txt')).toMatchObject({ value: { content: { kind: 'text', before: 'mine\n', after: '1\n' } } })
  })

  it('of a file that came or went has one empty side', async () => {
    const at = await changed({ 'gone.txt': 'was\n' }, () => 'rm gone.txt; echo new > new.txt')

    expect(await diffOf(at, 'gone.txt')).toMatchObject({ value: { current: { kind: 'absent' }, content: { kind: 'text', before: '', after: 'was\n' } } })
    expect(await diffOf(at, 'new.txt')).toMatchObject({ value: { goal: { kind: 'absent' }, content: { kind: 'text', before: 'new\n', after: '' } } })
  })

  it('shows where links point and never what is there', async () => {
    const at = await changed({ 'a.txt': 'text\n', 'secret.txt': 'secret\n' }, () => 'rm a.txt; ln -s secret.txt a.txt')

    expect(await diffOf(at, 'a.txt')).toMatchObject({
      value: { current: { kind: 'link', target: 'secret.txt' }, content: { kind: 'text', before: 'secret.txt', after: 'text\n' } },
    })
  })

  it('does not look through a link that was put in the place of a folder', async () => {
    const at = await changed({ 'dir/a.txt': '1\n', 'other/a.txt': 'secret\n' }, () => 'echo 2 > dir/a.txt')
    rmSync(join(at.world.ws, 'dir'), { recursive: true })
    symlinkSync('other', join(at.world.ws, 'dir'))

    expect(await diffOf(at, 'dir/a.txt')).toMatchObject({ value: { current: { kind: 'unknown', reason: 'behind-link' }, content: { kind: 'unknown' } } })
  })

  it('says when only the mode differs', async () => {
    const at = await changed({ 'run.sh': 'true\n' }, () => 'chmod 755 run.sh')

    expect(await diffOf(at, 'run.sh')).toMatchObject({ value: { current: { mode: 0o755 }, goal: { mode: 0o644 }, content: { kind: 'same' } } })
  })

  it('of a folder in the place of a file has one empty side', async () => {
    const at = await changed({ 'a': 'text\n' }, () => 'rm a; mkdir a')

    expect(await diffOf(at, 'a')).toMatchObject({ value: { current: { kind: 'folder' }, content: { kind: 'text', before: '', after: 'text\n' } } })
  })

  it('has pictures on both sides, told by their bytes', async () => {
    const at = await changed({ 'picture': png }, () => printf('picture', gif))

    expect(await diffOf(at, 'picture')).toMatchObject({
      value: { content: { kind: 'image', before: { type: 'image/gif', base64: gif.toString('base64') }, after: { type: 'image/png', base64: png.toString('base64') } } },
    })
  })

  it('has one picture where the other side is nothing', async () => {
    const at = await changed({ 'picture.png': png }, () => 'rm picture.png')

    expect((await diffOf(at, 'picture.png')).value.content).toEqual({ kind: 'image', after: { type: 'image/png', base64: png.toString('base64') } })
  })

  it('shows an SVG as the text it is', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>\n'
    const at = await changed({ 'a.svg': svg }, () => 'echo "<svg/>" > a.svg')

    expect(await diffOf(at, 'a.svg')).toMatchObject({ value: { content: { kind: 'text', before: '<svg/>\n', after: svg } } })
  })

  it.each([
    ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x41]), 'binary'],
    ['a zero byte in a text', Buffer.from('a\0b'), 'binary'],
    ['a picture in the place of a text', png, 'binary'],
    ['a text of more than 2 MiB', Buffer.alloc(2 * 1024 * 1024 + 1, 'a'), 'too-large'],
    ['a picture of more than 1 MiB', Buffer.concat([png, Buffer.alloc(1024 * 1024)]), 'too-large'],
  ])('of %s is %j and comes with the sizes alone', async (_, bytes, kind) => {
    const other = kind === 'too-large' && bytes[0] === 0x89 ? png : Buffer.from('text\n')
    const at = await changed({ 'a': bytes as Buffer }, () => printf('a', other))

    expect((await diffOf(at, 'a')).value).toMatchObject({ current: { bytes: other.length }, goal: { bytes: (bytes as Buffer).length }, content: { kind } })
  })

  it('says that the saved bytes are gone', async () => {
    const world = aWorld({ 'a.txt': 'now' })
    const first = await (await world.start()).open()
    await first.turn('only words')
    const startSeq = first.events().find(event => event.type === 'turn/start').seq
    await first.host.stop()
    const store = openStore({ root: join(world.home, 'data', 'turnback', 'v1') })
    const call = { callId: 'c', tool: 'write', sessionId: sessionId('s1') }
    await store.journal(sessionId('s1'), world.ws).append({
      entries: [
        { kind: 'before', id: 'r', turn: { startSeq, number: 1 }, call, origin: 'tool', path: join(world.ws, 'a.txt'), state: file('gone'), absentFolders: [], atMs: 1 },
        { kind: 'after', of: 'r', state: file('now'), atMs: 1 },
      ],
    })
    await store.close()
    const chat = await (await world.start()).open()

    expect(await diffOf({ world, chat }, 'a.txt')).toMatchObject({ ok: true, value: { goal: { kind: 'file' }, content: { kind: 'gone' } } })
  })

  it('is that of the turn asked for: what an earlier turn alone changed is no file of it', async () => {
    const at = await changed({ 'a.txt': '1\n' }, () => 'echo 2 > a.txt')
    await at.chat.turn('second', writes('b.txt', 'b'))

    expect(await diffOf(at, 'a.txt', 1)).toMatchObject({ ok: true })
    expect(await diffOf(at, 'a.txt', 2)).toMatchObject({ ok: false, failure: { code: 'unknown-path' } })
  })

  it.each(['/etc/passwd', 'b.txt', '../a.txt', 'dir'])('is refused for %s, which is no file of the preview', async (path) => {
    const at = await changed({ 'a.txt': '1\n', 'b.txt': 'secret\n' }, () => 'echo 2 > a.txt; mkdir dir; echo 1 > dir/x')

    const reply = await diffOf(at, path)

    expect(reply).toMatchObject({ ok: false, failure: { code: 'unknown-path' } })
    expect(JSON.stringify(reply)).not.toContain('secret')
  })

  it.each([[99, 'unknown-turn'], [0, 'bad-request']])('is refused for turn %d', async (turn, code) => {
    const at = await changed({ 'a.txt': '1\n' }, () => 'echo 2 > a.txt')

    expect(await diffOf(at, 'a.txt', turn)).toMatchObject({ ok: false, failure: { code } })
  })

  it('changes nothing on the disk and in the log', async () => {
    const at = await changed({ 'a.txt': '1\n' }, () => 'echo 2 > a.txt')
    const before = { tree: at.world.tree(), events: at.chat.events().length }

    await diffOf(at, 'a.txt')

    expect({ tree: at.world.tree(), events: at.chat.events().length }).toEqual(before)
  })
})

describe('line counts of the files of a preview', () => {
  it('are given for texts, and left out for what has no lines or is no file of it', async () => {
    const at = await changed({ 'a.txt': '1\n2\n3\n', 'gone.txt': 'x\ny\n', 'bin': Buffer.from([0xff, 0]) }, () => 'printf "1\\nTWO\\n3\\n4\\n" > a.txt; rm gone.txt; echo n > new.txt; echo t > bin')
    const paths = ['a.txt', 'gone.txt', 'new.txt', 'bin', 'other.txt'].map(path => join(at.world.ws, path))

    const reply = await at.chat.host.ask('counts', { sessionId: at.chat.id, turn: 1, paths })

    expect(reply.value.counts.map(({ path, added, removed }: LineCount) => `${path.slice(at.world.ws.length + 1)} +${added} -${removed}`))
      .toEqual(['a.txt +1 -2', 'gone.txt +2 -0', 'new.txt +0 -1'])
  })

  it('are not made for large files', async () => {
    const at = await changed({ 'a.txt': 'line\n'.repeat(110_000) }, () => 'echo 1 > a.txt')

    expect(await at.chat.host.ask('counts', { sessionId: at.chat.id, turn: 1, paths: [join(at.world.ws, 'a.txt')] })).toEqual({ ok: true, value: { counts: [] } })
  })

  it('are refused for more paths than a page shows', async () => {
    const at = await changed({ 'a.txt': '1\n' }, () => 'echo 2 > a.txt')
    const paths = Array.from({ length: 51 }, () => join(at.world.ws, 'a.txt'))

    expect(await at.chat.host.ask('counts', { sessionId: at.chat.id, turn: 1, paths })).toMatchObject({ ok: false, failure: { code: 'bad-request' } })
  })
})
