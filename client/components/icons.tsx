/** 16 px, thin strokes in the text colour, as the host's own action icons. */
export const RollbackIcon = () => (
  <svg
    viewBox="0 0 16 16"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.2"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d="M5 2 1.5 5.5 5 9" />
    <path d="M1.5 5.5h8.25a4.25 4.25 0 0 1 0 8.5H5.5" />
  </svg>
)

export const CloseIcon = () => (
  <svg
    viewBox="0 0 16 16"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    stroke-linecap="round"
    aria-hidden="true"
  >
    <path d="m4 4 8 8M12 4l-8 8" />
  </svg>
)

export const WarningIcon = () => (
  <svg
    viewBox="0 0 16 16"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d="M8 2.2 14.5 13.5h-13z" />
    <path d="M8 6.5v3.2M8 11.6v.1" />
  </svg>
)
