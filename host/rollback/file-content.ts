import { isUtf8 } from 'node:buffer'
import type { FileState } from '../../src/checkpoint/file-state.ts'
import { MAX_IMAGE_BYTES, MAX_TEXT_BYTES, type FileContent, type Image, type ImageType } from '../../src/protocol/diff.ts'

/** One side of a path: `bytes` are those of a file, undefined for one whose bytes could not be had. */
export interface Side {
  readonly state: FileState
  readonly bytes: Buffer | undefined
}

/** What a page is sent to compare. Reads nothing. */
export function contentOf(before: Side, after: Side): FileContent {
  const sides = [before, after]
  if (sides.some(({ state }) => state.kind === 'unknown')) return { kind: 'unknown' }
  if (sides.every(side => !hasContent(side)) || areSame(before, after)) return { kind: 'same' }
  if (sides.some(({ state }) => state.kind === 'file' && state.bytes > MAX_TEXT_BYTES)) return { kind: 'too-large' }
  if (sides.some(({ state, bytes }) => state.kind === 'file' && bytes === undefined)) return { kind: 'gone' }
  const texts = sides.map(textOf)
  if (texts.every(text => text !== undefined)) return { kind: 'text', before: texts[0]!, after: texts[1]! }
  const types = sides.map(({ bytes }) => (bytes === undefined ? undefined : imageType(bytes)))
  if (sides.some((side, at) => hasContent(side) && types[at] === undefined)) return { kind: 'binary' }
  if (sides.some(({ bytes }) => bytes !== undefined && bytes.length > MAX_IMAGE_BYTES)) return { kind: 'too-large' }
  const image = (at: 0 | 1): Image | undefined => (types[at] === undefined ? undefined : { type: types[at], base64: sides[at]!.bytes!.toString('base64') })
  const [now, then] = [image(0), image(1)]
  return { kind: 'image', ...(now === undefined ? {} : { before: now }), ...(then === undefined ? {} : { after: then }) }
}

/** The text of a side, a link's being its target; undefined for bytes that are none. Nothing and a folder are empty. */
export function textOf({ state, bytes }: Side): string | undefined {
  if (state.kind === 'link') return state.target
  if (state.kind !== 'file') return ''
  // The first bytes decide, as with git; the mark at the start of a text is part of it.
  return bytes === undefined || bytes.subarray(0, 8000).includes(0) || !isUtf8(bytes) ? undefined : bytes.toString('utf8')
}

const hasContent = ({ state }: Side): boolean => state.kind === 'file' || state.kind === 'link'

function areSame({ state: a }: Side, { state: b }: Side): boolean {
  if (a.kind === 'file') return b.kind === 'file' && a.digest === b.digest
  return a.kind === 'link' && b.kind === 'link' && a.target === b.target
}

/** Places in the first bytes where a kind of picture has its name. */
const magic: readonly (readonly [ImageType, readonly (readonly [number, string])[]])[] = [
  ['image/png', [[0, '\x89PNG\r\n\x1a\n']]],
  ['image/jpeg', [[0, '\xff\xd8\xff']]],
  ['image/gif', [[0, 'GIF8']]],
  ['image/webp', [[0, 'RIFF'], [8, 'WEBP']]],
  ['image/avif', [[4, 'ftypavif']]],
  ['image/avif', [[4, 'ftypavis']]],
  ['image/bmp', [[0, 'BM']]],
  ['image/x-icon', [[0, '\0\0\x01\0']]],
]

/** Undefined for what is no picture that a page is to show. */
export function imageType(bytes: Buffer): ImageType | undefined {
  const start = bytes.subarray(0, 16).toString('latin1')
  return magic.find(([, parts]) => parts.every(([at, word]) => start.startsWith(word, at)))?.[0]
}
