const units = ['B', 'kB', 'MB', 'GB']

/** A number of bytes in words that every language shares: `12.3 kB`. */
export function sizeText(bytes: number): string {
  let size = bytes
  let unit = 0
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit += 1
  }
  return `${unit > 0 && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`
}
