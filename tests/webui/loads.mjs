// Page loads while trials run: shared by the test, which finds loads that hang, and by the benchmark.
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cluster, here, page, until } from './driver.mjs';

export const RUNNING = 8;
// A load that waits for a connection of another page takes longer, until the silence of that page's stream is noticed.
// All tabs of this browser count as visible and draw their charts, without a GPU; tests/bench/web.mjs measures how long
// loads take.
export const HANGS_MS = 40000;
const LOADS = 30;
const TABS = 11;

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
  await on.waitForSelector('main h1', { timeout: HANGS_MS });
  await on.waitForFunction(() => document.querySelector('main tbody tr, main .agent, main .card, main .empty') !== null, undefined, { timeout: HANGS_MS });
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

// Returns the milliseconds of the loads of eleven further tabs. All become live and are closed.
export async function loadsOfTabs() {
  const tabs = await Promise.all(Array.from({ length: TABS }, () => page.context().newPage()));
  const took = [];
  for (const tab of tabs) took.push(await load(tab, 'experiments'));
  await Promise.all(tabs.map((tab) => live(tab)));
  for (const tab of tabs) await tab.close();
  return took;
}
