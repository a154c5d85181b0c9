// Figures of the web UI on a real master in a real browser: bytes and paint time of a first visit, long
// series, many curves, zoom, the delay from a reported metric to its drawn point, and page loads while trials run.
// Usage: node tests/bench/web.mjs BUILD_DIR [PART...]. Prints `name value unit bound ok|short`, one figure a
// line.
import { cluster, page, requests, run, signIn, transferred } from '../webui/driver.mjs';
import { createTrials, loadsInOneTab, loadsOfTabs, RUNNING, untilAllRun } from '../webui/loads.mjs';
import { copies, curves, LONG_TRIAL, longTrial, sql } from '../webui/rows.mjs';

const kMany = 10_000;
const kCurves = 700_000;
const kTrials = 100;
const kPoints = 10_000;

const figure = (name, value, unit, bound) =>
  console.log(`${name} ${Number(value.toPrecision(4))} ${unit} <=${bound} ${value <= bound ? 'ok' : 'short'}`);

const experiments = () =>
  copies(
    'experiments',
    { id: '1000 + n', request_id: `''`, name: `'model ' || n`, state: `'COMPLETED'`, ended: 'now()' },
    `generate_series(1, ${kMany}) n`,
  ) +
  copies(
    'trials',
    {
      id: '1000 + n',
      experiment_id: '1000 + n',
      request_id: `'t' || n`,
      task_id: `'task-' || n`,
      state: `'COMPLETED'`,
      best_metric: 'n / 100000.0',
      ended: 'now()',
    },
    `generate_series(1, ${kMany}) n`,
  );

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
async function several(times, work) {
  const all = [];
  for (let i = 0; i < times; i++) all.push(await work());
  return median(all);
}

// Milliseconds from `act` (run in the page) to the first painted frame in which `done` holds.
const untilPainted = (act, done) =>
  page.evaluate(
    ([act, done]) =>
      new Promise((resolve) => {
        const start = performance.now();
        new Function(act)();
        const holds = new Function(`return ${done}`);
        const look = () =>
          holds() ? requestAnimationFrame(() => resolve(performance.now() - start)) : requestAnimationFrame(look);
        look();
      }),
    [act, done],
  );

const put = (text) => {
  sql(text);
  sql('VACUUM ANALYZE');
};

async function firstLoad() {
  requests.length = 0;
  await page.goto(`${cluster.url}/`);
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  let bytes = 0;
  for (const request of requests.filter((one) => /\/det\//.test(one.url()))) {
    bytes += (await transferred(request)).size;
  }
  figure('web_first_load', bytes / 1024, 'KiB', 150);
  await signIn(cluster.password);
  await page.waitForURL('**/det/');
}

async function firstPaint() {
  put(experiments());
  const ms = await several(5, async () => {
    await page.goto('about:blank');
    await page.goto(`${cluster.url}/det/experiments`, { waitUntil: 'commit' });
    return page.evaluate(
      () =>
        new Promise((resolve) => {
          const look = () =>
            document.querySelectorAll('tbody tr[data-id]').length > 10
              ? requestAnimationFrame(() => resolve(performance.now()))
              : requestAnimationFrame(look);
          look();
        }),
    );
  });
  figure('web_first_paint_10k_experiments', ms, 'ms', 250);
}

async function longSeries() {
  put(longTrial());
  const address = `${cluster.url}/api/v1/trials/metric-series?trialIds=${LONG_TRIAL}&maxDatapoints=1200`;
  let bytes = 0;
  const ask = async () => {
    const start = performance.now();
    const response = await page.request.get(address, { headers: { 'Accept-Encoding': 'gzip' } });
    bytes = (await response.body()).length;
    return performance.now() - start;
  };
  figure('web_series_1m_first_answer', await ask(), 'ms', 5000);
  figure('web_series_1m_answer', await several(9, ask), 'ms', 10);
  figure('web_series_1m_bytes', bytes / 1024, 'KiB', 32);
  // The series read above has been packed meanwhile, like reported ones. A restarted master has only the
  // packed rows.
  const packed = `SELECT count(*) FROM metric_chunks WHERE trial_id = ${LONG_TRIAL}`;
  for (const end = Date.now() + 60_000; Number(sql(packed)) < 61 && Date.now() < end; )
    await new Promise((resolve) => setTimeout(resolve, 200));
  // A master accepts only trials that its search created, so this trial moves to an ended experiment.
  put(
    copies('experiments', { id: `${LONG_TRIAL}`, request_id: `''`, state: `'COMPLETED'`, ended: 'now()' }, 'generate_series(1, 1) n') +
      `UPDATE trials SET experiment_id = ${LONG_TRIAL} WHERE id = ${LONG_TRIAL};`,
  );
  const closer = async () => {
    const start = performance.now();
    const response = await page.request.get(`${address}&startBatches=400000&endBatches=500000`);
    await response.body();
    return performance.now() - start;
  };
  const firsts = { whole: [], closer: [] };
  for (let i = 0; i < 3; i++) {
    await cluster.killMaster();
    await cluster.startMaster();
    // The first call also opens connections.
    await page.request.get(`${cluster.url}/api/v1/trials/metric-series?trialIds=1&maxDatapoints=10`);
    firsts.whole.push(await ask());
    firsts.closer.push(await closer());
  }
  figure('web_series_1m_first_answer_of_a_master', median(firsts.whole), 'ms', 10);
  figure('web_series_1m_first_closer_look', median(firsts.closer), 'ms', 100);
  await page.goto(`${cluster.url}/det/trials/${LONG_TRIAL}?tab=log`);
  await page.waitForSelector('.tabs');
  const canvas = `document.querySelector('figure[data-panel="loss"] canvas')`;
  const drawn = await untilPainted(`document.querySelector('.tabs a').click()`, canvas);
  figure('web_series_1m_drawn_from_click', drawn, 'ms', 100);
  const zoom = await several(3, async () => {
    const box = await page.locator('figure[data-panel="loss"] .u-over').boundingBox();
    const before = await page.getAttribute('figure[data-panel="loss"]', 'data-range');
    // Set up before the mouse button is released: a later request may come too late.
    await page.evaluate((was) => {
      window.closer = new Promise((resolve, reject) => {
        setTimeout(() => reject(new Error('no closer look within 10 s')), 10000);
        let start = 0;
        document.addEventListener('mouseup', () => (start = performance.now()), { capture: true, once: true });
        const look = () => {
          const range = document.querySelector('figure[data-panel="loss"]')?.dataset.range;
          if (start > 0 && range !== undefined && range !== was)
            requestAnimationFrame(() => resolve(performance.now() - start));
          else requestAnimationFrame(look);
        };
        look();
      });
    }, before);
    await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 3 });
    await page.mouse.up();
    const ms = await page.evaluate(() => window.closer);
    await page.getByRole('button', { name: 'Whole range' }).click();
    await page.waitForFunction((was) => document.querySelector('figure[data-panel="loss"]')?.dataset.range === was, before);
    return ms;
  });
  figure('web_zoom', zoom, 'ms', 100);
}

async function manyCurves() {
  put(curves(kCurves, kTrials, kPoints));
  const all = Array.from({ length: kTrials }, (_, n) => kCurves + n);
  const ask = async () => {
    const start = performance.now();
    const response = await page.request.get(
      `${cluster.url}/api/v1/trials/metric-series?trialIds=${all.join('&trialIds=')}&maxDatapoints=120`,
    );
    await response.body();
    return performance.now() - start;
  };
  figure('web_100x10k_first_answer', await ask(), 'ms', 5000);
  figure('web_100x10k_answer', await several(5, ask), 'ms', 250);
  const ms = await several(3, async () => {
    await page.goto(`${cluster.url}/det/experiments/${kCurves}?layout=panels&drawn=${kCurves}`);
    await page.waitForSelector('figure[data-panel="loss"] canvas');
    return untilPainted(
      `[...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('Show all')).click()`,
      `document.querySelector('figure[data-panel="loss"]')?.ariaLabel.includes('100 series')`,
    );
  });
  figure('web_100x10k_drawn_from_click', ms, 'ms', 500);
}

// The trial writes `step N` and reports it at the same time. The chart's label names the newest batch.
async function freshness() {
  await page.goto(`${cluster.url}/det/trials/1?charts=grad_norm`);
  await page.waitForSelector('figure[data-panel="grad_norm"] canvas');
  const ms = await several(15, async () => {
    const found = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const label = () => document.querySelector('figure[data-panel="grad_norm"]')?.ariaLabel ?? '';
          const was = label();
          const look = () =>
            label() === was
              ? requestAnimationFrame(look)
              : requestAnimationFrame(() => resolve([Date.now(), Number(label().match(/batch (\d+)$/)?.[1])]));
          look();
        }),
    );
    const [at, batch] = found;
    const reported = Number(
      sql(`SELECT extract(epoch FROM reported) * 1000 FROM metrics WHERE trial_id = 1 AND grp = 'training' AND steps_completed = ${batch}`),
    );
    return at - reported;
  });
  figure('web_reported_to_drawn', ms, 'ms', 1000);
}

async function loads() {
  await createTrials(RUNNING - 1);
  await untilAllRun();
  figure('web_slowest_of_30_loads', Math.max(...(await loadsInOneTab())), 'ms', 1000);
  figure('web_slowest_of_11_tabs', Math.max(...(await loadsOfTabs())), 'ms', 1000);
}

cluster.slots = RUNNING;
const parts = process.argv.slice(3);
const kParts = [
  ['paint', firstPaint],
  ['long', longSeries],
  ['curves', manyCurves],
  ['fresh', freshness],
  ['loads', loads],
];
await run([
  ['an experiment is created', () => createTrials(1)],
  ['first load', firstLoad],
  ...kParts.filter(([name]) => parts.length === 0 || parts.includes(name)),
]);
