import { useState } from 'preact/hooks'
import type { Translator } from '../../locales/translate.ts'
import type { FileChange, Image } from '../../src/protocol/diff.ts'
import css from './FileDiff.module.css'
import { sizeText } from './size-text.ts'

export interface ImagePairProps {
  readonly before: Image | undefined
  readonly after: Image | undefined
  readonly states: Pick<FileChange, 'current' | 'goal'>
  readonly shown: string
  readonly t: Translator
}

/** The picture that is there and the one that comes, side by side where there is room. */
export function ImagePair({ before, after, states, shown, t }: ImagePairProps) {
  return (
    <div class={css.pair}>
      <Side image={before} state={states.current} side={t('diff.now')} shown={shown} t={t} />
      <Side image={after} state={states.goal} side={t('diff.after')} shown={shown} t={t} />
    </div>
  )
}

interface SideProps {
  readonly image: Image | undefined
  readonly state: FileChange['goal']
  readonly side: string
  readonly shown: string
  readonly t: Translator
}

function Side({ image, state, side, shown, t }: SideProps) {
  const [seen, setSeen] = useState<string | undefined>(undefined)
  const [isBroken, setBroken] = useState(false)
  const facts = [side, ...(state.kind === 'file' ? [sizeText(state.bytes)] : []), ...(seen === undefined ? [] : [seen])]
  return (
    <figure class={css.side}>
      <figcaption class={css.caption}>{facts.join(' · ')}</figcaption>
      {image === undefined || isBroken ? (
        <p class={css.note}>{t(isBroken ? 'diff.image.broken' : 'diff.image.none')}</p>
      ) : (
        <img
          class={css.image}
          src={`data:${image.type};base64,${image.base64}`}
          alt={`${shown}, ${side}`}
          onLoad={event => setSeen(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight}`)}
          onError={() => setBroken(true)}
        />
      )}
    </figure>
  )
}
