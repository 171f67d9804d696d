/**
 * What a tool can do to files, by name (the standard, minimal and code presets of DSH; tool names are
 * those of DSH's tool packages). A name that is not here counts as a command: an unknown or MCP tool may write anything.
 */
export type ToolKind =
  | 'reader' // cannot change workspace files
  | 'file' // announces each path in an fs intent before it writes
  | 'container' // runs other calls, which are looked at themselves
  | 'command' // may change any file and names none

const readers = [
  'read', 'read_image', 'glob', 'grep', 'web_search', 'web_fetch', 'skill', 'ask_user_question', 'exit_plan_mode',
  'todo_write', 'create_goal', 'get_goal', 'update_goal', 'job_list', 'job_output', 'job_kill', 'terminal_read', 'terminal_list',
  'list_agents', 'send_message', 'interrupt_agent', 'report',
  'session_search', 'session_event_search', 'session_trace', 'session_event_trace', 'session_event_read',
  'schedule_create', 'schedule_list', 'schedule_delete',
]
const files = ['write', 'edit', 'str_replace_editor']
const containers = ['run_code', 'subagent', 'subagent_fork', 'workflow', 'ralph']

const table = new Map<string, ToolKind>([
  ...readers.map(name => [name, 'reader'] as const),
  ...files.map(name => [name, 'file'] as const),
  ...containers.map(name => [name, 'container'] as const),
])

/** `args` as parsed from the call; the editor's `view` reads only. */
export function toolKind(name: string, args: Readonly<Record<string, unknown>> | undefined): ToolKind {
  if (name === 'str_replace_editor' && args?.command === 'view') return 'reader'
  return table.get(name) ?? 'command'
}

/** The words a person knows the call by: the path it names, the command it runs, or the tool's name. */
export function callLabel(name: string, args: Readonly<Record<string, unknown>> | undefined): string {
  const words = [args?.file_path, args?.path, args?.command, name === 'terminal_send' ? args?.text : undefined].find(value => typeof value === 'string' && value.trim() !== '')
  const text = toolKind(name, args) === 'container' || typeof words !== 'string' ? name : words
  const line = text.trim().split('\n')[0]!
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}
