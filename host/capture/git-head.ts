import { answer, lineOf } from './git-run.ts'
import type { GitTree } from './git-tree.ts'

export async function headOf({ ask }: GitTree): Promise<{ head: string | undefined, ref: string | undefined }> {
  const found = await ask(['rev-parse', 'HEAD', '--symbolic-full-name', 'HEAD'])
  if (found.code === 0) {
    const [head, ref] = found.stdout.toString().split('\n')
    return { head, ref: ref === 'HEAD' ? undefined : ref }
  }
  const unborn = await answer(ask(['symbolic-ref', '-q', 'HEAD']))
  return { head: undefined, ref: lineOf(unborn) }
}
