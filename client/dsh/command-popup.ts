import type { Health } from '../health.ts'
import { service, type ClientContext } from './context.ts'

/**
 * What the bare command does in the composer (DSH dsh-client-ui-commands, `commandUi.decorate`, rc.8 to 0.2): the host
 * opens a list with a search field above the composer. We rely on: `options` is asked once per opening and its
 * rejection is shown with a way to try again; a rejected `onSelect` is shown and the list stays open; after one that
 * resolves the typed command goes away. A second decoration of a name throws. With arguments, and with a blank behind
 * the name, the line goes to the host as ever.
 */
export interface PopupOption {
  readonly id: string
  readonly label: string
  readonly detail?: string
}

export interface CommandPopup {
  /** The command's name, without the slash. */
  readonly name: string
  /** Asked at each use. */
  isOffered(sessionId: string): boolean
  /** Rejects with a sentence for the person. */
  options(sessionId: string, signal: AbortSignal): Promise<readonly PopupOption[]>
  /** Throws a sentence for the person when the option cannot be taken. */
  choose(option: PopupOption, sessionId: string): void
}

interface SessionFace {
  readonly sessionId?: unknown
}
interface CommandUi {
  decorate?(decoration: {
    readonly name: string
    available(session: SessionFace): boolean
    readonly ui: {
      readonly kind: 'popupSelect'
      options(session: SessionFace, signal: AbortSignal): Promise<readonly PopupOption[]>
      onSelect(option: PopupOption, session: SessionFace): void
    }
  }): unknown
}

/** Hangs the list on the command as soon as the host offers that; without it the bare command answers with text. */
export function decorateCommand(ctx: ClientContext, health: Health, popup: CommandPopup): void {
  const part = `list of /${popup.name}`
  const register = (owner: ClientContext, ui: CommandUi | undefined) =>
    health.guard(part, () => {
      const decorate = ui?.decorate?.bind(ui)
      if (decorate === undefined) throw new Error('the host has no lists for commands')
      owner.effect(() => {
        const dispose = decorate({
          name: popup.name,
          available: session => health.guard(part, () => popup.isOffered(String(session.sessionId))) ?? false,
          ui: {
            kind: 'popupSelect',
            options: (session, signal) => popup.options(String(session.sessionId), signal),
            onSelect: (option, session) => popup.choose(option, String(session.sessionId)),
          },
        })
        return () => (typeof dispose === 'function' ? dispose() : undefined)
      }, `turnback: ${part}`)
    })
  const present = service<CommandUi>(ctx, 'commandUi')
  if (present !== undefined) return void register(ctx, present)
  if (typeof ctx.inject === 'function') health.guard(part, () => ctx.inject!(['commandUi'], child => register(child, service<CommandUi>(child, 'commandUi'))))
}
