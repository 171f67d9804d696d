import type { PreviewRow } from '../protocol/requests.ts'

/** A file with several names (hard links) is replaced under one of them: what the row does, or may do by choice. */
export const losesItsOtherNames = ({ action, putBackAction, current }: PreviewRow): boolean =>
  current.kind === 'file' && current.links !== undefined && (action === 'write' || putBackAction === 'write')
