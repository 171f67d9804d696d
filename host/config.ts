import * as v from 'valibot'

/** Settings of the plugin's row in `cordis.patch.yml`. */
const ConfigSchema = v.object({
  /** Files over this size are not captured; a change to one is shown as not restorable. Bytes; default 32 MiB. */
  maxFileBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 32 * 1024 * 1024),
  /** Limits of a look at the workspace around a command: files, bytes that have to be read anew, milliseconds. */
  maxBracketFiles: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 20_000),
  maxBracketBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 256 * 1024 * 1024),
  maxBracketMs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 5_000),
  /** Names of folders that a look at a plain folder does not enter, besides the built-in ones (`node_modules`, caches). */
  ignoreFolders: v.optional(v.array(v.pipe(v.string(), v.regex(/^[^/\\]+$/, 'must be the name of a folder, not a path'))), []),
  /** One line in the system prompt asks the model to change files with the file tools. */
  modelHint: v.optional(v.boolean(), true),
  /** Bytes that the records of all sessions may take together; the oldest go first. Default 2 GiB. */
  maxStoreBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1024 * 1024)), 2 * 1024 ** 3),
  /** Days that a session's records are kept after its last one. */
  maxStoreDays: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 90),
  /** Where records are kept; default `data/turnback/v1` under the DSH home. */
  storeRoot: v.optional(v.pipe(v.string(), v.startsWith('/'))),
})
export type Settings = v.InferOutput<typeof ConfigSchema>

/**
 * What the DSH loader validates a row's `config` with: a Standard Schema (`~standard.validate`), synchronous.
 * A bad value keeps the plugin from loading with this message, as it does for DSH's own rows.
 */
export const Config = {
  '~standard': {
    version: 1 as const,
    vendor: 'dsh-turnback',
    validate: (value: unknown) => {
      const checked = v.safeParse(ConfigSchema, value ?? {})
      if (checked.success) return { value: checked.output }
      return { issues: checked.issues.map(issue => ({ message: `${v.getDotPath(issue) ?? 'config'}: ${issue.message}` })) }
    },
  },
}

/** The settings of a row whose config the loader may not have validated. */
export const settingsOf = (config: unknown): Settings => v.parse(ConfigSchema, config ?? {})
