// Checks of one trial: its attempts over time, its checkpoints.
import assert from 'node:assert/strict';
import { audit, page, until, untilText } from '../driver.mjs';
import { saved, sql } from '../rows.mjs';
import { PROBE, open } from './filling.mjs';

const UUID = '11111111-2222-4333-8444-555555555555';

export const trial = [
  [
    'attempts are drawn over time, with the checkpoints that they saved',
    async () => {
      saved(UUID, { note: PROBE });
      await open('trials/1?tab=attempts');
      await page.waitForSelector('figure[data-panel="timeline"] circle.saved');
      assert.ok((await page.$$('figure[data-panel="timeline"] rect')).length >= 1);
      await audit('timeline');
    },
  ],
  [
    'a checkpoint shows its files and metadata as text, and is a start for another experiment',
    async () => {
      await open('experiments/1?tab=checkpoints');
      await page.locator('.checkpoint summary', { hasText: UUID.slice(0, 8) }).getByText('batch 10').click();
      await untilText('weights.pt');
      assert.match(await page.textContent('.checkpoint pre'), /<img src=x onerror/);
      assert.deepEqual(await page.$$eval('.checkpoint[open] h3', (all) => all.map((one) => one.textContent)), ['2 files', 'Metadata']);
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.getByRole('link', { name: 'Download', exact: true }).getAttribute('href'), `/checkpoints/${UUID}`);
      await audit('checkpoint');
      await page.getByRole('link', { name: 'Continue from here…' }).click();
      await until((uuid) => document.querySelector('textarea')?.value.includes(`  source_checkpoint_uuid: ${uuid}\n`), UUID);
      await untilText('Valid: 1 trial');
    },
  ],
  [
    'a checkpoint is deleted after a question',
    async () => {
      await open('trials/1?tab=checkpoints');
      await page.getByText('batch 10').click();
      await page.getByRole('button', { name: `Delete checkpoint ${UUID}` }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
      await untilText('Deleted');
      assert.equal(await page.getByRole('link', { name: 'Download', exact: true }).count(), 0);
    },
  ],
  [
    'a log is read from a moment on, or until one, and the address says it in UTC',
    async () => {
      await open('trials/2?tab=log');
      await page.waitForSelector('.log-line');
      const first = Math.floor(Date.parse(await page.getAttribute('.log-line', 'data-time')) / 1000) * 1000;
      // The input field drops zero seconds.
      const moment = new Date(first + ((first + 3000) % 60000 === 0 ? 4000 : 3000));
      const two = (n) => String(n).padStart(2, '0');
      const day = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join('-');
      const time = [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(two).join(':');
      const begins = (from, to) =>
        until(
          ([low, high]) => {
            const at = Date.parse(document.querySelector('.log-line')?.dataset.time ?? '');
            return at >= low && at < high;
          },
          [from, to],
        );
      await page.locator('summary', { hasText: 'Time range' }).click();
      await page.getByLabel('From').fill(`${day} ${time}`);
      await page.getByLabel('From').press('Enter');
      await begins(moment.getTime(), moment.getTime() + 2000);
      assert.ok(decodeURIComponent(page.url()).includes(`since=${moment.toISOString().replace('.000Z', 'Z')}`), page.url());
      assert.ok(!(await page.getByRole('checkbox', { name: 'Follow' }).isChecked()));
      await page.locator('summary', { hasText: `From ${time}` }).waitFor();
      await page.getByLabel('Until').fill('noon');
      await page.getByLabel('Until').press('Enter');
      await page.locator('.moments input[aria-invalid="true"]').waitFor();
      await page.getByRole('alert').filter({ hasText: 'Write a time as' }).waitFor();
      await page.getByLabel('Until').fill('');
      assert.equal(await page.locator('.moments input[aria-invalid="true"]').count(), 0);
      await audit('log-time');
      await page.reload();
      await begins(moment.getTime(), moment.getTime() + 2000);
      await page.getByRole('checkbox', { name: 'Follow' }).check();
      // The end of the log, which begins with older lines unless it is long.
      await until((since) => !location.search.includes('since') && Date.parse([...document.querySelectorAll('.log-line')].pop()?.dataset.time ?? '') >= since, Date.now());
      await page.locator('summary', { hasText: 'Time range' }).click();
      await page.getByLabel('Until').fill(time);
      await page.getByLabel('Until').press('Enter');
      await until((most) => {
        const times = [...document.querySelectorAll('.log-line')].map((one) => Date.parse(one.dataset.time));
        return times.length > 30 && Math.max(...times) <= most;
      }, moment.getTime());
      await page.getByRole('button', { name: 'Clear' }).click();
      await page.locator('summary', { hasText: 'Time range' }).waitFor();
      assert.ok(!/since|until/.test(page.url()), page.url());
    },
  ],
  [
    'the profiler says where the time went, how fast batches come, and what the machine did, with units',
    async () => {
      await open('trials/2?tab=profiler');
      await untilText('profiling: {enabled: true}');
      await audit('profiler-none');
      const uneven = 'GPU 0 is much busier than the others (96% vs 41%). They may wait for it.';
      await open('trials/1');
      await untilText(uneven);
      assert.match(await page.locator('.pace').textContent(), /^[\d.,]+ batches\/s now · GPU \d+%$/);
      await open('trials/1?tab=profiler');
      await untilText(uneven);
      await page.waitForSelector('figure[data-panel="memory_free"] canvas');
      await page.waitForSelector('figure[data-panel="batches per second"] canvas');
      await page.waitForSelector('figure[data-panel="phases"] rect');
      const phases = await page.getAttribute('figure[data-panel="phases"]', 'aria-label');
      // The reports come every 250 ms for 10 batches, of which 10 ms each are measured.
      const shares = phases.match(/: data ([\d.]+)%, forward ([\d.]+)%, backward ([\d.]+)%, other ([\d.]+)%$/).slice(1).map(Number);
      assert.equal(Math.round(shares.reduce((sum, one) => sum + one, 0) * 10), 1000, phases);
      assert.ok(Math.abs(shares[2] / shares[0] - 6) < 0.2 && shares[3] > 50, phases);
      assert.equal(await page.$('figure[data-panel="backward"]'), null);
      assert.equal(await page.$('select'), null); // System metrics are drawn over time.
      const spent = await page.getAttribute('figure[data-panel="spent"]', 'aria-label');
      assert.match(spent, /^(waiting for slots: <?\d+s; )?starting up: <?\d+s; training[^;]*: (\d+m )?\d+s(; repeated after a restart: (\d+m )?\d+s)?$/);
      assert.ok((await page.$$('figure[data-panel="spent"] rect')).length >= 2);
      const told = Number((await page.getAttribute('figure[data-panel="batches per second"]', 'aria-label')).match(/training ([\d.]+)/)[1]);
      const own = Number(sql(`SELECT (max(steps_completed) - min(steps_completed)) / extract(epoch FROM max(reported) - min(reported))
                              FROM metrics WHERE trial_id = 1 AND grp = 'training'`));
      assert.ok(told > own / 3 && told < own * 3, `${told} of ${own} batches per second`);
      await page.locator('figure[data-panel="memory_free"] .u-over').hover();
      await until(() => /GB/.test(document.querySelector('figure[data-panel="memory_free"] .hover-values')?.textContent ?? ''));
      await audit('profiler');
      // The page of an experiment has it of a trial.
      await open('experiments/1?tab=profiler&trial=1');
      await untilText(uneven);
      await page.waitForSelector('figure[data-panel="phases"] rect');
      await audit('experiment-profiler');
    },
  ],
];
