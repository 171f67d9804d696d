export const name = 'turnback'

export const inject = ['sessions', 'agents', 'commands']

export function apply(_ctx: unknown): void {}
