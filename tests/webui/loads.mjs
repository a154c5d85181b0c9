// Page loads while trials run: shared by the test, which finds loads that hang, and by the benchmark.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cluster, here, page, until } from './driver.mjs';
import { Window } from './tabs.mjs';

export const RUNNING = 8;
// A load that waits for a connection of another page takes longer, until the silence of that page's stream is noticed.
// tests/bench/web.mjs measures how long loads take.
export const HANGS_MS = 40000;
const LOADS = 30;
const TABS = 11;
// An element of a page that shows its data.
const DATA = 'main:has(h1) :is(tbody tr, .agent, .card, .empty)';

const config = () => `name: live
entrypoint: ${process.execPath} script_trial.mjs
hyperparameters: {learning_rate: 0.1}
searcher: {name: single, metric: accuracy, smaller_is_better: false, max_length: {batches: 1000000}}
resources: {slots_per_trial: 1}
max_restarts: 0
checkpoint_storage: {type: shared_fs, host_path: ${path.join(cluster.directory, 'checkpoints')}}
`;

// Creates experiments with one trial each, which runs until the cluster stops.
export async function createTrials(count) {
  mkdirSync(path.join(cluster.directory, 'checkpoints'), { recursive: true });
  const directory = cluster.folder('context', {
    'const.yaml': config(),
    'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs')),
  });
  for (let at = 0; at < count; at++) await cluster.det(['experiment', 'create', 'const.yaml', '.'], directory);
}

// Opens the list and waits until RUNNING trials run. The cluster needs as many slots.
export async function untilAllRun() {
  await page.goto(`${cluster.url}/det/experiments?q=name+%3D+live`);
  await until((count) => [...document.querySelectorAll('tbody :is(.state, .state-icon)')].filter((state) => state.textContent === 'Running').length === count, RUNNING);
}

export const live = (on = page) =>
  on.waitForFunction(() => document.querySelector('.freshness-live') !== null, undefined, { timeout: HANGS_MS });

// Opens a place and returns the milliseconds until its heading and its data are shown.
export async function load(on, place) {
  const begin = performance.now();
  await on.goto(`${cluster.url}/det/${place}`, { waitUntil: 'commit', timeout: HANGS_MS });
  await on.waitForFunction((data) => document.querySelector(data) !== null, DATA, { timeout: HANGS_MS });
  return Math.round(performance.now() - begin);
}

// Returns the milliseconds of each of 30 page loads in one tab; each page is live before the next.
export async function loadsInOneTab() {
  const took = [];
  for (let at = 0; at < LOADS; at++) {
    took.push(await load(page, at % 2 === 0 ? 'cluster' : 'experiments'));
    await live();
  }
  return took;
}

// Returns the milliseconds of the loads of eleven further tabs, each live before the next is opened in front of it.
// Then all become live again when they come to the front, and are closed. The page of the driver, which is always
// visible, is emptied.
export async function loadsOfTabs() {
  const window = await Window.open();
  await page.goto('about:blank');
  const tabs = [];
  const took = [];
  const untilLive = (tab) => tab.waitFor('.freshness-live', HANGS_MS);
  for (let at = 0; at < TABS; at++) {
    const tab = await window.openTab();
    tabs.push(tab);
    const begin = performance.now();
    await tab.goto(`${cluster.url}/det/experiments`);
    await tab.waitFor(DATA, HANGS_MS);
    took.push(Math.round(performance.now() - begin));
    await untilLive(tab);
  }
  assert.deepEqual(await Promise.all(tabs.map((tab) => tab.isVisible())), tabs.map((tab) => tab === tabs.at(-1)));
  for (const tab of tabs) {
    await tab.bringToFront();
    await untilLive(tab);
  }
  for (const tab of [...tabs, window]) await tab.close();
  return took;
}
