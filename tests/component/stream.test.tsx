import { cleanup, render } from '@testing-library/preact'
import { options } from 'preact'
import { act } from 'preact/test-utils'
import { afterEach, expect, test } from 'vitest'
import { MarkerBar } from '../../client/islands/MarkerBar.tsx'
import { TurnActions } from '../../client/islands/TurnActions.tsx'
import { ok } from '../../src/result.ts'
import { anOp, aStore, en, fakeView, scriptedRemote, settle } from './support.ts'

afterEach(cleanup)

/** Preact calls this before each render of a component; the name is the one its own hooks use in the built package. */
const hooks = options as { __r?: ((vnode: unknown) => void) | undefined }

test('a streamed chunk draws nothing of ours, and the end of the turn does', async () => {
  const marker = { seq: 40, startSeq: 20, turn: 2, op: 'op000000' }
  const rows = [{ key: 'p1', kind: 'user', anchorSeq: 5, turn: 1 }, { key: 'm', kind: 'turnback-marker', anchorSeq: 40 }, { key: 'p4', kind: 'user', anchorSeq: 50, turn: 4 }]
  const view = fakeView({ rows, markers: [marker], running: true })
  const { remote } = scriptedRemote({ timeline: [ok({ turns: [], ops: [anOp()] })] })
  const store = aStore({ remote, view: view.view })
  render(<><TurnActions store={store} t={en} at={{ turn: 1 }} open={() => {}} /><MarkerBar store={store} t={en} marker={marker} /></>)
  await act(() => settle())
  await act(() => settle())
  let renders = 0
  const before = hooks.__r
  hooks.__r = (vnode) => {
    renders += 1
    before?.(vnode)
  }
  try {
    // The host publishes for every chunk; the rows stay the same ones.
    for (let chunk = 0; chunk < 200; chunk += 1) await act(() => view.publish())
    expect(renders).toBe(0)

    await act(() => view.publish({ running: false }))
    expect(renders).toBeGreaterThan(0)
  } finally {
    hooks.__r = before
  }
})
