import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface WindowedListProps<Item> {
  readonly items: readonly Item[]
  /** Height of every row in CSS pixels. */
  readonly rowHeight: number
  readonly class?: string | undefined
  readonly label: string
  render(item: Item): ComponentChildren
}

/** Up to here all rows are drawn. */
const WHOLE = 200
/** Rows drawn at once in a longer list, and how many of them stand above the visible part. */
const DRAWN = 80
const ABOVE = 25

/** A list of equal rows that draws only those near the visible part of the scroller (`data-scroll`) around it. */
export function WindowedList<Item>({ items, rowHeight, class: className, label, render }: WindowedListProps<Item>) {
  const list = useRef<HTMLUListElement>(null)
  const [first, setFirst] = useState(0)
  const windowed = items.length > WHOLE
  useLayoutEffect(() => {
    const element = list.current!
    const scroller = element.closest<HTMLElement>('[data-scroll]')
    if (!windowed || scroller === null) return
    const follow = () => {
      const above = scroller.getBoundingClientRect().top - element.getBoundingClientRect().top
      const next = Math.max(0, Math.min(items.length - DRAWN, Math.floor(above / rowHeight) - ABOVE))
      // In steps, so that a small scroll draws nothing anew.
      setFirst(next - (next % 10))
    }
    scroller.addEventListener('scroll', follow, { passive: true })
    follow()
    return () => scroller.removeEventListener('scroll', follow)
  }, [windowed, items.length, rowHeight])
  const shown = windowed ? items.slice(first, first + DRAWN) : items
  const below = windowed ? Math.max(0, items.length - first - shown.length) : 0
  return (
    <ul ref={list} class={className} aria-label={label}>
      {windowed && <li aria-hidden="true" style={{ height: `${first * rowHeight}px` }} />}
      {shown.map(render)}
      {windowed && <li aria-hidden="true" style={{ height: `${below * rowHeight}px` }} />}
    </ul>
  )
}
