// README.md and README.zh.md say the same: as many headings of each level, the same code, pictures, commands and options
// in each section, and the same figures.
import { readFileSync } from 'node:fs'
import { report } from './syntax.mjs'

const [en, zh] = ['README.md', 'README.zh.md'].map(sectionsOf)
const differences = en.length === zh.length ? [] : [`README.md has ${en.length} sections, README.zh.md ${zh.length}`]
for (const [at, section] of en.entries()) {
  const other = zh[at]
  if (other === undefined) break
  for (const what of ['level', 'rows', 'bullets', 'blocks', 'code', 'pictures', 'figures']) {
    const [left, right] = [section[what], other[what]]
    const [more, less] = [without(left, right), without(right, left)]
    if (more.length > 0) differences.push(`${section.title}: ${what} only in English: ${more.join(' ')}`)
    if (less.length > 0) differences.push(`${section.title}: ${what} only in Chinese: ${less.join(' ')}`)
  }
}
report(differences, `${en.length} sections in two languages`)

/** Each heading with what stands below it up to the next one; every member a list. */
function sectionsOf(path) {
  const text = readFileSync(path, 'utf8')
  return text.split(/^(?=#{1,6} )/m).filter(part => part.trim() !== '').map((part) => {
    const blocks = [...part.matchAll(/^```[^]*?^```/gm)].map(([block]) => block)
    const prose = blocks.reduce((rest, block) => rest.replace(block, ''), part)
    const code = [...prose.matchAll(/`([^`]+)`/g)].map(([, word]) => word)
    const plain = prose.replace(/`[^`]+`/g, '').replace(/\]\([^)]*\)/g, ']')
    return {
      title: /^#+ (.*)/.exec(part)?.[1] ?? '',
      level: [/^#+/.exec(part)?.[0] ?? ''],
      rows: [String(prose.match(/^\|/gm)?.length ?? 0)],
      bullets: [String(prose.match(/^- /gm)?.length ?? 0)],
      blocks,
      code,
      pictures: [...prose.matchAll(/\]\(([^)]+\.png)\)/g)].map(([, file]) => file),
      // Not the ones inside names, as in e2e.
      figures: plain.match(/(?<![\w.])\d(?:[\d,.]*\d)?(?!\w)/g) ?? [],
    }
  })
}

/** Members of `list` that `other` does not have as often. */
function without(list, other) {
  const rest = [...other]
  return list.filter((one) => {
    const at = rest.indexOf(one)
    if (at >= 0) rest.splice(at, 1)
    return at < 0
  })
}
