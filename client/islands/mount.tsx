import { Component, h, render, type ComponentChildren, type ComponentType } from 'preact'

export interface Island<Props> {
  update(props: Props): void
  unmount(): void
}

/** Shows `View` inside `host`. A view that throws while rendering disappears and is reported; the page goes on. */
export function mountIsland<Props extends object>(
  host: Element,
  View: ComponentType<Props>,
  props: Props,
): Island<Props> {
  let shown: Props | undefined
  const update = (next: Props) => {
    if (next === shown) return
    shown = next
    render(<Boundary>{h(View, next)}</Boundary>, host)
  }
  update(props)
  return { update, unmount: () => render(null, host) }
}

class Boundary extends Component<{ children: ComponentChildren }, { broken: boolean }> {
  override state = { broken: false }

  override componentDidCatch(cause: unknown) {
    console.error('[turnback] a part of the page could not be drawn:', cause)
    this.setState({ broken: true })
  }

  override render() {
    return this.state.broken ? null : this.props.children
  }
}
