import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { inFlight } from '../../../host/in-flight.ts'

const few = { max: 3, maxWeight: 10, weightOf: (weight: number) => weight }

test('answers in the order of the items, whatever ends first', async () => {
  expect(await inFlight([3, 1, 2], few, async (ms) => { await wait(ms * 3); return ms * 10 })).toEqual([30, 10, 20])
})

test('begins no more than it may have under way, by number and by weight, and a heavier one goes alone', async () => {
  const underWay: number[] = []
  const seen: string[] = []
  await inFlight([1, 1, 1, 1, 9, 2, 20, 1], few, async (weight) => {
    underWay.push(weight)
    seen.push(underWay.join('+'))
    await wait(3)
    underWay.splice(underWay.indexOf(weight), 1)
  })
  const sums = seen.map(line => line.split('+').map(Number))
  expect(Math.max(...sums.map(weights => weights.length))).toBe(3)
  expect(sums.filter(weights => weights.length > 1).every(weights => weights.reduce((a, b) => a + b) <= 10)).toBe(true)
  expect(seen).toContain('20')
})

test('an error is thrown when the others under way have ended, and nothing is begun after it', async () => {
  const ended: number[] = []
  const begun: number[] = []
  const run = inFlight([1, 2, 3, 4, 5], few, async (item) => {
    begun.push(item)
    await wait(item === 1 ? 1 : 8)
    if (item === 1) throw new Error('first')
    ended.push(item)
  })

  await expect(run).rejects.toThrow('first')
  expect(ended).toEqual(begun.slice(1))
  expect(begun).not.toContain(5)
})
