import { createHash } from 'node:crypto'
import { digest, type Digest } from '../src/ids.ts'

/** SHA-256 of a file's raw bytes: the name under which the store keeps them. */
export const digestOf = (bytes: Uint8Array): Digest => digest(createHash('sha256').update(bytes).digest('hex'))
