import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareWalks, walkFolder } from '../../../../host/capture/folder-walk.ts'
import { defaultIgnore } from '../../../../src/checkpoint/ignore-list.ts'
import { lawRuns, lawTimeoutMs } from '../../../support/runs.ts'
import { anOpWorld } from '../restore/op-world.ts'

const path = fc.array(fc.constantFrom('a', 'b', 'ü'), { minLength: 1, maxLength: 3 }).map(parts => parts.join('/'))
const operation = fc.oneof(
  ...(['write', 'link', 'mode', 'folder', 'remove'] as const).map(kind => fc.record({ kind: fc.constant(kind), path })),
  fc.record({ kind: fc.constant('move' as const), path, to: path }),
)
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

/** A tree as a value: `folder`, or which of all versions a file is. A step that the disk would refuse does nothing. */
class Model {
  readonly entries = new Map<string, { kind: 'folder' | 'file' | 'link'; version: number }>()
  version = 0

  parentIsThere(at: string): boolean {
    const end = at.lastIndexOf('/')
    return end < 0 || this.entries.get(at.slice(0, end))?.kind === 'folder'
  }

  below(at: string): string[] {
    return [...this.entries.keys()].filter(key => key === at || key.startsWith(`${at}/`))
  }

  of(isFolder: boolean): Map<string, number> {
    return new Map([...this.entries].filter(([, { kind }]) => (kind === 'folder') === isFolder).map(([key, { version }]) => [key, version]))
  }
}

/** One step on the model and on the disk. */
async function take(step: Operation, model: Model, at: (name: string) => string): Promise<void> {
  const there = model.entries.get(step.path)
  const version = ++model.version
  switch (step.kind) {
    case 'write':
      if (!model.parentIsThere(step.path) || (there !== undefined && there.kind !== 'file')) return
      model.entries.set(step.path, { kind: 'file', version })
      // One size for all, so that only times can tell.
      return writeFile(at(step.path), String(version % 10))
    case 'link':
      if (!model.parentIsThere(step.path) || there?.kind === 'folder') return
      await rm(at(step.path), { force: true })
      model.entries.set(step.path, { kind: 'link', version })
      return symlink('a', at(step.path))
    case 'mode':
      if (there?.kind !== 'file') return
      model.entries.set(step.path, { kind: 'file', version })
      return chmod(at(step.path), version % 2 === 0 ? 0o644 : 0o755)
    case 'folder':
      if (!model.parentIsThere(step.path) || there !== undefined) return
      model.entries.set(step.path, { kind: 'folder', version: 0 })
      return mkdir(at(step.path))
    case 'remove':
      if (there === undefined) return
      for (const key of model.below(step.path)) model.entries.delete(key)
      return rm(at(step.path), { recursive: true, force: true })
    case 'move': {
      if (there === undefined || !model.parentIsThere(step.to) || step.to === step.path || step.to.startsWith(`${step.path}/`)) return
      if (model.entries.has(step.to)) return
      for (const key of model.below(step.path)) {
        const entry = model.entries.get(key)!
        model.entries.delete(key)
        // A file that is moved by itself gets a new ctime; one in a folder that is moved does not.
        model.entries.set(step.to + key.slice(step.path.length), key === step.path && entry.kind !== 'folder' ? { ...entry, version } : entry)
      }
      return rename(at(step.path), at(step.to))
    }
  }
}

test('whatever happens between two walks, their differences are the model’s', async () => {
  const steps = fc.array(operation, { maxLength: 25 })
  await fc.assert(fc.asyncProperty(steps, steps, async (first, second) => {
    const w = await anOpWorld()
    try {
      const model = new Model()
      const walk = () => walkFolder(w.root, { budget: { maxFiles: 1000, maxMs: 60_000 }, ignore: defaultIgnore })
      for (const step of first) await take(step, model, w.at)
      const [oldFiles, oldFolders] = [model.of(false), model.of(true)]
      const before = await walk()
      // Over a tick of the file system's clock.
      await new Promise(resolve => setTimeout(resolve, 12))
      for (const step of second) await take(step, model, w.at)
      const [files, folders] = [model.of(false), model.of(true)]

      const { racy, ...found } = compareWalks(before, await walk())

      const pathsIn = (from: Map<string, number>, test: (key: string) => boolean) => [...from.keys()].filter(test).map(w.at).sort()
      expect(found).toEqual({
        changed: pathsIn(files, key => oldFiles.has(key) && oldFiles.get(key) !== files.get(key)),
        created: pathsIn(files, key => !oldFiles.has(key)),
        deleted: pathsIn(oldFiles, key => !files.has(key)),
        createdFolders: pathsIn(folders, key => !oldFolders.has(key)),
        deletedFolders: pathsIn(oldFolders, key => !folders.has(key)),
      })
      expect(pathsIn(files, key => oldFiles.get(key) === files.get(key))).toEqual(expect.arrayContaining([...racy]))
    } finally {
      await w.clean()
    }
  }), { numRuns: Math.ceil(lawRuns.numRuns / 3) })
}, lawTimeoutMs)
