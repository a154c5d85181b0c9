// Checks of the panel "Media" and of the files of a trial; and of 10,000 images over 100 runs: the time to load them
// and the frames while the slider moves.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as zlib from 'node:zlib';
import { audit, cluster, page, shot, until, untilText } from '../driver.mjs';
import { curves, putMany, sql } from '../rows.mjs';
import { PROBE } from './filling.mjs';

const chunk = (type, content) => {
  const body = Buffer.concat([Buffer.from(type), content]);
  const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([size, body, sum]);
};
// Older versions of Node have no crc32.
const crc =
  zlib.crc32 ??
  ((bytes) => {
    let value = ~0;
    for (const byte of bytes) {
      value ^= byte;
      for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
    }
    return ~value >>> 0;
  });

// A gray image of `size` pixels a side with the values of `at(x, y)`.
const png = (size, at) => {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header[8] = 8;
  const rows = Buffer.alloc(size * (size + 1));
  for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) rows[y * (size + 1) + 1 + x] = at(x, y) & 255;
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', header), chunk('IDAT', zlib.deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
};

const folderOf = async (experiment, trial) => {
  const { clusterId } = await (await page.request.get(`${cluster.url}/api/v1/master`)).json();
  const folder = path.join(cluster.directory, 'checkpoints', clusterId, 'media/experiment', String(experiment), 'trial', String(trial));
  mkdirSync(folder, { recursive: true });
  return folder;
};

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

// Stores an entry as the master does.
async function put(trial, name, step, kind, content, fileName, caption = '') {
  const digest = createHash('sha256').update(content).digest('hex');
  writeFileSync(path.join(await folderOf(trial, trial), digest), content);
  sql(`INSERT INTO media (trial_id, name, steps_completed, kind, caption, digest, size, file_name) VALUES
    (${trial}, ${quoted(name)}, ${step}, '${kind}', ${quoted(caption)}, '${digest}', ${Buffer.byteLength(content)}, ${quoted(fileName)})`);
}

const untilBright = (trial, value) =>
  until(
    ([id, wanted]) => document.querySelector(`:is(tr, .media-cards li)[data-trial="${id}"] canvas`)?.getContext('2d').getImageData(0, 0, 1, 1).data[0] === wanted,
    [trial, value],
  );

export const media = [
  [
    'media of two runs are shown at one step, and arrow keys move it',
    async () => {
      for (const trial of [1, 2])
        for (const step of [10, 20]) await put(trial, 'val/digit', step, 'IMAGE', png(4, () => 100 * trial + step), 'image.png', `${PROBE} ${step}`);
      await put(1, 'notes', 10, 'TEXT', `# Head\n\n${PROBE}`, 'text.txt');
      await put(1, 'table', 20, 'TABLE', JSON.stringify({ columns: ['class', PROBE], rows: [['cat', 3]] }), 'table.json');
      await put(2, 'weights', 20, 'HISTOGRAM', JSON.stringify({ edges: [-1, 0, 1], counts: [1, 5] }), 'histogram.json');
      await put(2, 'weights', 30, 'FILE', 'a,b', 'weights.csv');
      // Contents are held back: rows have their heights before.
      let release;
      const held = new Promise((resolve) => (release = resolve));
      await page.route('**/api/v1/media/contents', async (route) => {
        await held;
        await route.continue();
      });
      const place = (kind) => page.locator(`tr[data-trial="1"] ${kind}`).first().evaluate((one) => [one.offsetWidth, one.offsetHeight]);
      await page.goto(`${cluster.url}/det/experiments?panels=media&drawn=1,2&layout=panels`);
      await until(() => document.querySelector('tr[data-trial="1"] .media-blank')?.offsetHeight > 0);
      const reserved = await place('.media-blank');
      await shot('media-reserved');
      release();
      // The newest step; each entry is the newest one that is not later.
      await untilBright(1, 120);
      await untilBright(2, 220);
      await page.unroute('**/api/v1/media/contents');
      assert.deepEqual([reserved, await place('canvas')], [[128, 128], [128, 128]]);
      assert.match(await page.getByRole('link', { name: 'weights.csv (3 B)' }).getAttribute('href'), /^\/trial-files\/2\/media\/weights\/30-[0-9a-f]{64}-weights.csv$/);
      await untilText('cat');
      await audit('media');
      await shot('media');
      const slider = page.getByRole('slider', { name: 'Step' });
      await slider.focus();
      await page.keyboard.press('ArrowLeft');
      await until(() => document.querySelectorAll('.histogram rect').length === 2);
      await page.locator('section.media .table-frame').first().focus();
      await page.keyboard.press('ArrowLeft');
      await untilBright(1, 110);
      await untilBright(2, 210);
      await until(() => location.search.includes('step=10'));
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.textContent('.markdown h1, .markdown h2, .markdown h3'), 'Head');
      // An entry of an earlier step names it, and is pale.
      assert.equal(await page.locator('.media-older').count(), await page.locator('td p', { hasText: 'from step' }).count());
      await page.reload();
      await untilBright(2, 210);
      // On a phone a run has a line of its own with its whole name.
      await page.setViewportSize({ width: 390, height: 844 });
      await page.reload();
      // Images of any number of runs are a wall there.
      await page.locator('.wall li').first().waitFor();
      await page.getByRole('group', { name: 'Form of media' }).getByRole('button', { name: 'Runs' }).click();
      await untilBright(2, 210);
      const names = await page.locator('.media-head a').evaluateAll((all) => all.map((one) => [one.innerText === one.title, one.getBoundingClientRect().right <= innerWidth - 24]));
      assert.deepEqual(names, [[true, true], [true, true]]);
      await audit('phone-media');
      await page.setViewportSize({ width: 1300, height: 900 });
    },
  ],
  [
    'images are a wall by choice: a tile a run, with its step and caption, the other kinds below',
    async () => {
      await page.getByRole('button', { name: 'Wall', exact: true }).click();
      const pixels = (wanted) =>
        until((values) => {
          const canvas = document.querySelector('.wall canvas');
          const tiles = [...document.querySelectorAll('.wall li')];
          return tiles.length === values.length && values.every((value, at) => canvas.getContext('2d').getImageData(tiles[at].offsetLeft, tiles[at].offsetTop, 1, 1).data[0] === value);
        }, wanted);
      await pixels([210, 110]);
      assert.deepEqual(await page.$$eval('.media thead th', (all) => all.map((one) => one.textContent)), ['Run', 'notes', 'table', 'weights']);
      const tile = page.locator('.wall li').last();
      await tile.hover();
      assert.match(await tile.getAttribute('title'), /^(number 1 |renamed <img src=x .*>) · step 10 · <img src=x .*> 10$/);
      await page.getByRole('slider', { name: 'Step' }).focus();
      await page.keyboard.press('ArrowRight');
      await pixels([220, 120]);
      await page.reload();
      await page.locator('.wall li').first().waitFor();
      await audit('media-wall');
      await page.getByRole('button', { name: 'Runs', exact: true }).click();
      await untilBright(1, 120);
      assert.equal(await page.$('.wall'), null);
    },
  ],
  [
    'files of a trial are listed and downloaded as attachments',
    async () => {
      await page.goto(`${cluster.url}/det/trials/2?tab=files`);
      const link = page.getByRole('link', { name: '30-weights.csv' });
      const answer = await page.request.get(cluster.url + (await link.getAttribute('href')));
      assert.equal(await answer.text(), 'a,b');
      assert.match(answer.headers()['content-disposition'], /^attachment; filename="30-[0-9a-f]{64}-weights.csv"$/);
      assert.equal(answer.headers()['content-type'], 'application/octet-stream');
      assert.match(await page.textContent('tr.folder:has-text("media/weights/")'), /2 files, 36 B/);
      await audit('files');
      await shot('files');
    },
  ],
];

const EXPERIMENT = 720_000;
const RUNS = 100;
const STEPS = 100;
const SIZE = 32;
const FRAMES_PER_SECOND = 30;
// Figures are of an idle machine; a loaded one may draw this many times fewer frames before the test fails.
const LOADED = 3;

// The first pixel of a run's image on the wall. Part of the page by an init script.
const wallPixel = (trial) => {
  const tile = document.querySelector(`.wall li[data-trial="${trial}"]`);
  const canvas = tile?.closest('figure').querySelector('canvas');
  if (!tile || canvas.width === 0) return undefined;
  return canvas.getContext('2d').getImageData(tile.offsetLeft, tile.offsetTop, 1, 1).data[0];
};

const untilOnWall = (trial, value) => until(([id, wanted]) => window.wallPixel(id) === wanted, [trial, value]);

// Moves the slider over all steps twice, once a frame, and reads the image of a run after each.
async function slide(figure, name, trial) {
  const { times, late } = await page.evaluate(
    async ([steps, id]) => {
      const slider = document.querySelector('.media-step input');
      const value = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
      const times = [];
      let late = 0;
      for (let at = 0; at < 2 * steps; at++) {
        const begun = performance.now();
        value.call(slider, String(at % steps));
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise((resolve) => requestAnimationFrame(resolve));
        if (window.wallPixel(id) !== (at % steps) + 1) late++;
        times.push(performance.now() - begun);
      }
      return { times, late };
    },
    [STEPS, trial],
  );
  const sorted = times.sort((a, b) => a - b);
  const rate = (1000 * sorted.length) / sorted.reduce((sum, time) => sum + time, 0);
  figure(`media_10k_slider_${name}_frames_per_second`, rate, `(bar ${FRAMES_PER_SECOND})`);
  figure(`media_10k_slider_${name}_frame_p95`, sorted[Math.floor(sorted.length * 0.95)], 'ms');
  assert.ok(late < sorted.length / 10, `${late} of ${sorted.length} steps were drawn late`);
  return rate;
}

export const manyImages = (figure) => [
  [
    '10,000 images of 100 runs are loaded, and the slider moves at 30 frames a second',
    async () => {
      putMany(curves(EXPERIMENT, RUNS, 1));
      const digest = `lpad(to_hex((${EXPERIMENT} + n) * 1000 + s), 64, '0')`;
      sql(`INSERT INTO media (trial_id, name, steps_completed, kind, caption, digest, size, file_name)
        SELECT ${EXPERIMENT} + n, 'digit', s, 'IMAGE', '', ${digest}, 1, 'image.png' FROM generate_series(0, ${RUNS - 1}) n, generate_series(1, ${STEPS}) s`);
      let bytes = 0;
      for (let run = 0; run < RUNS; run++) {
        const folder = await folderOf(EXPERIMENT, EXPERIMENT + run);
        for (let step = 1; step <= STEPS; step++) {
          // The first pixel is the step; the others are noise, which does not compress.
          const image = png(SIZE, (x, y) => (x + y === 0 ? step : Math.imul(x * 7919 + y * 104729 + run * 31 + step, 2654435761) >>> 24));
          bytes += image.length;
          writeFileSync(path.join(folder, ((EXPERIMENT + run) * 1000 + step).toString(16).padStart(64, '0')), image);
        }
      }
      sql(`UPDATE media SET size = ${Math.round(bytes / RUNS / STEPS)} WHERE trial_id >= ${EXPERIMENT}`);
      const drawn = Array.from({ length: RUNS }, (_, run) => EXPERIMENT + run).join();
      await page.addInitScript(`window.wallPixel = ${wallPixel}`);
      const start = performance.now();
      await page.goto(`${cluster.url}/det/experiments/${EXPERIMENT}?panels=media&layout=panels&drawn=${drawn}`);
      await untilOnWall(EXPERIMENT, STEPS);
      figure('media_10k_first_drawn', performance.now() - start, 'ms');
      const last = EXPERIMENT + RUNS - 1;
      await untilOnWall(last, STEPS);
      // The images of all runs are in sight together.
      const box = await page.locator(`.wall li[data-trial="${last}"]`).boundingBox();
      assert.ok(box.y + box.height <= page.viewportSize().height, `${box.y + box.height} px`);
      await page.waitForFunction(() => document.querySelector('section.media')?.ariaBusy === 'false', undefined, { timeout: 120_000 });
      figure('media_10k_all_loaded', performance.now() - start, 'ms');
      const rate = await slide(figure, 'all_runs', last);
      assert.ok(rate >= FRAMES_PER_SECOND / LOADED, `${rate} frames a second`);
    },
  ],
];
