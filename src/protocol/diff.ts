import * as v from 'valibot'
import { FileStateSchema } from '../checkpoint/file-state.ts'
import { untilOf } from './checkpoints.ts'

/** Texts up to this size are sent for a diff, each side; and pictures. */
export const MAX_TEXT_BYTES = 2 * 1024 * 1024
export const MAX_IMAGE_BYTES = 1024 * 1024
/** Paths of one request for counts. */
export const MAX_COUNTED = 50

/** Told by the first bytes. SVG is not among them: it is text that can run scripts, and is shown as text. */
export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp', 'image/x-icon'] as const
export type ImageType = (typeof imageTypes)[number]

const count = v.pipe(v.number(), v.integer(), v.minValue(0))
const Path = v.pipe(v.string(), v.minLength(1), v.maxLength(8192))
const ImageSchema = v.object({ type: v.picklist(imageTypes), base64: v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]*={0,2}$/)) })
export type Image = v.InferOutput<typeof ImageSchema>

/**
 * What is at a path now (`before`) and what a rollback would leave there (`after`).
 * A side without content (nothing, or a folder) is an empty text or no picture.
 */
export const FileContentSchema = v.variant('kind', [
  /** UTF-8 on both sides; a link is its target. */
  v.object({ kind: v.literal('text'), before: v.string(), after: v.string() }),
  v.object({ kind: v.literal('image'), before: v.optional(ImageSchema), after: v.optional(ImageSchema) }),
  /** Bytes that are no text on at least one side. */
  v.object({ kind: v.literal('binary') }),
  /** Over the limits above on at least one side. */
  v.object({ kind: v.literal('too-large') }),
  /** The saved bytes are no more in the store. */
  v.object({ kind: v.literal('gone') }),
  /** The bytes are the same, or neither side has any: what differs is in the states. */
  v.object({ kind: v.literal('same') }),
  /** One side is unknown, and its state says why. */
  v.object({ kind: v.literal('unknown') }),
])
export type FileContent = v.InferOutput<typeof FileContentSchema>

export const FileChangeSchema = v.object({ current: FileStateSchema, goal: FileStateSchema, content: FileContentSchema })
export type FileChange = v.InferOutput<typeof FileChangeSchema>

const LineCountSchema = v.object({ path: Path, added: count, removed: count })
export type LineCount = v.InferOutput<typeof LineCountSchema>

/**
 * `about`: the session and the turn, as every endpoint that looks at one rollback has them. With `until` they are not
 * about a rollback but about what happened: `current` is the path before `turn`, `goal` after `until`.
 */
export const diffEndpoints = <About extends v.ObjectEntries, Turn extends v.GenericSchema<number, number>>(about: About, turn: Turn) => ({
  /** What a rollback to before `turn` would do to one path of its preview. */
  diff: { request: v.object({ ...about, path: Path, until: untilOf(turn) }), reply: FileChangeSchema },
  /** Lines that would come and go; paths that are no texts, or too much work, are left out. */
  counts: {
    request: v.object({ ...about, until: untilOf(turn), paths: v.pipe(v.array(Path), v.maxLength(MAX_COUNTED)) }),
    reply: v.object({ counts: v.array(LineCountSchema) }),
  },
})
