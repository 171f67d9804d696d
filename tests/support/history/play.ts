import { existsSync, realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Operation } from '../../../host/rollback/op-end.ts'
import { bytesIn, contentOf, differing, folderModes, FOLDER, isFolderOnly, isHolding, perform, treeOf, type Edit, type Tree } from './disk.ts'
import { aLiveWorkspace, type LiveSession } from './live-workspace.ts'
import { Model, type Allowed } from './model.ts'

export type Who = 'A' | 'B'

/** Something that happens while a command runs: the person saves, or a file tool of either session writes. */
export type Beside =
  | { readonly by: 'user'; readonly edit: Edit }
  | { readonly by: 'other' | 'own'; readonly path: string; readonly content: number }

export type Call =
  | { readonly kind: 'tool'; readonly bySub: boolean; readonly path: string; readonly content: number }
  | { readonly kind: 'command'; readonly bySub: boolean; readonly edits: readonly Edit[]; readonly beside: readonly Beside[] }
  | { readonly kind: 'user'; readonly edits: readonly Edit[] }

export type Step =
  | { readonly kind: 'turn'; readonly who: Who; readonly calls: readonly Call[] }
  | { readonly kind: 'user'; readonly edits: readonly Edit[] }
  /** Commands of both sessions at the same time. */
  | { readonly kind: 'overlap'; readonly a: readonly Edit[]; readonly b: readonly Edit[]; readonly endsFirst: Who }
  | { readonly kind: 'rollback'; readonly who: Who; readonly turn: number }

/** A history played out in a real folder, with the model beside it. Throws where the two disagree. */
export class Play {
  readonly #world
  readonly #model = new Model()
  readonly #turns: Record<Who, number[]> = { A: [], B: [] }

  constructor(hasGit: boolean) {
    this.#world = aLiveWorkspace({ hasGit })
  }

  static async run(steps: readonly Step[], { hasGit = false } = {}): Promise<void> {
    const play = new Play(hasGit)
    try {
      for (const step of steps) await play.#take(step)
      await play.#judge()
    } finally {
      await play.#world.remove()
    }
  }

  async #take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'user': return this.#edit(step.edits)
      case 'turn': {
        const turn = await this.#begin(step.who)
        for (const call of step.calls) await this.#call(step.who, turn, call)
        return this.#endTurns()
      }
      case 'overlap': return this.#overlap(step)
      case 'rollback': {
        const turns = this.#turns[step.who]
        if (turns.length > 0) await this.#rollBack(step.who, turns[step.turn % turns.length]!)
      }
    }
  }

  /** Every turn of both sessions is gone back to, and each rollback undone again. */
  async #judge(): Promise<void> {
    for (const who of ['A', 'B'] as const) {
      for (const words of this.#model.foundBy(who)) await this.#expectStored(who, words, 'what a call found')
      for (const turn of this.#turns[who].toReversed()) {
        const kept = await this.#tryOut(who, turn)
        // The user may want all of that back all the same.
        if (kept.size > 0) await this.#tryOut(who, turn, kept)
      }
    }
  }

  /** A rollback and its undo; gives the paths that it kept. */
  async #tryOut(who: Who, turn: number, putBack?: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const { before, modes, outcomes, undo } = await this.#rollBack(who, turn, { isTrial: true, putBack })
    const undone = await undo()
    const after = this.#tree()
    // Where no file was changed there is nothing to undo, and the rollback stands.
    if (undone === undefined) this.#model.rolledBack(who, turn, before, after)
    this.#expect(differing(before, after), [], `the undo of ${who}'s rollback to turn ${turn} gives back all`, { before, after })
    this.#expect([...folderModes(this.#world.root, after)], [...modes], `the undo of ${who}'s rollback to turn ${turn} gives folders their modes`)
    return new Set(outcomes.flatMap(({ path, result }) => (result === 'kept' ? [path] : [])))
  }

  async #rollBack(who: Who, turn: number, { isTrial = false, putBack }: { readonly isTrial?: boolean; readonly putBack?: ReadonlySet<string> | undefined } = {}) {
    const session = this.#world.sessions[who]
    const before = this.#tree()
    const modes = folderModes(this.#world.root, before)
    const expected = this.#model.expected(who, turn, before)
    const op = await this.#world.rollsBack(session, turn, putBack)
    const after = this.#tree()
    const story = { before, after, outcomes: op.outcomes }
    // A new file that was moved here and then written is not told from one that was there: named, and left as it is.
    const named = new Set(op.outcomes.flatMap(({ path, reason }) => (reason === 'not-saved' ? [relative(this.#world.root, path)] : [])))
    for (const path of putBack === undefined ? new Set([...expected.keys(), ...after.keys()]) : []) {
      const allowed = expected.get(path) ?? [undefined]
      this.#expectAllowed(path, named.has(path) && allowed.includes(undefined) ? [...allowed, before.get(path)] : allowed, after, `${who} to turn ${turn}`, story)
    }
    for (const path of differing(before, after)) await this.#expectStored(who, before.get(path), 'what a rollback replaced')
    this.#expectNamed(differing(before, after).filter(path => ![before, after].every(tree => isFolderOnly(tree.get(path)))), ['restored'], story)
    const since = new Set(this.#model.writtenSince(who, turn))
    for (const { path, result, reason } of op.outcomes) {
      const name = relative(this.#world.root, path)
      const goal = this.#model.goalOf(who, turn, name)
      if (result === 'restored' && goal !== undefined && !isFolderOnly(goal.words)) this.#expect(after.get(name), goal.words, `${name} is as it is told to be`, story)
      if (result === 'kept' && since.has(name)) this.#expect(reason, 'other-session', `why ${name} is kept`, story)
    }
    this.#expectNamed(this.#model.left(who, turn, after), ['kept', 'skipped', 'failed'], story)
    for (const [path, mode] of folderModes(this.#world.root, after)) this.#expect(mode, modes.get(path) ?? mode, `the mode of the folder ${path}`)
    if (!isTrial) this.#model.rolledBack(who, turn, before, after)
    return { before, modes, outcomes: op.outcomes, undo: () => this.#world.undoes(session, op.begin.op) }
  }

  #expectAllowed(path: string, allowed: Allowed, after: Tree, what: string, story: object): void {
    const found = after.get(path)
    const isBlocked = found === undefined && ancestorsOf(path).some(folder => ![FOLDER, undefined].includes(after.get(folder)))
    if ((found === FOLDER && isHolding(after, path)) || isBlocked || allowed.includes(found)) return
    this.#expect(found, allowed, `${what}: ${JSON.stringify(path)}`, story)
  }

  /** What changed and what did not is said, path by path. */
  #expectNamed(paths: readonly string[], results: readonly string[], story: { readonly outcomes: Operation['outcomes'] }): void {
    const named = new Set(story.outcomes.flatMap(({ path, result }) => (results.includes(result) ? [relative(this.#world.root, path)] : [])))
    this.#expect(paths.filter(path => !named.has(path)), [], `paths that are not told of as ${results.join(' or ')}`, story)
  }

  async #expectStored(who: Who, words: string | undefined, what: string): Promise<void> {
    const bytes = bytesIn(words)
    if (bytes !== undefined) this.#expect(await this.#world.has(this.#world.sessions[who], bytes), true, `${what} is stored: ${JSON.stringify(words)}`)
  }

  #expect(found: unknown, wanted: unknown, what: string, story: object = {}): void {
    const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)]
    if (one === other) return
    const shown = Object.entries(story).map(([name, value]) => `${name} ${JSON.stringify(value instanceof Map ? Object.fromEntries(value) : value)}`)
    throw new Error([`${what}: found ${one ?? 'nothing'}, wanted ${other ?? 'nothing'}`, ...shown].join('\n'))
  }

  async #call(who: Who, turn: number, call: Call): Promise<void> {
    const session = call.kind !== 'user' && call.bySub && who === 'A' ? this.#world.sessions.child : this.#world.sessions[who]
    switch (call.kind) {
      case 'user': return this.#edit(call.edits)
      case 'tool': return this.#write(who, turn, session, call)
      case 'command': {
        const before = this.#tree()
        const touched = new Map<string, (string | undefined)[]>()
        const touch = (path: string, found: string | undefined): void => { touched.set(path, [...touched.get(path) ?? [], found]) }
        const end = await this.#world.runs(session)
        for (let at = 0; at < Math.max(call.edits.length, call.beside.length); at += 1) {
          this.#edit(call.edits.slice(at, at + 1))
          const beside = call.beside[at]
          if (beside === undefined) continue
          const there = this.#tree()
          await this.#beside(who, session, beside)
          for (const path of differing(there, this.#tree())) touch(path, there.get(path))
          // Who made a folder that both needed is not told; it stays if it is empty in the end.
          if (beside.by !== 'user') for (const folder of ancestorsOf(beside.path)) touch(folder, before.get(folder))
          // A file tool's record stands for the path's whole change, also where it wrote what was there.
          if (beside.by !== 'user') for (const path of new Set([beside.path, this.#reached(beside.path)])) touch(path, there.get(path))
        }
        await end()
        this.#model.call(who, turn, before, this.#tree(), { shared: path => touched.get(path), touched: touched.keys() })
      }
    }
  }

  async #beside(who: Who, session: LiveSession, beside: Beside): Promise<void> {
    if (beside.by === 'user') return this.#edit([beside.edit])
    // What the session itself writes there belongs to the command's own change.
    if (beside.by === 'own') return this.#world.writes(session, beside.path, contentOf(beside.content))
    const other = who === 'A' ? 'B' : 'A'
    await this.#write(other, await this.#begin(other), this.#world.sessions[other], beside)
  }

  async #write(who: Who, turn: number, session: LiveSession, { path, content }: { readonly path: string; readonly content: number }): Promise<void> {
    const before = this.#tree()
    await this.#world.writes(session, path, contentOf(content))
    this.#model.call(who, turn, before, this.#tree())
  }

  async #overlap({ a, b, endsFirst }: Extract<Step, { kind: 'overlap' }>): Promise<void> {
    const { sessions } = this.#world
    const turns = { A: await this.#begin('A'), B: await this.#begin('B') }
    const before = this.#tree()
    const ends = { A: await this.#world.runs(sessions.A), B: await this.#world.runs(sessions.B) }
    this.#edit(a)
    this.#edit(b)
    for (const who of endsFirst === 'A' ? ['A', 'B'] as const : ['B', 'A'] as const) {
      await ends[who]()
      this.#model.call(who, turns[who], before, this.#tree(), { isOverlap: true })
    }
    await this.#endTurns()
  }

  #edit(edits: readonly Edit[]): void {
    for (const edit of edits) perform(this.#world.root, edit)
  }

  /** The turn that is open, or a new one. */
  async #begin(who: Who): Promise<number> {
    const session = this.#world.sessions[who]
    if (!session.isOpen) this.#turns[who].push(await this.#world.begins(session))
    return this.#turns[who].at(-1)!
  }

  async #endTurns(): Promise<void> {
    for (const who of ['A', 'B'] as const) if (this.#world.sessions[who].isOpen) await this.#world.ends(this.#world.sessions[who])
  }

  /** Where a write to `path` ends up: a file tool follows links. */
  #reached(path: string): string {
    const { root } = this.#world
    const place = join(root, path)
    return existsSync(place) ? relative(root, realpathSync(place)) : path
  }

  #tree(): Tree {
    return treeOf(this.#world.root)
  }
}

const ancestorsOf = (path: string): readonly string[] => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index))
