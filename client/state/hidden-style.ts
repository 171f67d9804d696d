import type { Hidden } from '../../src/surface/hidden.ts'

/**
 * The rules that hide withdrawn rows of one session. Row keys hold turn numbers and repeat in other
 * sessions, so every rule is tied to the flow that contains a marker seat of this session
 * (`data-turnback-session`). Rows carry `data-chat-flow-key` in every host generation and
 * `data-chat-node-key` where one node is split into parts; grouped process rows only have their turn.
 */
export function hiddenCss(sessionId: string, { dimmed, ...hidden }: Hidden): string {
  const flow = `[data-chat-flow]:has([data-turnback-session=${quoted(sessionId)}])`
  return [ruleFor(flow, hidden, 'display: none'), ...(dimmed === undefined ? [] : [ruleFor(flow, dimmed, 'opacity: 0.5')])]
    .filter(rule => rule !== '').join('\n')
}

function ruleFor(flow: string, { keys, turns }: Pick<Hidden, 'keys' | 'turns'>, style: string): string {
  const rows = [
    ...keys.flatMap(key => [`[data-chat-flow-key=${quoted(key)}]`, `[data-chat-node-key=${quoted(key)}]`]),
    ...turns.map(turn => `[data-chat-group-key][data-chat-turn="${turn}"]`),
  ]
  // One selector per row, not one `:is()` list: browsers sort selectors by their last attribute, and
  // a list would be tried on every element of the page.
  return rows.length === 0 ? '' : `${rows.map(row => `${flow} ${row}`).join(',\n')} { ${style} }`
}

/** A CSS string: JSON's escapes would be read differently, so only what CSS knows is escaped. */
const quoted = (text: string) =>
  `"${text.replace(/["\\]/g, '\\$&').replace(/[\n\r\f]/g, c => `\\${c.charCodeAt(0).toString(16)} `)}"`
