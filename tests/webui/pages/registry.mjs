// Checks of the model registry and commands. Pages show an error if the master does not offer them.
import assert from 'node:assert/strict';
import { audit, cluster, page, until, untilText } from '../driver.mjs';
import { PROBE, more, open } from './filling.mjs';

const dialog = () => page.getByRole('dialog');
const offered = async (path) => (await page.request.get(`${cluster.url}${path}`)).status() === 200;
const refused = async (place, title) => {
  await open(place);
  await page.getByRole('heading', { name: title }).waitFor();
  await page.getByRole('alert').waitFor();
  await audit(`${place}-refused`);
};

export const registry = [
  [
    'a model is made, described and deleted, and what is said of it is text',
    async () => {
      if (!(await offered('/api/v1/models'))) return refused('models', 'Models');
      await open('models');
      await untilText('det model create NAME');
      await page.getByRole('button', { name: 'New model…' }).click();
      await dialog().getByLabel('Name').fill(`digits ${PROBE}`);
      await dialog().getByLabel('Description').fill(PROBE);
      await dialog().getByRole('button', { name: 'Create' }).click();
      await page.waitForURL('**/det/models/*');
      await untilText('No versions yet');
      await page.locator('.empty pre', { hasText: `'digits ${PROBE}' UUID` }).waitFor();
      await audit('model');
      await open('models');
      await page.getByRole('link', { name: `digits ${PROBE}` }).click();
      await more();
      await page.getByRole('button', { name: 'Archive', exact: true }).click();
      await page.getByRole('button', { name: 'Unarchive' }).waitFor();
      await page.getByRole('button', { name: 'Delete…' }).click();
      await dialog().getByRole('button', { name: 'Delete', exact: true }).click();
      await page.waitForURL('**/det/models');
      assert.equal(await page.$('main img'), null);
    },
  ],
  [
    'a command is run, watched and listed',
    async () => {
      if (!(await offered('/api/v1/commands'))) return refused('tasks', 'Tasks');
      await open('tasks');
      await untilText('No tasks yet');
      await page.getByRole('button', { name: 'Run a command…' }).click();
      await dialog().getByLabel('Command line').fill(`echo 'hello ${PROBE}'; exit 3`);
      await dialog().getByLabel('Description').fill(PROBE);
      await dialog().getByRole('button', { name: 'Run', exact: true }).click();
      await page.waitForURL('**/det/tasks/*');
      await until((text) => [...document.querySelectorAll('.log-text')].some((line) => line.textContent === text), `hello ${PROBE}`);
      await until(() => document.querySelector('.state-line .state')?.textContent === 'Error');
      assert.equal(await page.textContent('.command-line'), `echo 'hello ${PROBE}'; exit 3`);
      assert.equal(await page.getByLabel('Follow').count(), 0);
      await audit('task');
      await open('tasks');
      await page.getByRole('link', { name: PROBE }).waitFor();
      const reason = page.getByRole('region', { name: 'Tasks' }).locator('td.reason').first();
      assert.equal(await reason.locator('.failed').textContent(), 'Exit code 3');
      assert.equal(await reason.locator('.output').textContent(), `hello ${PROBE}`);
      await audit('tasks');
      assert.equal(await page.$('main img'), null);
    },
  ],
];
