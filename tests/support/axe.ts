import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const script = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/**
 * What axe-core finds in the parts of the page that are ours, as `rule: element`; empty is good. `where` is a CSS
 * selector; rules that speak of a whole page are the host's.
 */
export async function violations(page: Page, where: string): Promise<readonly string[]> {
  if (!await page.evaluate('"axe" in window')) await page.addScriptTag({ path: script })
  const found = await page.evaluate(async (selector) => {
    const { axe } = window as unknown as { axe: { run(where: unknown, options: unknown): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[]; passes: unknown[] }> } }
    const { violations: bad, passes } = await axe.run({ include: [[selector]] }, { resultTypes: ['violations', 'passes'] })
    return { bad: bad.flatMap(({ id, nodes }) => nodes.map(node => `${id}: ${node.html.slice(0, 120)} ${node.failureSummary ?? ''}`)), passed: passes.length }
  }, where)
  // A selector that meets nothing would find nothing wrong.
  if (found.passed === 0) throw new Error(`axe: nothing of ${where} was checked`)
  return found.bad
}
