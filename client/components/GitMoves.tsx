import type { Translator } from '../../locales/translate.ts'
import { placeOf } from '../../src/checkpoint/git-move.ts'
import type { GitMove } from '../../src/protocol/requests.ts'
import css from './RollbackDialog.module.css'
import { Worded } from './Worded.tsx'

/** Moves told one by one before the rest is only counted. */
const MAX_MOVES = 3

/** What commands did to HEAD, and how a person takes it back; nothing when it did not move. */
export function GitMoves({ moves, t }: { readonly moves: readonly GitMove[]; readonly t: Translator }) {
  if (moves.length === 0) return null
  const advice = moves.at(-1)!.advice
  const more = moves.length - MAX_MOVES
  return (
    <section class={css.section}>
      <h3 class={css.heading}>{t('git.title')}</h3>
      {moves.slice(0, MAX_MOVES).map(({ words, from, to, fromRef, toRef }, index) => (
        <p key={index} class={css.note}>
          <Worded text={t('git.moved', { from: placeOf(fromRef, from), to: placeOf(toRef, to) })} words={[words]} />
        </p>
      ))}
      {more > 0 && <p class={css.note}>{t('gaps.more', { count: more })}</p>}
      <p class={css.note}>{t(advice === undefined ? 'git.stays' : 'git.advice')}</p>
      {advice !== undefined && <code class={css.line}>{advice}</code>}
    </section>
  )
}
