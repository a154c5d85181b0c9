// Checks of the remaining changes: one experiment, trial and command, model versions, renaming and archiving
// of workspaces and projects, signing out.
import assert from 'node:assert/strict';
import path from 'node:path';
import { readFileSync } from 'node:fs';
import { audit, cluster, here, page, until, untilText } from '../driver.mjs';
import { saved } from '../rows.mjs';
import { config, more, PROBE, open } from './filling.mjs';

export const VERSION = '22222222-3333-4444-8555-666666666666';

const dialog = () => page.getByRole('dialog');
const press = (name) => page.getByRole('button', { name, exact: true }).click();
const sure = (name) => dialog().getByRole('button', { name, exact: true }).click();
const state = (wanted) => until((text) => document.querySelector('.state-line .state')?.textContent === text, wanted);
const noMarkup = async () => assert.equal(await page.$('main img'), null);

// Starts an experiment that needs no slot. Returns its number.
async function started(name, change = (text) => text) {
  const context = cluster.folder(name, {
    'const.yaml': change(config(4).replace('slots_per_trial: 1', 'slots_per_trial: 0')),
    'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs'), 'utf8'),
  });
  const said = await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
  return Number(/experiment (\d+)/i.exec(said)[1]);
}

const experiments = [
  [
    'an experiment is paused, activated and canceled',
    async () => {
      await open(`experiments/${await started('steered')}`);
      await state('Running');
      await press('Pause');
      await state('Paused');
      await press('Activate');
      await state('Running');
      await more();
      await press('Cancel experiment');
      await state('Canceled');
    },
  ],
  [
    'a running search says how many of its trials ended, to which length they train, and how fast',
    async () => {
      const id = await started('running-search', (text) => text.replace('name: single', 'name: random\n  max_trials: 5\n  max_concurrent_trials: 2'));
      await open(`experiments/${id}`);
      await until(() => document.querySelector('.workbench-bar .found')?.textContent === '0 of 5 trials ended, 2 running, 3 to come');
      await until(() => /^2 running: [\d.]+ batches\/s now$/.test(document.querySelector('.key-note')?.textContent ?? ''));
      // By its progress the program trains for 36,000 batches; a report of batches may be newer. The configuration has another length.
      await page.getByRole('columnheader', { name: /^Batches of ~3[5-9]k$/ }).waitFor();
      await audit('search-running');
      await more();
      await press('Cancel experiment');
      await state('Canceled');
      await until(() => document.querySelector('.workbench-bar .found')?.textContent === '2 trials');
    },
  ],
  [
    'a trial is killed after a question, and its page says so',
    async () => {
      const id = await started('killed');
      const { trials } = JSON.parse(await cluster.det(['experiment', 'describe', String(id), '--json']));
      await open(`trials/${trials[0].id}`);
      await state('Running');
      await more();
      await press('Kill…');
      await sure('Kill');
      await state('Canceled');
      await audit('trial-killed');
    },
  ],
  [
    'an experiment that failed says why, and is run again',
    async () => {
      const id = await started('failing', (text) =>
        text
          .replace(/entrypoint: .*/, `entrypoint: 'sh -c "echo first line; echo ValueError: bad shape; echo ^^^; exit 3"'`)
          .replace(/max_restarts: \d/, 'max_restarts: 0'),
      );
      await open(`experiments/${id}`);
      await state('Error');
      const failure = page.getByRole('region', { name: 'Failure' });
      assert.equal(await failure.locator('strong').textContent(), 'ValueError: bad shape');
      const lines = (await failure.locator('pre').innerText()).split('\n');
      assert.deepEqual(lines.slice(0, 3), ['first line', 'ValueError: bad shape', '^^^']);
      assert.equal(await failure.getByText('exit code 3', { exact: true }).count(), 1);
      await audit('failed');
      const [answer] = await Promise.all([
        page.waitForResponse((response) => response.url().endsWith(`/experiments/${id}/retry`)),
        press('Retry'),
      ]);
      assert.equal(answer.status(), 200);
    },
  ],
];

const registry = [
  [
    'a checkpoint becomes a version of a model; what is said of either is text',
    async () => {
      saved(VERSION, { note: PROBE });
      await open('models');
      await press('New model…');
      await dialog().getByLabel('Name').fill('digits');
      await sure('Create');
      await page.waitForURL('**/det/models/digits');
      await more();
      await press('Edit…');
      await dialog().getByLabel('Description').fill(`told ${PROBE}`);
      await dialog().getByLabel('Labels').fill(`best, ${PROBE}`);
      await sure('Save');
      await untilText(`told ${PROBE}`);
      await open('trials/1?tab=checkpoints');
      await page.locator('.checkpoint:has(a[download]) summary').first().click();
      await press(`Register checkpoint ${VERSION}`);
      await dialog().locator('option', { hasText: 'digits' }).waitFor({ state: 'attached' });
      await dialog().getByLabel('Model').selectOption('digits');
      await dialog().getByLabel('Name of the version').fill(`first ${PROBE}`);
      await dialog().getByLabel('Comment').fill(PROBE);
      await sure('Register');
      await until(() => document.querySelector('dialog[open]') === null);
      await open('models/digits');
      await page.getByRole('button', { name: 'Edit version 1' }).click();
      await dialog().getByLabel('Notes').fill(`noted ${PROBE}`);
      await audit('version-edit');
      await sure('Save');
      await untilText(`noted ${PROBE}`);
      await audit('version');
      await open('models/digits?tab=notes');
      await press('Edit notes');
      await page.getByLabel('Notes, in Markdown').fill(`# Digits\n\n${PROBE} and **bold**`);
      await press('Save');
      await page.locator('.markdown strong').waitFor();
      await noMarkup();
      await open('models');
      await untilText('best');
      await noMarkup();
      // The master finds it by a part of its name.
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Search or jump to' }).fill('igit');
      await page.getByRole('option', { name: 'digits', exact: true }).click();
      await page.waitForURL('**/det/models/digits');
    },
  ],
  [
    'a version is deleted after a question; a model is brought back from the archive',
    async () => {
      await cluster.det(['model', 'register-version', 'digits', VERSION]);
      await open('models/digits');
      await page.getByRole('button', { name: 'Delete version 2' }).click();
      await sure('Delete');
      await until(() => document.querySelectorAll('main tbody tr').length === 1);
      await more();
      await press('Archive');
      await press('Unarchive');
      await page.getByRole('button', { name: 'Archive', exact: true }).waitFor();
    },
  ],
];

// Renames, archives, unarchives and deletes a workspace or project on its page.
async function changePlace(name) {
  await more();
  await press('Edit…');
  await dialog().getByLabel('Name').fill(`${name} ${PROBE}`);
  await sure('Save');
  await until((text) => document.querySelector('h1')?.textContent === text, `${name} ${PROBE}`);
  await more();
  await press('Archive');
  await press('Unarchive');
  await page.getByRole('button', { name: 'Archive', exact: true }).waitFor();
  await noMarkup();
  await press('Delete…');
  await sure('Delete');
}

const places = [
  [
    'a project and a workspace are renamed, archived, brought back and deleted',
    async () => {
      await open('workspaces');
      await press('New workspace…');
      await dialog().getByLabel('Name').fill('passing');
      await sure('Create');
      await page.waitForURL(/\/det\/workspaces\/\d+$/);
      const workspace = page.url();
      await press('New project…');
      await dialog().getByLabel('Name').fill('passing too');
      await sure('Create');
      await page.waitForURL(/\/det\/projects\/\d+$/);
      await changePlace('renamed project');
      await page.waitForURL(workspace);
      await untilText('No projects yet');
      await changePlace('renamed workspace');
      await page.waitForURL('**/det/workspaces');
    },
  ],
  [
    'a template is changed where it stands',
    async () => {
      await open('workspaces?tab=templates');
      await page.getByLabel('Name').fill('kept');
      for (const restarts of [2, 3]) {
        await page.getByLabel('Template', { exact: true }).fill(`max_restarts: ${restarts}\n`);
        const answer = page.waitForResponse((one) => one.url().endsWith('/templates/kept') && one.request().method() !== 'GET');
        await press('Save');
        await answer;
        await page.getByRole('heading', { name: 'kept', exact: true }).waitFor();
        await page.getByRole('button', { name: 'Save', exact: true, disabled: true }).waitFor();
      }
      await page.reload();
      await until(() => document.querySelector('textarea')?.value === 'max_restarts: 3\n');
    },
  ],
];

const commands = [
  [
    'a command is killed after a question',
    async () => {
      await open('tasks');
      await press('Run a command…');
      await dialog().getByLabel('Command line').fill('echo begun; sleep 600');
      await sure('Run');
      await page.waitForURL('**/det/tasks/*');
      await untilText('begun');
      await press('Kill…');
      await sure('Kill');
      await state('Killed');
    },
  ],
];

const interactive = [
  [
    'a shell is listed with its kind and killed after a question',
    async () => {
      const id = (await cluster.det(['shell', 'start', '-d', '--config', 'resources.slots=0'])).trim();
      await open('tasks');
      const row = page.getByRole('row', { name: `Shell ${id.slice(0, 8)}` });
      await row.getByRole('cell', { name: 'Shell', exact: true }).waitFor();
      await row.getByRole('button', { name: `Kill Shell ${id.slice(0, 8)}` }).click();
      await sure('Kill');
      await row.locator('.state', { hasText: 'Killed' }).waitFor();
    },
  ],
];

const ports = [
  [
    'the page of a command leads to the page of its port',
    async () => {
      const said = await cluster.det(['command', 'run', '-d', '-p', '9', '--config', 'resources.slots=0', 'sleep', '600']);
      await open(`tasks/${said.trim()}`);
      const link = page.getByRole('link', { name: '9', exact: true });
      await link.waitFor();
      const address = new URL(await link.getAttribute('href'), page.url()).href;
      const answer = await page.request.get(address, { maxRedirects: 0, headers: { accept: 'text/html' } });
      assert.equal(answer.status(), 302);
      assert.match(answer.headers().location, /^\/proxy\/[\w-]+:9\/~[\w-]+\/$/);
      await press('Kill…');
      await sure('Kill');
    },
  ],
];

const views = [
  [
    'a saved view and a search keep their words as text',
    async () => {
      await open(`experiments?q=${encodeURIComponent(PROBE)}`);
      await until((text) => document.querySelector('input[type="search"]')?.value === text, PROBE);
      await page.locator('summary', { hasText: 'Views' }).click();
      await page.getByLabel('Name of the view').fill(PROBE);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: PROBE, exact: true }).waitFor();
      await noMarkup();
    },
  ],
];

export const steering = [...experiments, ...registry, ...places, ...commands, ...interactive, ...ports, ...views];
