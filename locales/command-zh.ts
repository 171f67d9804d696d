import type { commandEn } from './command-en.ts'

/** Texts of the command's answers, Chinese. */
export const commandZh = {} satisfies Record<keyof typeof commandEn, string>
