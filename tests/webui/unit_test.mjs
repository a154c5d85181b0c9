// Runs the unit tests of the web UI: bundles unit/*.test.ts with the build's own esbuild and passes them to
// node's test runner. Usage: node unit_test.mjs [BUILD_DIR [NAME]]. With NAME, only tests run whose names match this
// regular expression. Ends with `N passed, N failed`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const [buildDirectory, name, ...more] = process.argv.slice(2);
if (more.length > 0) {
  console.error('usage: unit_test.mjs [BUILD_DIR [NAME]]');
  process.exit(2);
}
const here = path.dirname(fileURLToPath(import.meta.url));
const work = path.resolve(buildDirectory ?? path.join(here, '../../build/release'), 'webui');
// CTest's exit code for "skipped".
const SKIPPED = 77;
if (!existsSync(path.join(work, 'node_modules/.det-lock'))) {
  console.log('skipped: this build has no web UI\n0 passed, 0 failed');
  process.exit(SKIPPED);
}
const esbuild = createRequire(path.join(work, 'package.json'))('esbuild');

const out = mkdtempSync(path.join(tmpdir(), 'det-webui-unit-'));
try {
  await esbuild.build({
    entryPoints: readdirSync(path.join(here, 'unit')).map((name) => path.join(here, 'unit', name)),
    outdir: out,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node18',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    nodePaths: [path.join(work, 'node_modules')],
    logLevel: 'warning',
  });
  const files = readdirSync(out).map((name) => path.join(out, name));
  const only = name ? [`--test-name-pattern=${name}`] : [];
  const run = spawnSync(process.execPath, ['--test', '--test-reporter=tap', ...only, ...files], { encoding: 'utf8' });
  const count = (what) => Number(run.stdout.match(new RegExp(`^# ${what} (\\d+)$`, 'm'))?.[1] ?? 0);
  const failed = count('fail') + count('cancelled');
  if (run.status !== 0) console.log(run.stdout, run.stderr);
  console.log(`${count('pass')} passed, ${failed} failed`);
  process.exitCode = run.status === 0 && count('pass') > 0 ? 0 : 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
