// Fills the cluster for the page tests: three running experiments with different configurations and code.
// Also signs in.
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cluster, here, page, signIn, until } from '../driver.mjs';

export const PROBE = '<img src=x onerror="window.pwned=1">';

export const config = (number, more = '') => `name: 'number ${number} ${number === 2 ? PROBE : ''}'
description: 'trial without a model'
entrypoint: ${process.execPath} script_trial.mjs
hyperparameters:
  learning_rate: ${number / 10}
  same: 7
searcher:
  name: single
  metric: accuracy
  smaller_is_better: false
  max_length: {batches: ${number * 1000000}}
resources:
  slots_per_trial: 1
max_restarts: ${number}
checkpoint_storage:
  type: shared_fs
  host_path: ${path.join(cluster.directory, 'checkpoints')}
${more}`;

// Opens the menu of a page.
export const more = () => page.getByLabel('More actions').click();

export const open = (place) => page.goto(`${cluster.url}/det/${place}`);

export const filling = [
  [
    'three experiments run, and a user signs in',
    async () => {
      mkdirSync(path.join(cluster.directory, 'checkpoints'));
      const trial = readFileSync(path.join(here, 'script_trial.mjs'), 'utf8');
      for (const number of [1, 2, 3]) {
        const context = cluster.folder(`context${number}`, {
          'const.yaml': config(number, number === 1 ? 'profiling: {enabled: true}\n' : ''),
          'script_trial.mjs': trial,
          'model.txt': `first line\nnumber ${number}\nlast line\n`,
          ...(number === 2 ? { 'extra.txt': `${PROBE}\n` } : {}),
        });
        await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
      }
      await page.goto(`${cluster.url}/`);
      await signIn(cluster.password);
      await page.getByRole('link', { name: 'Experiments', exact: true }).click();
      await until(() => [...document.querySelectorAll('tbody :is(.state, .state-icon)')].filter((one) => one.textContent === 'Running').length === 3);
    },
  ],
];
