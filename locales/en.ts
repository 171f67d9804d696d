import { commandEn } from './command-en.ts'
import { diffEn } from './diff-en.ts'
import { failureEn } from './failure-en.ts'
import { uiEn } from './ui-en.ts'
import { viewEn } from './view-en.ts'

/** Every English text. It is the source of the keys. */
export const en = { ...uiEn, ...diffEn, ...failureEn, ...commandEn, ...viewEn } as const
