import type { ComponentType } from 'preact'
import { mountIsland, type Island } from '../islands/mount.tsx'

/**
 * The only place that knows React. The host renders React 18; what it hands to a slot component is
 * turned into plain props and given to a Preact tree that lives in one host element of ours.
 * React arrives as an argument (client/index.ts takes it from the page's module table), so nothing
 * here is bundled and tests can pass another one with the same members.
 */
export interface React {
  createElement(type: unknown, props: object | null, ...children: readonly unknown[]): unknown
  useRef<T>(initial: T): { current: T }
  useLayoutEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void
}

/**
 * A React component that shows `View` in an element without a box of its own (`display: contents`).
 * `toProps` is pure and answers null where nothing is to be shown; it may be called on every render.
 */
export function islandSeat<Slot extends object, Props extends object>(
  react: React,
  name: string,
  View: ComponentType<Props>,
  toProps: (slot: Slot) => Props | null,
): (slot: Slot) => unknown {
  const Content = (props: Props) => {
    const host = react.useRef<Element | null>(null)
    const island = react.useRef<Island<Props> | null>(null)
    react.useLayoutEffect(() => {
      const mounted = mountIsland(host.current!, View, props)
      island.current = mounted
      return () => {
        island.current = null
        mounted.unmount()
      }
    }, [])
    react.useLayoutEffect(() => island.current?.update(props))
    return react.createElement('span', { ref: host, style: { display: 'contents' }, 'data-turnback': name })
  }
  return slot => {
    const props = toProps(slot)
    return props === null ? null : react.createElement(Content, props)
  }
}
