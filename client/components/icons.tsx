import type { ComponentChildren } from 'preact'

/** 16 px, thin strokes in the text colour, as the host's own action icons. */
const Icon = ({ strokeWidth = 1, children }: { readonly strokeWidth?: number; readonly children: ComponentChildren }) => (
  <svg
    viewBox="0 0 16 16"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    stroke-width={strokeWidth}
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    {children}
  </svg>
)

export const RollbackIcon = () => (
  <Icon strokeWidth={1.2}>
    <path d="M5 2 1.5 5.5 5 9" />
    <path d="M1.5 5.5h8.25a4.25 4.25 0 0 1 0 8.5H5.5" />
  </Icon>
)

export const CloseIcon = () => (
  <Icon>
    <path d="m4 4 8 8M12 4l-8 8" />
  </Icon>
)

export const WarningIcon = () => (
  <Icon>
    <path d="M8 2.2 14.5 13.5h-13z" />
    <path d="M8 6.5v3.2M8 11.6v.1" />
  </Icon>
)
