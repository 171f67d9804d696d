import { useComputed, type ReadonlySignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { hasText, type Translator } from '../../locales/translate.ts'
import type { Key } from '../../locales/keys.ts'
import css from '../components/Checkpoints.module.css'
import { Problem } from '../components/Problem.tsx'
import { Rail } from '../components/Rail.tsx'
import { RailFilter } from '../components/RailFilter.tsx'
import type { CheckpointsStore } from '../state/checkpoints-store.ts'
import type { RollbackStore } from '../state/rollback-store.ts'
import { CheckpointDetail } from './CheckpointDetail.tsx'

export interface CheckpointsViewProps {
  readonly checkpoints: CheckpointsStore
  readonly t: ReadonlySignal<Translator>
  open(store: RollbackStore, turn: number, opener: HTMLElement, only?: string): void
}

/** The view of one session; another session's is another view. */
export const CheckpointsView = (props: CheckpointsViewProps) => <Session key={props.checkpoints.store.sessionId} {...props} />

function Session({ checkpoints, t: translator, open }: CheckpointsViewProps) {
  const t = translator.value
  const past = useComputed(() => inPast(translator.value))
  const root = useRef<HTMLDivElement>(null)
  useEffect(() => checkpoints.follow(), [checkpoints])
  // The host's scroller keeps the chat's place, which is none here.
  useLayoutEffect(() => root.current?.closest('[data-conversation-scroll]')?.scrollTo?.(0, 0), [])
  const timeline = checkpoints.store.timeline.value
  const items = checkpoints.items.value
  const listed = checkpoints.listed.value
  const toDetail = () => root.current?.querySelector<HTMLElement>('[data-detail]')?.focus()
  return (
    <div ref={root} class={css.view} data-conversation-composer-overlay="" data-turnback-view>
      {timeline.kind === 'unasked' && (
        <p class={css.blank} role="status">
          {t('view.loading')}
        </p>
      )}
      {timeline.kind === 'failed' && (
        <div class={css.blank}>
          <Problem title={t('view.failed')} failure={timeline.failure} t={t} onRetry={checkpoints.store.loadOps} />
        </div>
      )}
      {timeline.kind === 'known' && items.length === 0 && <p class={css.blank}>{t('view.empty')}</p>}
      {timeline.kind === 'known' && items.length > 0 && (
        <div class={css.body}>
          <div class={css.side}>
            {timeline.failure !== undefined && (
              <Problem title={t('view.outdated')} failure={timeline.failure} t={t} onRetry={checkpoints.store.loadOps} />
            )}
            <RailFilter
              filter={checkpoints.filter.value}
              failure={checkpoints.filterFailure.value}
              listed={listed.length}
              t={t}
              onFilter={checkpoints.setFilter}
            />
            <Rail
              items={listed}
              selected={checkpoints.selected.value?.key}
              nowMs={Date.now()}
              t={t}
              onSelect={checkpoints.select}
              onEnter={toDetail}
            />
          </div>
          <CheckpointDetail checkpoints={checkpoints} t={t} past={past} open={open} />
        </div>
      )}
    </div>
  )
}

/** The words of a diff where it tells what happened, not what a rollback would do. */
function inPast(t: Translator): Translator {
  const past = (key: Key): Key => {
    const other = `past.${key}`
    return hasText(other) ? other : key
  }
  return Object.assign((key: Key, params?: Parameters<Translator>[1]) => t(past(key), params), { locale: t.locale, count: t.count })
}
