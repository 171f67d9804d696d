import { commandZh } from './command-zh.ts'
import { diffZh } from './diff-zh.ts'
import { failureZh } from './failure-zh.ts'
import type { Key } from './keys.ts'
import { uiZh } from './ui-zh.ts'
import { viewZh } from './view-zh.ts'

/** Every Chinese text. */
export const zh: Record<Key, string> = { ...uiZh, ...diffZh, ...failureZh, ...commandZh, ...viewZh }
