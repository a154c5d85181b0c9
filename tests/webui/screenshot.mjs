// Makes the screenshot of README.md: a search in the workbench, with real trials of generated metrics.
// Usage: node tests/webui/screenshot.mjs BUILD_DIR [FILE]. FILE is docs/workbench.png by default.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { cluster, here, page, run, signIn, until } from './driver.mjs';

const FILE = path.resolve(process.argv[3] ?? path.join(here, '../../docs/workbench.png'));
const LIMIT = 150 * 1024;
const TRIALS = 24;

const config = () => `name: mnist-asha
entrypoint: ${process.execPath} script_trial.mjs
hyperparameters:
  lr: {type: log, base: 10, minval: -4, maxval: 0}
  dropout: {type: double, minval: 0, maxval: 0.5}
  activation: {type: categorical, vals: [relu, gelu, tanh]}
  step_ms: 30
searcher: {name: adaptive_asha, metric: accuracy, smaller_is_better: false, max_length: {batches: 1200},
  max_trials: ${TRIALS}, max_concurrent_trials: 6}
resources: {slots_per_trial: 0}
reproducibility: {experiment_seed: 7}
checkpoint_storage: {type: shared_fs, host_path: ${path.join(cluster.directory, 'checkpoints')}}
`;

await run([
  [
    'a search of 24 trials ends',
    async () => {
      mkdirSync(path.join(cluster.directory, 'checkpoints'));
      const context = cluster.folder('context', {
        'const.yaml': config(),
        'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs')),
      });
      await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
      await page.goto(`${cluster.url}/det/experiments/1`);
      await signIn(cluster.password);
      await page.waitForFunction(() => document.querySelector('.state-line .state')?.textContent === 'Completed', undefined, { timeout: 120_000 });
    },
  ],
  [
    'its workbench is drawn into a file of at most 150 KiB',
    async () => {
      await page.setViewportSize({ width: 1280, height: 640 });
      await page.goto(`${cluster.url}/det/experiments/1?charts=accuracy,loss`);
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await until((count) => document.querySelectorAll('tbody tr[data-id]').length === count, TRIALS);
      await page.locator('figure[data-panel="accuracy"] .u-over').hover({ position: { x: 380, y: 60 } });
      await page.locator('.hover-values').first().waitFor();
      await page.screenshot({ path: FILE });
      assert.ok(statSync(FILE).size <= LIMIT, `${statSync(FILE).size} bytes`);
    },
  ],
]);
