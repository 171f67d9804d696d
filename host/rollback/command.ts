import { sessionId } from '../../src/ids.ts'
import { parseCommandLine } from '../../src/protocol/command-line.ts'
import { failure, type Failure } from '../../src/protocol/failure.ts'
import type { Result } from '../../src/result.ts'
import { translator, type Translator } from '../../locales/translate.ts'
import type { CommandAnswer } from '../dsh/commands.ts'
import type { ForeignAgent } from '../dsh/host-types.ts'
import type { RollbackDeps } from './deps.ts'
import type { Operation } from './op-end.ts'
import { reportDone, reportFailure, reportList, reportPreview } from './report.ts'
import type { Refusal, RollbackService } from './rollback-service.ts'

/**
 * `/rollback …` as a person types it, complete without the page. Never rejects: a rejected handler would
 * leave an error row without words.
 */
export function makeCommand(deps: Pick<RollbackDeps, 'localeOf' | 'health' | 'workspaceOf' | 'copies'>, service: RollbackService) {
  return async (agent: ForeignAgent, rawInput: string): Promise<CommandAnswer> => {
    const t = translator(deps.localeOf(sessionId(agent.id)))
    try {
      return await run(t, service, agent, rawInput, { workspace: deps.workspaceOf(agent.session), canCopy: deps.copies.isOffered(agent.session) })
    } catch (error) {
      deps.health.report('command', error)
      return refused(t, failure('internal', { detail: error instanceof Error ? error.message : String(error) }))
    }
  }
}

async function run(t: Translator, service: RollbackService, agent: ForeignAgent, rawInput: string, place: Place): Promise<CommandAnswer> {
  const command = parseCommandLine(rawInput)
  if (!command.ok) return refused(t, command.failure)
  const id = sessionId(agent.id)
  service.begins(id)
  switch (command.value.kind) {
    case 'help':
      return said(t('command.usage'))
    case 'bare':
    case 'list': {
      const timeline = await service.timeline(id)
      if (!timeline.ok) return refused(t, timeline.failure)
      const list = reportList(t, timeline.value.turns)
      return said(command.value.kind === 'bare' ? `${list}\n\n${t('command.usage')}` : list)
    }
    case 'preview': {
      const preview = await service.preview(id, command.value.turn, command.value.scope)
      return preview.ok ? said(reportPreview(t, preview.value)) : refused(t, preview.failure)
    }
    case 'undo':
      return ended(t, place, await service.undo(agent, command.value.op, command.value.running))
    case 'retry':
      return ended(t, place, await service.retry(agent, command.value.running))
    case 'turn':
      return ended(t, place, await service.rollback(agent, command.value))
    case 'plan':
      return ended(t, place, await service.executePlan(agent, command.value.planId))
  }
}

interface Place {
  readonly workspace: string | undefined
  readonly canCopy: boolean
}

function ended(t: Translator, { workspace, canCopy }: Place, done: Result<Operation, Refusal>): CommandAnswer {
  if (!done.ok) {
    const { failure: why, preview, changed } = done.failure
    const text = reportFailure(t, why)
    return { kind: 'error', text: preview === undefined ? text : `${text}\n${reportPreview(t, preview, changed)}` }
  }
  const { value } = done
  const text = reportDone(t, value, workspace, value.around, canCopy)
  return { kind: 'success', text, ...(value.markerSeq === undefined ? {} : { sourceEventSeq: value.markerSeq }) }
}

const said = (text: string): CommandAnswer => ({ kind: 'success', text })
const refused = (t: Translator, why: Failure): CommandAnswer => ({ kind: 'error', text: reportFailure(t, why) })
