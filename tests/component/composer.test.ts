import { afterEach, expect, test } from 'vitest'
import { composerOf } from '../../client/dsh/composer.ts'
import type { ClientContext } from '../../client/dsh/context.ts'

/** A page with one composer per session, in either spelling of the picture verbs. */
function page(options: { generation: 'old' | 'new'; refuses?: boolean; unreadable?: boolean }) {
  const drafts: Record<string, string> = { a: '', b: 'draft of b' }
  const added: string[][] = []
  const released: unknown[] = []
  const scopeOf = (id: string) => ({ id, get: (name: string) => (name === 'conversation' ? conversation : undefined) })
  const make = (files: readonly File[]) => files.map(file => ({ id: `draft-${file.name}-${file.type}` }))
  const conversation = {
    input: {
      for: ({ id }: { id: string }) => ({
        setDraft: (text: string) => {
          drafts[id] = text
        },
        state: { getSnapshot: () => ({ draft: drafts[id] }) },
        [options.generation === 'old' ? 'addImages' : 'addAttachments']: (ids: string[]) => {
          if (options.refuses === true) return false
          added.push(ids)
          return true
        },
      }),
    },
    ...(options.generation === 'old'
      ? { createDraftImages: make, releaseDraftImages: (list: unknown) => released.push(list) }
      : {
          createDrafts: async (_id: string, files: readonly File[]) => make(files),
          releaseDraftAttachments: (list: unknown) => released.push(list),
        }),
  }
  const session = {
    readAttachment: async (id: string) =>
      options.unreadable === true || id === 'lost'
        ? { ok: false }
        : { ok: true, value: { attachment: { mediaType: 'image/png', name: id }, data: new Uint8Array([1]) } },
  }
  const ctx = {
    get: () => undefined,
    sessions: { scope: (id: string) => (id in drafts ? scopeOf(id) : undefined), binding: () => ({ session }) },
  } as unknown as ClientContext
  return { ctx, drafts, added, released }
}

afterEach(() => document.body.replaceChildren())

test('field 58: writes into its own session’s composer only', () => {
  const { ctx, drafts } = page({ generation: 'old' })

  composerOf(ctx, 'a')!.setDraft('text of a')

  expect(drafts).toEqual({ a: 'text of a', b: 'draft of b' })
})

test.each(['old', 'new'] as const)(
  'puts pictures back in the spelling of the host and counts those it cannot read (%s)',
  async generation => {
    const { ctx, added } = page({ generation })

    const lost = await composerOf(ctx, 'a')!.addImages(['one', 'lost'])

    expect(lost).toBe(1)
    expect(added).toEqual([['draft-one-image/png']])
  },
)

test('pictures the composer does not take are given back to the host and counted', async () => {
  const { ctx, released } = page({ generation: 'old', refuses: true })

  expect(await composerOf(ctx, 'a')!.addImages(['one'])).toBe(1)
  expect(released).toHaveLength(1)
})

test('without readable bytes every picture counts as lost', async () => {
  expect(await composerOf(page({ generation: 'new', unreadable: true }).ctx, 'a')!.addImages(['one', 'two'])).toBe(2)
})

test.each(['<textarea></textarea>', '<div contenteditable="true" tabindex="0"></div>'])(
  'focuses the host’s input %s',
  input => {
    document.body.innerHTML = `<div data-composer-seat>${input}</div>`

    composerOf(page({ generation: 'old' }).ctx, 'a')!.focus()

    expect(document.activeElement?.parentElement?.hasAttribute('data-composer-seat')).toBe(true)
  },
)

test('there is no composer for a session that is not open', () => {
  expect(composerOf(page({ generation: 'old' }).ctx, 'elsewhere')).toBeUndefined()
})
