import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { linesOfFold, segmentsOf } from '../../../../src/diff/hunks.ts'
import { diffTexts, type LineDiff } from '../../../../src/diff/line-diff.ts'
import { splitLines } from '../../../../src/diff/lines.ts'
import { patchOf } from './patch.ts'

let folder = ''
beforeAll(() => { folder = mkdtempSync(join(tmpdir(), 'turnback-diff-')) })
afterAll(() => rmSync(folder, { recursive: true }))

const lineDiff = (before: string, after: string, maxEdits?: number) =>
  diffTexts(before, after, { timeoutMs: 10_000, maxEdits: maxEdits ?? 10_000 }) as LineDiff

/** Few different lines, so that many are equal, with all kinds of ends. */
const text = fc.tuple(
  fc.constantFrom('', '\uFEFF'),
  fc.array(fc.tuple(fc.constantFrom('', 'a', 'b', 'c', '\tx', 'trailing  ', '轮', '+', '-- a/f', '\\ No newline'), fc.constantFrom('\n', '\n', '\n', '\r\n')), { maxLength: 40 }),
  fc.constantFrom('', '', 'last', 'a', '\r'),
).map(([bom, lines, last]) => bom + lines.flat().join('') + last)

it('put the lines that came in the place of those that went, and the new text is there', () => {
  fc.assert(fc.property(text, text, fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }), (before, after, maxEdits) => {
    const oldLines = splitLines(before)
    const newLines = splitLines(after)

    const made: string[] = []
    let at = 0
    for (const change of lineDiff(before, after, maxEdits).changes) {
      expect(change.oldCount + change.newCount).toBeGreaterThan(0)
      made.push(...oldLines.slice(at, change.oldStart))
      expect(made.length).toBe(change.newStart)
      made.push(...newLines.slice(change.newStart, change.newStart + change.newCount))
      at = change.oldStart + change.oldCount
    }
    made.push(...oldLines.slice(at))

    expect(made.join('')).toBe(after)
  }), { numRuns: 500 })
})

it('show every line of both texts once and in order', () => {
  fc.assert(fc.property(text, text, (before, after) => {
    const oldLines = splitLines(before)
    const newLines = splitLines(after)
    const shown = segmentsOf(lineDiff(before, after)).flatMap(segment => (segment.kind === 'hunk' ? segment.lines : linesOfFold(segment)))

    expect(shown.flatMap(line => (line.kind === 'added' ? [] : [line.old]))).toEqual(oldLines.map((_, at) => at + 1))
    expect(shown.flatMap(line => (line.kind === 'removed' ? [] : [line.new]))).toEqual(newLines.map((_, at) => at + 1))
    for (const line of shown) if (line.kind === 'same') expect(oldLines[line.old - 1]).toBe(newLines[line.new - 1])
  }))
})

it('remove and add as many lines as git does, and git makes the new text of the hunks', () => {
  fc.assert(fc.property(text, text, (before, after) => {
    writeFileSync(join(folder, 'old'), before)
    writeFileSync(join(folder, 'new'), after)
    const git = spawnSync('git', ['-c', 'core.autocrlf=false', '-c', 'core.safecrlf=false', 'diff', '--no-index', '--minimal', '--numstat', 'old', 'new'], { cwd: folder, encoding: 'utf8' })
    const [added = '0', removed = '0'] = git.stdout.split('\t')

    const found = lineDiff(before, after)

    expect([found.added, found.removed]).toEqual([Number(added || 0), Number(removed)])
    if (before === after) return
    writeFileSync(join(folder, 'f'), before)
    execFileSync('git', ['-c', 'core.autocrlf=false', 'apply', '--whitespace=nowarn', '--unidiff-zero'], { cwd: folder, input: patchOf(found, before, after), env: { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() } })
    expect(readFileSync(join(folder, 'f'), 'utf8')).toBe(after)
  }), { numRuns: 60 })
}, 60_000)
