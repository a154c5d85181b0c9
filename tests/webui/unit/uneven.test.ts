// A GPU that is used unlike the others.
import assert from 'node:assert/strict';
import test from 'node:test';
import { unevenGpu, unevenText } from '../../../webui-static/src/charts/uneven';
import type { MetricSeries } from '../../../webui-static/src/wire';

const gpu = (index: number, values: MetricSeries['values'], group = 'gpu'): MetricSeries =>
  ({ trialId: 1, group, name: `gpu_util.${index}`, batches: values.map(() => 1), values, milliseconds: values.map(() => 1000) }) as MetricSeries;

test('the rank that the others wait for, and the one that waits, are named with both utilizations', () => {
  const busy = unevenGpu([gpu(0, [40, 44]), gpu(1, [99, 97]), gpu(2, [42, 42])]);
  assert.deepEqual(busy, { gpu: 1, own: 98, others: 42 });
  assert.match(busy ? unevenText(busy) : '', /^GPU 1 is much busier than the others \(98% vs 42%\). They may wait/);
  const idle = unevenGpu([gpu(0, [90]), gpu(1, [30]), gpu(2, [90])]);
  assert.match(idle ? unevenText(idle) : '', /^GPU 1 is much less busy than the others \(30% vs 90%\). It may wait for data/);
});

test('even GPUs, a single one, other metrics and values that are no numbers name none', () => {
  assert.equal(unevenGpu([gpu(0, [90]), gpu(1, [75])]), undefined);
  assert.equal(unevenGpu([gpu(0, [90])]), undefined);
  assert.equal(unevenGpu([gpu(0, [90]), gpu(1, [10], 'cpu')]), undefined);
  assert.equal(unevenGpu([gpu(0, [90]), gpu(1, ['NaN'])]), undefined);
  assert.equal(unevenGpu([]), undefined);
});

test('only the newest reports count', () => {
  const early = Array.from({ length: 200 }, (_, at) => (at < 100 ? 0 : 90));
  assert.equal(unevenGpu([gpu(0, early), gpu(1, early.map(() => 90))]), undefined);
});
