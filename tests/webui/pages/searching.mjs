// Checks of a search with brackets: each is drawn as a schedule with its own stages (rungs) and trials.
import assert from 'node:assert/strict';
import path from 'node:path';
import { audit, cluster, here, page, until } from '../driver.mjs';
import { readFileSync } from 'node:fs';
import { open } from './filling.mjs';

const config = () => `name: by halving
entrypoint: ${process.execPath} script_trial.mjs
hyperparameters:
  learning_rate: {type: double, minval: 0.1, maxval: 1}
  kind: {type: categorical, vals: [small, middle, large]}
searcher: {name: adaptive_asha, metric: accuracy, smaller_is_better: false, max_length: {batches: 80}, max_trials: 6,
  divisor: 2, max_rungs: 2, mode: conservative, max_concurrent_trials: 6}
resources: {slots_per_trial: 0}
reproducibility: {experiment_seed: 11}
checkpoint_storage: {type: shared_fs, host_path: ${path.join(cluster.directory, 'checkpoints')}}
`;
const pictures = () => page.locator('figure[data-panel="search"]');

export const searching = [
  [
    'a search by halving is drawn a schedule for each bracket, with its stages and its own trials',
    async () => {
      const context = cluster.folder('searching', {
        'const.yaml': config(),
        'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs'), 'utf8'),
      });
      const id = /experiment (\d+)/i.exec(await cluster.det(['experiment', 'create', 'const.yaml', '.'], context))?.[1];
      await open(`experiments/${id}?panels=search`);
      await pictures().nth(1).locator('circle').first().waitFor();
      assert.deepEqual(
        await pictures().locator('figcaption').evaluateAll((all) => all.map((one) => one.firstElementChild.textContent)),
        ['Schedule 1 of 2', 'Schedule 2 of 2'],
      );
      // Rungs of the two brackets: 40 and 80 batches, and 80 alone. New trials at a rung are drawn by events,
      // without a reload.
      const cells = () =>
        page.getByRole('region', { name: 'Stages' }).locator('tbody tr').evaluateAll((all) =>
          all.map((row) => [...row.children].map((cell) => cell.textContent)),
        );
      await until(() => [...document.querySelectorAll('.state-line .state')].some((one) => one.textContent === 'Completed'));
      await until(() => [...document.querySelectorAll('[aria-label="Stages"] tbody tr')].every((row) => Number(row.children[3].textContent) > 0));
      const rows = await cells();
      assert.deepEqual(rows.map((row) => row.slice(0, 3)), [['1', '1', '40'], ['1', '2', '80'], ['2', '1', '80']]);
      assert.equal(rows[0][4], rows[1][3], 'trials that continued reached the next rung');
      // The table has the stage of each trial.
      const stages = await page.locator('tbody tr[data-id] td', { hasText: /^[12]\/[12]$/ }).evaluateAll((all) => all.map((cell) => [cell.textContent, cell.querySelector('span').title]));
      assert.equal(stages.length, 6);
      assert.ok(stages.some(([text, title]) => text === '1/1' && title === 'Stage 1 of 1, 80 batches'), `${stages}`);
      assert.equal(stages.filter(([text]) => text === '2/2').length, Number(rows[1][3]), `${stages}`);
      const schedules = await page.locator('tbody tr[data-id] span[title^="Schedule (bracket)"]').allTextContents();
      assert.deepEqual([schedules.length, [...new Set(schedules)].sort()], [6, ['1', '2']]);
      const trials = await pictures().evaluateAll((all) => all.map((one) => [...one.querySelectorAll('svg a')].map((line) => line.getAttribute('href'))));
      assert.equal(new Set(trials.flat()).size, 6);
      assert.equal(trials.flat().length, 6);
      // Beside the table the lines have the colors of its dots, or on demand those of the metric.
      const first = await page.locator('tr.drawn').first().getAttribute('data-id');
      const line = page.locator(`a[aria-label="Trial ${first}"] polyline`).first();
      const [stroke, dot] = [
        await line.evaluate((one) => getComputedStyle(one).stroke),
        await page.getByRole('button', { name: `Show trial ${first}` }).evaluate((one) => getComputedStyle(one).backgroundColor),
      ];
      assert.equal(stroke, dot);
      await page.getByRole('group', { name: 'Color by' }).getByRole('button', { name: 'metric' }).click();
      await until(() => location.search.includes('color=metric') && document.querySelector('polyline.line[class*="shade-"]'));
      await page.getByRole('group', { name: 'Color by' }).getByRole('button', { name: 'run' }).click();
      await until(() => !location.search.includes('color='));
      await audit('search-brackets');
      await open(`experiments/${id}?panels=parameters`);
      // All trials end with the same metric: charts of its variation are left out.
      await page.getByText('All runs have the same accuracy').waitFor();
      assert.equal(await page.locator('figure').count(), 1);
      const axes = await page.$$eval('figure[data-panel="parallel"] svg > g', (all) => all.map((axis) => [...axis.querySelectorAll('text')].map((text) => text.textContent)));
      assert.deepEqual(axes[0], ['kind', 'small', 'middle', 'large']);
      assert.deepEqual(axes[1], ['learning_rate', '0.2', '0.4', '0.6', '0.8', '1.0']);
      assert.deepEqual(axes[2], ['accuracy', '0.21053']);
      await audit('hyperparameters-words');
    },
  ],
];
