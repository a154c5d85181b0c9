// Checks of the cluster: the queue and its order, explanations of waiting jobs, disabled agents and slots.
import assert from 'node:assert/strict';
import path from 'node:path';
import { audit, cluster, page, until, untilText } from '../driver.mjs';
import { open } from './filling.mjs';

const order = () => page.$$eval('.queue tr[data-job]', (all) => all.map((row) => row.dataset.job));
const untilOrder = (wanted) =>
  until(
    (text) => [...document.querySelectorAll('.queue tr[data-job]')].map((row) => row.dataset.job).join() === text,
    wanted.join(),
  );

export const queueing = [
  [
    'what waits stands in the queue, and the page says why',
    async () => {
      for (let more = 0; more < 3; more++)
        await cluster.det(['experiment', 'create', 'const.yaml', '.'], path.join(cluster.directory, 'context3'));
      await open('cluster?tab=queue');
      await untilOrder(['1', '2', '3', '5', '6', '7']);
      await page.getByRole('button', { name: 'Why does experiment 5 wait?' }).click();
      const why = page.getByRole('region', { name: 'Why experiment 5 waits' });
      await why.locator('summary').click();
      await why.getByRole('link', { name: 'experiment 1' }).first().waitFor();
      assert.match(page.url(), /explain=5/);
      await audit('queue');
      await open('experiments/5');
      await page.getByRole('region', { name: 'Why experiment 5 waits' }).waitFor();
      await audit('waiting');
    },
  ],
  [
    'the list tells queued from running experiments, in a query and when one of them changes',
    async () => {
      const rows = (wanted) =>
        until((ids) => [...document.querySelectorAll('tbody tr[data-id]')].map((row) => row.dataset.id).sort().join() === ids, wanted.join());
      await open('experiments?q=state+%3D+queued');
      await rows([5, 6, 7]);
      await page.getByText('3 found').waitFor();
      await open('experiments?q=state+%3D+running');
      await rows([1, 2, 3]);
      await open('experiments?q=state+!%3D+queued+and+name+~+number&group=state');
      await page.locator('tr.group', { hasText: 'running' }).waitFor();
      assert.equal(await page.locator('tr.group', { hasText: 'queued' }).count(), 0);
      await open('experiments?q=state+%3D+running+and+id+%3E+4');
      await page.getByText('No experiment matches the filter.').waitFor();
    },
  ],
  [
    'a row is dragged, or moved by its arrows, and the master keeps the order',
    async () => {
      await open('cluster?tab=queue');
      await untilOrder(['1', '2', '3', '5', '6', '7']);
      await page.locator('tr[data-job="7"]').dragTo(page.locator('tr[data-job="5"]'));
      await untilOrder(['1', '2', '3', '7', '5', '6']);
      await page.reload();
      await untilOrder(['1', '2', '3', '7', '5', '6']);
      await page.getByRole('button', { name: 'Move experiment 7 down' }).press('Enter');
      await untilOrder(['1', '2', '3', '5', '7', '6']);
    },
  ],
  [
    'a priority is changed, by others too, and the open page shows it',
    async () => {
      await page.getByRole('button', { name: 'Priority, limits of experiment 6' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Priority').fill('7');
      await audit('queue-change');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await until(() => document.querySelector('tr[data-job="6"] td[data-head="Priority"]')?.textContent === '7');
      await until(() => [...document.querySelectorAll('.queue tr[data-job]')][0].dataset.job === '6');
      await cluster.det(['experiment', 'set', 'priority', '7', '60']);
      await until(() => document.querySelector('tr[data-job="7"] td[data-head="Priority"]')?.textContent === '60');
      await cluster.det(['experiment', 'kill', '5']);
      await until(() => document.querySelector('tr[data-job="5"]') === null);
    },
  ],
  [
    'slots and agents are taken out of use and back',
    async () => {
      await open('cluster');
      await page.getByRole('button', { name: /^Disable slot 0 of agent/ }).click();
      await page.getByRole('dialog').getByLabel('Let what runs there finish').check();
      await audit('slot-disable');
      await page.getByRole('dialog').getByRole('button', { name: 'Disable', exact: true }).click();
      await page.getByRole('button', { name: /^Enable slot 0 of agent/ }).waitFor();
      await page.getByRole('button', { name: /^Disable agent/ }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Disable', exact: true }).click();
      await page.getByRole('button', { name: /^Enable agent/ }).waitFor();
      await untilText('Draining');
      await audit('agents');
      await page.getByRole('button', { name: /^Enable agent/ }).click();
      await page.getByRole('button', { name: /^Disable agent/ }).waitFor();
      await page.getByRole('button', { name: /^Enable slot 0 of agent/ }).click();
      await page.getByRole('button', { name: /^Disable slot 0 of agent/ }).waitFor();
    },
  ],
];
