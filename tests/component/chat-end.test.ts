import { expect, test, vi } from 'vitest'
import { showChatEnd } from '../../client/dsh/chat-end.ts'

test.each(['Back to bottom', '回到底部'])('presses the host’s button "%s", and nothing else', label => {
  const page = document.createElement('div')
  page.innerHTML = `<button aria-label="Send message"></button><button aria-label="${label}"></button>`
  const pressed = [...page.children].map(button => {
    const listener = vi.fn<() => void>()
    button.addEventListener('click', listener)
    return listener
  })

  showChatEnd(page)

  expect(pressed.map(listener => listener.mock.calls.length)).toEqual([0, 1])
})

test('does nothing when the reader is at the end', () => {
  expect(() => showChatEnd(document.createElement('div'))).not.toThrow()
})
