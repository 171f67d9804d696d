/** True when the path has every one of the words in it, in any order and case. No words: always. */
export function hasWords(path: string, words: string): boolean {
  const whole = path.toLowerCase()
  return words.toLowerCase().split(/\s+/).every(word => whole.includes(word))
}
