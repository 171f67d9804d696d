const reasons = [
  'repository', // a version control system's own store: we never move it
  'dependencies', // installed by a package manager from a list that is itself an ordinary file
  'cache', // a tool writes it again by itself
] as const
export type IgnoreReason = (typeof reasons)[number]

/**
 * Folders that a walk of a workspace without git does not enter, by name at any depth. A name is here only
 * if tools make it again, it is often huge, and nobody gives it to a folder of their own work. So not
 * `dist`, `build`, `out`, `target` or `vendor`: a folder so called may hold the only copy of something.
 */
export const ignoredFolders: Readonly<Record<string, IgnoreReason>> = {
  '.git': 'repository',
  '.hg': 'repository',
  '.svn': 'repository',
  '.jj': 'repository',
  '.bzr': 'repository',
  'node_modules': 'dependencies',
  'bower_components': 'dependencies',
  '.pnpm-store': 'dependencies',
  '.venv': 'dependencies',
  '.tox': 'dependencies',
  '.nox': 'dependencies',
  '.terraform': 'dependencies',
  '__pycache__': 'cache',
  '.mypy_cache': 'cache',
  '.pytest_cache': 'cache',
  '.ruff_cache': 'cache',
  '.cache': 'cache',
  '.parcel-cache': 'cache',
  '.turbo': 'cache',
  '.next': 'cache',
  '.nuxt': 'cache',
  '.svelte-kit': 'cache',
  '.gradle': 'cache',
}

export const defaultIgnore: ReadonlySet<string> = new Set(Object.keys(ignoredFolders))
