import type { en } from './en.ts'

/** Every text's key, dotted by place. */
export type Key = keyof typeof en

/** Keys that exist for one and for many; the count goes into `{count}`. */
export type CountKey = Key extends infer K ? (K extends `${infer Base}.other` ? Base : never) : never
