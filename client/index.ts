export const inject = ['slots', 'locale', 'sessions']

export function apply(_ctx: unknown): void {}
