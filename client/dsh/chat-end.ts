/**
 * The host's button "Back to bottom" (ui-conversation chat/ChatView.tsx, `chat.toBottom`), drawn while the reader is
 * away from the chat's end. When rows go away below the reader, the end comes to them; but the host gives up its
 * belief, and follows new rows again, only for a scroll that changes the position or for this button, and until then
 * the button lies on our bar. There is no other way in; without the button there is nothing to do.
 */
const labels: ReadonlySet<string> = new Set(['Back to bottom', '回到底部'])

/** Brings the end of the chat into view; does nothing where the reader is there already. */
export function showChatEnd(page: ParentNode = document): void {
  const button = [...page.querySelectorAll('button')].find(candidate => labels.has(candidate.getAttribute('aria-label') ?? ''))
  button?.click()
}
