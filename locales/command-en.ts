/** Texts of the command's answers, English. */
export const commandEn = {} as const
