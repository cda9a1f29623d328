import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** Writes each file compressed beside it, so that the gateway compresses nothing while it serves. */
function compressed() {
  let folder = '';
  return {
    name: 'compressed',
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      const options = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
      for (const name of readdirSync(folder, { recursive: true })) {
        const path = join(folder, name);
        if (statSync(path).isFile() && /\.(css|html|js|svg)$/.test(path)) {
          writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path), options));
        }
      }
    },
  };
}

export default defineConfig({
  base: '/ui/',
  plugins: [svelte(), compressed()],
  build: {
    outDir: process.env.PAGE_OUT ?? '../kubevnfm_lcm_api/page/built',
    emptyOutDir: true,
    // The policy of the page (page/files.py) allows no data: addresses, and no script in the HTML.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: 'es2022',
  },
});
