import { createHash } from 'node:crypto'
import * as zlib from 'node:zlib'
import { promisify } from 'node:util'
import { digest, type Digest } from '../../src/ids.ts'
import { digestOf } from '../digest.ts'
import type { Encoding } from './frame.ts'

/**
 * Payload of a blob frame: 32 bytes SHA-256 of the raw bytes; for `zstd-delta` 32 bytes digest of the base;
 * then the encoded bytes. A delta is a zstd stream with the raw bytes of the base as its dictionary.
 * A blob is true when its decoded bytes have the digest it is stored under; that is checked whenever they are given out.
 */
const digestBytes = 32

export interface BlobHead {
  readonly digest: Digest
  readonly base: Digest | undefined
  readonly headBytes: number
}

/** The parts of a raw blob payload, not copied. */
export const rawBlob = (of: Digest, bytes: Uint8Array): Uint8Array[] => [Buffer.from(of, 'hex'), bytes]

/** The parts of a compressed blob payload; with a base it is a `zstd-delta`. Only where `zstdSupport()` allows it. */
export async function zstdBlob(
  of: Digest,
  bytes: Uint8Array,
  base?: { digest: Digest; bytes: Uint8Array },
): Promise<Uint8Array[]> {
  const encoded = await promisify(zlib.zstdCompress)(bytes, base ? { dictionary: base.bytes, params: deltaParams(bytes.length + base.bytes.length) } : {})
  return [Buffer.from(of, 'hex'), ...(base ? [Buffer.from(base.digest, 'hex')] : []), encoded]
}

/**
 * With its defaults zstd finds the versions of a file in each other up to about 1 MB: behind that the window ends
 * and its table of places is too small. Measured on one changed line in 2 to 8 MB of source: 0.2 of the bytes with
 * the defaults, 0.0002 with these. A reader allows a window of 2^27.
 */
function deltaParams(bytes: number): Record<number, number> {
  const { ZSTD_c_compressionLevel, ZSTD_c_windowLog } = zlib.constants
  return bytes <= 2 * 1024 * 1024 ? {} : { [ZSTD_c_compressionLevel]: 9, [ZSTD_c_windowLog]: Math.min(27, Math.ceil(Math.log2(bytes + 1))) }
}

/** `undefined` when the payload is too short to be a blob. */
export function parseBlobHead(encoding: Encoding, payload: Buffer): BlobHead | undefined {
  const headBytes = encoding === 'zstd-delta' ? 2 * digestBytes : digestBytes
  if (payload.length < headBytes) return undefined
  const hex = (part: number): Digest => digest(payload.toString('hex', part * digestBytes, (part + 1) * digestBytes))
  return { digest: hex(0), base: headBytes > digestBytes ? hex(1) : undefined, headBytes }
}

/**
 * The raw bytes; `undefined` when they cannot be had: damaged, the base is gone, or this Node has no zstd.
 * With `of` they are checked to have that digest. `base` gives the bytes of another blob.
 */
export async function decodeBlob(
  encoding: Encoding,
  payload: Buffer,
  base: (digest: Digest) => Promise<Buffer | undefined>,
  of: Digest | undefined,
): Promise<Buffer | undefined> {
  const head = parseBlobHead(encoding, payload)
  if (!head) return undefined
  const bytes = await inflate(encoding, payload.subarray(head.headBytes), head.base && (await base(head.base)))
  return bytes && (of === undefined || digestOf(bytes) === of) ? bytes : undefined
}

async function inflate(encoding: Encoding, encoded: Buffer, dictionary: Buffer | undefined): Promise<Buffer | undefined> {
  if (encoding === 'raw') return encoded
  if (zstdSupport() === 'none') return undefined
  if (encoding === 'zstd-delta' && (zstdSupport() !== 'dictionary' || !dictionary)) return undefined
  try {
    return await promisify(zlib.zstdDecompress)(encoded, dictionary ? { dictionary } : {})
  } catch {
    return undefined // not a zstd stream, or another dictionary: the same to the caller as wrong bytes
  }
}

/** What the zstd of this Node can do, found by a round trip: early versions take `dictionary` and ignore it. */
export function zstdSupport(): 'none' | 'plain' | 'dictionary' {
  return (support ??= probeZstd())
}
let support: 'none' | 'plain' | 'dictionary' | undefined

function probeZstd(): 'none' | 'plain' | 'dictionary' {
  if (typeof zlib.zstdCompressSync !== 'function') return 'none'
  // Bytes that only the dictionary makes small: without it the stream is longer than the probe.
  const probe = createHash('shake256', { outputLength: 1024 }).update('zstd dictionary').digest()
  const packed = zlib.zstdCompressSync(probe, { dictionary: probe })
  if (packed.length > probe.length / 2) return 'plain'
  return zlib.zstdDecompressSync(packed, { dictionary: probe }).equals(probe) ? 'dictionary' : 'plain'
}
