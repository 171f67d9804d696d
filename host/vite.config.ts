import { isBuiltin } from 'node:module'
import { defineConfig, type Plugin } from 'vite'

/**
 * The host half may import Node's own modules and nothing else at run time: a plugin installed from a folder cannot
 * resolve `@deepseek-ai/*`, and one installed from a tarball has no dependencies beside it. So everything is bundled,
 * and an import that is left over stops the build instead of stopping a user's host.
 */
function onlyNodeImports(): Plugin {
  return {
    name: 'turnback:only-node-imports',
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk') continue
        const foreign = [...file.imports, ...file.dynamicImports].filter(id => !isBuiltin(id) && !(id in bundle))
        if (foreign.length > 0) this.error(`${file.fileName} imports ${foreign.join(', ')} at run time`)
      }
    },
  }
}

export default defineConfig({
  plugins: [onlyNodeImports()],
  ssr: { noExternal: true },
  build: {
    ssr: 'host/index.ts',
    outDir: 'lib',
    emptyOutDir: false,
    target: 'node22',
    minify: false,
    sourcemap: false,
    rolldownOptions: { output: { format: 'es', entryFileNames: 'index.js', codeSplitting: false } },
  },
})
