// Takes pictures of all pages from a cluster with generated curves (demo/), in light and dark, on a desk and on a phone:
//   node screenshots.mjs BUILD_DIR OUT [NAME…]
// OUT gets NAME-desk-light.png and so on. Without names it takes all pages, in 5 minutes. They are for people who grade
// the pages; no suite runs this. Ends with `N passed, N failed`.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { cluster, page, run, signIn, until } from './driver.mjs';
import { fill, SLOTS } from './demo/content.mjs';
import { sql } from './rows.mjs';

const [out, ...wanted] = process.argv.slice(3);
assert.ok(out, 'usage: node screenshots.mjs BUILD_DIR OUT [NAME…]');
const SIZES = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
// Screens of a taller page that are in its picture.
const MAX_SCREENS = 2.5;
const MODEL = 'vit_cifar10';

// Ids of what fill() creates, in its order.
const SINGLE = 2;
const SEARCH = 7;
const HALVING = 8;
const FAILED = 9;
const RUNNING = 14;
const RUNNING_SEARCH = 17;
const QUEUED = 20;
const trialOf = (experiment) => Number(sql(`SELECT min(id) FROM trials WHERE experiment_id = ${experiment}`));
const bestCheckpoint = () => sql('SELECT uuid FROM checkpoints ORDER BY reported LIMIT 1');

// Objects of other pages than the workbench's.
async function furnish() {
  const passwords = cluster.folder('users', { password: 'a long enough password' });
  const file = path.join(passwords, 'password');
  for (const [name, shown] of [['ada', 'Ada King'], ['grace', 'Grace Hopper'], ['alan', 'Alan Turing']])
    await cluster.det(['user', 'create', name, '--display-name', shown, '--password-file', file]);
  await cluster.det(['user-group', 'create', 'vision', '--add-user', 'ada']);
  await cluster.det(['workspace', 'create', 'vision']);
  await cluster.det(['project', 'create', 'vision', 'transformers', '--description', 'Vision transformers on small images']);
  await cluster.det(['rbac', 'assign-role', 'Editor', '-g', 'vision', '-w', 'vision']);
  for (const id of [1, SINGLE, 3]) await cluster.det(['experiment', 'move', String(id), 'vision', 'transformers']);
  await cluster.det(['model', 'create', MODEL, '--description', 'Small vision transformer']);
  await cluster.det(['model', 'register-version', MODEL, bestCheckpoint()]);
  await cluster.det(['webhook', 'create', 'https://hooks.example.com/det', '--name', 'failures', '--state', 'ERROR']);
  await cluster.det(['webhook', 'create', 'https://hooks.example.com/loss', '--name', 'divergence', '--metric', 'loss > 5']);
  await cluster.det(['experiment', 'describe', '1']);
}

// As after some days of work.
function age() {
  const ended = "FROM (SELECT id AS of, (21 - id) ^ 2 * interval '7 minutes' AS age FROM experiments WHERE ended IS NOT NULL) a WHERE";
  sql(`UPDATE checkpoints c SET reported = reported - age FROM trials t, (SELECT id AS of, (21 - id) ^ 2 * interval '7 minutes' AS age FROM experiments WHERE ended IS NOT NULL) a
    WHERE t.id = c.trial_id AND of = t.experiment_id`);
  sql(`UPDATE trials SET started = started - age, ended = ended - age ${ended} of = experiment_id`);
  sql(`UPDATE experiments SET submitted = submitted - age, ended = ended - age ${ended} of = id`);
}

// Page: address, and what is done before the picture is taken.
const PAGES = {
  dashboard: () => [''],
  list: () => ['experiments'],
  grouped: () => ['experiments?group=tags'],
  compare: () => ['experiments?q=id+in+(1,2,3,4,5)&drawn=1,2,3,4,5&layout=panels&panels=compare'],
  single: () => [`experiments/${SINGLE}`],
  search: () => [`experiments/${SEARCH}`],
  'search-parameters': () => [`experiments/${SEARCH}?panels=parameters`],
  'search-progress': () => [`experiments/${SEARCH}?panels=search`],
  halving: () => [`experiments/${HALVING}`],
  'halving-search': () => [`experiments/${HALVING}?panels=search`],
  failed: () => [`experiments/${FAILED}`],
  running: () => [`experiments/${RUNNING}`],
  'running-search': () => [`experiments/${RUNNING_SEARCH}`],
  queued: () => [`experiments/${QUEUED}`],
  log: () => [`experiments/${FAILED}?tab=log`],
  profiler: () => [`experiments/${RUNNING}?tab=profiler`],
  checkpoints: () => [`experiments/${SEARCH}?tab=checkpoints`],
  code: () => [`experiments/${SINGLE}?tab=code`],
  configuration: () => [`experiments/${SINGLE}?tab=configuration`],
  trial: () => [`trials/${trialOf(SINGLE)}`],
  'trial-log': () => [`trials/${trialOf(RUNNING)}?tab=log`],
  'trial-hyperparameters': () => [`trials/${trialOf(SINGLE)}?tab=hyperparameters`],
  'trial-attempts': () => [`trials/${trialOf(FAILED)}?tab=attempts`],
  fork: () => [`experiments/${SINGLE}/fork`],
  continue: () => [`experiments/${SINGLE}/continue`],
  agents: () => ['cluster'],
  queue: () => ['cluster?tab=queue'],
  usage: () => ['cluster?tab=usage'],
  'master-log': () => ['cluster?tab=log'],
  workspaces: () => ['workspaces'],
  workspace: () => ['workspaces/2'],
  members: () => ['workspaces/2?tab=members'],
  project: () => ['projects/2'],
  models: () => ['models'],
  model: () => [`models/${MODEL}`],
  tasks: () => ['tasks'],
  users: () => ['users'],
  quotas: () => ['quotas'],
  webhooks: () => ['webhooks'],
  settings: () => ['settings'],
  palette: () => ['experiments', () => page.keyboard.press('Control+k')],
  actions: () => [`experiments/${RUNNING}`, () => page.getByLabel('More actions').click()],
};

// Charts are drawn once their points are there, and fonts once loaded.
async function settle() {
  await until(() => document.fonts.status === 'loaded' && !/Loading…/.test(document.querySelector('main')?.innerText ?? ''));
  await page.waitForTimeout(1500);
}

async function take(name, size) {
  const [address, before] = PAGES[name]();
  await page.setViewportSize(SIZES[size]);
  await page.goto(`${cluster.url}/det/${address}`);
  await page.waitForSelector('main');
  await settle();
  if (before) {
    await before().catch((error) => console.log(`${name} on a ${size}: ${error.message.split('\n')[0]}`));
    await page.waitForTimeout(500);
  }
  const { width, height } = SIZES[size];
  const full = await page.evaluate(() => document.documentElement.scrollHeight);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(400);
    const clip = { x: 0, y: 0, width, height: Math.min(Math.max(full, height), MAX_SCREENS * height) };
    await page.screenshot({ path: path.join(out, `${name}-${size}-${colorScheme}.png`), clip, fullPage: true });
  }
  await page.emulateMedia({ colorScheme: null });
}

cluster.slots = SLOTS;
mkdirSync(out, { recursive: true });

await run([
  [
    'a cluster with experiments in every state has pages',
    async () => {
      await fill(cluster);
      await furnish();
      age();
      await page.goto(`${cluster.url}/`);
      await page.waitForSelector('input[type="password"]');
      for (const [size, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await page.screenshot({ path: path.join(out, `login-${size}-${colorScheme}.png`) });
        }
      }
      await signIn(cluster.password);
      await page.waitForURL('**/det/');
    },
  ],
  ...Object.keys(PAGES)
    .filter((name) => wanted.length === 0 || wanted.includes(name))
    .flatMap((name) => Object.keys(SIZES).map((size) => [`${name} on a ${size} is a picture`, () => take(name, size)])),
]);
