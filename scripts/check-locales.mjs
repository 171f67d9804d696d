// Both languages have the same texts with the same placeholders, no text is empty, and every text is used somewhere.
// A key counts as used when a source file writes it, or writes the beginning of a template it can come from; the
// other direction, a key that does not exist, is a type error (locales/keys.ts). The page's bundle has no texts of the
// command, so no file of it may write their keys.
import { commandEn } from '../locales/command-en.ts'
import { en } from '../locales/en.ts'
import { zh } from '../locales/zh.ts'
import { nodesOf, parseFile, report, sourceFiles } from './syntax.mjs'

const placeholders = text => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort().join(' ')

const differences = [...new Set([...Object.keys(en), ...Object.keys(zh)])].flatMap((key) => {
  if (en[key] === undefined) return [`${key}: missing in English`]
  if (zh[key] === undefined) return [`${key}: missing in Chinese`]
  if (en[key].trim() === '' || zh[key].trim() === '') return [`${key}: empty`]
  // English may leave out the number in the text for one thing.
  if (key.endsWith('.one')) return []
  return placeholders(en[key]) === placeholders(zh[key]) ? []
    : [`${key}: placeholders differ: ${placeholders(en[key]) || 'none'} / ${placeholders(zh[key]) || 'none'}`]
})

/** Whole strings, and templates as patterns with one wildcard per `${}`. */
const written = new Set()
const patterns = []
const inPage = []
const isOfCommand = key => Object.hasOwn(commandEn, key) || Object.hasOwn(commandEn, `${key}.other`)
const tables = /^locales\/((ui|diff|view|command|failure)-)?(en|zh)\.ts$/
for (const path of sourceFiles('src', 'host', 'client', 'locales').filter(file => !tables.test(file))) {
  for (const node of nodesOf(parseFile(path).program)) {
    if (node.type === 'Literal' && typeof node.value === 'string') {
      written.add(node.value)
      if (path.startsWith('client/') && isOfCommand(node.value)) inPage.push(`${path}: ${node.value} is not in the page's bundle`)
    }
    if (node.type === 'TemplateLiteral') {
      const parts = node.quasis.map(part => part.value.cooked)
      // A template that begins or ends with a variable and has no dot says nothing about a key.
      if (parts[0].includes('.')) patterns.push(new RegExp(`^${parts.map(escape).join('.+')}$`))
    }
  }
}
const isUsed = key => written.has(key) || written.has(key.replace(/\.(one|other)$/, ''))
  || patterns.some(pattern => pattern.test(key))
const unused = Object.keys(en).filter(key => !isUsed(key)).map(key => `${key}: no source file uses it`)

report([...differences, ...unused, ...inPage], `${Object.keys(en).length} texts in two languages`)

function escape(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
