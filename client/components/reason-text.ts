import { hasText, type Translator } from '../../locales/translate.ts'

/** Why a path was skipped, kept or failed: our reasons and common errno codes have a sentence, others are shown as is. */
export function reasonText(reason: string, t: Translator): string {
  for (const key of [`skip.${reason}`, `files.conflict.${reason}`]) if (hasText(key)) return t(key)
  return t('skip.other', { reason })
}
