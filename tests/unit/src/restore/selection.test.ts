import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { absent, type FileState } from '../../../../src/checkpoint/file-state.ts'
import { foldLedger } from '../../../../src/ledger/ledger.ts'
import type { Preview, PreviewRow } from '../../../../src/protocol/requests.ts'
import { changedRows } from '../../../../src/restore/changed-rows.ts'
import { pathsInSpan, planRestore, type RestorePlan } from '../../../../src/restore/plan.ts'
import { choose, restrictPlan } from '../../../../src/restore/selection.ts'
import { aJournal, file, startSeqOf } from '../../../support/a-journal.ts'
import { lawRuns, lawTimeoutMs } from '../../../support/runs.ts'

const folder: FileState = { kind: 'folder', mode: 0o755 }
const link: FileState = { kind: 'link', target: 'x' }

/** The plan back to before turn 1, with everything as the last record left it unless told otherwise. */
function planOf(journal: ReturnType<typeof aJournal>, now: Readonly<Record<string, FileState>> = {}): RestorePlan {
  const ledger = foldLedger(journal.entries)
  const current = new Map(pathsInSpan(ledger, startSeqOf(1)).map(path => [path, now[path] ?? ledger.paths.get(path)!.records.at(-1)!.after!]))
  return planRestore(ledger, startSeqOf(1), { current })
}
const of = (plan: RestorePlan, ...paths: string[]) => restrictPlan(plan, new Set(paths))
const decisions = ({ plan }: ReturnType<typeof restrictPlan>) => plan.rows.map(({ path, decision }) => [path, decision.kind === 'skip' ? decision.skip : decision.kind])

describe('whatever was recorded and is there now', () => {
  const paths = ['/w/a', '/w/d', '/w/d/e', '/w/d/e/f', '/w/d/g', '/w/dd']
  const state = fc.constantFrom<FileState>(absent, file('1'), file('2'), folder, link)
  const record = fc.record({ path: fc.constantFrom(...paths), before: state, after: state, made: fc.subarray(['/w/d', '/w/d/e']), isShell: fc.boolean() })
  const plans = fc.record({ records: fc.array(record, { maxLength: 12 }), now: fc.array(state, { minLength: paths.length, maxLength: paths.length }) })
    .map(({ records, now }) => {
      const journal = aJournal().turn(1)
      for (const { path, before, after, made, isShell } of records) {
        const absentFolders = made.filter(name => path.startsWith(`${name}/`))
        if (isShell) journal.changes(path, before, after, { absentFolders })
        else journal.writes(path, before, after, { absentFolders })
      }
      return planOf(journal, Object.fromEntries(paths.map((path, at) => [path, now[at]!])))
    })

  test('the selection of everything is the whole plan', { timeout: lawTimeoutMs }, () => {
    fc.assert(fc.property(plans, (plan) => {
      expect(of(plan, ...paths)).toEqual({ plan, leftOut: 0 })
    }), lawRuns)
  })

  test('a selection is the restriction of the whole: each row is decided as there or left alone, and nothing else is touched', { timeout: lawTimeoutMs }, () => {
    fc.assert(fc.property(plans, fc.subarray(paths), (plan, chosen) => {
      const { plan: part, leftOut } = of(plan, ...chosen)
      const whole = new Map(plan.rows.map(row => [row.path, row]))
      for (const row of part.rows) {
        const same = whole.get(row.path)!
        if (row.decision.kind !== 'skip' || row.decision.skip !== 'in-the-way') expect(row).toEqual(same)
        // What comes along is a folder and never anybody's content.
        if (!chosen.includes(row.path)) expect([same.goal.kind, same.current.kind].filter(kind => kind !== 'absent')).toEqual(['folder'])
      }
      expect(part.rows.map(({ path }) => path)).toEqual(plan.rows.map(({ path }) => path).filter(path => part.rows.some(row => row.path === path)))
      for (const path of chosen) expect(part.rows.some(row => row.path === path)).toBe(whole.has(path))
      expect(plan.folders).toEqual(expect.arrayContaining([...part.folders]))
      expect(leftOut).toBeLessThanOrEqual(plan.rows.length - part.rows.length)
    }), lawRuns)
  })

  test('the selection of nothing does nothing', { timeout: lawTimeoutMs }, () => {
    fc.assert(fc.property(plans, (plan) => {
      expect(of(plan).plan).toEqual({ rows: [], folders: [] })
    }), lawRuns)
  })
})

describe('folders and links under a selection', () => {
  test('a folder that was removed comes back with a file that was chosen in it', () => {
    const plan = planOf(aJournal().changes('/w/d', folder, absent).changes('/w/d/a', file('a'), absent).changes('/w/d/b', file('b'), absent))

    expect(of(plan, '/w/d/a')).toMatchObject({ leftOut: 1, plan: { rows: [{ path: '/w/d', decision: { kind: 'recreate' } }, { path: '/w/d/a', decision: { kind: 'recreate' } }] } })
  })

  test('a folder that the span made may go with the last file in it, and only where a file in it goes', () => {
    const plan = planOf(aJournal().writes('/w/n/a', undefined, '1', { absentFolders: ['/w/n'] }).writes('/w/m/b', undefined, '1', { absentFolders: ['/w/m'] }))

    expect(of(plan, '/w/n/a').plan.folders).toEqual(['/w/n'])
  })

  test('a folder with a record of its own keeps it while something in it stays', () => {
    const plan = planOf(aJournal().changes('/w/n', absent, folder).changes('/w/n/a', absent, file('1')).changes('/w/n/b', absent, file('1')))

    expect(of(plan, '/w/n/a').plan).toMatchObject({ rows: [{ path: '/w/n/a' }], folders: [] })
    expect(of(plan, '/w/n/a', '/w/n/b').plan.folders).toEqual(['/w/n'])
  })

  test('what stands in the place of a folder is not replaced for a file that was chosen behind it', () => {
    const plan = planOf(aJournal().changes('/w/d/a', file('a'), absent).changes('/w/d', folder, file('x')))

    expect(decisions(of(plan, '/w/d/a'))).toEqual([['/w/d/a', 'in-the-way']])
    expect(decisions(of(plan, '/w/d', '/w/d/a'))).toEqual([['/w/d', 'write'], ['/w/d/a', 'recreate']])
  })

  test('what is behind a link that stays is left alone, and the link goes by itself', () => {
    const plan = planOf(
      aJournal().changes('/w/d/a', file('a'), absent).changes('/w/d', folder, link),
      { '/w/d/a': { kind: 'unknown', reason: 'behind-link' } },
    )

    expect(decisions(of(plan, '/w/d/a'))).toEqual([['/w/d/a', 'in-the-way']])
    expect(decisions(of(plan, '/w/d'))).toEqual([['/w/d', 'write']])
  })

  test('a file does not come back in the place of a folder in which something stays', () => {
    const plan = planOf(aJournal().changes('/w/d', file('1'), absent).changes('/w/d/a', absent, file('a'), { absentFolders: ['/w/d'] }), { '/w/d': folder })

    expect(decisions(of(plan, '/w/d', '/w/d/a'))).toEqual([['/w/d', 'write'], ['/w/d/a', 'delete']])
    expect(decisions(of(plan, '/w/d'))).toEqual([['/w/d', 'in-the-way']])
  })
})

test('a name is a path of the plan or a folder with all that is in it', () => {
  const plan = planOf(aJournal().writes('/w/d/a', '1', '2').writes('/w/d/b', '1', '2').writes('/w/dd', '1', '2'))

  expect(choose(plan, ['/w/d'])).toEqual({ chosen: new Set(['/w/d/a', '/w/d/b']), unknown: [] })
  expect(choose(plan, ['/w/dd', '/w/x', '/w/d/'])).toEqual({ chosen: new Set(['/w/dd']), unknown: ['/w/x', '/w/d/'] })
  expect(choose(plan, ['/']).chosen.size).toBe(3)
})

describe('against the preview that a person saw', () => {
  const row = (path: string, more: Partial<PreviewRow> = {}): PreviewRow =>
    ({ path, shown: path, action: 'write', goal: file('1'), current: file('2'), turns: [1], origin: 'tool', ...more })
  const rows = (...all: PreviewRow[]): Pick<Preview, 'rows'> => ({ rows: all })

  test.each<[string, Partial<PreviewRow>]>([
    ['another state on the disk', { current: file('3') }],
    ['another goal', { goal: absent }],
    ['another action', { action: 'keep', conflict: 'changed-since' }],
  ])('%s is named', (_what, more) => {
    expect(changedRows(rows(row('/w/a'), row('/w/b')), rows(row('/w/a'), row('/w/b', more)))).toEqual(new Set(['/w/b']))
  })

  test('a row that was not there is named', () => {
    expect(changedRows(rows(row('/w/a')), rows(row('/w/a'), row('/w/b')))).toEqual(new Set(['/w/b']))
  })

  test('what is as it was is not named, nor what cannot be read now as then', () => {
    const unreadable = row('/w/u', { action: 'skip', skip: 'unreadable', current: { kind: 'unknown', reason: 'unreadable' } })

    expect(changedRows(rows(row('/w/a'), unreadable, row('/w/gone')), rows(row('/w/a'), unreadable))).toEqual(new Set())
  })
})
