import type { ComponentChildren, HTMLAttributes } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface WindowedListProps<Item> {
  readonly items: readonly Item[]
  /** Height of every row in CSS pixels. */
  readonly rowHeight: number
  readonly class?: string | undefined
  readonly label: string
  /** What is open below a row, in CSS pixels; asked in long lists only. */
  readonly extraHeight?: ((item: Item) => number) | undefined
  /** More for the list's element. */
  readonly attributes?: HTMLAttributes<HTMLUListElement>
  render(item: Item): ComponentChildren
}

/** Up to here all rows are drawn. */
const WHOLE = 200
/** What is drawn at once in a longer list, and how much of it stands above the visible part: at most so many rows, and of tall ones so many CSS pixels of them. */
const DRAWN = { rows: 80, pixels: 3200 }
const ABOVE = { rows: 25, pixels: 800 }
const rowsOf = ({ rows, pixels }: typeof DRAWN, rowHeight: number): number => Math.min(rows, Math.ceil(pixels / rowHeight))

export const isWindowed = (count: number): boolean => count > WHOLE

/** A list of equal rows, but for what is open below some of them, that draws only those near the visible part of the scroller (`data-scroll`) around it. */
export function WindowedList<Item>({ items, rowHeight, class: className, label, extraHeight, attributes, render }: WindowedListProps<Item>) {
  const list = useRef<HTMLUListElement>(null)
  const [first, setFirst] = useState(0)
  const windowed = isWindowed(items.length)
  const drawn = rowsOf(DRAWN, rowHeight)
  const extras = windowed && extraHeight !== undefined ? extrasOf(items, extraHeight) : []
  const extraBefore = (index: number) => extras.reduce((sum, { at, height }) => (at < index ? sum + height : sum), 0)
  useLayoutEffect(() => {
    const element = list.current!
    const scroller = element.closest<HTMLElement>('[data-scroll]')
    if (!windowed || scroller === null) return
    const follow = () => {
      const above = scroller.getBoundingClientRect().top - element.getBoundingClientRect().top
      const next = Math.max(0, Math.min(items.length - drawn, rowAt(above, rowHeight, extras) - rowsOf(ABOVE, rowHeight)))
      // In steps, so that a small scroll draws nothing anew.
      setFirst(next - (next % 10))
    }
    scroller.addEventListener('scroll', follow, { passive: true })
    follow()
    return () => scroller.removeEventListener('scroll', follow)
  }, [windowed, items.length, rowHeight, extraBefore(items.length)])
  const draw = useKept(render)
  const shown = windowed ? items.slice(first, first + drawn) : items
  const end = first + shown.length
  const below = windowed ? Math.max(0, items.length - end) * rowHeight + extraBefore(items.length) - extraBefore(end) : 0
  return (
    <ul ref={list} class={className} aria-label={label} {...attributes}>
      {windowed && <li aria-hidden="true" style={{ height: `${first * rowHeight + extraBefore(first)}px` }} />}
      {draw(shown)}
      {windowed && <li aria-hidden="true" style={{ height: `${below}px` }} />}
    </ul>
  )
}

/** Rows that stay while others come and go are not drawn anew, as long as they are drawn by the same function. */
function useKept<Item>(render: (item: Item) => ComponentChildren): (items: readonly Item[]) => ComponentChildren[] {
  const kept = useRef<{ readonly by: typeof render; readonly rows: ReadonlyMap<Item, ComponentChildren> } | undefined>(undefined)
  return (items) => {
    const old = kept.current?.by === render ? kept.current.rows : undefined
    const rows = items.map(item => [item, old?.get(item) ?? render(item)] as const)
    kept.current = { by: render, rows: new Map(rows) }
    return rows.map(([, row]) => row)
  }
}

interface Extra {
  readonly at: number
  readonly height: number
}

function extrasOf<Item>(items: readonly Item[], heightOf: (item: Item) => number): readonly Extra[] {
  return items.flatMap((item, at) => {
    const height = heightOf(item)
    return height > 0 ? [{ at, height }] : []
  })
}

/** The row at so many pixels below the top of the list. */
function rowAt(pixels: number, rowHeight: number, extras: readonly Extra[]): number {
  let rest = pixels
  for (const { at, height } of extras) {
    const over = rest - (at + 1) * rowHeight
    if (over <= 0) break
    rest -= Math.min(height, over)
  }
  return Math.floor(rest / rowHeight)
}
