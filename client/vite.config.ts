import { defineConfig, type Plugin } from 'vite'
import manifest from '../package.json' with { type: 'json' }

/** What the page's module table serves in every DSH generation we support; all else (Preact, signals) is bundled. */
const served = ['react', '@deepseek-ai/dsh-client-ui-primitives']

/**
 * Turns the CommonJS chunk into the one statement the page's loader expects: a call that registers a factory under the
 * package's name. Several plugins may be served as one script, so nothing of ours may stand at the top level.
 * Style sheets are not served: their text travels in a tagged <style>, which the loader removes with the plugin.
 */
function loaderForm(id: string): Plugin {
  return {
    name: 'turnback:loader-form',
    enforce: 'post',
    generateBundle(_options, bundle) {
      let css = ''
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type !== 'asset' || !name.endsWith('.css')) continue
        css += file.source
        delete bundle[name]
      }
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk' || !file.isEntry) continue
        file.code = [
          `window.__ModuleLoader__.load({ id: ${JSON.stringify(id)}, factory: (require) => {`,
          'const module = { exports: {} }; const exports = module.exports;',
          ...(css === '' ? [] : [styleTag(id, css)]),
          file.code.trimEnd(),
          'return module.exports;',
          '} });\n',
        ].join('\n')
      }
    },
  }
}

/** Texts that only the host half says: the page never asks for them (scripts/check-locales.mjs holds it to that). */
const withoutHostTexts: Plugin = {
  name: 'turnback:without-host-texts',
  load: id => (/\/locales\/command-(en|zh)\.ts$/.test(id) ? 'export const commandEn = {}, commandZh = {}' : undefined),
}

/** A block that adds the style once, however often the factory runs. */
function styleTag(id: string, css: string): string {
  const tag = JSON.stringify(`${id}/client.css`)
  return `if (!document.querySelector('style[data-plugin-css=' + CSS.escape(${tag}) + ']')) {
  const style = document.createElement('style');
  style.dataset.plugin = ${JSON.stringify(id)};
  style.dataset.pluginCss = ${tag};
  style.textContent = ${JSON.stringify(css)};
  document.head.append(style);
}`
}

export default defineConfig({
  // A library build leaves this name alone, and the page has no `process`.
  define: { 'process.env.NODE_ENV': '"production"' },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [withoutHostTexts, loaderForm(manifest.name)],
  css: { modules: { generateScopedName: 'turnback-[name]-[local]' } },
  // The worker's code travels as a string in the bundle, so it is kept small.
  worker: { rolldownOptions: { output: { minify: true } } },
  build: {
    lib: { entry: 'client/index.ts', formats: ['cjs'], fileName: () => 'client.js' },
    outDir: 'lib',
    emptyOutDir: false,
    cssCodeSplit: false,
    target: 'es2022',
    minify: true,
    sourcemap: false,
    rolldownOptions: { external: served, output: { exports: 'named', codeSplitting: false } },
  },
})
