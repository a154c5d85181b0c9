// Shared parts of the browser tests: Debian's chromium, one page, checks that run in order, and accessibility
// audits.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cluster } from './cluster.mjs';

export const here = path.dirname(fileURLToPath(import.meta.url));
const argumentsLeft = process.argv.slice(2);
const shotsAt = argumentsLeft.indexOf('--shots');
const shots = shotsAt < 0 ? undefined : argumentsLeft.splice(shotsAt, 2)[1];
export const build = path.resolve(argumentsLeft[0] ?? path.join(here, '../../build/release'));
// CTest's exit code for "skipped".
const SKIPPED = 77;
if (!existsSync(path.join(build, 'share/det/webui/index.html'))) {
  console.log('skipped: this build has no web UI\n0 passed, 0 failed');
  process.exit(SKIPPED);
}
const packages = createRequire(path.join(build, 'webui/package.json'));
const { chromium } = packages('playwright-core');
const axe = readFileSync(packages.resolve('axe-core/axe.min.js'), 'utf8');

let passed = 0;
let failed = 0;
export const cluster = new Cluster(build);
let browser;
export let page;
export const requests = [];
// Changes that were requested, as { method, path }, and addresses that audit() has checked.
export const changed = [];
export const audited = [];
export const complaints = [];

// Runs one check, named by a sentence. Checks build on each other, so the first failure ends the test.
async function check(sentence, work) {
  const start = performance.now();
  await work();
  passed++;
  console.log(`ok: ${sentence} (${Math.round(performance.now() - start)} ms)`);
}
let failure = '';
function fail(sentence, error) {
  failed++;
  failure = `FAILED: ${sentence}\n${error.stack ?? error}`;
}

async function checks(list) {
  for (const [at, [sentence, work]] of list.entries()) {
    try {
      await check(sentence, work);
    } catch (error) {
      fail(sentence, error);
      if (page)
        console.log(`--- the page at ${page.url()} says:\n${(await page.innerText('body')).slice(0, 3000)}`);
      await shot('failed');
      if (at + 1 < list.length) console.log(`not reached: ${list.length - at - 1} more`);
      return;
    }
  }
}

export const until = (what, argument) => page.waitForFunction(what, argument, { timeout: 20000 });
export const untilText = (text) => page.getByText(text).first().waitFor({ timeout: 20000 });
export async function shot(name, on = page) {
  if (!shots || !on) return;
  mkdirSync(shots, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    await on.emulateMedia({ colorScheme });
    await on.screenshot({ path: path.join(shots, `${name}-${colorScheme}.png`), fullPage: true });
  }
  await on.emulateMedia({ colorScheme: null });
}

export async function signIn(password) {
  await page.getByLabel('User name').fill('admin');
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
}

// The response of a request and the size of its body in bytes. The browser reports no response for the script of a
// shared worker, so it is requested again.
export async function transferred(request) {
  if (/\/events-/.test(request.url())) {
    const response = await page.request.get(request.url());
    return { response, size: Number(response.headers()['content-length']) };
  }
  const response = await request.response();
  return { response, size: response?.status() === 200 ? (await request.sizes()).responseBodySize : 0 };
}

// Records the requests of a browser context.
export function watch(context) {
  context.on('request', (request) => {
    if (request.method() !== 'GET') changed.push({ method: request.method(), path: new URL(request.url()).pathname });
  });
}

async function openBrowser() {
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // Users have the back/forward cache, where a left page may keep its connections.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
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
  watch(page.context());
  page.on('request', (request) => requests.push(request));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
  });
}

// Elements without an accessible name: every control needs a name, every field a label, every table a head.
export const unnamed = (on = page) =>
  on.evaluate(() =>
    [...document.querySelectorAll('button, a[href], input, select, textarea, [role="log"], [role="region"], figure, progress, nav')]
      .filter((element) => !element.closest('dialog:not([open])'))
      .filter(
        (element) =>
          !(element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.length),
      )
      .map((element) => element.outerHTML),
  );

// Number of chart pixels that are neither transparent nor the color of its grid.
export const drawnPixels = (panel) =>
  page.$eval(`figure[data-panel="${panel}"] canvas`, (canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let colored = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [r, g, b, a] = data.slice(at, at + 4);
      if (a > 0 && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored++;
    }
    return colored;
  });

// Visible text with a contrast to its background below WCAG 2.1's 4.5 (3 for large text).
const faint = (on) =>
  on.evaluate(() => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const ink = canvas.getContext('2d', { willReadFrequently: true });
    const rgba = (color) => {
      ink.clearRect(0, 0, 1, 1);
      ink.fillStyle = color;
      ink.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = ink.getImageData(0, 0, 1, 1).data;
      return { r, g, b, a: a / 255 };
    };
    const over = (top, below) => ({
      r: top.r * top.a + below.r * (1 - top.a),
      g: top.g * top.a + below.g * (1 - top.a),
      b: top.b * top.a + below.b * (1 - top.a),
      a: 1,
    });
    const light = ({ r, g, b }) => {
      const part = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = (element) => {
      const layers = [];
      for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
      return layers.reverse().reduce((below, layer) => over(layer, below), { r: 255, g: 255, b: 255, a: 1 });
    };
    const bad = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.textContent.trim() || !element.checkVisibility() || element.closest('button:disabled')) continue;
      if (element.closest('.hidden, .skip, svg, script, style, option')) continue;
      const style = getComputedStyle(element);
      const back = behind(element);
      const [a, b] = [light(over(rgba(style.color), back)), light(back)].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      if (ratio < (large ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} ${node.textContent.trim().slice(0, 40)}`);
    }
    return [...new Set(bad)];
  });

// Violations of WCAG 2.1 A and AA according to axe-core, except contrast, which audit() checks in both
// themes.
async function violations(on) {
  await on.evaluate(axe);
  return on.evaluate(async () => {
    const found = await window.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
      rules: { 'color-contrast': { enabled: false } },
    });
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 200)).join(' | ')}`);
  });
}

// Texts of the transparent buttons of the open dialog.
const unseen = (on) =>
  on.$$eval('dialog[open] button', (all) => all.filter((one) => Number(getComputedStyle(one).opacity) < 0.2).map((one) => one.textContent));

// Accessibility checks of a page: names, axe-core rules, visible buttons, contrast in light and in dark.
export async function audit(name, on = page) {
  assert.deepEqual(await unnamed(on), []);
  assert.deepEqual(await unseen(on), [], `${name}: unseen buttons`);
  assert.deepEqual(await violations(on), [], name);
  for (const colorScheme of ['light', 'dark']) {
    await on.emulateMedia({ colorScheme });
    assert.deepEqual(await faint(on), [], `${name} in ${colorScheme}`);
  }
  await on.emulateMedia({ colorScheme: null });
  audited.push(new URL(on.url()));
  await shot(name, on);
}

// Starts a cluster and a browser, runs the checks, stops everything, and prints the totals.
export async function run(sentences) {
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
    await checks(sentences);
  } catch (error) {
    fail('the cluster starts', error);
  } finally {
    await browser?.close();
    await cluster.stop(failed > 0);
  }
  // Last, because the page and the daemons have printed much since.
  if (failure) console.log(failure);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
