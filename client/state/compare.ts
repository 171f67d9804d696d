import { diffTexts, type TextDiff } from '../../src/diff/line-diff.ts'
// Vite makes the default export: a class that starts the bundled worker.
// oxlint-disable-next-line import/default
import DiffWorker from './diff.worker.ts?worker&inline'

/** On the page's own thread a search must be over before a frame is missed; what is left then is told as one change. */
const IN_PAGE = { timeoutMs: 20, maxEdits: 2000 }
/** A worker that says nothing for so long is given up. */
const SILENT_MS = 5000
/** Texts so short are compared at once: starting a worker takes longer. */
const SHORT = 16 * 1024

/**
 * The diff of two texts, found in a worker made from a Blob, so that the page stays smooth. Where there are no workers,
 * or a policy of the page forbids this kind, it is found here with narrow bounds. Rejects only when aborted.
 */
export async function compareTexts(before: string, after: string, signal: AbortSignal, startWorker: () => Worker = () => new DiffWorker()): Promise<TextDiff> {
  if (before.length + after.length > SHORT) {
    const found = await inWorker(before, after, signal, startWorker)
    signal.throwIfAborted()
    if (found !== undefined) return found
  }
  return diffTexts(before, after, IN_PAGE)
}

/** One worker for one diff, so that nothing is left running. Undefined when it could not be had, or was aborted. */
function inWorker(before: string, after: string, signal: AbortSignal, startWorker: () => Worker): Promise<TextDiff | undefined> {
  return new Promise((resolve) => {
    let worker: Worker
    try {
      worker = startWorker()
    } catch {
      // No workers here, or none of this kind: the page's policy throws, and so does a page without the class.
      return resolve(undefined)
    }
    const end = (diff: TextDiff | undefined) => {
      clearTimeout(silent)
      signal.removeEventListener('abort', abort)
      worker.terminate()
      resolve(diff)
    }
    const abort = () => end(undefined)
    const silent = setTimeout(abort, SILENT_MS)
    signal.addEventListener('abort', abort)
    worker.addEventListener('message', (event: MessageEvent<TextDiff>) => end(event.data))
    worker.addEventListener('error', (event) => {
      event.preventDefault()
      end(undefined)
    })
    worker.postMessage({ before, after }, [])
  })
}
