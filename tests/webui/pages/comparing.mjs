// Checks of comparing experiments and trials.
import assert from 'node:assert/strict';
import { audit, page, until, untilText } from '../driver.mjs';
import { PROBE, open } from './filling.mjs';

const tab = (name) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).click();
const rows = () =>
  page.$$eval('.compare:last-of-type tbody tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

export const comparing = [
  [
    'those chosen in the list are compared, their curves in one chart',
    async () => {
      await page.getByLabel('Choose experiment 1').check();
      await page.getByLabel('Choose experiment 2').check();
      await page.getByLabel('Choose experiment 3').check();
      await page.getByRole('group', { name: 'Chosen experiments' }).getByRole('link', { name: 'Compare' }).click();
      await page.waitForURL(/\/det\/compare\?experiments=[123],[123],[123]$/);
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await until(() => document.querySelector('figure[data-panel="grad_norm"]')?.ariaLabel.includes('experiment 2 · training'));
      await audit('compare');
    },
  ],
  [
    'each curve has a key in its color, and the pointer shows the values in order, raw beside smoothed',
    async () => {
      const key = page.getByRole('list', { name: 'Trials drawn' });
      assert.equal(await key.getByRole('link').count(), 3);
      const colors = await key.locator('.swatch').evaluateAll((all) => all.map((swatch) => getComputedStyle(swatch).backgroundColor));
      assert.equal(new Set(colors).size, 3);
      assert.deepEqual(await page.$$eval('.compare thead .swatch', (all) => all.slice(0, 3).map((swatch) => getComputedStyle(swatch).backgroundColor)), colors);
      // All three trials have values in the first part of the range.
      const plot = page.locator('figure[data-panel="grad_norm"] .u-over');
      const { width } = await plot.boundingBox();
      const hovered = page.locator('figure[data-panel="grad_norm"] .hover-values');
      await plot.hover({ position: { x: width * 0.2, y: 80 } });
      await hovered.waitFor();
      const values = (await hovered.locator('td.number:not(.quiet)').allTextContents()).map(Number);
      assert.equal(values.length, 3);
      assert.deepEqual(values, [...values].sort((a, b) => b - a));
      await page.getByLabel('Smoothing').fill('0.9');
      await until(() => location.search.includes('smooth=0.9'));
      await plot.hover({ position: { x: width * 0.25, y: 80 } });
      await hovered.locator('td.quiet').first().waitFor();
      await page.getByLabel('Smoothing').fill('0');
    },
  ],
  [
    'hyperparameters and configurations show in what they differ, and on demand what is the same',
    async () => {
      await open('compare?experiments=1,2,3&tab=hyperparameters');
      await untilText('1 of 2 differ');
      const values = page.getByRole('region', { name: 'Hyperparameters' });
      assert.deepEqual(
        await values.locator('tbody tr').allInnerTexts(),
        ['learning_rate\t0.1\t0.2\t0.3'],
      );
      await page.getByLabel('Show equal values').check();
      await until(() => location.search.includes('same=1'));
      assert.equal(await values.locator('tbody tr').count(), 2);
      await audit('compare-hyperparameters');
      await tab('Configuration');
      await page.getByRole('region', { name: 'Configurations' }).getByText('max_restarts').waitFor();
      await page.getByRole('region', { name: 'experiment 1 → experiment 2' }).waitFor();
      const lines = await page.$$eval('.diff-left .diff-text, .diff-right .diff-text', (all) => all.map((one) => one.textContent));
      assert.ok(lines.includes('max_restarts: 1') && lines.includes('max_restarts: 2'), lines.join('\n'));
      assert.ok(lines.some((line) => line.includes(PROBE)));
      await page.getByLabel('Right').selectOption('experiment 3');
      await page.getByRole('region', { name: 'experiment 1 → experiment 3' }).waitFor();
      await audit('compare-configuration');
    },
  ],
  [
    'code is compared file by file, as text',
    async () => {
      await open('compare?experiments=1,2&tab=code');
      const files = page.getByRole('navigation', { name: 'Files' });
      await files.getByText('only right').waitFor();
      await files.getByRole('button', { name: 'model.txt' }).click();
      await until(() => document.querySelector('.diff-right .diff-text')?.textContent === 'number 2');
      await audit('compare-code');
      await files.getByRole('button', { name: 'extra.txt' }).click();
      await until((probe) => document.querySelector('.diff-right .diff-text')?.textContent === probe, PROBE);
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },
  ],
  [
    'trials are compared too, and nothing to compare says how to begin',
    async () => {
      await open('compare?trials=1,3,x');
      await untilText('Compare 2 trials');
      await page.getByRole('region', { name: 'Summary' }).getByRole('link', { name: 'trial 3' }).click();
      await page.waitForURL('**/det/trials/3');
      await open('compare');
      await untilText('Nothing to compare');
      await audit('compare-nothing');
    },
  ],
];
