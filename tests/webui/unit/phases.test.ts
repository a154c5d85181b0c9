// Breakdown of a batch's time by phase.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { phasesOf } from '../../../webui-static/src/charts/phases';
import type { MetricSeries } from '../../../webui-static/src/wire';

const series = (name: string, batches: number[], values: (number | string)[]): MetricSeries =>
  ({ trialId: 1, group: 'timing', name, batches, values, firstTime: null, milliseconds: [] }) as unknown as MetricSeries;

test('a report tells of the batches since the one before', () => {
  const found = phasesOf([series('forward', [100, 100, 50], [0.2, 0.1, 0.4]), series('data', [100, 100], [0.1, 0.1])], 10);
  assert.deepEqual(found.names, ['data', 'forward']);
  assert.deepEqual(found.bars.map(({ from, to }) => [from, to]), [[0, 100], [100, 200], [200, 250]]);
  assert.equal(found.bars[2]?.seconds.get('forward'), 0.4);
  assert.equal(found.bars[2]?.seconds.has('data'), false);
  assert.ok(Math.abs(found.perBatch - 70 / 250) < 1e-12);
  assert.ok(Math.abs((found.shares.get('data') ?? 0) - 20 / 70) < 1e-12);
});

test('many reports are joined by their batches, a trial that went on from a checkpoint begins there', () => {
  const found = phasesOf([series('forward', [1100, 100, 100, 200], [1, 2, 3, 6])], 2);
  assert.deepEqual(found.bars.map(({ from, to }) => [from, to]), [[1000, 1200], [1200, 1500]]);
  assert.deepEqual(found.bars.map((bar) => bar.seconds.get('forward')), [1.5, 5]);
});

test('time of a batch that no phase covers is other, by the lower median of the speeds', () => {
  const own = [series('forward', [100, 100], [0.004, 0.004]), series('data', [100, 100], [0.006, 0.006])];
  const speeds = [[50, 40], [100, 0.5], [150, 50], [200, 50]].map(([batches = 0, perSecond = 0]) => ({ batches, perSecond }));
  const found = phasesOf(own, 10, speeds);
  assert.deepEqual(found.names, ['data', 'forward', 'other']);
  assert.deepEqual(found.bars.map((bar) => Number(bar.seconds.get('other')?.toFixed(6))), [0.015, 0.01]);
  assert.ok(Math.abs(found.perBatch - 0.0225) < 1e-12);
  assert.deepEqual(phasesOf(own, 10, [{ batches: 100, perSecond: 99 }]).names, ['data', 'forward']);
});

test('phases come in the order of a batch, unknown ones last, none that took no time; NaN counts for nothing', () => {
  const all = ['other', 'mine', 'optimizer', 'data', 'never'].map((name) => series(name, [10], [name === 'never' ? 0 : 1]));
  assert.deepEqual(phasesOf([...all, series('report', [10], ['NaN'])], 5).names, ['data', 'optimizer', 'other', 'mine']);
  assert.deepEqual(phasesOf([], 5), { names: [], bars: [], shares: new Map(), perBatch: 0 });
});
