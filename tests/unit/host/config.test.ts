import { expect, test } from 'vitest'
import { Config, settingsOf } from '../../../host/config.ts'

const MiB = 1024 * 1024
const validate = (value: unknown) => Config['~standard'].validate(value)

test('a row without a config has every setting at its default', () => {
  expect(settingsOf(undefined)).toEqual({
    maxFileBytes: 32 * MiB, maxBracketFiles: 20_000, maxBracketBytes: 256 * MiB, maxBracketMs: 5_000, ignoreFolders: [],
    modelHint: true, maxStoreBytes: 2048 * MiB, maxStoreDays: 90,
  })
})

test.each([
  [{ maxStoreBytes: '2 GB' }, 'maxStoreBytes: Invalid type: Expected number but received "2 GB"'],
  [{ maxStoreBytes: 1000 }, 'maxStoreBytes: Invalid value: Expected >=1048576 but received 1000'],
  [{ maxStoreBytes: 1e9 + 0.5 }, 'maxStoreBytes: Invalid integer: Received 1000000000.5'],
  [{ maxStoreDays: 0 }, 'maxStoreDays: Invalid value: Expected >=1 but received 0'],
  [{ ignoreFolders: 'dist' }, 'ignoreFolders: Invalid type: Expected Array but received "dist"'],
  [{ ignoreFolders: ['dist', 'a/b'] }, 'ignoreFolders.1: must be the name of a folder, not a path'],
  [{ ignoreFolders: [''] }, 'ignoreFolders.0: must be the name of a folder, not a path'],
])('%j is refused and the setting is named', (config, message) => {
  expect(validate(config)).toEqual({ issues: [{ message }] })
})

test('every bad setting is named, not only the first', () => {
  expect(validate({ maxStoreBytes: 0, maxStoreDays: -1 })).toMatchObject({ issues: [{ message: expect.stringContaining('maxStoreBytes') }, { message: expect.stringContaining('maxStoreDays') }] })
})
