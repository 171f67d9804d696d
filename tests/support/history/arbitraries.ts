import fc from 'fast-check'
import type { Edit } from './disk.ts'
import type { Beside, Call, Step, Who } from './play.ts'

/** Few, so that everybody meets everybody; folders among them, two that differ in case only, and scripts of all kinds. */
const paths = ['a', 'A', 'b.txt', 'run.sh', 'd', 'd/x', 'd/y z', 'd/e', 'd/e/深い.txt', 'D', 'ключ', 'man\u0303ana', '🙂/f', '-rf', 'new\nline', '.hidden/.env']
const path = fc.constantFrom(...paths)
// The first four are the same whoever writes them.
const content = fc.nat(12)
const mode = fc.constantFrom(0o644, 0o755, 0o600, 0o444)

const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), path, content, mode }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), path, to: path }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), path }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('chmod' as const), path, mode }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('link' as const), path, target: fc.constantFrom('nowhere', 'b.txt', 'd', '../outside') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('folder' as const), path }) },
)
const edits = fc.array(edit, { minLength: 1, maxLength: 4 })

const beside: fc.Arbitrary<Beside> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ by: fc.constant('user' as const), edit }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constantFrom('other' as const, 'own' as const), path, content }) },
)
const bySub = fc.nat(3).map(n => n === 0)
const call: fc.Arbitrary<Call> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('tool' as const), bySub, path, content }) },
  { weight: 4, arbitrary: fc.record({
    kind: fc.constant('command' as const), bySub, edits,
    beside: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.array(beside, { maxLength: 2 }) }),
  }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('user' as const), edits }) },
)

const who: fc.Arbitrary<Who> = fc.constantFrom('A', 'A', 'A', 'B')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('turn' as const), who, calls: fc.array(call, { minLength: 1, maxLength: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('user' as const), edits }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('overlap' as const), a: edits, b: edits, endsFirst: fc.constantFrom<Who>('A', 'B') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rollback' as const), who, turn: fc.nat(100) }) },
)

export const history: fc.Arbitrary<readonly Step[]> = fc.array(step, { minLength: 1, maxLength: 6 })
