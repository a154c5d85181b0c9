// Checks of a trial with many metrics: sections by prefix, a search field, a list to choose from.
import assert from 'node:assert/strict';
import { audit, page, until } from '../driver.mjs';
import { curves, putMany, sql } from '../rows.mjs';
import { open } from './filling.mjs';

const EXPERIMENT = 730_000;
const LAYERS = 20;

const panels = () => page.$$eval('figure[data-panel]', (all) => all.map((one) => one.dataset.panel));
const untilPanels = (count) => until((wanted) => document.querySelectorAll('figure[data-panel]').length === wanted, count);

export const finding = [
  [
    'many metrics are in sections with their numbers; a text finds them, and a list chooses others',
    async () => {
      putMany(curves(EXPERIMENT, 1, 10));
      sql(`INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)
        SELECT ${EXPERIMENT}, 1, 'gradients', s, now(), (SELECT json_object_agg('layer' || lpad(n::text, 2, '0') || '/norm', n * s) FROM generate_series(1, ${LAYERS}) n)
        FROM generate_series(1, 10) s`);
      await open(`trials/${EXPERIMENT}`);
      await untilPanels(1);
      await page.getByRole('button', { name: `layer…/ ${LAYERS} metrics` }).click();
      await untilPanels(1 + LAYERS);
      assert.match(page.url(), /open=layer/);
      await page.getByLabel('Find metrics').fill('NORM layer1');
      await untilPanels(10);
      assert.deepEqual([...new Set((await panels()).map((name) => name.slice(0, 6)))], ['layer1']);
      await until(() => location.search.includes('find='));
      await audit('finder');
      await page.getByLabel('Find metrics').focus();
      await page.getByRole('group', { name: 'Metrics shown' }).getByLabel('layer12/norm', { exact: true }).uncheck();
      await untilPanels(9);
      assert.ok(!(await panels()).includes('layer12/norm'));
      assert.equal(await page.getByLabel('Find metrics').inputValue(), '');
      await page.getByLabel('Find metrics').fill('nothing of that name');
      await page.locator('p', { hasText: 'No metric is called nothing of that name.' }).waitFor();
    },
  ],
];
