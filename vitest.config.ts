import { defineConfig } from 'vitest/config'

/** One runner, four rooms of tests. `TURNBACK_LONG=1` (npm run test:long) raises seeds and crash points. */
const project = (name: string, more: object = {}) => ({
  extends: true as const,
  // Vitest leaves one core free, which on two cores doubles the time.
  test: { name, include: [`tests/${name}/**/*.test.{ts,tsx}`], maxWorkers: 2, ...more },
})

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: {
    projects: [
      // Some of them start processes; on a busy machine that takes its time.
      project('unit', { testTimeout: 30_000 }),
      project('contract', { testTimeout: 30_000, hookTimeout: 60_000 }),
      project('component', { environment: 'jsdom', testTimeout: 30_000 }),
      // One real host and one browser at a time: the files run one after another.
      project('e2e', { testTimeout: 120_000, hookTimeout: 180_000, fileParallelism: false, maxWorkers: 1 }),
    ],
  },
})
