// Checks of 200 curves with 10,000 reports each: the time to draw them and the time of a frame while the pointer moves.
import assert from 'node:assert/strict';
import { cluster, page, until } from '../driver.mjs';
import { curves, putMany } from '../rows.mjs';

const EXPERIMENT = 700_000;
const TRIALS = 200;
const POINTS = 10_000;
const DRAW_MS = 300;
const FRAME_MS = 16;
const FRAMES = 90;
const TIMES = 5;
// Figures are of an idle machine; a loaded one may take this many times as long before the test fails.
const LOADED = 3;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const address = (more) => `${cluster.url}/det/experiments/${EXPERIMENT}?charts=loss&layout=panels${more}`;

// Milliseconds from a click on "Show all" until the frame after the one in which the chart has more than one series,
// and all of them.
const drawAll = () =>
  page.evaluate(
    (count) =>
      new Promise((resolve) => {
        const start = performance.now();
        let first;
        [...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('Show all')).click();
        const look = () => {
          const label = document.querySelector('figure[data-panel="loss"]')?.ariaLabel ?? '';
          if (/ \d+ series/.test(label)) first ??= performance.now() - start;
          if (label.includes(`${count} series`)) requestAnimationFrame(() => resolve({ first, all: performance.now() - start }));
          else requestAnimationFrame(look);
        };
        look();
      }),
    TRIALS,
  );

// Milliseconds of work per frame while the pointer crosses the chart: handlers, redraw, and the pixels themselves.
const hoverFrames = () =>
  page.evaluate(async (frames) => {
    const over = document.querySelector('figure[data-panel="loss"] .u-over');
    const canvas = document.querySelector('figure[data-panel="loss"] canvas');
    const box = over.getBoundingClientRect();
    const send = (type, x, y) => over.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: box.left + x, clientY: box.top + y, view: window }));
    send('mouseenter', 1, 1);
    const all = [];
    for (let at = 0; at < frames; at++) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const start = performance.now();
      send('mousemove', (box.width * at) / frames, box.height * (0.5 + 0.4 * Math.sin(at / 7)));
      // Two rounds of microtasks: the chart commits in one, the page renders in the other.
      await new Promise((resolve) => queueMicrotask(() => queueMicrotask(resolve)));
      await new Promise((resolve) => setTimeout(resolve, 0));
      canvas.getContext('2d').getImageData(0, 0, 1, 1);
      all.push(performance.now() - start);
    }
    return all;
  }, FRAMES);

export const manyCurves = (figure) => [
  [
    '200 curves of 10,000 reports each are drawn at once',
    async () => {
      putMany(curves(EXPERIMENT, TRIALS, POINTS));
      const [early, all] = [[], []];
      for (let time = 0; time <= TIMES; time++) {
        await page.goto(address(`&drawn=${EXPERIMENT}`));
        await page.waitForSelector('figure[data-panel="loss"] canvas');
        const times = await drawAll();
        early.push(times.first);
        all.push(times.all);
      }
      // The first time the master summarizes two million rows.
      figure('curves_200x10k_first_part_from_click', early[0], 'ms');
      figure('curves_200x10k_first_drawn_from_click', all[0], 'ms');
      const drawn = median(all.slice(1));
      figure('curves_200x10k_drawn_from_click', drawn, `ms (bar ${DRAW_MS})`);
      assert.ok(drawn <= LOADED * DRAW_MS, `${drawn} ms`);
    },
  ],
  [
    'the pointer crosses 200 curves without a slow frame',
    async () => {
      await until((count) => document.querySelector('figure[data-panel="loss"]')?.ariaLabel.includes(`${count} series`), TRIALS);
      // Values are shown and curves dimmed only where the real pointer is.
      await page.hover('figure[data-panel="loss"] .u-over');
      await page.waitForSelector('figure[data-panel="loss"] .hover-values');
      const all = (await hoverFrames()).sort((a, b) => a - b);
      figure('curves_200x10k_hover_frame_median', median(all), `ms (bar ${FRAME_MS})`);
      figure('curves_200x10k_hover_frame_p95', all[Math.floor(all.length * 0.95)], `ms (bar ${FRAME_MS})`);
      assert.ok(median(all) <= LOADED * FRAME_MS, `${median(all)} ms`);
    },
  ],
  [
    'first values far from the others are out of sight until they are asked for; the lower edge of a chart sets the height',
    async () => {
      await page.goto(address(`&drawn=${EXPERIMENT},${EXPERIMENT + 1}`));
      const chart = page.locator('figure[data-panel="loss"]');
      const first = chart.getByRole('button', { name: 'cropped: show all values' });
      assert.match(await first.getAttribute('title'), /^The first values are above the plot, up to 2/);
      await first.click();
      await until(() => location.search.includes('y=all'));
      await first.waitFor({ state: 'detached' });
      const height = async () => (await chart.locator('canvas').boundingBox()).height;
      const usual = await height();
      const edge = chart.getByRole('separator', { name: 'Height of the charts' });
      const box = await edge.boundingBox();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x, y - 64, { steps: 4 });
      await page.mouse.up();
      await until(() => /[?&]height=\d+/.test(location.search));
      assert.equal(await height(), usual - 64);
      await edge.press('ArrowDown');
      await until((most) => document.querySelector('figure[data-panel="loss"] canvas').clientHeight === most, usual - 48);
      await edge.dblclick();
      await until(() => !location.search.includes('height='));
      assert.equal(await height(), usual);
    },
  ],
];
