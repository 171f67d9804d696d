import type { ReadonlySignal } from '@preact/signals'
import type { Translator } from '../../locales/translate.ts'
import { CommandCard } from '../components/CommandCard.tsx'

/** A command row as the host draws it (ui-conversation `CommandRowOwnerProps`, flat command node). */
export interface CommandNode {
  readonly name?: string | undefined
  readonly args?: string | undefined
  readonly outcome: { readonly kind: string; readonly text?: string | undefined } | null
}

export interface CommandRowProps {
  readonly node: CommandNode
  readonly t: ReadonlySignal<Translator>
}

/** What one run of our command answered, in place of the host's own row. */
export function CommandRow({ node, t: translator }: CommandRowProps) {
  const t = translator.value
  const line = `/${node.name ?? ''}${node.args ?? ''}`.trimEnd()
  if (node.outcome === null) return <CommandCard line={line} text={t('command.card.running')} tone="running" />
  const tone = node.outcome.kind === 'error' ? 'error' : 'plain'
  return <CommandCard line={line} text={node.outcome.text ?? t('command.card.empty')} tone={tone} />
}
