// Checks of comparing experiments and trials.
import assert from 'node:assert/strict';
import { audit, page, until, untilText } from '../driver.mjs';
import { PROBE, open } from './filling.mjs';

const part = (name) => page.getByRole('group', { name: 'What is compared' }).getByRole('button', { name }).click();
const COMPARED = `experiments?q=${encodeURIComponent('id in (1, 2, 3)')}&drawn=1,2,3`;

export const comparing = [
  [
    'those chosen in the list are compared, also beside the table: the best is marked, others show their difference, unless all read the same',
    async () => {
      await page.getByLabel('Select experiment 1').check();
      await page.getByLabel('Select experiment 2').check();
      await page.getByLabel('Select experiment 3').check();
      await page.getByRole('group', { name: 'Selected experiments' }).getByRole('link', { name: 'Compare' }).click();
      await page.waitForURL(/\/det\/experiments\?.*panels=compare$/);
      await page.getByRole('group', { name: 'Layout' }).getByRole('button', { name: 'Both' }).click();
      await until(() => document.querySelectorAll('tbody tr[data-id]').length === 3);
      // The values may be equal.
      await page.getByLabel('Only differences').uncheck();
      const summary = page.getByRole('rowgroup', { name: 'Summary' });
      // "0.5 best", "0.4 −0.1": read at once, because the runs report on. The last one may not have reported yet.
      await until(() => {
        const row = [...document.querySelectorAll('[aria-label="Summary"] tr')].find((one) => one.cells[0].innerText.trim() === 'best accuracy');
        return row && [...row.cells].every((cell) => !/^(|–.*)$/.test(cell.innerText.trim()));
      });
      const [cells, column] = await summary.getByRole('row', { name: 'accuracy' }).evaluate((row) => [
        [...row.cells].slice(1).map((cell) => cell.innerText.trim()),
        [...document.querySelectorAll('tr[data-id]')].map((run) => run.querySelector('td.number:not(.small-id)').innerText.trim()),
      ]);
      // Equal values are one cell.
      const shown = cells.length === 1 ? column.map(() => cells[0]) : cells;
      // The table and the comparison show the same numbers.
      assert.deepEqual(shown.map((text) => text.split(/\s/)[0]).sort(), column.sort());
      const values = new Set(shown.map((text) => text.split(/\s/)[0]));
      // Values that read the same are marked together.
      const best = new Set(shown.filter((text) => text.includes('best')).map((text) => text.split(/\s/)[0]));
      assert.equal(best.size, values.size === 1 ? 0 : 1, shown.join(' | '));
      const [first] = shown[0].split(/\s/);
      for (const text of shown.slice(1)) assert.equal(/[+−]\d/.test(text), text.split(/\s/)[0] !== first, shown.join(' | '));
      const colors = (of) => of.evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
      assert.deepEqual((await colors(page.locator('.compare thead .swatch'))).sort(), (await colors(page.locator('button.eye[aria-pressed="true"]'))).sort());
      await audit('compare');
    },
  ],
  [
    'each curve has a key in its color, and the pointer shows the values in order, raw beside smoothed',
    async () => {
      await open(`${COMPARED}&layout=panels&charts=grad_norm,loss,accuracy`);
      await until(() => document.querySelector('figure[data-panel="grad_norm"]')?.ariaLabel.includes('number 2'));
      const key = page.getByRole('list', { name: 'Trials shown' });
      assert.equal(await key.getByRole('link').count(), 3);
      const colors = await key.locator('.swatch').evaluateAll((all) => all.map((swatch) => getComputedStyle(swatch).backgroundColor));
      assert.equal(new Set(colors).size, 3);
      // All three trials have values in the first part of the range.
      const plot = page.locator('figure[data-panel="grad_norm"] .u-over');
      const { width } = await plot.boundingBox();
      const hovered = page.locator('figure[data-panel="grad_norm"] .hover-values');
      await plot.hover({ position: { x: width * 0.2, y: 80 } });
      await hovered.waitFor();
      const values = (await hovered.locator('td.number:not(.quiet)').allTextContents()).map(Number);
      assert.equal(values.length, 3);
      assert.deepEqual(values, [...values].sort((a, b) => b - a));
      // They stay when the chart is made again below the pointer, as by another theme, and so does their place.
      const line = async () => (await page.locator('figure[data-panel="grad_norm"] .u-cursor-x').boundingBox()).x;
      const place = await line();
      const canvas = page.locator('figure[data-panel="grad_norm"] .u-wrap > canvas');
      await canvas.evaluate((one) => (one.dataset.old = 'yes'));
      await page.emulateMedia({ colorScheme: 'dark' });
      await until(() => !document.querySelector('figure[data-panel="grad_norm"] .u-wrap > canvas').dataset.old);
      await hovered.waitFor();
      assert.ok(Math.abs((await line()) - place) < 0.2 * width, `from ${place} to ${await line()}`);
      await page.emulateMedia({ colorScheme: null });
      const auto = page.getByRole('button', { name: 'Auto', exact: true });
      await auto.click();
      await page.getByLabel('Smoothing').fill('0.9');
      await until(() => location.search.includes('smooth=0.9'));
      await plot.hover({ position: { x: width * 0.25, y: 80 } });
      await hovered.locator('td.quiet').first().waitFor();
      await auto.click();
      await until(() => !location.search.includes('smooth='));
      await auto.click();
      await until(() => location.search.includes('smooth=0'));
    },
  ],
  [
    'the key beside the table has the ids that the charts have, and finds the row',
    async () => {
      await open(`${COMPARED}&charts=loss`);
      const key = page.getByRole('list', { name: 'Trials shown' });
      await key.getByRole('link').nth(2).waitFor();
      // The names begin with "number ".
      const texts = (await key.getByRole('link').allTextContents()).sort();
      assert.deepEqual(texts.map((text) => text.slice(0, 3)), ['1 1', '2 2', '3 3']);
      await key.getByRole('link', { name: texts[1] }).hover();
      await until(() => document.querySelector('tr.hovered')?.dataset.id === '2');
    },
  ],
  [
    'the others are compared with a pinned run, or with the chosen baseline',
    async () => {
      await open(`${COMPARED}&panels=compare&top=1`);
      const first = (id) =>
        until((wanted) => document.querySelector('.compare thead th:nth-child(2)')?.dataset.compared === `experiment ${wanted}`, id);
      await first(1);
      assert.equal(await page.locator('.compare thead th').count(), 4);
      await page.getByLabel('Baseline').selectOption('2');
      await first(2);
      // The others keep the order of the table, pinned ones first.
      assert.deepEqual(await page.locator('.compare thead th[data-compared]').evaluateAll((all) => all.map((one) => one.dataset.compared)), ['experiment 2', 'experiment 1', 'experiment 3']);
      await page.getByRole('rowgroup', { name: 'Hyperparameters' }).getByRole('row', { name: 'learning_rate' }).getByText('+0.1').waitFor();
    },
  ],
  [
    'a double click on a chart shows its whole range',
    async () => {
      await open(`${COMPARED}&layout=panels&charts=loss&zoom=1-100000`);
      await page.locator('figure[data-panel="loss"] .u-over').dblclick({ position: { x: 100, y: 50 } });
      await until(() => !location.search.includes('zoom'));
    },
  ],
  [
    'the values at the pointer are in sight as a whole at both edges of the panels, in their chart and not over its axis',
    async () => {
      await open(`${COMPARED}&charts=grad_norm,loss`);
      const plots = page.locator('figure.chart .u-over');
      await plots.nth(1).waitFor();
      for (const [at, part] of [[0, 0.95], [1, 0.95], [0, 0.05]]) {
        const { width } = await plots.nth(at).boundingBox();
        await plots.nth(at).hover({ position: { x: width * part, y: 80 } });
        const values = page.locator('figure.chart .hover-values');
        await values.waitFor();
        const ratio = await values.evaluate(
          (box) => new Promise((resolve) => new IntersectionObserver(([{ intersectionRatio }]) => resolve(intersectionRatio)).observe(box)),
        );
        assert.equal(ratio, 1, `chart ${at} at ${part}`);
        const [box, plot, chart] = [await values.boundingBox(), await plots.nth(at).boundingBox(), await page.locator('figure.chart').nth(at).boundingBox()];
        assert.ok(box.x >= plot.x - 1 && box.x + box.width <= chart.x + chart.width, `chart ${at} at ${part}: ${JSON.stringify([box, plot, chart])}`);
        // The end of a label, which names the group of the metric, is visible.
        const cut = await values.locator('.hover-label').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
        assert.deepEqual(cut, []);
      }
    },
  ],
  [
    'hyperparameters and configurations show in what they differ, and on demand what is the same',
    async () => {
      // Without a baseline the run that is best at this moment comes first.
      await open(`${COMPARED}&panels=compare&base=3`);
      const values = page.getByRole('rowgroup', { name: 'Hyperparameters' });
      // A difference may be on a line of its own.
      const named = async () => (await values.getByRole('row').allInnerTexts()).map((text) => text.replace(/\n\t?/g, (found) => (found.endsWith('\t') ? '\t' : ' ')));
      await values.getByText('learning_rate').waitFor();
      assert.deepEqual(await named(), ['Hyperparameters', 'learning_rate\t0.3\t0.2 −0.1\t0.1 −0.2']);
      assert.equal(await page.locator('.compare thead').count(), 1);
      assert.equal(await page.getByRole('rowheader', { name: 'Searcher' }).count(), 0);
      await page.getByLabel('Only differences').uncheck();
      await until(() => location.search.includes('same=1'));
      await page.getByRole('rowheader', { name: 'Searcher' }).waitFor();
      assert.equal((await named()).length, 3);
      // The heads stay above the rows.
      await page.setViewportSize({ width: 1300, height: 480 });
      const panels = page.locator('.workbench-panels');
      await panels.evaluate((frame) => frame.scrollTo(0, 1000));
      const [tools, head] = await panels.evaluate((frame) => ['.panel-bar', '.compare thead th'].map((one) => frame.querySelector(one).getBoundingClientRect()));
      assert.ok(await panels.evaluate((frame) => frame.scrollTop > 0));
      assert.ok(Math.abs(head.top - tools.bottom) <= 1, `the head is ${head.top - tools.bottom} pixels below the tools`);
      await page.setViewportSize({ width: 1300, height: 900 });
      await part('Configuration');
      await page.getByRole('region', { name: 'Configurations' }).getByText('max_restarts').waitFor();
      await page.getByText('Submitted text, line by line').click();
      await page.getByRole('region', { name: 'experiment 3 → experiment 2' }).waitFor();
      const lines = await page.$$eval('.diff-left .diff-text, .diff-right .diff-text', (all) => all.map((one) => one.textContent));
      assert.ok(lines.includes('max_restarts: 3') && lines.includes('max_restarts: 2'), lines.join('\n'));
      assert.ok(lines.some((line) => line.includes(PROBE)));
      await page.getByLabel('Compared with').selectOption('experiment 1');
      await page.getByRole('region', { name: 'experiment 3 → experiment 1' }).waitFor();
      await audit('compare-configuration');
    },
  ],
  [
    'code is compared file by file, as text',
    async () => {
      await open('compare?experiments=1,2&tab=code');
      await page.waitForURL(/\/det\/experiments\?.*of=code/);
      const files = page.getByRole('navigation', { name: 'Files' });
      await files.getByText('only in experiment 2').waitFor();
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
    'the address of a comparison leads to the workbench, also for trials of several experiments',
    async () => {
      await open('compare?trials=1,3,x');
      await page.waitForURL(/\/det\/trials\?ids=1,3&.*panels=compare/);
      await untilText('2 trials');
      await page.getByRole('group', { name: 'Layout' }).getByRole('button', { name: 'Both' }).click();
      // Trials of several experiments name them: in the table and in the comparison.
      await page.getByRole('region', { name: 'Trials' }).getByRole('link', { name: 'number 3' }).waitFor();
      const heads = page.locator('.compare thead');
      assert.match(await heads.locator('th').nth(2).innerText(), /trial 3\s+number 3\s+\(3\)/);
      await audit('compare-trials');
      await heads.getByRole('link', { name: 'trial 3', exact: true }).click();
      await page.waitForURL('**/det/trials/3');
      await open('trials');
      await untilText('No trials chosen');
      await page.locator('.empty').getByRole('link', { name: 'the list of experiments' }).click();
      await page.waitForURL('**/det/experiments');
      await open('compare');
      await page.waitForURL('**/det/experiments');
    },
  ],
];
