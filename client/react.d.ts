/** The members of React 18 that dsh/react-bridge.ts needs; the host serves the module, its types are not installed. */
declare module 'react' {
  export function createElement(type: unknown, props: object | null, ...children: readonly unknown[]): unknown
  export function useRef<T>(initial: T): { current: T }
  export function useLayoutEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void
}
