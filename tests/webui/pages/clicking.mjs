// Counts the clicks of frequent tasks, from the list of experiments; the way by keys; the first screen of a phone.
import assert from 'node:assert/strict';
import { audit, cluster, page, until } from '../driver.mjs';
import { copies, putMany, saved, sql } from '../rows.mjs';
import { open } from './filling.mjs';

const FIRST = 600_000;
const RUNS = 5;
const CHECKPOINT = '33333333-4444-4555-8666-777777777777';
const NAMES = 'clicked';

const finished = () =>
  copies(
    'experiments',
    {
      id: `${FIRST} + n`,
      request_id: `''`,
      job_id: `'clicked-' || n`,
      name: `'${NAMES} with a long name and warmup ' || n * 100`,
      state: `'COMPLETED'`,
      ended: 'now()',
    },
    `generate_series(1, ${RUNS}) n`,
  ) +
  copies(
    'trials',
    {
      id: `${FIRST} + n`,
      experiment_id: `${FIRST} + n`,
      request_id: `'clicked' || n`,
      task_id: `'clicked-' || n`,
      hparams: `json_build_object('learning_rate', n / 10.0)`,
      state: `'COMPLETED'`,
      best_metric: 'n / 10.0',
      ended: 'now()',
    },
    `generate_series(1, ${RUNS}) n`,
  );

// The clicks of the mouse that `work` makes, over all pages that it opens.
async function clicks(work) {
  await page.evaluate(() => sessionStorage.setItem('clicks', '0'));
  await work();
  return page.evaluate(() => Number(sessionStorage.getItem('clicks')));
}
const openRow = (id) => page.locator(`tr[data-id="${id}"] th a`).click();

const tasks = [
  [
    'the best trial of an experiment is one click away',
    async () => {
      putMany(finished());
      await page.addInitScript(() =>
        document.addEventListener(
          'click',
          // A key that presses a button makes a click without a detail.
          ({ isTrusted, detail }) => isTrusted && detail > 0 && sessionStorage.setItem('clicks', String(Number(sessionStorage.getItem('clicks')) + 1)),
          true,
        ),
      );
      await open('experiments');
      const count = await clicks(async () => {
        await page.getByRole('link', { name: `Best trial of experiment ${FIRST + RUNS}:` }).click();
        await page.waitForURL(`**/trials/${FIRST + RUNS}`);
      });
      assert.equal(count, 1);
    },
  ],
  [
    'five filtered runs are compared after two clicks',
    async () => {
      await open('experiments');
      const count = await clicks(async () => {
        await page.getByLabel('Search experiments').click();
        await page.keyboard.type(`name ~ ${NAMES}`);
        await until((runs) => document.querySelectorAll('tr[data-id]').length === runs, RUNS);
        await page.getByRole('button', { name: 'Compare', exact: true }).click();
        await until((runs) => document.querySelectorAll('.comparison thead a').length >= runs, RUNS);
      });
      assert.equal(count, 2);
    },
  ],
  [
    'the reason of a failure can be read after one click',
    async () => {
      await open('experiments');
      const id = sql(`SELECT max(id) FROM experiments WHERE name = 'number 4 ' AND id IN (SELECT experiment_id FROM trials WHERE exit_reason <> '')`);
      assert.ok(Number(id) > 0, id);
      const count = await clicks(async () => {
        await openRow(id);
        await page.getByRole('region', { name: 'Failure' }).waitFor();
      });
      assert.equal(count, 1);
      const { bottom } = await page.getByRole('region', { name: 'Failure' }).locator('strong').evaluate((line) => line.getBoundingClientRect());
      assert.ok(bottom < 400, `the error is ${bottom} pixels down`);
    },
  ],
  [
    'an experiment is run again with another learning rate after two clicks',
    async () => {
      await open('experiments');
      let made;
      const count = await clicks(async () => {
        await openRow(3);
        await page.getByRole('link', { name: 'Fork…' }).click();
        await until(() => document.activeElement instanceof HTMLTextAreaElement);
        await page.keyboard.type('5');
        await page.getByText(/^Valid/).waitFor();
        await page.keyboard.press('Control+Enter');
        await page.waitForURL(/experiments\/\d+$/);
        made = /\d+$/.exec(page.url())[0];
      });
      assert.equal(count, 2);
      assert.equal(sql(`SELECT config::json -> 'hyperparameters' -> 'learning_rate' ->> 'val' FROM experiments WHERE id = ${made}`), '0.35');
      await cluster.det(['experiment', 'kill', made]);
    },
  ],
  [
    'a checkpoint is downloaded after two clicks',
    async () => {
      saved(CHECKPOINT, {});
      await open('experiments');
      const count = await clicks(async () => {
        await openRow(1);
        await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download the best checkpoint' }).click()]);
      });
      assert.equal(count, 2);
    },
  ],
];

// The controls that get the focus by Tab and show no sign of it.
async function withoutRing(times) {
  const bad = new Set();
  for (let at = 0; at < times; at++) {
    await page.keyboard.press('Tab');
    const one = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === document.body || element === null) return '';
      const ringed = (own) => getComputedStyle(own).outlineStyle !== 'none' && parseFloat(getComputedStyle(own).outlineWidth) >= 2;
      // The editor has the ring of its text; the splitter becomes a line in the color of the accent.
      const host = element.closest('.editor') ?? element;
      return ringed(host) || element.matches('.splitter') ? '' : element.outerHTML.slice(0, 120);
    });
    if (one !== '') bad.add(one);
  }
  return [...bad];
}

const keys = [
  [
    'every control shows the focus of the keyboard',
    async () => {
      for (const place of ['', 'experiments', 'experiments/1', 'cluster?tab=queue', 'settings', 'experiments/1/fork']) {
        await open(place);
        await page.waitForSelector('h1');
        await until(() => document.querySelector('.freshness-live') !== null);
        assert.deepEqual(await withoutRing(45), [], place);
      }
    },
  ],
];

const phone = [
  [
    'on a phone a page begins with its answer: the metric in the list, a curve of the experiment in the upper half',
    async () => {
      await page.setViewportSize({ width: 390, height: 844 });
      try {
        await open('experiments');
        const cell = page.getByRole('link', { name: `Best trial of experiment ${FIRST + RUNS}:` });
        await cell.waitFor();
        const { right } = await cell.evaluate((own) => own.getBoundingClientRect());
        assert.ok(right <= 390 - 12, `the metric ends at ${right}`);
        // A long name is readable on two lines; id, state and metric are below it.
        const row = page.locator(`tr[data-id="${FIRST + RUNS}"]`);
        const name = await row.locator('.wrapped').evaluate((own) => [own.scrollWidth <= own.clientWidth, own.scrollHeight <= own.clientHeight, own.innerText]);
        assert.deepEqual(name, [true, true, `${NAMES} with a long name and warmup ${RUNS * 100}`]);
        assert.match(await row.locator('.below').innerText(), new RegExp(`^#${FIRST + RUNS}\\s+Completed\\s+0\\.50000$`));
        const [height, used] = await row.evaluate((own) => [own, own.querySelector('th')].map((one) => (one === own ? one.clientHeight : one.scrollHeight)));
        assert.ok(used <= height, `${used} > ${height}`);
        await audit('phone-list');
        await open('experiments/3');
        // The title has the whole width.
        const title = await page.locator('h1').evaluate((own) => [own.clientWidth, own.closest('main').clientWidth - 24]);
        assert.equal(...title);
        const chart = page.locator('figure[data-panel] canvas').first();
        await chart.waitFor();
        const { top } = await chart.evaluate((own) => own.getBoundingClientRect());
        assert.ok(top <= 844 / 2, `the first curve is ${top} pixels down`);
        for (const place of ['users', 'workspaces', 'cluster?tab=queue', 'cluster?tab=usage']) {
          await open(place);
          const table = page.locator('table.cards').first();
          await table.waitFor();
          assert.ok(await table.evaluate((own) => own.scrollWidth <= own.parentElement.clientWidth), place);
        }
      } finally {
        await page.setViewportSize({ width: 1300, height: 900 });
      }
    },
  ],
  [
    'on a phone a button shows the tools of a log, and the last entry of the navigation a sheet with the other pages',
    async () => {
      await page.setViewportSize({ width: 390, height: 800 });
      try {
        await open('experiments/1?tab=log');
        const [level, main] = [page.getByLabel('Level'), page.getByRole('navigation', { name: 'Main' })];
        await page.getByRole('button', { name: 'Options' }).waitFor();
        assert.equal(await level.isVisible(), false);
        await page.getByRole('button', { name: 'Options' }).click();
        await level.waitFor();
        await audit('phone-log-options');
        assert.equal(await main.getByRole('link').count(), 4);
        await main.getByText('More').click();
        await main.getByRole('link', { name: 'Users' }).waitFor();
        await audit('phone-more');
        await main.getByRole('link', { name: 'Users' }).click();
        await page.waitForURL('**/det/users');
        await until(() => document.querySelector('nav summary')?.ariaCurrent === 'true' && !document.querySelector('nav details').open);
      } finally {
        await page.setViewportSize({ width: 1300, height: 900 });
      }
    },
  ],
];

const laptop = [
  [
    'on a small laptop the metric of a run is in sight beside its curves',
    async () => {
      await page.setViewportSize({ width: 1280, height: 800 });
      try {
        await open('experiments');
        const cell = page.getByRole('link', { name: `Best trial of experiment ${FIRST + RUNS}:` });
        await cell.waitFor();
        const [right, end] = await cell.evaluate((own) => [own, own.closest('.table-frame')].map((one) => one.getBoundingClientRect().right));
        assert.ok(right < end, `the metric ends at ${right}, the table at ${end}`);
      } finally {
        await page.setViewportSize({ width: 1300, height: 900 });
      }
    },
  ],
];

export const clicking = [...tasks, ...keys, ...phone, ...laptop];
