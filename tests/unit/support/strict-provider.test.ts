import { expect, test } from 'vitest'
import { whyRefused, type WireMessage } from '../../support/mock-model.ts'

const user: WireMessage = { role: 'user', content: 'hi' }
const calls = (...ids: string[]): WireMessage => ({ role: 'assistant', content: null, tool_calls: ids.map(id => ({ id })) })
const answers = (id: string): WireMessage => ({ role: 'tool', tool_call_id: id, content: '' })

test('a conversation in order is taken', () => {
  expect(whyRefused([{ role: 'system', content: 's' }, user, calls('a', 'b'), answers('a'), answers('b'), { role: 'assistant', content: 'ok' }, user])).toBeUndefined()
})

test.each<[string, WireMessage[]]>([
  ['has the role developer', [{ role: 'developer', content: 'x' }]],
  ['is a system message behind others', [user, { role: 'system', content: 'x' }]],
  ['comes before the answer to b', [user, calls('a', 'b'), answers('a'), user]],
  ['answers no call', [user, answers('a')]],
  ['of user is empty', [{ role: 'user', content: [] }]],
  ['of assistant is empty', [user, { role: 'assistant', content: null }]],
  ['no answer to a', [user, calls('a')]],
])('one that %s is refused', (why, messages) => {
  expect(whyRefused(messages)).toContain(why)
})
