// Makes docs/images/workbench.png, the picture of the README, from a cluster with generated curves (demo/).
// Usage: node readme_shot.mjs [BUILD_DIR]. Ends with `N passed, N failed`. No suite runs it.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import path from 'node:path';
import { cluster, here, page, run, signIn, until } from './driver.mjs';
import { fill, SLOTS } from './demo/content.mjs';

const PICTURE = path.join(here, '../../docs/images/workbench.png');
const MAX_BYTES = 200 * 1024;
// Epochs that a running experiment has reported before the picture is taken.
const RUNNING_POINTS = 3;

cluster.slots = SLOTS;

await run([
  [
    'the workbench with experiments in every state is the picture of the README',
    async () => {
      await fill(cluster);
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(`${cluster.url}/`);
      await signIn(cluster.password);
      await page.waitForURL('**/det/');
      await page.goto(`${cluster.url}/det/experiments`);
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await until((least) => {
        const running = [...document.querySelectorAll('tbody tr[data-id]')].filter((row) => row.querySelector('.state')?.textContent === 'Running');
        return running.length >= least && running.every((row) => /\d\.\d/.test(row.children[4].textContent));
      }, RUNNING_POINTS);
      await page.reload();
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await until(() => document.querySelector('.freshness-live') !== null);
      await page.screenshot({ path: PICTURE });
      const { size } = statSync(PICTURE);
      console.log(`${PICTURE}: ${(size / 1024).toFixed(0)} KiB`);
      assert.ok(size <= MAX_BYTES, `${size} bytes`);
    },
  ],
]);
