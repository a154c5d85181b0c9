// End-to-end test of the web UI: Debian's chromium against a real master, agent and trial process.
// Usage: node browser_test.mjs [BUILD_DIR] [--shots DIR]. Ends with `N passed, N failed`.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  audit,
  cluster,
  complaints,
  drawnPixels,
  here,
  page,
  requests,
  run,
  shot,
  signIn,
  transferred,
  until,
  untilText,
} from './driver.mjs';
import { palette } from './pages/palette.mjs';

const FIRST_LOAD_LIMIT = 150 * 1024;
const PROBE = '<img src=x onerror="window.pwned=1">';
// Used as the name of a hyperparameter, a metric and a file, so it has no dot.
const NAME_PROBE = '<img src=x onerror=pwned=1>';
const CONFIG = `name: '${PROBE}'
description: 'a trial without a model ${PROBE}'
labels: ['${PROBE}']
entrypoint: ${process.execPath} script_trial.mjs
hyperparameters:
  learning_rate: 0.1
  note: '${PROBE}'
  '${NAME_PROBE}': '${PROBE}'
searcher:
  name: single
  metric: accuracy
  smaller_is_better: false
  max_length: {batches: 1000000}
resources:
  slots_per_trial: 1
max_restarts: 0
checkpoint_storage:
  type: shared_fs
  host_path: HOST_PATH
`;

const lastStep = () =>
  page.$$eval('.log-text', (lines) =>
    Math.max(0, ...lines.map((line) => Number(line.textContent.match(/^step (\d+)$/)?.[1] ?? 0))),
  );
const untilStepAfter = (step) =>
  until(
    (least) =>
      [...document.querySelectorAll('.log-text')].some(
        (line) => Number(line.textContent.match(/^step (\d+)$/)?.[1] ?? 0) > least,
      ),
    step,
  );
const untilState = (state) =>
  until((wanted) => document.querySelector('.state-line .state')?.textContent === wanted, state);
const describe = async () => {
  const answer = JSON.parse(await cluster.det(['experiment', 'describe', '1', '--json']));
  return JSON.stringify(answer);
};

const chartSays = (panel) => page.getAttribute(`figure[data-panel="${panel}"]`, 'aria-label');
const tab = (name) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).click();

const signingIn = [
  [
    'without a session every page leads to the sign-in',
    async () => {
      await page.goto(`${cluster.url}/`);
      await page.waitForURL('**/det/login');
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      await audit('login');
    },
  ],
  [
    'the first load stays within its size, compressed',
    async () => {
      const loaded = requests.filter((request) => /\/det\//.test(request.url()));
      let bytes = 0;
      for (const request of loaded) {
        const { response, size } = await transferred(request);
        bytes += size;
        if (/\.(js|css)$/.test(request.url())) {
          assert.equal(response.headers()['content-encoding'], 'gzip', request.url());
          assert.match(response.headers()['cache-control'], /immutable/);
        }
      }
      console.log(`first load: ${(bytes / 1024).toFixed(1)} KiB in ${loaded.length} requests`);
      assert.ok(bytes > 10000 && bytes <= FIRST_LOAD_LIMIT, `${bytes} bytes`);
    },
  ],
  [
    'the page forbids inline code',
    async () => {
      const policy = (await page.request.get(`${cluster.url}/det/`)).headers()['content-security-policy'];
      assert.match(policy, /default-src 'self'/);
      assert.doesNotMatch(policy, /unsafe/);
    },
  ],
  [
    'a wrong password is refused with a reason',
    async () => {
      await signIn('not the password');
      await page.getByRole('alert').waitFor();
      assert.match(page.url(), /login/);
      assert.equal((await page.context().cookies()).length, 0);
    },
  ],
  [
    'the right password leads to the list, which teaches the first command',
    async () => {
      await signIn(cluster.password);
      await page.waitForURL('**/det/');
      await untilText('det experiment create const.yaml .');
      await audit('empty');
    },
  ],
  [
    'the session cookie is out of reach of scripts',
    async () => {
      assert.equal(await page.evaluate(() => document.cookie), '');
      const [cookie] = await page.context().cookies();
      assert.ok(cookie?.httpOnly && cookie.sameSite !== 'None', JSON.stringify(cookie));
    },
  ],
];

const listing = [
  [
    'a new experiment appears in the open list by itself',
    async () => {
      await page.getByRole('link', { name: 'Experiments' }).click();
      await page.waitForURL('**/det/experiments');
      await untilText('det experiment create const.yaml .');
      await until(() => document.querySelector('.freshness-live') !== null);
      await page.evaluate(() => (window.sameDocument = true));
      const context = cluster.folder('context', {
        'const.yaml': CONFIG.replace('HOST_PATH', path.join(cluster.directory, 'checkpoints')),
        'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs')),
        [`${NAME_PROBE}.txt`]: `${PROBE}\n`,
      });
      mkdirSync(path.join(cluster.directory, 'checkpoints'));
      await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
      await page.getByRole('link', { name: PROBE }).waitFor({ timeout: 20000 });
      await until(() => document.querySelector('tbody :is(.state, .state-icon)')?.textContent === 'Running');
      assert.equal(await page.evaluate(() => window.sameDocument), true);
      await audit('list');
    },
  ],
  [
    'its name is text, never markup',
    async () => {
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },
  ],
];

const looking = [
  [
    'a click leads to the experiment',
    async () => {
      await page.getByRole('link', { name: PROBE }).click();
      await page.waitForURL('**/det/experiments/1');
      await untilState('Running');
      assert.equal(await page.textContent('h1'), PROBE);
    },
  ],
  [
    'log lines arrive as they are written',
    async () => {
      await tab('Log');
      await page.waitForURL('**/det/experiments/1?tab=log');
      await untilStepAfter(0);
      await untilStepAfter(await lastStep());
      assert.ok(await page.getByRole('checkbox', { name: 'Follow' }).isChecked());
      assert.ok(await page.$eval('.log', (log) => log.scrollTop + log.clientHeight >= log.scrollHeight - 30));
    },
  ],
  [
    'log lines are text: no markup, colors kept, other escapes gone',
    async () => {
      const lines = await page.$$eval('.log-text', (all) => all.map((line) => line.textContent));
      assert.ok(lines.includes('<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'));
      assert.ok(lines.includes('green plain'), lines.slice(0, 8).join('\n'));
      assert.equal(await page.textContent('.log .ansi-2'), 'green');
      assert.equal(await page.$('.log img, .log script'), null);
    },
  ],
  [
    'scrolling up lets go of the end, Follow takes hold again',
    async () => {
      await until(
        () => document.querySelector('.log').scrollHeight > document.querySelector('.log').clientHeight + 60,
      );
      await page.$eval('.log', (log) => (log.scrollTop -= 40));
      await until(() => ![...document.querySelectorAll('.check')].find((l) => l.textContent.includes('Follow')).querySelector('input').checked);
      await untilStepAfter(await lastStep());
      assert.ok(await page.$eval('.log', (log) => log.scrollTop + log.clientHeight < log.scrollHeight - 8));
      await page.getByRole('checkbox', { name: 'Follow' }).check();
      await until(
        () =>
          document.querySelector('.log').scrollTop >
          document.querySelector('.log').scrollHeight - document.querySelector('.log').clientHeight - 30,
      );
    },
  ],
  [
    'training and validation are drawn, and the charts grow',
    async () => {
      await audit('log');
      await tab('Trials');
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await page.waitForSelector('figure[data-panel="accuracy"] canvas');
      await until(() =>
        /training .* at batch \d+; validation/.test(
          document.querySelector('figure[data-panel="loss"]')?.ariaLabel ?? '',
        ),
      );
      assert.ok((await drawnPixels('loss')) > 50);
      const before = await chartSays('loss');
      await until((was) => document.querySelector('figure[data-panel="loss"]').ariaLabel !== was, before);
      await audit('experiment');
    },
  ],
  [
    'the choice of charts is in the address and survives a reload',
    async () => {
      await page.getByLabel('Find metrics').focus();
      await page.getByRole('group', { name: 'Metrics shown' }).getByLabel('grad_norm').uncheck();
      await until(() => document.querySelector('figure[data-panel="grad_norm"]') === null);
      assert.equal(new URL(page.url()).searchParams.get('charts'), `accuracy,${NAME_PROBE},loss`);
      await page.reload();
      await page.waitForSelector('figure[data-panel="loss"]');
      assert.equal(await page.$('figure[data-panel="grad_norm"]'), null);
      await page.evaluate(() => (window.sameDocument = true));
    },
  ],
  [
    'the configuration and the hyperparameters are text',
    async () => {
      await page.getByRole('button', { name: 'Table', exact: true }).click();
      const heads = await page.$$eval('thead th', (all) => all.map((one) => one.textContent));
      assert.ok(heads.includes(NAME_PROBE), heads.join());
      const cells = await page.$$eval('tbody tr[data-id="1"] td', (all) => all.map((one) => one.textContent));
      assert.ok(cells.includes('0.1') && cells.includes(PROBE), cells.join());
      await tab('Configuration');
      assert.match(await page.textContent('.config-view pre'), /<img src=x/);
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },
  ],
  [
    'the code is there to be read, as text',
    async () => {
      await tab('Code');
      await page.getByRole('button', { name: `${NAME_PROBE}.txt` }).click();
      await until((probe) => document.querySelector('.code-text')?.textContent === probe, PROBE);
      assert.match(page.url(), /file=/);
      await page.getByRole('button', { name: 'script_trial.mjs' }).click();
      await until(() => document.querySelector('.code-text')?.textContent.includes("import http2 from"));
      await audit('code');
      assert.equal(await page.$('main img'), null);
    },
  ],
  [
    'a single trial has curves and media, and nothing to compare or to search',
    async () => {
      await tab('Trials');
      const panels = page.getByRole('group', { name: 'Panels' }).getByRole('button');
      await panels.first().waitFor();
      assert.deepEqual(await panels.allTextContents(), ['Curves', 'Media']);
    },
  ],
  [
    'axis, logarithm and smoothing are in the address; a stretch that is dragged over is fetched closer',
    async () => {
      await page.goto(`${cluster.url}/det/experiments/1?charts=loss&x=time&log=1&smooth=0.6`);
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await page.locator('summary', { hasText: 'Axes' }).click();
      assert.ok(await page.getByRole('checkbox', { name: 'Log y' }).isChecked());
      assert.equal(await page.getByLabel('Smoothing').inputValue(), '0.6');
      assert.equal(await page.getByLabel('X axis').inputValue(), 'time');
      await page.getByLabel('X axis').selectOption('batches');
      await until(() => !new URLSearchParams(location.search).has('x'));
      await page.keyboard.press('Escape');
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      const box = await page.locator('figure[data-panel="loss"] .u-over').boundingBox();
      const fetched = page.waitForRequest((request) => /startBatches=\d+&endBatches=\d+/.test(request.url()));
      await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.7, box.y + 60, { steps: 4 });
      await page.mouse.up();
      await fetched;
      assert.match(new URL(page.url()).searchParams.get('zoom'), /^\d+-\d+$/);
      await page.getByRole('button', { name: 'Whole range' }).click();
      await until(() => !location.search.includes('zoom'));
    },
  ],
  [
    'a trial has a page of its own',
    async () => {
      await page.locator('.state-line').getByRole('link', { name: 'trial 1' }).click();
      await page.waitForURL('**/det/trials/1');
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await audit('trial');
      await tab('Hyperparameters');
      await untilText(NAME_PROBE);
      await tab('Attempts');
      await until(() => document.querySelector('main tbody td + td')?.textContent === 'Running');
      await audit('attempts');
      await tab('Checkpoints');
      await untilText('No checkpoints yet');
      await tab('Profiler');
      await untilText('No system metrics');
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },
  ],
  [
    'the log is filtered by the master, by text and by expression, and a line has a link',
    async () => {
      await page.goto(`${cluster.url}/det/trials/1?tab=log&grep=preparing`);
      await until(() => document.querySelectorAll('.log-line').length === 30);
      await page.goto(`${cluster.url}/det/trials/1?tab=log&re=1&grep=${encodeURIComponent('preparing [12] of')}`);
      await until(() => document.querySelectorAll('.log-line').length === 2);
      const line = page.locator('.log-line').nth(1);
      const text = await line.locator('.log-text').textContent();
      const id = await line.getAttribute('data-id');
      await page.goto(`${cluster.url}/det/trials/1?tab=log&line=${id}`);
      await page.waitForSelector('.log-chosen');
      assert.equal(await page.textContent('.log-chosen .log-text'), text);
      // The lines before it are there too; they may arrive after those behind it.
      await until(() =>
        [...document.querySelectorAll('.log-text')].some((one) => one.textContent === 'hello from the trial'),
      );
      await page.goto(`${cluster.url}/det/trials/1?tab=log&level=ERROR`);
      await untilText('No line matches the filter.');
    },
  ],
  [
    'the cluster shows the holders of slots, the dashboard the running experiments',
    async () => {
      await page.keyboard.press('g');
      await page.keyboard.press('c');
      await page.waitForURL('**/det/cluster');
      const slot = page.locator('.slot-held');
      await slot.getByRole('link', { name: PROBE }).waitFor();
      await slot.getByText('Trial 1', { exact: true }).waitFor();
      await untilText('1 of 1 slots in use');
      await audit('cluster');
      await page.keyboard.press('g');
      await page.keyboard.press('d');
      await page.waitForURL('**/det/');
      await page.getByRole('link', { name: `1 ${PROBE}` }).waitFor();
      await audit('dashboard');
      assert.equal(await page.$('main img'), null);
    },
  ],
  [
    'theme and density are chosen and kept; the keys are explained',
    async () => {
      await page.goto(`${cluster.url}/det/settings`);
      await page.getByLabel('Dark').check();
      await page.getByLabel('Dense').check();
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
      await page.reload();
      await until(() => document.documentElement.dataset.density === 'dense');
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(18, 21, 26)');
      await page.getByLabel('As the system').check();
      await page.getByLabel('Roomy').check();
      await audit('settings');
      await page.locator('h1').click();
      await page.keyboard.press('?');
      await page.getByRole('dialog').getByText('Next, previous row').waitFor();
      await page.keyboard.press('Escape');
    },
  ],
];

const steering = [
  [
    'Pause pauses',
    async () => {
      await page.goto(`${cluster.url}/det/experiments/1`);
      await untilState('Running');
      await tab('Log');
      await page.evaluate(() => (window.sameDocument = true));
      await page.getByRole('button', { name: 'Pause' }).click();
      await untilState('Paused');
      assert.match(await describe(), /"(STATE_)?PAUSED"/);
      await shot('paused');
    },
  ],
  [
    'Activate goes on',
    async () => {
      await page.getByRole('button', { name: 'Activate' }).click();
      await untilState('Running');
      await until(() => {
        const texts = [...document.querySelectorAll('.log-text')].map((line) => line.textContent);
        const second = texts.lastIndexOf('hello from the trial');
        return second > texts.indexOf('hello from the trial') && texts.includes('step 1', second);
      });
    },
  ],
  [
    'when the master is killed the page says that it is stale',
    async () => {
      await cluster.killMaster();
      await untilText('may be out of date');
      assert.ok((await page.$$('.log-text')).length > 0);
      await shot('stale');
    },
  ],
  [
    'when the master is back the page goes on by itself, with every line',
    async () => {
      const seen = await page.$$eval('.log-text', (all) => all.length);
      await cluster.startMaster();
      await until(() => document.querySelector('.freshness-live') !== null);
      await until((count) => document.querySelectorAll('.log-text').length > count + 3, seen);
      assert.equal(await page.getByText('may be out of date').count(), 0);
      assert.equal(await page.evaluate(() => window.sameDocument), true);
      const steps = await page.$$eval('.log-text', (all) => {
        const texts = all.map((line) => line.textContent);
        const run = texts.slice(texts.lastIndexOf('hello from the trial'));
        return run.map((text) => Number(text.match(/^step (\d+)$/)?.[1] ?? 0)).filter((step) => step > 0);
      });
      assert.deepEqual(
        steps,
        steps.map((_, at) => at + 1),
        'each step once, in order',
      );
    },
  ],
  [
    'a lost session leads to the sign-in and back',
    async () => {
      await page.context().clearCookies();
      await page.reload();
      await page.waitForURL('**/det/login?next=*');
      await signIn(cluster.password);
      await page.waitForURL('**/det/experiments/1?*');
      await untilState('Running');
    },
  ],
  [
    'Kill asks, by keyboard too, and kills',
    async () => {
      await page.getByLabel('More actions').press('Enter');
      await page.getByRole('button', { name: 'Kill…' }).press('Enter');
      await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).press('Enter');
      await untilState('Canceled');
      assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0);
    },
  ],
];

const ending = [
  [
    'what does not exist is said to be so',
    async () => {
      await page.goto(`${cluster.url}/det/experiments/999`);
      await untilText('There is no experiment 999.');
      await page.goto(`${cluster.url}/det/nothing/here`);
      await untilText('There is no page at this address.');
      await shot('not-found');
    },
  ],
  [
    'signing out ends the session',
    async () => {
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('**/det/login*');
      assert.equal(await page.evaluate(() => localStorage.getItem('det.user')), null);
      await page.goto(`${cluster.url}/det/experiments`);
      await page.waitForURL('**/det/login*');
    },
  ],
  [
    'nothing was asked of anybody but the master, and no script failed',
    async () => {
      assert.deepEqual(
        requests.filter((request) => new URL(request.url()).origin !== cluster.url).map((r) => r.url()),
        [],
      );
      assert.deepEqual(complaints, []);
    },
  ],
];

await run([...signingIn, ...listing, ...looking, ...palette, ...steering, ...ending]);
