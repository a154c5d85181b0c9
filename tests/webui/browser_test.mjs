// Owns the test of the web UI as people use it: Debian's chromium against a real master, agent and trial
// process.
// Usage: node browser_test.mjs [BUILD_DIR] [--shots DIR]. Ends with `N passed, N failed`.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cluster } from './cluster.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const argumentsLeft = process.argv.slice(2);
const shotsAt = argumentsLeft.indexOf('--shots');
const shots = shotsAt < 0 ? undefined : argumentsLeft.splice(shotsAt, 2)[1];
const build = path.resolve(argumentsLeft[0] ?? path.join(here, '../../build/release'));
// CTest's sign for "skipped".
const kSkipped = 77;
if (!existsSync(path.join(build, 'share/det/webui/index.html'))) {
  console.log('skipped: this build has no web UI\n0 passed, 0 failed');
  process.exit(kSkipped);
}
const { chromium } = createRequire(path.join(build, 'webui/package.json'))('playwright-core');

const kFirstLoadLimit = 150 * 1024;
const kProbe = '<img src=x onerror="window.pwned=1">';
const kConfig = `name: '${kProbe}'
description: 'a trial without a model ${kProbe}'
labels: ['${kProbe}']
entrypoint: ${process.execPath} script_trial.mjs
hyperparameters:
  learning_rate: 0.1
  note: '${kProbe}'
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

let passed = 0;
let failed = 0;
const cluster = new Cluster(build);
let browser;
let page;
const requests = [];
const complaints = [];

// One sentence of what the page does. The sentences build on each other, so the first that fails ends the
// test.
async function check(sentence, work) {
  const start = performance.now();
  await work();
  passed++;
  console.log(`ok: ${sentence} (${Math.round(performance.now() - start)} ms)`);
}
async function checks(list) {
  for (const [at, [sentence, work]] of list.entries()) {
    try {
      await check(sentence, work);
    } catch (error) {
      failed++;
      console.log(`FAILED: ${sentence}\n${error.stack ?? error}`);
      if (page)
        console.log(`--- the page at ${page.url()} says:\n${(await page.innerText('body')).slice(0, 3000)}`);
      await shot('failed');
      if (at + 1 < list.length) console.log(`not reached: ${list.length - at - 1} more`);
      return;
    }
  }
}

const until = (what, argument) => page.waitForFunction(what, argument, { timeout: 20000 });
const untilText = (text) => page.getByText(text).first().waitFor({ timeout: 20000 });
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

async function shot(name) {
  if (!shots || !page) return;
  mkdirSync(shots, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: path.join(shots, `${name}-${colorScheme}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: null });
}

async function signIn(password) {
  await page.getByLabel('User name').fill('admin');
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
}

async function openBrowser() {
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  page = await (await browser.newContext({ viewport: { width: 1300, height: 900 } })).newPage();
  page.on('request', (request) => requests.push(request));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
  });
}

// Every control has a name, every field a label, every table a head: what a screen reader leans on.
const unnamed = () =>
  page.evaluate(() =>
    [...document.querySelectorAll('button, a[href], input, [role="log"], figure, progress')]
      .filter((element) => !element.closest('dialog:not([open])'))
      .filter(
        (element) =>
          !(element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.length),
      )
      .map((element) => element.outerHTML),
  );

// Pixels of a chart that are neither clear nor the color of its grid: something was drawn.
const drawnPixels = (panel) =>
  page.$eval(`figure[data-panel="${panel}"] canvas`, (canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let colored = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [r, g, b, a] = data.slice(at, at + 4);
      if (a > 0 && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored++;
    }
    return colored;
  });
const chartSays = (panel) => page.getAttribute(`figure[data-panel="${panel}"]`, 'aria-label');

const signingIn = [
  [
    'without a session every page leads to the sign-in',
    async () => {
      await page.goto(`${cluster.url}/`);
      await page.waitForURL('**/det/login');
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      assert.deepEqual(await unnamed(), []);
      await shot('login');
    },
  ],
  [
    'the first load stays within its size, compressed',
    async () => {
      const loaded = requests.filter((request) => /\/det\//.test(request.url()));
      let bytes = 0;
      for (const request of loaded) {
        const response = await request.response();
        bytes += response.status() === 200 ? (await request.sizes()).responseBodySize : 0;
        if (/\.(js|css)$/.test(request.url())) {
          assert.equal(response.headers()['content-encoding'], 'gzip', request.url());
          assert.match(response.headers()['cache-control'], /immutable/);
        }
      }
      console.log(`first load: ${(bytes / 1024).toFixed(1)} KiB in ${loaded.length} requests`);
      assert.ok(bytes > 10000 && bytes <= kFirstLoadLimit, `${bytes} bytes`);
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
      await page.waitForURL('**/det/experiments');
      await untilText('det experiment create const.yaml .');
      await shot('empty');
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
      await until(() => document.querySelector('.freshness-live') !== null);
      await page.evaluate(() => (window.sameDocument = true));
      const context = cluster.folder('context', {
        'const.yaml': kConfig.replace('HOST_PATH', path.join(cluster.directory, 'checkpoints')),
        'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs')),
      });
      mkdirSync(path.join(cluster.directory, 'checkpoints'));
      await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
      await page.getByRole('link', { name: kProbe }).waitFor({ timeout: 20000 });
      await until(() => document.querySelector('tbody .state')?.textContent === 'Running');
      assert.equal(await page.evaluate(() => window.sameDocument), true);
      assert.deepEqual(await unnamed(), []);
      await shot('list');
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
      await page.getByRole('link', { name: kProbe }).click();
      await page.waitForURL('**/det/experiments/1');
      await untilState('Running');
      assert.equal(await page.textContent('h1'), kProbe);
    },
  ],
  [
    'log lines arrive as they are written',
    async () => {
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
      await until(() => !document.querySelector('.check input').checked);
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
      assert.deepEqual(await unnamed(), []);
      await shot('experiment');
    },
  ],
  [
    'the choice of charts is in the address and survives a reload',
    async () => {
      const chips = page.getByRole('group', { name: 'Metrics shown' });
      await chips.getByRole('button', { name: 'grad_norm' }).click();
      await until(() => document.querySelector('figure[data-panel="grad_norm"]') === null);
      assert.equal(new URL(page.url()).searchParams.get('charts'), 'accuracy,loss');
      await page.reload();
      await page.waitForSelector('figure[data-panel="loss"]');
      assert.equal(await page.$('figure[data-panel="grad_norm"]'), null);
      await page.evaluate(() => (window.sameDocument = true));
    },
  ],
  [
    'the configuration and the hyperparameters are text',
    async () => {
      await page.getByText('Configuration').click();
      assert.match(await page.textContent('.config pre'), /<img src=x/);
      assert.match(await page.textContent('td.hparams'), /learning_rate=0\.1/);
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },
  ],
];

const steering = [
  [
    'Pause pauses',
    async () => {
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
      await page.getByRole('button', { name: 'Kill…' }).press('Enter');
      await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).press('Enter');
      await untilState('Canceled');
      assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0);
    },
  ],
];

const leaving = [
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

try {
  await cluster.startMaster();
  cluster.startAgent();
  await cluster.det([
    'user',
    'login',
    'admin',
    '--password-file',
    path.join(cluster.directory, 'master/admin-password'),
  ]);
  await openBrowser();
  await checks([...signingIn, ...listing, ...looking, ...steering, ...leaving]);
} catch (error) {
  failed++;
  console.log(`FAILED: the cluster starts\n${error.stack ?? error}`);
} finally {
  await browser?.close();
  await cluster.stop(failed > 0);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
