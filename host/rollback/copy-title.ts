import { locales } from '../../src/protocol/requests.ts'
import { readConversation } from '../../src/turn/rollback-target.ts'
import { translate, type Translator } from '../../locales/translate.ts'
import type { ForeignSession } from '../dsh/host-types.ts'
import { readEvents } from '../dsh/session-log.ts'
import type { RollbackDeps } from './deps.ts'
import { titleOf } from './draft.ts'

/** What a copy is of: the conversation before a rollback, or up to before a turn. */
export type CopyOf = { readonly kind: 'undo' } | { readonly kind: 'branch'; readonly turn: number }

/** DSH cuts longer ones off at the end, where ours says what the session is. */
const MAX_BYTES = 80

/** The source's title and what the copy is, in the language of the session's page. A copy of a copy says it once. */
export function copyTitle({ copies }: Pick<RollbackDeps, 'copies'>, t: Translator, source: ForeignSession, of: CopyOf): string {
  const first = copies.titleOf(source) === undefined ? readConversation(readEvents(source)).turns[0] : undefined
  const title = (copies.titleOf(source) ?? (first === undefined ? '' : titleOf(first))).replace(ours, '').trim()
  const labelled = (name: string) => t(`copy.title.${of.kind}`, { title: name, turn: of.kind === 'branch' ? of.turn : '' }).trim()
  const room = MAX_BYTES - Buffer.byteLength(labelled(''))
  let name = title
  while (Buffer.byteLength(name) > room) name = `${[...name].slice(0, name.endsWith('…') ? -2 : -1).join('')}…`
  return labelled(name)
}

/** Any ending of ours. */
const ours = new RegExp(`(?:${locales.flatMap(locale => (['undo', 'branch'] as const).map(kind =>
  translate(locale, `copy.title.${kind}`, { title: '', turn: '0' }).trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace('0', '\\d+'))).join('|')})$`)
