// Checks of the workbench with the trials of a search: table and panels have one selection, pointer and filter.
import assert from 'node:assert/strict';
import { audit, page, shot, until } from '../driver.mjs';
import { sql } from '../rows.mjs';
import { open } from './filling.mjs';

const TRIALS = 6;
const search = () => sql(`SELECT max(id) FROM experiments WHERE name = 'by halving'`);
const rows = (count) => until((wanted) => document.querySelectorAll('tbody tr[data-id]').length === wanted, count);
const background = (locator) => locator.evaluate((one) => getComputedStyle(one).backgroundColor);

export const workbench = [
  [
    'the button of a row draws and removes its curves; row and key have one color, and the address keeps it',
    async () => {
      await open(`experiments/${search()}?charts=loss`);
      await rows(TRIALS);
      assert.equal(await page.locator('tr.drawn').count(), TRIALS);
      const eyes = page.locator('button.eye');
      const colors = await eyes.evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
      assert.equal(new Set(colors).size, TRIALS);
      await eyes.first().click();
      await until((count) => document.querySelectorAll('tr.drawn').length === count, TRIALS - 1);
      const kept = await eyes.evaluateAll((all) => all.slice(1).map((one) => getComputedStyle(one).backgroundColor));
      assert.deepEqual(kept, colors.slice(1), 'the others keep their colors');
      const trial = await page.locator('tr.drawn').first().getAttribute('data-id');
      const color = await background(page.getByRole('button', { name: `Show trial ${trial}` }));
      assert.equal(new URL(page.url()).searchParams.get('drawn').split(',').length, TRIALS - 1);
      await page.getByRole('button', { name: 'Charts', exact: true }).click();
      const key = page.getByRole('list', { name: 'Trials shown' });
      await key.waitFor();
      const swatch = key.locator('li', { has: page.getByRole('link', { name: `trial ${trial}`, exact: true }) }).locator('.swatch');
      assert.equal(await background(swatch), color);
      await page.locator('summary', { hasText: `${TRIALS - 1} of ${TRIALS} runs` }).click();
      await page.getByRole('button', { name: 'Hide all', exact: true }).click();
      await page.getByRole('button', { name: 'Both', exact: true }).click();
      await until(() => document.querySelectorAll('tr.drawn').length === 0);
      await page.getByText('No run is shown').waitFor();
    },
  ],
  [
    'a pinned run stays above the others, also when the query does not find it, and p takes it back',
    async () => {
      await open(`experiments/${search()}?charts=loss`);
      await rows(TRIALS);
      const last = page.locator('tbody:not(.top-rows) tr[data-id]').last();
      const trial = await last.getAttribute('data-id');
      await last.hover();
      await last.getByRole('button', { name: `Pin trial ${trial}` }).click();
      await until((id) => document.querySelector('.top-rows tr')?.dataset.id === id, trial);
      await page.goto(`${page.url()}&q=${encodeURIComponent(`id != ${trial}`)}`);
      await until((count) => document.querySelectorAll('tbody:not(.top-rows) tr[data-id]').length === count - 1, TRIALS);
      assert.equal(await page.locator('.top-rows tr').count(), 1);
      assert.equal(await page.locator('.top-rows tr.drawn').count(), 1);
      await audit('pinned-run');
      await open(`experiments?top=1&q=nothing-is-called-that`);
      await until(() => document.querySelector('.top-rows tr')?.dataset.id === '1');
      await open(`experiments?top=2&sort=id`);
      await until(() => document.querySelectorAll('tbody tr[data-id="2"]').length === 2);
      await page.locator('h1').click();
      await page.keyboard.press('j');
      await page.keyboard.press('j');
      await page.keyboard.press('p');
      await until(() => document.querySelector('.top-rows') === null);
    },
  ],
  [
    'the pointer dims other curves from a row of the table, and leaves none dim when it jumps into a chart',
    async () => {
      await open(`experiments/${search()}?charts=loss`);
      await rows(TRIALS);
      const plot = page.locator('figure[data-panel="loss"] .u-over');
      await plot.hover({ position: { x: 100, y: 3 } });
      const faint = () => page.$$eval('figure[data-panel="loss"] .u-cursor-pt', (all) => all.filter(({ style }) => Number(style.opacity || 1) < 1).length);
      await page.locator('tr.drawn[data-id]').first().hover();
      await until(() => [...document.querySelectorAll('figure[data-panel="loss"] .u-cursor-pt')].some(({ style }) => style.opacity && Number(style.opacity) < 1));
      const box = await plot.boundingBox();
      await page.mouse.move(box.x + box.width - 3, box.y + 3);
      await page.locator('figure[data-panel="loss"] .hover-values').waitFor();
      assert.equal(await faint(), 0);
    },
  ],
  [
    'groups show mean and deviation, close, and are drawn as one curve each',
    async () => {
      await open(`experiments/${search()}?charts=loss`);
      await rows(TRIALS);
      await page.locator('summary', { hasText: 'Group' }).click();
      await page.getByLabel('hp.kind', { exact: true }).check();
      await page.keyboard.press('Escape');
      await page.locator('tr.group').first().waitFor();
      const labels = await page.locator('tr.group button').allTextContents();
      assert.ok(labels.every((label) => /kind = (small|middle|large)/.test(label)), labels.join());
      const sizes = (await page.locator('tr.group .quiet').allTextContents()).map((text) => Number(/^(?:×|mean of )(\d+)$/.exec(text)?.[1]));
      assert.equal(sizes.reduce((sum, size) => sum + size, 0), TRIALS);
      assert.match(await page.locator('tr.group', { hasText: '±' }).first().textContent(), /\d ± [\d.]/);
      const mean = page.locator('tr.group td', { hasText: '±' }).first();
      await mean.hover();
      assert.match(await mean.getAttribute('title'), /^\d+ runs · mean [\d.]+ ± [\d.]+ · min [\d.]+ · median [\d.]+ · max [\d.]+$/);
      const key = page.getByRole('list', { name: 'Groups shown' });
      assert.match(await key.locator('li').first().textContent(), /kind = \w+$/);
      await until(() => /kind = \w+ · (training|validation)/.test(document.querySelector('figure[data-panel="loss"]')?.ariaLabel ?? ''));
      // The means end where the single values end.
      const ends = await page.$$eval('table.fixed tbody tr', (all) =>
        all.flatMap((row) => {
          const cell = row.querySelector('td.deviating');
          const text = [...(cell?.querySelector('a') ?? cell)?.childNodes ?? []].find((one) => one.nodeType === Node.TEXT_NODE && one.data !== '');
          if (!text) return [];
          const range = document.createRange();
          range.selectNodeContents(text);
          return [Math.round(range.getBoundingClientRect().right)];
        }),
      );
      assert.ok(ends.length > TRIALS, `${ends}`);
      assert.equal(new Set(ends).size, 1, ends.join());
      await audit('grouped');
      await page.setViewportSize({ width: 390, height: 800 });
      await open(`experiments/${search()}?group=hp.kind&layout=table`);
      await page.locator('tr.group').first().waitFor();
      await audit('phone-grouped');
      await page.setViewportSize({ width: 1300, height: 900 });
      await open(`experiments/${search()}?charts=loss&group=hp.kind&layout=panels`);
      assert.match(await key.locator('li').first().textContent(), /kind = \w+ \d runs? · mean best accuracy [\d.]+/);
      await open(`experiments/${search()}?charts=loss&group=hp.kind`);
      await page.locator('tr.group').first().waitFor();
      await page.locator('tr.group button').first().click();
      await rows(TRIALS - sizes[0]);
      assert.match(page.url(), /group=hp\.kind/);
    },
  ],
  [
    'dragging along an axis filters the table; a click on it shows all rows again',
    async () => {
      await open(`experiments/${search()}?panels=parameters`);
      await rows(TRIALS);
      const axis = page.locator('rect[data-axis="learning_rate"]');
      const box = await axis.boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + 1);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 4 });
      await page.mouse.up();
      await until(() => /hp\.learning_rate >= .* and hp\.learning_rate <= /.test(new URLSearchParams(location.search).get('q') ?? ''));
      const least = Number(/>= ([\d.]+)/.exec(new URL(page.url()).searchParams.get('q'))[1]);
      const heads = await page.$$eval('thead th', (all) => all.map((one) => one.textContent));
      const place = heads.indexOf('learning_rate');
      const values = await page.$$eval('tbody tr[data-id]', (all, at) => all.map((row) => Number(row.children[at].textContent)), place);
      assert.ok(values.length < TRIALS && values.every((value) => value >= least - 0.01), `${values} from ${least}`);
      assert.equal(await page.locator('rect.brush').count(), 1);
      await axis.click({ position: { x: 3, y: 10 } });
      await rows(TRIALS);
      await until(() => !location.search.includes('q='));
    },
  ],
  [
    'the charts of parameters and the dots of the table have the colors of the metric, or those of the runs; charts begin high on the page',
    async () => {
      await open(`experiments/${search()}?panels=parameters`);
      await rows(TRIALS);
      const trial = await page.locator('tr.drawn').first().getAttribute('data-id');
      const dot = page.getByRole('button', { name: `Show trial ${trial}` });
      const line = page.locator(`a[aria-label="Trial ${trial}"] path`).first();
      const stroke = () => line.evaluate((one) => getComputedStyle(one).stroke);
      const byMetric = await stroke();
      assert.equal(await background(dot), byMetric);
      await page.getByRole('group', { name: 'Color by' }).getByRole('button', { name: 'run' }).click();
      await until(() => location.search.includes('color=run'));
      const byRun = await background(dot);
      assert.notEqual(byRun, byMetric);
      assert.equal(await stroke(), byRun);
      // The key of experiments has their names in two lines.
      for (const [place, most] of [[`experiments/${search()}`, 245], ['experiments', 190]]) {
        await open(place);
        await page.locator('figure[data-panel="loss"] canvas').waitFor();
        const top = await page.$eval('figure.chart', (figure) => figure.getBoundingClientRect().top);
        assert.ok(top <= most, `the first chart of ${place} begins at ${top}`);
      }
    },
  ],
  [
    'a choice and a range make cells; the code of an experiment has colors',
    async () => {
      // The trials of the search have one metric: other values for the panel.
      await page.route('**/api/v1/experiments/*/trials?*', async (route) => {
        const response = await route.fetch();
        const body = await response.json();
        body.trials.forEach((trial, at) => (trial.searcherMetricValue += at / 10));
        await route.fulfill({ response, json: body });
      });
      await open(`experiments/${search()}?panels=parameters&hx=kind&hy=learning_rate`);
      await page.waitForSelector('figure[data-panel="heat"] td[title]');
      await page.getByText('no hyperparameter alone explains the metric of these 6 runs').waitFor();
      await shot('hyperparameters-cells');
      await page.unroute('**/api/v1/experiments/*/trials?*');
      await open(`experiments/${search()}?tab=code&file=script_trial.mjs`);
      await page.waitForSelector('.code-text .yaml-key');
      assert.match(await page.textContent('.code-text .yaml-comment'), /^\/\/ The entrypoint/);
      await audit('code-colored');
    },
  ],
  [
    'a text is copied also where the browser has no clipboard, and the button says so',
    async () => {
      await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }));
      await page.getByRole('button', { name: 'Copy this file' }).click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      await page.getByRole('button', { name: /Search or jump to/ }).click();
      const field = page.getByRole('dialog').getByRole('combobox');
      await field.press('Control+v');
      assert.match(await field.inputValue(), /^\/\/ The entrypoint/);
      await page.keyboard.press('Escape');
    },
  ],
  [
    'the pointer on a row marks its line, and the pointer on a line marks its row',
    async () => {
      await open(`experiments/${search()}?panels=parameters`);
      await rows(TRIALS);
      const row = page.locator('tr.drawn').nth(2);
      await row.hover({ position: { x: 100, y: 10 } });
      await page.locator('path.pointed').waitFor();
      const id = await row.getAttribute('data-id');
      const link = page.locator('a', { has: page.locator('path.pointed') });
      assert.equal(await link.getAttribute('aria-label'), `Trial ${id}`);
      await page.mouse.move(0, 0);
      await until(() => document.querySelector('path.pointed') === null);
      await page.locator(`a[aria-label="Trial ${id}"] path`).first().dispatchEvent('pointerenter');
      await until((wanted) => document.querySelector('tr.hovered')?.dataset.id === wanted, id);
    },
  ],
  [
    'completion finishes a query by keyboard, and arrow keys widen the table',
    async () => {
      await open(`experiments/${search()}`);
      await rows(TRIALS);
      const field = page.getByLabel('Search trials');
      await field.click();
      await page.keyboard.type('kin');
      await page.getByRole('option', { name: 'hp.kind' }).waitFor();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.keyboard.type('= ');
      const kind = await page.getByRole('option', { name: /small|middle|large/ }).first().textContent();
      await audit('completion');
      await page.keyboard.type(kind);
      await page.keyboard.press('Enter');
      await until((wanted) => new URLSearchParams(location.search).get('q') === `hp.kind = ${wanted}`, kind);
      const separator = page.getByRole('separator', { name: 'Width of the table' });
      const width = Number(await separator.getAttribute('aria-valuenow'));
      await separator.press('ArrowRight');
      await until((wanted) => Number(document.querySelector('.splitter').getAttribute('aria-valuenow')) === wanted, width + 2);
      await separator.press('ArrowLeft');
    },
  ],
  [
    'a run keeps its color in any order, with a filter and after a reload',
    async () => {
      const colors = () => page.locator('tbody tr[data-id]').evaluateAll((all) => Object.fromEntries(all.map((row) => [row.dataset.id, getComputedStyle(row.querySelector('.eye')).backgroundColor])));
      const eye = page.getByRole('button', { name: 'Shown', exact: true });
      await open(`experiments/${search()}`);
      await rows(TRIALS);
      const first = await colors();
      const order = Object.keys(first).join();
      assert.equal(new Set(Object.values(first)).size, TRIALS);
      await page.getByRole('button', { name: 'learning_rate', exact: true }).click();
      await until(() => location.search.includes('sort=hp.learning_rate'));
      assert.deepEqual(await colors(), first);
      await eye.click();
      await until(() => document.querySelectorAll('tr.drawn').length === 0);
      await page.reload();
      await rows(TRIALS);
      assert.equal(new Set(Object.values(await colors())).size, 1);
      await eye.click();
      await until((count) => document.querySelectorAll('tr.drawn').length === count, TRIALS);
      assert.deepEqual(await colors(), first, order);
      const [one] = Object.keys(first);
      await open(`experiments/${search()}?q=id%20%3D%20${one}`);
      await rows(1);
      assert.deepEqual(await colors(), { [one]: first[one] });
    },
  ],
  [
    'the head selects all rows; selected trials are shown alone and compared',
    async () => {
      await open(`experiments/${search()}`);
      await rows(TRIALS);
      const bulk = page.getByRole('group', { name: 'Selected trials' });
      await page.getByLabel('Select all').check();
      await bulk.getByText(`${TRIALS} selected`).waitFor();
      await page.getByLabel(/^Select trial/).first().uncheck();
      assert.ok(await page.getByLabel('Select all').evaluate((box) => box.indeterminate));
      await bulk.getByRole('button', { name: 'Clear selection' }).click();
      await until(() => document.querySelector('.bulk') === null);
      for (const nth of [1, 2]) await page.getByLabel(/^Select trial/).nth(nth).check();
      await audit('selected-trials');
      await bulk.getByRole('button', { name: 'Show only these' }).click();
      await until(() => document.querySelectorAll('tr.drawn').length === 2);
      await bulk.getByRole('button', { name: 'Compare' }).click();
      await page.locator('.compare thead th').nth(2).waitFor();
      assert.equal(await page.locator('.compare thead th').count(), 3);
    },
  ],
  [
    'columns scroll by whole ones beside the name, and one that was added comes in sight',
    async () => {
      await open('experiments');
      await page.locator('tbody tr[data-id]').first().waitFor();
      // Distances of the first column right of the name to its edge, and whether the frame shows a head as a whole.
      const beside = () =>
        page.$$eval('.table-tall thead th', (all) => {
          const edge = all.find((one) => one.classList.contains('pinned-last')).getBoundingClientRect().right;
          const lefts = all.filter((one) => !one.matches(':first-child, .pinned')).map((one) => one.getBoundingClientRect().left - edge);
          return Math.min(...lefts.map(Math.abs));
        });
      const frame = page.locator('.table-tall');
      for (const by of [110, 160, 5000]) {
        await frame.evaluate((one, left) => one.scrollBy({ left }), by);
        await page.waitForTimeout(300);
        assert.ok((await beside()) < 2, `${await beside()} after ${by}`);
      }
      assert.ok(await frame.evaluate((one) => one.classList.contains('scrolled')));
      await frame.evaluate((one) => one.scrollTo(0, 0));
      await page.locator('summary', { hasText: 'Columns' }).click();
      await page.getByRole('checkbox', { name: 'Pool', exact: true }).check();
      await page.keyboard.press('Escape');
      await until(() => {
        const box = document.querySelector('.table-tall').getBoundingClientRect();
        const head = [...document.querySelectorAll('.table-tall thead th')].find((one) => one.textContent === 'Pool')?.getBoundingClientRect();
        return head && head.right <= box.right + 1 && head.left >= box.left;
      });
      const name = await page.locator('tbody th[scope="row"]').first().boundingBox();
      assert.ok(name.width >= 220, `${name.width}`);
    },
  ],
  [
    'one trial has no tools of many, and a phone shows name, state and metric of a run in one row',
    async () => {
      await open('experiments/1');
      await page.getByText(/^[\d,]+ of ~?[\d,]+ batches$/).waitFor();
      for (const name of ['Search trials', 'Select all']) assert.equal(await page.getByLabel(name).count(), 0);
      assert.equal(await page.locator('summary', { hasText: 'Group' }).count(), 0);
      assert.equal(await page.getByRole('button', { name: 'Hide all' }).count(), 0);
      await page.setViewportSize({ width: 390, height: 800 });
      await open('experiments');
      const row = page.locator('tr[data-id="1"]');
      await row.waitFor();
      for (const part of ['.wrapped', '.state', '.value']) {
        const box = await row.locator(part).first().boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= 378, `${part} ${JSON.stringify(box)}`);
      }
      assert.match(await row.locator('.below').innerText(), /#1\b/);
      assert.equal(await row.getByRole('checkbox').count(), 0);
      await page.getByRole('button', { name: 'Options' }).click();
      await page.getByRole('button', { name: 'Select', exact: true }).click();
      await row.getByRole('checkbox').waitFor();
      await page.setViewportSize({ width: 1300, height: 900 });
    },
  ],
];
