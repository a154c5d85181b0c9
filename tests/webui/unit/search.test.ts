// What the pictures of a search are made of.
import assert from 'node:assert/strict';
import test from 'node:test';
import { dimensions, position, ranks, rungs } from '../../../webui-static/src/charts/search';
import { smooth, stepsBetween, toPanels } from '../../../webui-static/src/charts/series';
import type { JsonObject, Trial } from '../../../webui-static/src/wire';

const trial = (id: number, hparams: JsonObject, metric?: number, batches = 100, state = 'STATE_COMPLETED'): Trial =>
  ({ id, hparams, searcherMetricValue: metric, totalBatchesProcessed: batches, state }) as unknown as Trial;

test('only hyperparameters that differ are axes; wide positive ranges are logarithmic', () => {
  const trials = [
    trial(1, { lr: 0.001, width: 8, act: 'relu', same: 1 }),
    trial(2, { lr: 1, width: 16, act: 'gelu', same: 1 }),
  ];
  const all = dimensions(trials);
  assert.deepEqual(
    all.map((one) => [one.name, one.kind]),
    [
      ['act', 'words'],
      ['lr', 'log'],
      ['width', 'linear'],
    ],
  );
  const lr = all[1];
  assert.ok(lr && Math.abs(position(lr, trial(3, { lr: Math.sqrt(0.001) })) - 0.5) < 1e-12);
});

test('ranks follow the better direction and leave out trials without a number', () => {
  const trials = [trial(1, {}, 3), trial(2, {}, 1), trial(3, {}), trial(4, {}, 2)];
  assert.deepEqual([...ranks(trials, true)], [
    [2, 0],
    [4, 0.5],
    [1, 1],
  ]);
  assert.equal(ranks(trials, false).get(1), 0);
});

test('rungs are where trials ended', () => {
  const trials = [
    trial(1, {}, 3, 10),
    trial(2, {}, 2, 10),
    trial(3, {}, 1, 40),
    trial(4, {}, 9, 20, 'STATE_RUNNING'),
  ];
  assert.deepEqual(rungs(trials, true), [
    { batches: 10, reached: 4, ended: 2, best: 2 },
    { batches: 40, reached: 1, ended: 1, best: 1 },
  ]);
});

test('smoothing starts at the first value, keeps a constant and leaves gaps', () => {
  assert.deepEqual(smooth([5, 5, null, 5], 0.9), [5, 5, null, 5]);
  const [first, second] = smooth([0, 1], 0.5);
  assert.equal(first, 0);
  assert.ok(Math.abs((second ?? 0) - 2 / 3) < 1e-12);
});

test('on the axis of time a trial starts at zero; a stretch of it is a stretch of batches', () => {
  const loss = {
    trialId: 7,
    group: 'training',
    name: 'loss',
    firstTime: new Date(1001000).toISOString(),
    batches: [10, 10, 10],
    values: [10, 20, 30],
    milliseconds: [0, 1000, 7000],
  };
  const source = { trial: 7, startMs: 1000000, metrics: [loss] };
  const [panel] = toPanels([source], 'time');
  assert.deepEqual(panel?.series[0]?.x, [1, 2, 9]);
  assert.deepEqual(panel && stepsBetween(panel, 0.5, 3), [10, 20]);
  assert.equal(panel && stepsBetween(panel, 3, 4), undefined);
  assert.deepEqual(toPanels([source], 'epochs'), []);
});

test('series of several trials are told by the trial', () => {
  const metrics = [{ trialId: 1, group: 'training', name: 'loss', batches: [1], values: [1], milliseconds: [0] }];
  const [panel] = toPanels([
    { trial: 2, startMs: 0, metrics },
    { trial: 1, startMs: 0, metrics },
  ]);
  assert.deepEqual(
    panel?.series.map((one) => one.label),
    ['trial 2 · training', 'trial 1 · training'],
  );
});
