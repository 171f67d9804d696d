import { differing, FOLDER, isFolderOnly, isHolding, type Tree } from './disk.ts'

/** One call's change of one path, as the disk showed it and not as any record says. */
interface Change {
  readonly path: string
  readonly turn: number
  readonly before: string | undefined
  readonly after: string | undefined
  /** Somebody else, or another call, had a hand in it: what they found there, oldest first. */
  readonly shared: Found | undefined
  /** A command of another session ran at the same time, and both saw it: nobody knows whose it is. */
  readonly isOverlap: boolean
  /** Counts over all sessions. */
  readonly number: number
  /** A folder that went with something in it. Records name what was in it, which does not bring it back where that was new. */
  readonly isAlong: boolean
}

export type Found = readonly (string | undefined)[]

/** What may be at a path after a rollback; undefined stands for nothing. */
export type Allowed = readonly (string | undefined)[]

/**
 * What each session did to a folder, told from snapshots alone. It knows who changed what and when, and says what a
 * rollback may leave at each path: the state before the turn where only the session wrote, what is there now where it
 * did not or somebody else wrote since, and either of the two where both may have had a hand in it.
 */
export class Model {
  readonly #changes = new Map<string, Change[]>()
  /** All that was ever done, also what was taken back, and by taking back. */
  readonly #done: (Pick<Change, 'path' | 'before' | 'after'> & { readonly session: string })[] = []
  #count = 0

  /** A call of `session` in `turn` between two snapshots; `shared` tells of paths that others touched meanwhile. */
  call(session: string, turn: number, before: Tree, after: Tree, { shared = () => undefined, touched = [], isOverlap = false }: {
    readonly shared?: (path: string) => Found | undefined; readonly touched?: Iterable<string>; readonly isOverlap?: boolean
  } = {}): void {
    const mine = this.#changes.get(session) ?? []
    this.#changes.set(session, mine)
    // What others touched counts also where nothing of it is left to see.
    this.#count += 1
    for (const path of new Set([...differing(before, after), ...touched])) {
      const change = { path, before: before.get(path), after: after.get(path) }
      this.#done.push({ session, ...change })
      mine.push({
        ...change, turn, shared: isOverlap ? [] : shared(path), isOverlap: isOverlap && ![change.before, change.after].includes(FOLDER), number: this.#count,
        isAlong: change.before === FOLDER && isHolding(before, path),
      })
    }
  }

  /** What a rollback of `session` to before `turn` may leave, for every path that is or was anything. */
  expected(session: string, turn: number, now: Tree): ReadonlyMap<string, Allowed> {
    const paths = new Set([...now.keys(), ...(this.#changes.get(session) ?? []).map(({ path }) => path)])
    return new Map([...paths].map(path => [path, this.#allowed(session, turn, path, now.get(path))]))
  }

  #allowed(session: string, turn: number, path: string, now: string | undefined): Allowed {
    const others = [...this.#changes].flatMap(([other, changes]) => (other === session ? [] : changes.filter(change => change.path === path)))
    const span = this.#span(session, turn, path)
    // Two sessions that do the same to a path within half a minute count as one change that both saw.
    const isLike = this.#done.some(done => done.session !== session && done.path === path
      && span.some(({ before, after }) => before === done.before && after === done.after))
    return storiesOf(span).flatMap(story => allowedBy(story, now, { others, isLike }))
  }

  /** Paths that `session` alone had a hand in and that a rollback did not bring back: it has to name them. */
  left(session: string, turn: number, final: Tree): readonly string[] {
    const paths = new Set((this.#changes.get(session) ?? []).map(({ path }) => path))
    return [...paths].filter((path) => {
      const span = this.#span(session, turn, path)
      const [goal, found] = [span[0]?.before, final.get(path)]
      return goal !== found && !isFolderOnly(goal) && span.every(({ shared }) => shared === undefined)
    })
  }

  /** Paths that `session` alone wrote in the span and another session after it. */
  writtenSince(session: string, turn: number): readonly string[] {
    const isFile = ({ before, after, shared }: Change) => shared === undefined && before !== FOLDER && after !== FOLDER
    const others = [...this.#changes].flatMap(([other, changes]) => (other === session ? [] : changes.filter(isFile)))
    return [...new Set(others.map(({ path }) => path))].filter((path) => {
      const span = this.#span(session, turn, path)
      return span.length > 0 && span.every(isFile) && others.some(other => other.path === path && other.number > span.at(-1)!.number)
    })
  }

  /** Where only `session` had a hand in a path: what it was before the turn. */
  goalOf(session: string, turn: number, path: string): { readonly words: string | undefined } | undefined {
    const span = this.#span(session, turn, path)
    return span.length > 0 && span.every(({ shared, isAlong }) => shared === undefined && !isAlong) ? { words: span[0]!.before } : undefined
  }

  /** Files whose bytes before a call of `session` have to be in its store. */
  foundBy(session: string): readonly string[] {
    return (this.#changes.get(session) ?? []).filter(({ shared }) => shared === undefined).flatMap(({ before }) => before ?? [])
  }

  /** After a rollback: what went back is the session's no more, what stayed is. */
  rolledBack(session: string, turn: number, from: Tree, final: Tree): void {
    for (const path of differing(from, final)) this.#done.push({ session, path, before: from.get(path), after: final.get(path) })
    const mine = this.#changes.get(session) ?? []
    const back = new Set(mine.filter(({ path }) => this.#span(session, turn, path)[0]?.before === final.get(path)).map(({ path }) => path))
    this.#changes.set(session, mine.flatMap((change) => {
      if (change.turn < turn) return [change]
      if (back.has(change.path)) return []
      // A folder that could not go is not spoken of again, and what others had a hand in may have been none of what went back.
      const isUnsure = change.before === FOLDER || change.after === FOLDER || this.#span(session, turn, change.path).some(({ shared, isOverlap }) => shared !== undefined && !isOverlap)
      return [isUnsure ? { ...change, shared: change.shared ?? [], isOverlap: false } : change]
    }))
  }

  #span(session: string, turn: number, path: string): readonly Change[] {
    return (this.#changes.get(session) ?? []).filter(change => change.path === path && change.turn >= turn)
  }
}

/**
 * What the path's story may be to the session. What others had a hand in may be none of its doing; and a folder that comes
 * or goes with what is in it is told by that, so that the path's own story may begin later.
 */
function storiesOf(span: readonly Change[]): readonly (readonly Change[])[] {
  const isToldByOthers = ({ before, after, isAlong }: Change) => isAlong || (before === undefined && after === FOLDER)
  const own = span.findIndex(change => change.shared === undefined && !isToldByOthers(change))
  const start = own < 0 ? span.findLastIndex(({ shared }) => shared !== undefined) : own
  const isOptional = (change: Change, at: number) => (change.shared !== undefined && !change.isOverlap) || (at < start && isToldByOthers(change))
  return span.reduce<readonly (readonly Change[])[]>(
    (stories, change, at) => stories.flatMap(story => isOptional(change, at) ? [story, [...story, change]] : [[...story, change]]), [[]])
}

function allowedBy(span: readonly Change[], now: string | undefined, { others, isLike }: { readonly others: readonly Change[]; readonly isLike: boolean }): Allowed {
  const first = span[0]
  if (first === undefined) return [now]
  const goal = first.before
  const breaks = span.flatMap(({ after }, at) => {
    const found = at === span.length - 1 ? now : span[at + 1]!.before
    return found === after ? [] : [[after, found]]
  })
  const isLast = span.at(-1)!.after === now
  const isShared = span.some(change => change.shared !== undefined)
  // Where nothing of what was in it comes back, neither does the folder.
  if (goal === FOLDER && span.some(({ isAlong }) => isAlong)) return [now, goal, undefined]
  // A folder in the place of a file or a link goes only when it is empty; where it stays, the path is named.
  if (now === FOLDER && goal !== undefined && goal !== FOLDER) return [now, goal]
  const isHard = breaks.some(states => !states.every(isFolderOnly))
  // One that the session made may go when nothing is in it, whatever was there before.
  if (isHard && isLast && now === FOLDER && goal === undefined) return [now, goal, ...foundIn(span)]
  if (!isFolderOnly(now) && span.some(({ isOverlap }) => isOverlap)) return [now]
  if (isHard || (!isLast && !isFolderOnly(now))) return [now]
  if (isFolderOnly(now) && isFolderOnly(goal) && span.some(({ isAlong }) => isAlong)) return [now, goal]
  const later = others.filter(({ number }) => number > span.at(-1)!.number)
  if (!isShared && (goal === now || (breaks.length === 0 && later.length === 0 && !isLike))) return [goal]
  if (!isShared && !isFolderOnly(now) && later.some(({ shared }) => shared === undefined)) return [now]
  const pure = span.findIndex(change => change.shared === undefined)
  const unsure = span.slice(0, pure < 0 ? span.length : pure + 1)
  return [now, goal, ...foundIn(unsure)]
}

const foundIn = (changes: readonly Change[]): Allowed => changes.flatMap(({ before, shared }) => [before, ...shared ?? []])
