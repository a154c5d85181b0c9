// Makes docs/images/workbench.png, the picture of the README, from a cluster with generated curves (demo/).
// Usage: node readme_shot.mjs [BUILD_DIR]. Ends with `N passed, N failed`. No suite runs it.
// Needs Node 20.15 or newer (crc32).
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import { cluster, here, page, run, signIn, until } from './driver.mjs';
import { fill, SLOTS } from './demo/content.mjs';
import { sql } from './rows.mjs';

const PICTURE = path.join(here, '../../docs/images/workbench.png');
const MAX_BYTES = 200 * 1024;
const WIDTH = 1440;
const HEIGHT = 840; // pixels of the page in the picture
// Running experiments with an accuracy of 0.6 before the picture is taken.
const RUNNING = 3;

// Colors of a PNG file as [red, green, blue, …], decoded by an empty page.
async function pixelsOf(png) {
  const empty = await page.context().newPage();
  const text = await empty.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
    const ink = canvas.getContext('2d');
    ink.drawImage(image, 0, 0);
    const { data: all } = ink.getImageData(0, 0, canvas.width, canvas.height);
    let out = '';
    for (let at = 0; at < all.length; at += 4) out += String.fromCharCode(all[at], all[at + 1], all[at + 2]);
    return btoa(out);
  }, png.toString('base64'));
  await empty.close();
  return Buffer.from(text, 'base64');
}

function chunk(kind, data) {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(data.length);
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([head, body, sum]);
}

// A PNG file with the 256 most frequent colors; other ones become the nearest of them.
function indexed(colors, width, height) {
  const counts = new Map();
  for (let at = 0; at < colors.length; at += 3) {
    const key = colors.readUIntBE(at, 3);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([key]) => key);
  const far = (a, b) => [16, 8, 0].reduce((sum, shift) => sum + (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2, 0);
  const nearest = new Map();
  for (const key of counts.keys())
    nearest.set(key, palette.reduce((best, own, at) => (far(key, own) < far(key, palette[best]) ? at : best), 0));
  const rows = Buffer.alloc(height * (width + 1));
  for (let at = 0; at < width * height; at++)
    rows[at + 1 + Math.floor(at / width)] = nearest.get(colors.readUIntBE(3 * at, 3));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8); // eight bits, palette
  const table = Buffer.alloc(3 * palette.length);
  palette.forEach((key, at) => table.writeUIntBE(key, 3 * at, 3));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const body = deflateSync(rows, { level: 9 });
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', table), chunk('IDAT', body), chunk('IEND', Buffer.alloc(0))]);
}

cluster.slots = SLOTS;

await run([
  [
    'the workbench with experiments in every state is the picture of the README',
    async () => {
      await fill(cluster);
      await page.setViewportSize({ width: WIDTH, height: HEIGHT });
      await page.goto(`${cluster.url}/`);
      await signIn(cluster.password);
      await page.waitForURL('**/det/');
      await page.goto(`${cluster.url}/det/experiments`);
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      // Those that run are to have curves, not points.
      await until((least) => {
        const trained = (row) => row.querySelector('.state-icon')?.textContent === 'Running' && Number(row.querySelector('td.number:not(.small-id)').textContent) >= 0.6;
        return [...document.querySelectorAll('tbody tr[data-id]')].filter(trained).length >= least;
      }, RUNNING);
      // As after some days of work.
      sql("UPDATE experiments SET submitted = submitted - age, ended = ended - age FROM (SELECT id AS of, (21 - id) ^ 2 * interval '7 minutes' AS age FROM experiments) a WHERE id = of AND ended IS NOT NULL");
      await page.reload();
      await page.waitForSelector('figure[data-panel="loss"] canvas');
      await until(() => document.querySelector('.freshness-live') !== null);
      const clip = { x: 0, y: 0, width: WIDTH, height: HEIGHT };
      writeFileSync(PICTURE, indexed(await pixelsOf(await page.screenshot({ clip })), WIDTH, HEIGHT));
      const { size } = statSync(PICTURE);
      console.log(`${PICTURE}: ${(size / 1024).toFixed(0)} KiB`);
      assert.ok(size <= MAX_BYTES, `${size} bytes`);
    },
  ],
]);
