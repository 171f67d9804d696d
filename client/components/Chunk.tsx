import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import css from './FileDiff.module.css'

/** Tells elements of one scroller when they come near its visible part and when they leave it. */
export interface Near {
  /** Until the returned function is called. Test documents have no observers: there everything is near. */
  watch(element: Element, tell: (isNear: boolean) => void): () => void
}

/** Above and below the visible part. */
const MARGIN = '240px 0px'

/** The scroller is the element with `data-lines` around the first one watched. */
export function createNear(): Near {
  const tells = new Map<Element, (isNear: boolean) => void>()
  let observer: IntersectionObserver | undefined
  return {
    watch(element, tell) {
      if (typeof IntersectionObserver === 'undefined') {
        tell(true)
        return () => {}
      }
      observer ??= new IntersectionObserver(
        entries => {
          for (const { target, isIntersecting } of entries) tells.get(target)?.(isIntersecting)
        },
        { root: element.closest('[data-lines]'), rootMargin: MARGIN },
      )
      tells.set(element, tell)
      observer.observe(element)
      return () => {
        tells.delete(element)
        observer?.unobserve(element)
        if (tells.size > 0) return
        observer?.disconnect()
        observer = undefined
      }
    },
  }
}

export interface ChunkProps {
  /** Expected height in CSS pixels, until the real one is known. */
  readonly height: number
  readonly near: Near
  /** What is taken for true before the first look. */
  readonly isNear: boolean
  render(): ComponentChildren
}

/** A part of a long view that is drawn only near the visible part; else it is a gap of the height it had. */
export function Chunk({ height, near, isNear, render }: ChunkProps) {
  const element = useRef<HTMLDivElement>(null)
  const [isDrawn, setDrawn] = useState(isNear)
  const lastHeight = useRef(height)
  useLayoutEffect(
    () =>
      near.watch(element.current!, isNow => {
        // Long lines wrap, so the height is only known while the lines are there.
        if (!isNow && element.current!.firstChild !== null) lastHeight.current = element.current!.offsetHeight
        setDrawn(isNow)
      }),
    [near],
  )
  return (
    <div ref={element} class={css.chunk} style={isDrawn ? {} : { height: `${lastHeight.current}px` }}>
      {isDrawn && render()}
    </div>
  )
}
