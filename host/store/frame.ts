import { crc32 } from 'node:zlib'

/**
 * Frames: how records lie in a segment file.
 *
 *      0  'TBK1'            8  nonce of the segment, 8 bytes     20  payload length, u32
 *      4  kind              16  record number, u32, from 0       24  crc32 of the payload
 *      5  encoding, 6  0 0                                       28  crc32 of bytes 0-27
 *
 * Numbers are little-endian; the payload follows the 32 bytes. A record is true when its frame is whole:
 * both checksums hold, the nonce is the segment's and the number is higher than that of the record before.
 * Nothing else (no index, no file size, no end mark) is asked, so a write that was cut off at any byte
 * leaves exactly the records before the cut.
 *
 * The nonce keeps frames apart from file contents: a saved file may itself be a copy of a segment, and the
 * search for the next frame behind a damaged one must not take a frame out of that copy. A copy of this
 * very segment has the nonce too, but only numbers lower than that of the record it was saved in.
 */
const frameKinds = ['header', 'blob', 'journal'] as const
export type FrameKind = (typeof frameKinds)[number]
const encodings = ['raw', 'zstd', 'zstd-delta'] as const
export type Encoding = (typeof encodings)[number]

export const frameHeaderBytes = 32
const magic = Buffer.from('TBK1', 'latin1')
const nonceAt = 8
const nonceBytes = 8
const numberAt = 16
const lengthAt = 20
const payloadSumAt = 24
const headerSumAt = 28
/** Far above any file we take, far below what one write call can hold. */
const maxPayloadBytes = 0x4000_0000

/** `kind` or `encoding` is `undefined` in a whole frame that a later version wrote. `offset`: of the payload, in the file. */
export interface Frame {
  readonly number: number
  readonly kind: FrameKind | undefined
  readonly encoding: Encoding | undefined
  readonly offset: number
  readonly payload: Buffer
}

/** Where a scan stands: everything before `offset` is read, `number` comes next. */
export interface ScanPoint {
  readonly offset: number
  readonly number: number
  readonly nonce: Buffer | undefined
}
export const scanStart: ScanPoint = { offset: 0, number: 0, nonce: undefined }

export interface FrameScan {
  readonly frames: readonly Frame[]
  /** Records that should lie before a frame that was found, and do not: numbers `from` up to, not including, `to`. */
  readonly lost: readonly { readonly from: number; readonly to: number }[]
  /** Behind the last whole frame. Bytes from here on are a torn tail, or a write that is still under way. */
  readonly end: ScanPoint
}

/** A frame to be made; `payload` in parts. `encoding` is `raw` when left out. */
export interface FrameDraft {
  readonly kind: FrameKind
  readonly encoding?: Encoding
  readonly payload: readonly Uint8Array[]
}
export interface EncodedFrames {
  /** To be written one behind the other. The parts of the payloads stand among them as they are, not copied. */
  readonly parts: readonly Uint8Array[]
  readonly bytes: number
  /** Where the payloads lie in the file. */
  readonly places: readonly { readonly offset: number; readonly length: number }[]
}

/** Frames as they stand in the file from `offset` on, numbered from `number`. */
export function encodeFrames(nonce: Buffer, number: number, offset: number, drafts: readonly FrameDraft[]): EncodedFrames {
  const parts: Uint8Array[] = []
  const places: { offset: number; length: number }[] = []
  let end = offset
  drafts.forEach(({ kind, encoding = 'raw', payload }, index) => {
    const length = payload.reduce((sum, part) => sum + part.length, 0)
    if (length > maxPayloadBytes) throw new Error(`store/frame: a payload of ${length} bytes, the limit is ${maxPayloadBytes}`)
    const head = Buffer.alloc(frameHeaderBytes)
    magic.copy(head, 0)
    head[4] = frameKinds.indexOf(kind) + 1
    head[5] = encodings.indexOf(encoding)
    nonce.copy(head, nonceAt, 0, nonceBytes)
    head.writeUInt32LE(number + index, numberAt)
    head.writeUInt32LE(length, lengthAt)
    head.writeUInt32LE(payload.reduce((sum, part) => crc32(part, sum), 0), payloadSumAt)
    head.writeUInt32LE(crc32(head.subarray(0, headerSumAt)), headerSumAt)
    parts.push(head, ...payload)
    places.push({ offset: end + frameHeaderBytes, length })
    end += frameHeaderBytes + length
  })
  return { parts, bytes: end - offset, places }
}

/**
 * Reads the frames in `bytes`, which lie in the file from `from.offset` on. Damage in the middle is
 * stepped over and reported as `lost`; damage with nothing whole behind it is where the file ends.
 */
export function scanFrames(bytes: Buffer, from: ScanPoint): FrameScan {
  const frames: Frame[] = []
  const lost: { from: number; to: number }[] = []
  let { offset, number, nonce } = from
  for (let at = 0; at >= 0;) {
    const found = frameAt(bytes, at, { offset: from.offset, number, nonce })
    if (!found) {
      at = bytes.indexOf(magic, at + 1)
      continue
    }
    if (found.number > number) lost.push({ from: number, to: found.number })
    frames.push(found)
    nonce ??= Buffer.from(bytes.subarray(at + nonceAt, at + nonceAt + nonceBytes))
    at += frameHeaderBytes + found.payload.length
    number = found.number + 1
    offset = from.offset + at
  }
  return { frames, lost, end: { offset, number, nonce } }
}

function frameAt(bytes: Buffer, at: number, expected: ScanPoint): Frame | undefined {
  const payloadAt = at + frameHeaderBytes
  if (payloadAt > bytes.length || magic.compare(bytes, at, at + magic.length) !== 0) return undefined
  if (bytes.readUInt32LE(at + headerSumAt) !== crc32(bytes.subarray(at, at + headerSumAt))) return undefined
  if (expected.nonce?.compare(bytes, at + nonceAt, at + nonceAt + nonceBytes)) return undefined
  const number = bytes.readUInt32LE(at + numberAt)
  if (number < expected.number) return undefined
  const payload = bytes.subarray(payloadAt, payloadAt + bytes.readUInt32LE(at + lengthAt))
  if (payload.length !== bytes.readUInt32LE(at + lengthAt)) return undefined
  if (bytes.readUInt32LE(at + payloadSumAt) !== crc32(payload)) return undefined
  const kind = frameKinds[bytes[at + 4]! - 1]
  const encoding = encodings[bytes[at + 5]!]
  return { number, kind, encoding, offset: expected.offset + payloadAt, payload }
}

/** What the header of a frame says, for readers that step over payloads. */
export interface FrameHead {
  readonly number: number
  readonly kind: FrameKind | undefined
  readonly encoding: Encoding | undefined
  readonly nonce: Buffer
  readonly length: number
  /** True when `payload` is the one that was written. */
  isWhole(payload: Buffer): boolean
}

/** `bytes`: a frame's first 32. Undefined when they are no whole header. */
export function readFrameHead(bytes: Buffer): FrameHead | undefined {
  if (bytes.length < frameHeaderBytes || magic.compare(bytes, 0, magic.length) !== 0) return undefined
  if (bytes.readUInt32LE(headerSumAt) !== crc32(bytes.subarray(0, headerSumAt))) return undefined
  const length = bytes.readUInt32LE(lengthAt)
  const sum = bytes.readUInt32LE(payloadSumAt)
  return {
    number: bytes.readUInt32LE(numberAt), kind: frameKinds[bytes[4]! - 1], encoding: encodings[bytes[5]!],
    nonce: Buffer.from(bytes.subarray(nonceAt, nonceAt + nonceBytes)), length,
    isWhole: payload => payload.length === length && crc32(payload) === sum,
  }
}
