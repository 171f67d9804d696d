import { differing, FOLDER, isFolderOnly, isHolding, type Tree } from './disk.ts'

/** One call's change of one path, as the disk showed it and not as any record says. */
interface Change {
  readonly path: string
  readonly turn: number
  readonly before: string | undefined
  readonly after: string | undefined
  /** Somebody else, or another call, had a hand in it: what they found there, oldest first. */
  readonly shared: Found | undefined
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

  /** A call of `session` in `turn` between two snapshots; `shared` tells of paths that others touched meanwhile. */
  call(session: string, turn: number, before: Tree, after: Tree, shared: (path: string) => Found | undefined = () => undefined, touched: Iterable<string> = []): void {
    const mine = this.#changes.get(session) ?? []
    this.#changes.set(session, mine)
    // What others touched counts also where nothing of it is left to see.
    for (const path of new Set([...differing(before, after), ...touched])) {
      mine.push({ path, turn, before: before.get(path), after: after.get(path), shared: shared(path), isAlong: before.get(path) === FOLDER && isHolding(before, path) })
    }
  }

  /** What a rollback of `session` to before `turn` may leave, for every path that is or was anything. */
  expected(session: string, turn: number, now: Tree): ReadonlyMap<string, Allowed> {
    const paths = new Set([...now.keys(), ...(this.#changes.get(session) ?? []).map(({ path }) => path)])
    return new Map([...paths].map(path => [path, this.#allowed(session, turn, path, now.get(path))]))
  }

  #allowed(session: string, turn: number, path: string, now: string | undefined): Allowed {
    // Two sessions that do the same to a path within half a minute count as one change that both saw.
    const hasOthers = [...this.#changes].some(([other, changes]) => other !== session && changes.some(change => change.path === path))
    const span = this.#span(session, turn, path)
    return storiesOf(span).flatMap(story => allowedBy(story, now, hasOthers))
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

  /** Files whose bytes before a call of `session` have to be in its store. */
  foundBy(session: string): readonly string[] {
    return (this.#changes.get(session) ?? []).filter(({ shared }) => shared === undefined).flatMap(({ before }) => before ?? [])
  }

  /** After a rollback: what went back is the session's no more, what stayed is. */
  rolledBack(session: string, turn: number, final: Tree): void {
    const mine = this.#changes.get(session) ?? []
    const back = new Set(mine.filter(({ path }) => this.#span(session, turn, path)[0]?.before === final.get(path)).map(({ path }) => path))
    this.#changes.set(session, mine.flatMap((change) => {
      if (change.turn < turn) return [change]
      if (back.has(change.path)) return []
      // A folder that could not go is not spoken of again.
      return [change.before === FOLDER || change.after === FOLDER ? { ...change, shared: change.shared ?? [] } : change]
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
  const isOptional = (change: Change, at: number) => change.shared !== undefined || (at < start && isToldByOthers(change))
  return span.reduce<readonly (readonly Change[])[]>(
    (stories, change, at) => stories.flatMap(story => isOptional(change, at) ? [story, [...story, change]] : [[...story, change]]), [[]])
}

function allowedBy(span: readonly Change[], now: string | undefined, hasOthers: boolean): Allowed {
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
  // One that the session made goes when nothing is in it, whatever was there before.
  if (now === FOLDER && goal === undefined && isLast) return isShared ? [now, goal, ...span.flatMap(({ before, shared }) => [before, ...shared ?? []])] : [now, goal]
  const isHard = breaks.some(states => !states.every(isFolderOnly))
  if (isHard || (!isLast && !isFolderOnly(now))) return [now]
  if (isFolderOnly(now) && isFolderOnly(goal) && span.some(({ isAlong }) => isAlong)) return [now, goal]
  if (!isShared && (goal === now || (breaks.length === 0 && !hasOthers))) return [goal]
  const pure = span.findIndex(change => change.shared === undefined)
  const unsure = span.slice(0, pure < 0 ? span.length : pure + 1)
  return [now, goal, ...unsure.flatMap(({ before, shared }) => [before, ...shared ?? []])]
}
