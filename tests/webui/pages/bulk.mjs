// Checks of bulk actions on ended experiments, and of a session that ends meanwhile.
import assert from 'node:assert/strict';
import { audit, cluster, page, signIn, until, untilText } from '../driver.mjs';
import { copies, sql } from '../rows.mjs';
import { PROBE, open } from './filling.mjs';

const bulk = () => page.getByRole('group', { name: 'Selected experiments' });
const dialog = () => page.getByRole('dialog');
const rows = (wanted) =>
  until(
    (text) => [...document.querySelectorAll('tbody tr[data-id]')].map((row) => row.dataset.id).sort().join() === text,
    wanted,
  );

export const bulkActions = [
  [
    'columns are pinned and colored by their numbers, and the address keeps it',
    async () => {
      await open('experiments');
      await page.locator('summary', { hasText: 'Columns' }).click();
      await page.getByRole('checkbox', { name: 'hp.learning_rate' }).check();
      await page.getByRole('button', { name: 'Heat hp.learning_rate' }).click();
      await page.getByRole('button', { name: 'Pin Best metric' }).click();
      await page.keyboard.press('Escape');
      await until(() => document.querySelector('tr[data-id="3"] .heat-4') !== null);
      assert.equal(await page.textContent('tr[data-id="1"] .heat-0'), '0.1');
      assert.deepEqual(await page.$$eval('thead .pinned', (heads) => heads.map((head) => head.textContent)), ['Name', 'best accuracy']);
      await page.reload();
      await until(() => document.querySelector('tr[data-id="3"] .heat-4') !== null);
      assert.match(decodeURIComponent(page.url()), /heat=hp\.learning_rate.*|pin=searcherMetricsVal/);
      await page.setViewportSize({ width: 900, height: 900 });
      // The columns overflow once the table has followed the window.
      await until(() => {
        const frame = document.querySelector('.table-tall');
        frame.scrollLeft = 400;
        return frame.scrollLeft > 100;
      });
      const [choice, cell] = await Promise.all(
        ['tr[data-id="3"] > :first-child', 'tr[data-id="3"] .pinned'].map((one) => page.$eval(one, (element) => element.getBoundingClientRect())),
      );
      assert.ok(Math.abs(cell.left - choice.right) < 2, `${cell.left} after ${choice.right}`);
      await audit('pinned');
      await page.setViewportSize({ width: 1300, height: 900 });
    },
  ],
  [
    'the dashboard lists failed and paused experiments of the user until they are archived',
    async () => {
      const failed = (id, name, owner, days) =>
        copies(
          'experiments',
          {
            id,
            request_id: `''`,
            job_id: `'needs-${id}'`,
            name: `'${name}'`,
            state: `'ERROR'`,
            owner_id: `(SELECT id FROM users WHERE name = '${owner}')`,
            ended: `now() - interval '${days} days'`,
            archived: 'false',
          },
          'generate_series(1, 1) n',
        );
      sql(failed('901', 'mine', 'admin', 1) + failed('902', 'of ada', 'ada', 1) + failed('903', 'long ago', 'admin', 30));
      await open('');
      const needs = page.getByRole('region', { name: 'Needs attention' });
      await needs.getByRole('link', { name: '901 mine' }).waitFor();
      await cluster.det(['experiment', 'pause', '1']);
      await needs.getByRole('link', { name: /^1 / }).waitFor();
      assert.equal(await needs.getByRole('listitem').count(), 2);
      // Each experiment is in one list, with one state and a time that is named.
      assert.equal(await page.locator('main').getByRole('link', { name: /^1 / }).count(), 1);
      const times = await page.$$eval('.lines time', (all) => all.map((one) => one.textContent));
      assert.ok(times.length > 2 && times.every((one) => /^(failed|ended|submitted) /.test(one)), times.join());
      await audit('dashboard-needs');
      await cluster.det(['experiment', 'archive', '901']);
      await needs.getByRole('link', { name: '901 mine' }).waitFor({ state: 'detached' });
      await cluster.det(['experiment', 'activate', '1']);
      await needs.getByText('No failed or paused').waitFor();
      sql('DELETE FROM experiments WHERE id > 900');
    },
  ],
  [
    'what a trial noted is on its page, and a column to show, color, sort and filter by',
    async () => {
      const noted = { data: { rows: 70, note: PROBE } };
      const told = await page.request.post(`${cluster.url}/api/v1/runs/1/metadata`, {
        data: { metadata: noted },
        headers: { 'X-Requested-With': 'det' },
      });
      assert.equal(told.status(), 200, await told.text());
      await open('trials/1?tab=hyperparameters');
      const rows = page.getByRole('region', { name: 'Metadata' }).locator('tbody tr');
      await rows.first().waitFor();
      assert.deepEqual(await rows.allInnerTexts(), [`data.note\t${PROBE}`, 'data.rows\t70']);
      await audit('metadata');
      await open('experiments');
      await page.locator('summary', { hasText: 'Columns' }).click();
      await page.getByLabel('metadata.data.rows').check();
      await page.getByLabel('metadata.data.note').check();
      await page.keyboard.press('Escape');
      await until((probe) => [...document.querySelectorAll('tr[data-id="1"] td')].some((one) => one.textContent === probe), PROBE);
      await page.getByRole('button', { name: 'data.rows' }).click();
      await until(() => document.querySelector('tbody tr[data-id]')?.dataset.id === '1');
      assert.match(page.url(), /sort=metadata\.data\.rows/);
      const filter = JSON.stringify({
        filterGroup: { kind: 'group', conjunction: 'and', children: [{ kind: 'field', columnName: 'metadata.data.rows', operator: '>', value: 69 }] },
      });
      const found = await page.request.post(`${cluster.url}/api/v1/experiments-search`, { data: { filter }, headers: { 'X-Requested-With': 'det' } });
      assert.deepEqual((await found.json()).experiments.map(({ experiment }) => experiment.id), [1]);
      assert.equal(await page.$('main img'), null);
      await audit('metadata-column');
    },
  ],
  [
    'what was chosen is archived, hidden, found again, moved and deleted at once',
    async () => {
      for (const id of ['6', '7']) await cluster.det(['experiment', 'kill', id]);
      await open('experiments');
      await until(() => [...document.querySelectorAll('tbody :is(.state, .state-icon)')].filter((one) => one.textContent === 'Canceled').length >= 2);
      await page.getByLabel('Select experiment 6').check();
      await page.getByLabel('Select experiment 7').check();
      await bulk().getByRole('button', { name: 'Archive 2' }).click();
      await rows('1,2,3,5');
      await page.getByLabel('Show archived').check();
      await rows('1,2,3,5,6,7');
      assert.match(page.url(), /archived=1/);
      await page.getByLabel('Select experiment 6').check();
      await page.getByLabel('Select experiment 7').check();
      await audit('bulk-archived');
      await bulk().getByRole('button', { name: 'Unarchive 2' }).click();
      await page.getByLabel('Show archived').uncheck();
      await rows('1,2,3,5,6,7');
      await page.getByLabel('Select experiment 6').check();
      await page.getByLabel('Select experiment 7').check();
      await bulk().getByRole('button', { name: 'Move 2…' }).click();
      await dialog().getByLabel('Project').selectOption({ index: 1 });
      await dialog().getByRole('button', { name: 'Move', exact: true }).click();
      await until(() => document.querySelector('.bulk') === null);
      await open('projects/2');
      await rows('2,6,7');
      await page.getByLabel('Select experiment 6').check();
      await page.getByLabel('Select experiment 7').check();
      await bulk().getByRole('button', { name: 'Delete 2…' }).click();
      await untilText('Delete 2 experiments?');
      await dialog().getByRole('button', { name: 'Delete', exact: true }).click();
      await rows('2');
    },
  ],
  [
    'a session that ended leads to the sign-in and back to what was typed',
    async () => {
      const notes = page.getByLabel('Notes, in Markdown');
      await open('experiments/1?tab=notes');
      await page.getByRole('button', { name: 'Edit notes' }).click();
      // Nothing is typed, so nothing is kept.
      await page.reload();
      await page.getByRole('button', { name: 'Edit notes' }).click();
      await notes.fill('a long thought');
      await page.context().clearCookies();
      // The page may have noticed the end by itself.
      await page.evaluate(() => document.querySelector('.actions .primary')?.click());
      await page.waitForURL('**/det/login?next=*');
      await signIn(cluster.password);
      await page.waitForURL('**/det/experiments/1?tab=notes');
      assert.equal(await notes.inputValue(), 'a long thought');
      await page.reload();
      assert.equal(await notes.inputValue(), 'a long thought');
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.reload();
      await page.getByRole('button', { name: 'Edit notes' }).waitFor();
    },
  ],
  [
    'signing out drops what was typed and not saved',
    async () => {
      await open('experiments/1?tab=notes');
      await page.getByRole('button', { name: 'Edit notes' }).click();
      await page.getByLabel('Notes, in Markdown').fill('a private thought');
      assert.ok((await page.evaluate(() => JSON.stringify(sessionStorage))).includes('a private thought'));
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('**/det/login*');
      assert.ok(!(await page.evaluate(() => JSON.stringify(sessionStorage))).includes('a private thought'));
      await signIn(cluster.password);
      await page.waitForURL((url) => !url.pathname.endsWith('/login'));
      await open('experiments/1?tab=notes');
      await page.getByRole('button', { name: 'Edit notes' }).waitFor();
    },
  ],
  [
    'notes that someone else saved meanwhile are shown before they are replaced',
    async () => {
      await open('experiments/1?tab=notes');
      await page.getByRole('button', { name: 'Edit notes' }).click();
      await page.getByLabel('Notes, in Markdown').fill('mine');
      const saved = await page.evaluate((notes) => fetch('/api/v1/experiments/1', { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ notes }) }).then(({ status }) => status), 'theirs');
      assert.equal(saved, 200);
      const meanwhile = page.getByRole('region', { name: 'Saved meanwhile' });
      await meanwhile.getByText('theirs').waitFor();
      assert.ok(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled());
      await audit('notes-meanwhile');
      // Also after a reload.
      await page.reload();
      await meanwhile.getByText('theirs').waitFor();
      await page.getByRole('button', { name: 'Go on with mine' }).click();
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.locator('.markdown').getByText('mine').waitFor();
    },
  ],
];
