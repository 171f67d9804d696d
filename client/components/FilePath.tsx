import css from './FileList.module.css'

/** A path with its folder part dimmed; the name never gives way to the folder. */
export function FilePath({ shown }: { readonly shown: string }) {
  const cut = shown.lastIndexOf('/') + 1
  return (
    <span class={css.path} title={shown}>
      {cut > 0 && <span class={css.folder}>{shown.slice(0, cut)}</span>}
      <span class={css.name}>{shown.slice(cut)}</span>
    </span>
  )
}
