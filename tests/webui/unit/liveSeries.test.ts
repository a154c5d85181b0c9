// Series of running trials: points that are added, and events during a load.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Held, lastBatch, merge, requestsOf } from '../../../webui-static/src/charts/liveSeries';
import type { MetricSeries } from '../../../webui-static/src/wire';

const series = (name: string, firstMs: number, batches: number[], milliseconds: number[]): MetricSeries => ({
  trialId: 1,
  group: 'training',
  name,
  firstTime: new Date(firstMs).toISOString(),
  batches,
  values: batches.map((_, at) => at),
  milliseconds,
});

test('later points follow with differences to the last known one', () => {
  const [merged] = merge([series('loss', 1000, [10, 10], [0, 500])], [series('loss', 3000, [30, 10], [0, 700])]);
  assert.deepEqual(merged?.batches, [10, 10, 10, 10]);
  assert.deepEqual(merged?.milliseconds, [0, 500, 1500, 700]);
  assert.deepEqual(merged?.values, [0, 1, 0, 1]);
  assert.equal(merged && lastBatch([merged], 1, 'training'), 40);
});

test('a new metric becomes a series, a series without news stays as it is', () => {
  const loss = series('loss', 1000, [10], [0]);
  const merged = merge([loss], [series('accuracy', 2000, [20], [0]), series('empty', 0, [], [])]);
  assert.deepEqual(merged.map(({ name }) => name), ['loss', 'accuracy']);
  assert.equal(merged[0], loss);
  assert.equal(lastBatch([], 1, 'training'), 0);
});

test('points that a series has already are not added again', () => {
  const older = series('loss', 1000, [10, 10], [0, 500]);
  const [merged] = merge([older], [series('loss', 1000, [10, 10, 10], [0, 500, 300])]);
  assert.deepEqual(merged?.batches, [10, 10, 10]);
  assert.deepEqual(merged?.milliseconds, [0, 500, 300]);
  assert.deepEqual(merged?.values, [0, 1, 2]);
  assert.equal(merge([older], [series('loss', 1000, [10, 10], [0, 500])])[0], older);
});

test('new points of several trials are requested once for each group', () => {
  const of = (trialId: number, group: string, batches: number[]): MetricSeries => ({ ...series('loss', 0, batches, batches), trialId, group });
  const data = [of(1, 'training', [10, 10]), of(2, 'training', [15]), of(1, 'validation', [5])];
  const stale = new Map([
    ['training', new Set([2, 1])],
    ['validation', new Set([1])],
  ]);
  assert.deepEqual(requestsOf(stale, data), [
    { group: 'training', trialIds: [1, 2], from: 16 },
    { group: 'validation', trialIds: [1], from: 6 },
  ]);
});

const points = (trialId: number) => ({ kind: 'metrics', trialId, group: 'training' }) as const;
const removed = (trialId: number) => ({ kind: 'metrics', trialId }) as const;

test('trials that are outdated during a load are loaded again', () => {
  const held = new Held('');
  held.begin([1, 2, 3]);
  held.outdate(removed(2));
  held.end([]);
  assert.deepEqual([...held.trials], [1, 3]);
  held.begin([1, 2, 3]);
  held.outdate('everything');
  held.end([]);
  assert.equal(held.trials.size, 0);
});

test('new points are requested until a load has ended, also after an abort', () => {
  const held = new Held('');
  held.begin([1, 2]);
  held.end([]);
  held.outdate(points(1));
  held.begin([1, 2]);
  held.outdate(points(2));
  // The load before was aborted.
  assert.deepEqual(held.begin([1, 2]), new Map([['training', new Set([1, 2])]]));
  held.outdate(points(2));
  held.end([]);
  assert.deepEqual([...held.trials], [1, 2]);
  assert.deepEqual(held.begin([1, 2]), new Map([['training', new Set([2])]]));
});

test('a trial is loaded as a whole after a report between its points, but not after the event of a known point', () => {
  const held = new Held('');
  held.begin([1, 2]);
  held.end([series('loss', 0, [10, 10, 980], [0, 1, 1])]);
  const report = (batches: number) => held.outdate({ kind: 'metrics', trialId: 1, group: 'training', batches });
  for (const batches of [10, 20, 1000, 1010]) report(batches);
  assert.deepEqual([...held.trials], [1, 2]);
  held.begin([1, 2]);
  report(30);
  assert.deepEqual([...held.trials], [2]);
  held.end([]);
  assert.deepEqual([...held.trials], [2], 'the load had begun before the report');
});

test('a trial without events for a while is loaded as a whole', () => {
  const held = new Held('');
  held.begin([1, 2]);
  held.end([]);
  held.begin([1]);
  held.begin([1, 2]);
  assert.deepEqual([...held.trials], [1]);
});
