// Checks of usage accounting and of the master's log.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { audit, cluster, page, until, untilText } from '../driver.mjs';
import { sql } from '../rows.mjs';
import { PROBE, open } from './filling.mjs';

const saved = async (button) => {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
};
const holders = () =>
  page.getByRole('region', { name: 'Slot usage' }).locator('tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent)),
  );

export const usage = [
  [
    'held slots are drawn over time and summed by pool, user, label or experiment',
    async () => {
      // Yesterday's allocation of ten hours on four slots, by the experiment with markup in its label.
      sql(`INSERT INTO past_usage (experiment_id, owner_id, labels, pool, slots, started, ended, workspace_id)
           SELECT 1, owner_id, ARRAY['old', '${PROBE.replace(/'/g, "''")}'], 'default', 4,
             date_trunc('day', now(), 'UTC') - interval '12 hours', date_trunc('day', now(), 'UTC') - interval '2 hours', 1
           FROM experiments WHERE id = 1`);
      await open('cluster?tab=usage');
      await page.waitForSelector('figure[data-panel="usage"] rect.stack-1');
      await until(() => /^4\d(\.\d+)? h$/.test(document.querySelector('.section-head strong')?.textContent ?? ''));
      assert.match((await holders())[0].join(), /^default,4\d(\.\d+)? h,/);
      assert.match(await page.textContent('.section-head.figures'), /Capacity recorded only since \d{1,2} [A-Z][a-z]{2} \d\d:\d\d; no utilization for this range/);
      await audit('usage');
      await page.getByRole('combobox', { name: 'By' }).selectOption('label');
      await until(() => location.search.includes('by=label'));
      const byLabel = new Map((await holders()).map(([name, hours]) => [name, Number(hours.replace(/ h$/, ''))]));
      assert.ok(byLabel.get('old') === 40 && byLabel.get(PROBE) >= 40, JSON.stringify([...byLabel]));
      assert.equal(await page.$('main img'), null);
      await page.getByRole('combobox', { name: 'By' }).selectOption('experiment');
      await page.getByRole('region', { name: 'Slot usage' }).getByRole('rowheader', { name: /#1$/ }).getByRole('link').waitFor();
      assert.equal(await page.getByLabel('From').count(), 0);
      await page.getByRole('combobox', { name: 'Over' }).selectOption('hour');
      await until(() => document.querySelectorAll('figure[data-panel="usage"] svg > g').length > 60);
      assert.ok((await page.$$('figure[data-panel="usage"] rect')).length >= 1);
      // Bars of the recorded time are as high as the utilization says.
      const percents = await page.$$eval('[data-panel="usage"] ~ .table-frame td.number', (cells) =>
        cells.map((one) => one.textContent).filter((text) => text.endsWith('%')).map((text) => parseInt(text, 10)));
      assert.equal(percents.reduce((sum, one) => sum + one, 0), 100, percents.join());
      await audit('usage-hour');
      await page.reload();
      await until(() => document.querySelectorAll('figure[data-panel="usage"] svg > g').length > 60);
      assert.equal(await page.getByRole('combobox', { name: 'By' }).inputValue(), 'experiment');
    },
  ],
  [
    'the account is saved for a spreadsheet, with the words of `det resources`; a range without use says so',
    async () => {
      await open('cluster?tab=usage');
      await page.waitForSelector('figure[data-panel="usage"] rect');
      const all = await saved('Download totals as CSV');
      assert.match(all.name, /^slot-seconds-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/);
      const [head, ...lines] = all.text.trim().split('\r\n');
      assert.equal(head, 'aggregation_type,aggregation_key,date,seconds');
      assert.ok(lines.some((line) => /^experiment_label,old,.*,144000$/.test(line)), all.text);
      const raw = await saved('Download allocations as CSV');
      const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
      const told = await cluster.det(['resources', 'raw', yesterday, new Date().toISOString()]);
      assert.equal(raw.text.split('\r\n')[0], told.split(/\r?\n/)[0]);
      assert.equal(raw.text.trim().split('\r\n').length, told.trim().split('\n').length);
      await open('cluster?tab=usage&from=2020-01-01&to=2020-01-31');
      await untilText('No slot was in use from 1 to 31 Jan 2020.');
      await audit('usage-none');
      await open('cluster?tab=usage&from=2020-02-01&to=2020-01-31');
      await page.getByRole('alert').getByText('before').waitFor();
    },
  ],
  [
    "the master's log is shown from its end, or why it is not",
    async () => {
      const offered = (await page.request.get(`${cluster.url}/api/v1/master/logs?limit=1`)).status();
      await open('cluster?tab=log');
      if (offered === 501) await untilText('The log is not offered:');
      else {
        await page.waitForSelector('[role="log"] .log-line');
        await until(() => {
          const log = document.querySelector('[role="log"]');
          return log.scrollTop > 0 && log.scrollTop + log.clientHeight >= log.scrollHeight - 30;
        });
        // Lines of the tests before: what was changed, and what was refused.
        await page.locator('.log-info', { hasText: 'admin disabled slot 0 of agent' }).first().waitFor();
        await page.locator('.log-warning', { hasText: 'admin sent a configuration for experiment 4 that was refused: invalid argument' }).first().waitFor();
        assert.match(await page.textContent('.log-time'), /^[ \d]\d [A-Z][a-z]{2} \d\d:\d\d:\d\d$/);
      }
      await audit('master-log');
    },
  ],
  [
    "the end of the master's log stays in view while lines arrive faster than frames",
    async () => {
      await open('cluster?tab=usage');
      await page.evaluate(() => {
        const real = window.fetch;
        const line = (id) => ({ id, level: 'LOG_LEVEL_INFO', message: `line ${id}`, timestamp: '2026-01-01T00:00:00Z' });
        window.fetch = (...call) => {
          if (!String(call[0]?.url ?? call[0]).includes('/master/logs')) return real(...call);
          let id = 0;
          const body = new ReadableStream({
            async pull(out) {
              await new Promise((next) => setTimeout(next, 1));
              const entries = Array.from({ length: 3 }, () => JSON.stringify({ result: { logEntry: line(++id) } }));
              out.enqueue(new TextEncoder().encode(`${entries.join('\n')}\n`));
              if (id >= 900) out.close();
            },
          });
          return Promise.resolve(new Response(body));
        };
      });
      await page.click('a[href*="tab=log"]');
      await until(() => document.querySelectorAll('.log-line').length === 900);
      await until(() => {
        const log = document.querySelector('[role="log"]');
        return log.scrollTop > 0 && log.scrollTop + log.clientHeight >= log.scrollHeight - 30;
      });
    },
  ],
  [
    "lines of the master's log are text; they are filtered by level and words, and each has a link",
    async () => {
      const line = (id, level, message) =>
        JSON.stringify({ result: { logEntry: { id, level, message, timestamp: '2026-01-01T00:00:00Z' } } });
      await page.route('**/api/v1/master/logs?*', (route) =>
        route.fulfill({
          body: [
            line(1, 'LOG_LEVEL_INFO', 'ready'),
            line(2, 'LOG_LEVEL_ERROR', `agent \x1b[31m${PROBE}\x1b[0m is lost`),
            line(3, 'LOG_LEVEL_WARNING', 'slow'),
          ].join('\n'),
        }),
      );
      const shown = (wanted) =>
        until((ids) => [...document.querySelectorAll('.log-line')].map((one) => one.dataset.id).join() === ids, wanted);
      await open('cluster?tab=log');
      await shown('1,2,3');
      assert.equal(await page.textContent('.log-error .log-text'), `agent ${PROBE} is lost`);
      assert.equal(await page.$('.log img'), null);
      await page.getByLabel('Level').selectOption('WARNING');
      await shown('2,3');
      await page.getByLabel('Search the log').fill('^AGENT|slow$');
      await until(() => location.search.includes('grep='));
      await shown('');
      await page.getByLabel('Regex').check();
      await shown('3');
      await open('cluster?tab=log&line=2');
      await until(() => document.querySelector('.log-chosen')?.dataset.id === '2');
      await page.unroute('**/api/v1/master/logs?*');
    },
  ],
  [
    'the dashboard shows the slots in use in the last hour, a bar per minute',
    async () => {
      await open('');
      const strip = page.getByRole('figure', { name: /^Slots: \d+% in use over the last (hour|minute|\d+ min)$/ });
      await strip.locator('.strip-used').first().waitFor();
      assert.equal(await strip.locator('.strip-there, .strip-none').count(), 60);
      assert.match(await strip.locator('.strip-there title').last().textContent(), /^\d\d:\d\d.*: [\d.]+ of [\d.]+ slots$/);
    },
  ],
];
