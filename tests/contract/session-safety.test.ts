import { describe, expect, it } from 'vitest'
import { refusedLater } from '../support/later-formats.ts'
import { aWorld, edits, runs, writes, type Chat, type World } from '../support/in-process-host.ts'
import { whyRefused } from '../support/mock-model.ts'
import { wireMessages } from '../support/wire-messages.ts'

/** Acts of one session; the long run has more of them and several sessions. */
const isLong = process.env.TURNBACK_LONG === '1'
const ACTS = isLong ? 400 : 100
const seeds = process.env.TURNBACK_SEED !== undefined ? [Number(process.env.TURNBACK_SEED)] : isLong ? [1, 2, 3, 4, 5] : [Date.now() % 100_000]

/** Numbers below `below` that follow from the seed. */
function dice(seed: number): (below: number) => number {
  let state = seed + 1
  return (below) => {
    state = (state * 48271) % 2147483647
    return state % below
  }
}

interface Tally { done: number; refused: number }

/** Does one act at random and counts it under its name. */
async function act(world: World, chat: Chat, roll: (below: number) => number, tally: Map<string, Tally>): Promise<void> {
  const { model } = chat.host
  const count = (name: string, isDone: boolean): void => {
    const so = tally.get(name) ?? { done: 0, refused: 0 }
    tally.set(name, { done: so.done + Number(isDone), refused: so.refused + Number(!isDone) })
  }
  const stopped = async (step: { hang: string } | { think: string }): Promise<void> => {
    const asked = model.requests.length
    model.script.push(step)
    chat.send('stop me')
    await expect.poll(() => model.requests.length).toBe(asked + 1)
    chat.agent.cancel({ kind: 'user' }, { keepInbox: true })
    await chat.agent.whenIdle()
  }
  const file = `f${roll(4)}.txt`
  switch (roll(12)) {
    case 0: case 1: case 2: {
      const now = world.read(file)
      await chat.turn('edit', ...(now === undefined ? [writes(file, `new ${roll(1000)}`)] : edits(file, now, `${roll(1000)}`)), 'Edited.')
      return count('turn', true)
    }
    case 3: await chat.turn('run', runs(`mkdir -p deep/er && echo ${roll(1000)} > deep/er/${file}`), 'x'.repeat(500)); return count('turn', true)
    case 4: await chat.turn('talk', 'y'.repeat(500)); return count('turn', true)
    case 5: await stopped({ hang: 'Half a sen' }); return count('stopped', true)
    case 6: await stopped({ think: 'Let me see' }); return count('stopped while thinking', true)
    case 7: await chat.turn('fail', { fail: 'no model' }); return count('failed', true)
    case 8: case 9: {
      const turns: { turn: number; state: string }[] = (await chat.host.ask('timeline', { sessionId: chat.id })).value.turns.filter((turn: { state: string }) => turn.state === 'available')
      // Mostly near the end: a session that always starts anew has nothing to go wrong in.
      const chosen = turns[roll(4) === 0 ? roll(Math.max(1, turns.length)) : roll(Math.max(1, Math.min(3, turns.length)))]
      return count('rollback', chosen !== undefined && (await chat.command(`/rollback ${chosen.turn}`)).kind === 'success')
    }
    case 10: return count('undo', (await chat.command('/rollback undo')).kind === 'success')
    case 11: {
      model.script.push('What was said, in short.')
      const { kind } = await chat.command('/compact')
      model.script.length = 0
      return count('compaction', kind === 'success')
    }
  }
}

describe.each(seeds)(`a session after ${ACTS} rollbacks, undos, compactions and turns in any order (seed %i)`, (seed) => {
  it('opens with and without the plugin, and the model is only sent what a strict provider takes', async () => {
    const world = aWorld({ 'f0.txt': 'zero', 'f1.txt': 'one' })
    const host = await world.start()
    const chat = await host.open()
    const tally = new Map<string, Tally>()
    const roll = dice(seed)
    let seen = 0
    const expectTaken = (one: Chat): void => {
      const refusals = one.host.model.requests.slice(seen).map(request => whyRefused(wireMessages(request)))
      expect(refusals.filter(why => why !== undefined)).toEqual([])
      seen = one.host.model.requests.length
    }

    for (let number = 0; number < ACTS; number += 1) {
      await act(world, chat, roll, tally)
      expectTaken(chat)
    }
    // All kinds of acts took place, and not only in vain.
    for (const name of ['turn', 'rollback', 'undo', 'compaction']) expect([name, tally.get(name)?.done ?? 0]).not.toEqual([name, 0])
    await chat.turn('last', 'ok')
    await host.ctx.sessions.flush(chat.session)
    const surface = [...chat.surface()]
    expect(refusedLater(chat.events())).toEqual([])
    await host.stop()

    for (const plugin of [true, false, true]) {
      const again = await (await world.start({ plugin })).open()
      expect(again.surface().slice(0, surface.length)).toEqual(surface)
      seen = 0
      await again.turn(`after a start ${plugin ? 'with' : 'without'} the plugin`, 'ok')
      expectTaken(again)
      surface.push(...again.surface().slice(surface.length))
      await again.host.stop()
    }
  }, isLong ? 1_200_000 : 120_000)
})
