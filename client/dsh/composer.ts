import { service, type ClientContext, type Observable } from './context.ts'

/** The composer of one session. Nothing here can reach another session's: everything goes through its scope. */
export interface Composer {
  draft(): string
  /** Resolves when no submission is under way: a command's own line is still in the draft while it runs. */
  settled(): Promise<void>
  setDraft(text: string): void
  /** Puts stored pictures back as unsent ones; answers how many could not be. */
  addImages(attachmentIds: readonly string[]): Promise<number>
  focus(): void
  notify(level: 'info' | 'error', text: string): void
}

interface Input {
  setDraft(text: string): void
  addImages?(ids: readonly string[]): boolean
  addAttachments?(ids: readonly string[]): boolean
  notify?(level: 'info' | 'error', text: string): void
  readonly state?: Observable<{ readonly draft?: string; readonly phase?: string }>
}
interface Draft {
  readonly id: string
}
interface ConversationService {
  readonly input?: { for(scope: ClientContext): Input }
  createDraftImages?(files: readonly File[]): readonly Draft[]
  createDrafts?(sessionId: string, files: readonly File[]): readonly Draft[] | Promise<readonly Draft[]>
  releaseDraftImages?(drafts: readonly Draft[]): void
  releaseDraftAttachments?(drafts: readonly Draft[]): void
}
interface AttachmentReader {
  readAttachment?(id: string): Promise<{
    readonly ok: boolean
    readonly value?: {
      readonly attachment: { readonly mediaType: string; readonly name?: string }
      readonly data: Uint8Array<ArrayBuffer>
    }
  }>
}

/** The composer refuses pictures while it is busy with a submission; that lasts a moment. */
const RETRIES = 4
const RETRY_MS = 150

/**
 * `sessions.scope(id).get('conversation').input.for(scope)` (DSH ui-conversation input/contract.ts
 * `SessionInput`). Pictures: `createDraftImages` + `addImages` up to 0.1.1, `createDrafts` +
 * `addAttachments` from 0.1.2 on. Undefined when the session's scope or the service is not there.
 */
export function composerOf(ctx: ClientContext, sessionId: string): Composer | undefined {
  const scope = ctx.sessions.scope?.(sessionId)
  if (scope === undefined) return undefined
  const conversation = service<ConversationService>(scope, 'conversation')
  const input = conversation?.input?.for(scope)
  if (conversation === undefined || typeof input?.setDraft !== 'function') return undefined

  return {
    draft: () => input.state?.getSnapshot().draft ?? '',
    settled: () => whenSettled(input.state),
    setDraft: text => input.setDraft(text),
    notify: (level, text) => input.notify?.(level, text),
    focus: () =>
      document
        .querySelector<HTMLElement>('[data-composer-seat] textarea, [data-composer-seat] [contenteditable="true"]')
        ?.focus({ preventScroll: true }),
    async addImages(attachmentIds) {
      const reader = ctx.sessions.binding?.(sessionId)?.session as AttachmentReader | undefined
      const files = (await Promise.all(attachmentIds.map(id => readImage(reader, id)))).flatMap(file => file ?? [])
      if (files.length === 0) return attachmentIds.length
      const drafts = await createDrafts(conversation, sessionId, files)
      if (drafts.length > 0 && (await add(input, drafts))) return attachmentIds.length - drafts.length
      conversation.releaseDraftImages?.(drafts)
      conversation.releaseDraftAttachments?.(drafts)
      return attachmentIds.length
    },
  }
}

/** Phases of the composer's submission (input/contract.ts `InputState.phase`). A host that never ends one is not waited for. */
const busyPhases: ReadonlySet<string> = new Set(['submitting', 'adjudicating'])
const SETTLE_MS = 3000

function whenSettled(state: Input['state']): Promise<void> {
  const isBusy = () => busyPhases.has(state?.getSnapshot().phase ?? '')
  if (state === undefined || !isBusy()) return Promise.resolve()
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer)
      stop()
      resolve()
    }
    const timer = setTimeout(end, SETTLE_MS)
    const stop = state.subscribe(() => (isBusy() ? undefined : end()))
  })
}

async function readImage(reader: AttachmentReader | undefined, id: string): Promise<File | undefined> {
  try {
    const read = await reader?.readAttachment?.(id)
    if (read?.ok !== true || read.value === undefined) return undefined
    const { attachment, data } = read.value
    return new File([data], attachment.name ?? 'image', { type: attachment.mediaType })
  } catch {
    // the picture's bytes are out of reach; the caller counts and names it
    return undefined
  }
}

async function createDrafts(
  conversation: ConversationService,
  sessionId: string,
  files: readonly File[],
): Promise<readonly Draft[]> {
  try {
    return (await (conversation.createDrafts?.(sessionId, files) ?? conversation.createDraftImages?.(files))) ?? []
  } catch {
    // the host throws for media types it does not take as pictures; the caller counts and names them
    return []
  }
}

async function add(input: Input, drafts: readonly Draft[]): Promise<boolean> {
  const ids = drafts.map(({ id }) => id)
  for (let tries = 0; tries < RETRIES; tries++) {
    if ((input.addAttachments ?? input.addImages)?.call(input, ids) !== false) return true
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
  return false
}
