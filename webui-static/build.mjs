// Bundles src/ into OUT/index.html and OUT/assets/NAME-HASH.*, each with a .gz beside it. Builds are
// reproducible.
// Usage: node build.mjs OUT
import { build } from 'esbuild';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? 'dist');
// The path under which the master serves OUT.
const base = '/det/';
// Maximum compressed size of the first load, in bytes: everything but pages that are loaded when they are shown.
const LIMIT = 150 * 1024;

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const settings = {
  absWorkingDir: here,
  outdir: path.join(out, 'assets'),
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  bundle: true,
  minify: true,
  metafile: true,
  format: 'esm',
  chunkNames: '[name]-[hash]',
  target: 'es2020',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'eof',
  loader: { '.svg': 'copy', '.woff2': 'file' },
  logLevel: 'warning',
};
const pages = await build({ ...settings, entryPoints: { main: 'src/main.tsx', start: 'src/start.ts', icon: 'src/styles/icon.svg' }, splitting: true });
// A shared worker is a script, not a module: it cannot import a file that it shares with the pages.
const worker = await build({ ...settings, entryPoints: { events: 'src/events.worker.ts' }, format: 'iife' });
const results = { ...pages.metafile.outputs, ...worker.metafile.outputs };

const names = Object.keys(results).map((file) => path.basename(file));
const asset = (pattern) => {
  const name = names.find((candidate) => pattern.test(candidate));
  if (!name) throw new Error(`the bundle has no file like ${pattern}`);
  return `${base}assets/${name}`;
};
// Files that the main script imports, and those that they import.
const outputs = new Map(Object.entries(results).map(([file, own]) => [path.basename(file), own]));
const early = [];
const main = path.basename(asset(/^main-.*\.js$/));
const later = new Set(Object.keys(pages.metafile.outputs).map((file) => path.basename(file)).filter((name) => name.endsWith('.js') && name !== main));
const keep = (name) => {
  for (const { path: file, kind } of outputs.get(name)?.imports ?? [])
    if (kind === 'import-statement' && later.delete(path.basename(file))) {
      early.push(path.basename(file));
      keep(path.basename(file));
    }
};
keep(main);

const template = await readFile(path.join(here, 'src/index.html'), 'utf8');
const page = template
  .replace('{{start}}', asset(/^start-.*\.js$/))
  .replace('{{script}}', asset(/^main-.*\.js$/))
  // The browser requests imported files together with the main script, not after it.
  .replace('{{imports}}', early.map((name) => `<link rel="modulepreload" href="${base}assets/${name}" />`).join('\n    '))
  .replace('{{worker}}', asset(/^events-.*\.js$/))
  .replace('{{style}}', asset(/^main-.*\.css$/))
  .replace('{{icon}}', asset(/^icon-.*\.svg$/))
  .replace('{{font}}', asset(/^geist-.*\.woff2$/));
await writeFile(path.join(out, 'index.html'), page);

let total = 0;
for (const file of [
  'index.html',
  ...(await readdir(path.join(out, 'assets'))).map((name) => `assets/${name}`),
]) {
  const packed = gzipSync(await readFile(path.join(out, file)), { level: 9 });
  await writeFile(path.join(out, `${file}.gz`), packed);
  if (!later.has(path.basename(file))) total += packed.length;
}
console.log(`web UI: ${(total / 1024).toFixed(1)} KiB compressed on first load (limit ${LIMIT / 1024})`);
if (total > LIMIT) process.exit(1);
