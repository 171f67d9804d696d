import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import css from './Listbox.module.css'
import { WindowedList } from './WindowedList.tsx'

export interface ListboxProps<Item> {
  readonly items: readonly Item[]
  readonly label: string
  readonly rowHeight: number
  readonly selected: string | undefined
  readonly class?: string | undefined
  keyOf(item: Item): string
  render(item: Item): ComponentChildren
  onSelect(key: string): void
  /** Enter: on to what was selected. */
  onEnter?(): void
}

/** Rows that keys move through as one: arrows, Page Up and Down, Home and End. Scrolls by itself; long ones are windowed. */
export function Listbox<Item>({ items, label, rowHeight, selected, class: className, keyOf, render, onSelect, onEnter }: ListboxProps<Item>) {
  const id = useId()
  const scroller = useRef<HTMLDivElement>(null)
  const at = items.findIndex(item => keyOf(item) === selected)
  const place = new Map(items.map((item, index) => [item, index]))

  const show = (index: number) => {
    const box = scroller.current!
    const top = index * rowHeight
    // What is covered at the bottom is padding of the scroller.
    const height = box.clientHeight - (Number.parseFloat(getComputedStyle(box).paddingBottom) || 0)
    if (top < box.scrollTop) box.scrollTop = top
    else if (top + rowHeight > box.scrollTop + height) box.scrollTop = top + rowHeight - height
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    if (event.key === 'Enter') {
      event.preventDefault()
      return onEnter?.()
    }
    const next = target(event.key, at, items.length, Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1))
    if (next === undefined) return
    event.preventDefault()
    show(next)
    onSelect(keyOf(items[next]!))
  }
  return (
    <div ref={scroller} class={`${css.scroller} ${className ?? ''}`} data-scroll>
      <WindowedList
        items={items}
        rowHeight={rowHeight}
        class={css.list}
        label={label}
        attributes={{
          role: 'listbox',
          tabIndex: 0,
          onKeyDown,
          // A press of the pointer must not move the row away from under it.
          onFocus: event => at >= 0 && event.currentTarget.matches(':focus-visible') && show(at),
          ...(at < 0 ? {} : { 'aria-activedescendant': `${id}-${at}` }),
        }}
        render={item => {
          const key = keyOf(item)
          const index = place.get(item)!
          return (
            <li
              key={key}
              id={`${id}-${index}`}
              role="option"
              class={css.row}
              style={{ height: `${rowHeight}px` }}
              aria-selected={key === selected}
              aria-setsize={items.length}
              aria-posinset={index + 1}
              onClick={() => onSelect(key)}
            >
              {render(item)}
            </li>
          )
        }}
      />
    </div>
  )
}

function target(key: string, at: number, count: number, page: number): number | undefined {
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count }
  const step = steps[key]
  return step === undefined || count === 0 ? undefined : Math.min(count - 1, Math.max(0, at + step))
}
