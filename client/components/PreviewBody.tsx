import { hasText, type Translator } from '../../locales/translate.ts'
import { gapsBeside } from '../../src/checkpoint/gaps-beside.ts'
import type { Preview } from '../../src/protocol/requests.ts'
import { losesItsOtherNames } from '../../src/restore/other-names.ts'
import type { Around, Choices, Mode } from '../state/rollback-flow.ts'
import css from './RollbackDialog.module.css'
import { FileList, type RowSlots } from './FileList.tsx'
import { Gaps } from './Gaps.tsx'
import { GitMoves } from './GitMoves.tsx'
import { WarningIcon } from './icons.tsx'
import { Names } from './Names.tsx'
import { ScopeSwitch } from './ScopeSwitch.tsx'

export interface PreviewBodyProps {
  readonly preview: Preview
  readonly mode: Mode
  readonly choices: Choices
  readonly around: Around
  readonly changed?: ReadonlySet<string> | undefined
  readonly t: Translator
  readonly slots?: RowSlots | undefined
  onChoose(paths: readonly string[], isBack: boolean): void
  onMode(mode: Mode): void
  onAround(around: Partial<Around>): void
}

/** Turns listed by name before the rest is only counted. */
const MAX_TURNS = 6
/** Folders named; the outermost ones say the most. */
const MAX_FOLDERS = 6
const MAX_LINKED = 6

/**
 * What a rollback would do, in the order of weight: conversation, what is not covered, files, what
 * stays. The file list can be long, so warnings stand before it.
 */
export function PreviewBody({ preview, mode, choices, around, changed, t, slots, onChoose, onMode, onAround }: PreviewBodyProps) {
  const isFiles = preview.scope !== 'conversation'
  const isConversation = preview.scope !== 'files'
  const moreTurns = preview.turns.length - MAX_TURNS
  const untouched = preview.untouched.flatMap(name => {
    const key = `untouched.${name}`
    return hasText(key) ? [t(key)] : []
  })
  const skipped = preview.rows.flatMap(({ shown, skip }) => (skip === undefined ? [] : [{ name: shown, reason: skip }]))
  const linked = preview.rows.filter(losesItsOtherNames).map(({ shown }) => shown)
  // They come deepest first, in the order they are removed.
  const folders = preview.folders.toReversed().slice(0, MAX_FOLDERS)
  return (
    <>
      {changed !== undefined && (
        <p class={css.stale} role="alert">
          <WarningIcon /> <span>{t('stale.notice')}</span>
        </p>
      )}
      <ScopeSwitch mode={mode} t={t} onMode={onMode} />
      <Running preview={preview} around={around} t={t} onAround={onAround} />
      <section class={css.section}>
        <h3 class={css.heading}>{isConversation ? t.count('leaves.title', preview.turns.length) : t(mode === 'branch' ? 'leaves.branch' : 'leaves.none')}</h3>
        {isConversation && (<ul class={css.turns}>
          {preview.turns.slice(0, MAX_TURNS).map(({ turn, title }) => (
            <li key={turn}>
              <span class={css.turn}>{t('leaves.turn', { turn })}</span>
              <span class={css.words}>{title === '' ? t('leaves.turn.wordless') : title}</span>
            </li>
          ))}
          {moreTurns > 0 && <li class={css.words}>{t.count('leaves.more', moreTurns)}</li>}
        </ul>)}
        {mode === 'branch' && <p class={css.note}>{t('leaves.branch.note', { turn: preview.target.turn })}</p>}
        {isConversation && <p class={css.note}>{t.count('leaves.messages', preview.messages)}</p>}
      </section>
      <Gaps gaps={gapsBeside(preview.gaps, skipped)} t={t} />
      <GitMoves moves={preview.gitMoves} t={t} />
      <section class={css.section}>
        <h3 class={css.heading}>{t('files.title')}</h3>
        {isFiles && preview.isReadOnly && preview.rows.length > 0 && (
          <p class={css.stale} role="alert">
            <WarningIcon /> <span>{t('files.read-only')}</span>
          </p>
        )}
        {isFiles ? (
          <FileList rows={preview.rows} choices={choices} changed={changed} t={t} slots={slots} onChoose={onChoose} />
        ) : (
          <p class={css.note}>{t('files.untouched')}</p>
        )}
        {preview.folders.length > 0 && (
          <p class={css.note}>
            {t.count('files.folders', preview.folders.length)}{' '}
            <Names names={folders} more={preview.folders.length - folders.length} t={t} />
          </p>
        )}
        {linked.length > 0 && (
          <p class={css.note}>
            {t('files.links')} <Names names={linked.slice(0, MAX_LINKED)} more={linked.length - MAX_LINKED} t={t} />
          </p>
        )}
        {preview.hasCommands && <p class={css.note}>{t('files.ignored')}</p>}
      </section>
      {preview.queued.length > 0 && (
        <section class={css.section}>
          <p class={css.note}>{t.count('queued.title', preview.queued.length)}</p>
          <ul class={css.turns}>
            {preview.queued.map(words => (
              <li key={words} class={css.words}>
                {words}
              </li>
            ))}
          </ul>
          {preview.canDropQueued && (
            <label class={css.tick}>
              <input
                type="checkbox"
                checked={around.queued === 'drop'}
                onChange={event => onAround({ queued: event.currentTarget.checked ? 'drop' : 'keep' })}
              />
              {t.count('queued.drop', preview.queued.length)}
            </label>
          )}
        </section>
      )}
      {untouched.length > 0 && (
        <p class={css.note}>
          {t('untouched.title')} {untouched.join(t.locale === 'zh' ? '、' : ', ')}
        </p>
      )}
      {preview.rows.length > 0 && <p class={css.note}>{t('files.rescue')}</p>}
    </>
  )
}

/** Jobs and subagents that run: nothing happens unless the person lets it happen beside them. */
function Running({ preview, around, t, onAround }: Pick<PreviewBodyProps, 'preview' | 'around' | 't' | 'onAround'>) {
  if (preview.running.length === 0) return null
  return (
    <section class={css.warning}>
      <h3 class={css.heading}>
        <WarningIcon /> {t.count('running.title', preview.running.length)}
      </h3>
      <Names names={preview.running.slice(0, MAX_TURNS).map(({ label }) => label)} more={Math.max(0, preview.running.length - MAX_TURNS)} t={t} />
      <p class={css.note}>{t('running.note')}</p>
      <label class={css.tick}>
        <input
          type="checkbox"
          checked={around.running === 'continue'}
          onChange={event => onAround({ running: event.currentTarget.checked ? 'continue' : 'refuse' })}
        />
        {t('running.continue')}
      </label>
    </section>
  )
}
