/** Runs in a worker of its own: one message with two texts in, one with their diff out. */
import { diffTexts } from '../../src/diff/line-diff.ts'

addEventListener('message', (event: MessageEvent<{ before: string; after: string }>) => {
  postMessage(diffTexts(event.data.before, event.data.after))
})
