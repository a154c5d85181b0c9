// Audits every view with data on a desktop and on a phone: names, contrast in light and in dark; on a phone also width
// and touch targets. Also checks that the tests before cover all views and all changes of the UI's source.
import assert from 'node:assert/strict';
import { audit, audited, changed, cluster, page, until } from '../driver.mjs';
import { changes, views as known } from '../source.mjs';
import { sql } from '../rows.mjs';
import { touchable } from '../targets.mjs';
import { open } from './filling.mjs';

// Views other than the tabs in the source. `search` is the experiment of a search with brackets.
const places = (search, task) => [
  '',
  'experiments',
  'experiments?q=nothing+is+called+that',
  'experiments/1',
  ...['log', 'checkpoints', 'code', 'configuration', 'notes'].map((tab) => `experiments/1?tab=${tab}`),
  `experiments/${search}`,
  `experiments/${search}?panels=parameters`,
  `experiments/${search}?panels=search`,
  `experiments/${search}?panels=media`,
  `experiments/${search}?layout=table`,
  `experiments/${search}?group=hp.kind`,
  'experiments?panels=parameters',
  'experiments?panels=media&drawn=1,2',
  'experiments?layout=panels',
  'experiments/1/fork',
  `experiments/${search}/continue`,
  'experiments/999',
  'trials/1',
  ...['log', 'checkpoints', 'hyperparameters', 'attempts', 'files', 'profiler'].map((tab) => `trials/1?tab=${tab}`),
  'experiments?panels=compare&drawn=1,2',
  ...['configuration', 'code'].map((part) => `experiments?panels=compare&drawn=1,2&of=${part}`),
  `experiments/${search}?panels=compare`,
  'trials',
  'trials?ids=1,2',
  'trials?ids=1,2&panels=parameters',
  'trials?ids=1,2&panels=compare',
  'trials?ids=1,2&panels=media',
  'compare?experiments=1,2',
  'cluster',
  ...['queue', 'usage', 'log'].map((tab) => `cluster?tab=${tab}`),
  'cluster?tab=usage&over=hour',
  'workspaces',
  'workspaces?tab=templates',
  'workspaces/2',
  'workspaces/2?tab=members',
  'projects/1',
  'models',
  'models/digits',
  ...['notes', 'metadata'].map((tab) => `models/digits?tab=${tab}`),
  'tasks',
  `tasks/${task}`,
  'users',
  'quotas',
  'webhooks',
  'settings',
  'nothing/here',
];

const settled = async () => {
  await page.waitForSelector('h1');
  await until(() => ![...document.querySelectorAll('[role="status"]')].some((one) => one.textContent === 'Loading…'));
  await until(() => document.querySelector('.media-blank') === null);
};

// On a phone nothing extends beyond the right edge, and pictures are not scaled down, which would shrink
// their text.
async function narrow(place) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `${place} is ${wide} wide`);
  // In a tab bar wider than the phone, the current tab is visible.
  const beyond = await page.$$eval('nav [aria-current="page"]', (all) =>
    all.filter((one) => one.getBoundingClientRect().right > innerWidth || one.getBoundingClientRect().left < 0).map((one) => one.textContent),
  );
  assert.deepEqual(beyond, [], place);
  const shrunk = await page.$$eval('figure svg', (all) => all.map((svg) => svg.viewBox.baseVal.width / svg.clientWidth));
  assert.ok(shrunk.every((one) => one < 1.05), `${place}: ${shrunk}`);
}

// Plain tables fit their frames, so that no column, such as the one with the actions, is out of sight.
async function fitting(place) {
  const wide = await page.$$eval('table.cards', (all) =>
    all.filter((one) => one.offsetWidth > one.parentElement.clientWidth + 1).map((one) => `${one.parentElement.ariaLabel}: ${one.offsetWidth}`),
  );
  assert.deepEqual(wide, [], place);
}

export const views = [
  [
    'every view can be read in light and in dark, with eyes or without, on a desk and on a phone, and every control fits a finger',
    async () => {
      const search = sql(`SELECT max(id) FROM experiments WHERE name = 'by halving'`);
      const task = JSON.parse(await cluster.det(['command', 'list', '--json']))[0].id;
      for (const place of places(search, task)) {
        await page.setViewportSize({ width: 1300, height: 900 });
        await open(place);
        await settled();
        const name = place.replace(/[^a-z0-9]+/g, '-') || 'home';
        await fitting(place);
        await audit(`view-${name}`);
        await page.setViewportSize({ width: 390, height: 800 });
        await open(place);
        await settled();
        await narrow(place);
        await fitting(place);
        await audit(`phone-${name}`);
        await touchable(place);
      }
      await page.setViewportSize({ width: 1300, height: 900 });
    },
  ],
  [
    'a browser that has signed in loads the data of a page before it is told the user',
    async () => {
      let release;
      const held = new Promise((resolve) => (release = resolve));
      await page.route('**/api/v1/auth/user', async (route) => {
        await held;
        await route.continue();
      });
      await open('experiments');
      await page.locator('tbody tr[data-id]').first().waitFor();
      const told = page.waitForResponse('**/api/v1/auth/user');
      release();
      await told;
      await page.unroute('**/api/v1/auth/user');
    },
  ],
  [
    'a change after the first answer of the list, and before the list is drawn, is shown',
    async () => {
      const headers = { 'X-Requested-With': 'det' };
      const rename = (name) => page.request.patch(`${cluster.url}/api/v1/experiments/1`, { data: { name }, headers });
      const { experiment } = await (await page.request.get(`${cluster.url}/api/v1/experiments/1`)).json();
      let renamed;
      await page.route('**/api/v1/experiments-search', async (route) => {
        const response = await route.fetch();
        if (!renamed) assert.ok((renamed = await rename('renamed in between')).ok(), await renamed.text());
        await route.fulfill({ response });
      });
      await open('experiments');
      await page.getByRole('link', { name: 'renamed in between', exact: true }).waitFor();
      // A running trial may have started another search: its handler ends before the route does.
      await page.unrouteAll({ behavior: 'wait' });
      await rename(experiment.name);
    },
  ],
  [
    'signing out ends the session; the sign-in fits a phone too',
    async () => {
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('**/det/login*');
      await audit('view-login');
      await page.setViewportSize({ width: 390, height: 800 });
      await narrow('login');
      await audit('phone-login');
      await touchable('login');
    },
  ],
  [
    'no view of the source went unlooked at, and no change that it can ask for was not asked for',
    async () => {
      assert.ok(known().length > 35 && changes().length > 50, 'the source is written otherwise: mend source.mjs');
      assert.deepEqual(known().filter((view) => !audited.some(view.holds)).map((view) => view.name), []);
      assert.deepEqual(changes().filter((change) => !changed.some(change.holds)).map((change) => change.name), []);
    },
  ],
];
