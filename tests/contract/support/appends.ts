import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { dsh, type Foreign } from './dsh-packages.ts'

/** One event the plugin appended to a session log. */
export interface Append {
  readonly session: Foreign
  readonly type: string
  readonly data: Foreign
  readonly event: Foreign
}

/** Everything that code of `host/` appended in this process, oldest first, whether it was accepted or not. */
export const ourAppends: Append[] = []

const hostFolder = fileURLToPath(new URL('../../../host/', import.meta.url))
let isWatching = false

/** Looks over the shoulder of every `append`: the caller is the frame below ours. */
export async function watchAppends(): Promise<void> {
  if (isWatching) return
  isWatching = true
  const { Session } = await dsh('dsh-session')
  const { append } = Session.prototype
  Session.prototype.append = function (this: Foreign, type: string, data: unknown, options: unknown) {
    const caller = new Error('caller').stack?.split('\n')[2] ?? ''
    const event = append.call(this, type, data, options)
    if (caller.includes(hostFolder)) ourAppends.push({ session: this, type, data, event })
    return event
  }
}

/** The only event types of ours that every generation of the host reads back. */
export function expectKnownAppends(): void {
  const known = ['user/message', 'compaction/prune']
  expect(ourAppends.filter(({ type }) => !known.includes(type))).toEqual([])
  for (const { data } of ourAppends.filter(({ type }) => type === 'user/message')) {
    // One member more, in the source above all, and a later host cannot read the whole log.
    expect(data).toStrictEqual({
      id: expect.stringMatching(/^turnback:1:\d+:\d+:[0-9a-f]{16}$/), role: 'user',
      source: { kind: 'plugin', plugin: 'dsh-turnback' }, content: [{ type: 'text', text: expect.stringMatching(/^.{1,140}$/) }],
    })
  }
  for (const [at, { type, data, event }] of ourAppends.entries()) {
    if (type !== 'compaction/prune' || !isAccepted(event)) continue
    // A price is a claim on the very next event; one that is not honoured makes the host's token projection throw.
    const marker = ourAppends[at + 1]
    expect(marker?.type).toBe('user/message')
    expect(marker?.event.seq).toBe(event.seq + 1)
    expect(data.shadowedSeqs).toEqual(marker?.event.sourceEventSeqs)
    expect(data.shadowedRange).toEqual({ start: data.shadowedSeqs[0], end: data.shadowedSeqs.at(-1) })
    expect(marker?.event.surfaceOp).toEqual({ op: 'replace', ...data.shadowedRange })
  }
}

const isAccepted = (event: Foreign): boolean => typeof event?.seq === 'number'
