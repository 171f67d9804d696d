/** Results of things that are expected to fail sometimes; a bug throws instead. */
export type Ok<T> = { readonly ok: true; readonly value: T }
export type Fail<F> = { readonly ok: false; readonly failure: F }
export type Result<T, F> = Ok<T> | Fail<F>

export const ok = <T>(value: T): Ok<T> => ({ ok: true, value })
export const fail = <F>(failure: F): Fail<F> => ({ ok: false, failure })
