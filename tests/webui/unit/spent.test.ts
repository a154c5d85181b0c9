// Breakdown of a trial's time, and its training speed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAmount, leftByPace, paceText, partsOf, reportsOf, speeds, spentOf, systemRank, systemTitle, unitOf, unitText } from '../../../webui-static/src/charts/spent';
import type { Allocation, MetricSeries } from '../../../webui-static/src/wire';

const START = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString();
const attempt = (run: number, from: number, to?: number): Allocation => ({
  id: String(run),
  run,
  state: '',
  agentId: 'a',
  slots: [0],
  resourcePool: 'default',
  startTime: at(from),
  endTime: to === undefined ? null : at(to),
  exitKind: '',
  exitMessage: '',
});
const reports = (...all: [number, number][]) => all.map(([seconds, batches]) => ({ ms: START + seconds * 1000, batches }));

test('the pace of a trial is the median of its newest reports', () => {
  const series = (group: string, name: string, values: number[], milliseconds: number[]): MetricSeries => ({ trialId: 1, group, name, firstTime: at(0), batches: values.map(() => 10), values, milliseconds });
  const loss = series('training', 'loss', [3, 2, 1, 1], [0, 1000, 1000, 60_000]);
  assert.equal(paceText([loss]), '10 batches/s now');
  const cpu = series('cpu', 'cpu_util_simple', [30, 34, 90], [0, 1, 1]);
  assert.equal(paceText([loss, cpu]), '10 batches/s now · CPU 34%');
  assert.equal(paceText([loss, cpu, series('gpu', 'gpu_util.0', [81, 82.4, 90], [0, 1, 1])]), '10 batches/s now · GPU 82%');
  assert.equal(paceText([series('training', 'loss', [3, 2, 1], [0, 5, 5])]), '2,000 batches/s now');
  assert.equal(paceText([]), '');
  const two = [1, 2].map((trialId) => ({ ...loss, trialId }));
  assert.equal(paceText([...two, cpu]), '20 batches/s now · CPU 34%', 'the sum of two trials');
});

test('the time left of a trial follows its newest pace, and pauses do not count', () => {
  const series = (milliseconds: number[]): MetricSeries => ({ trialId: 1, group: 'validation', name: 'loss', firstTime: at(0), batches: milliseconds.map(() => 10), values: [], milliseconds });
  // A pause of a day, and a slow start.
  const paused = series([0, 60_000, 60_000, 86_400_000, 1000, 1000]);
  assert.equal(leftByPace(0.25, paused), 18);
  assert.deepEqual([leftByPace(0.01, paused), leftByPace(undefined, paused), leftByPace(0.5, series([0, 1000, 1000]))], [undefined, undefined, undefined]);
});

test('time is waiting without a slot, starting until the first report of an attempt, training from there', () => {
  const attempts = [attempt(2, 100), attempt(1, 10, 60)];
  const spent = spentOf(START, attempts, reports([20, 1], [50, 4], [110, 5]), START + 130_000);
  assert.deepEqual(spent, { waiting: 50, starting: 20, training: 60, repeated: 0 });
});

test('an attempt without a report was starting all the time; before the first attempt nothing is told', () => {
  assert.deepEqual(spentOf(START, [attempt(1, 5, 15)], [], START), { waiting: 5, starting: 10, training: 0, repeated: 0 });
  assert.deepEqual(spentOf(START, [], reports([1, 1]), START), { waiting: 0, starting: 0, training: 0, repeated: 0 });
});

test('an earlier attempt without a report was repeated by the next', () => {
  const attempts = [attempt(1, 10, 60), attempt(2, 70)];
  assert.deepEqual(spentOf(START, attempts, reports([80, 5]), START + 100_000), { waiting: 20, starting: 10, training: 20, repeated: 50 });
});

test('parts of a time add up to it, small ones are told as such, and those without time are left out', () => {
  const told = (...[waiting, starting, training, repeated]: [number, number, number, number]): string[][] =>
    partsOf({ waiting, starting, training, repeated }).map(({ key, time, percent }) => [key, time, percent]);
  assert.deepEqual(told(3.6, 0.4, 124.9, 65.6), [
    ['waiting', '4s', '2%'],
    ['starting', '<1s', '<1%'],
    ['training', '2m 05s', '64%'],
    ['repeated', '1m 05s', '34%'],
  ]);
  assert.deepEqual(told(0, 90, 7200, 0), [['starting', '1m 00s', '1%'], ['training', '2h 00m', '99%']]);
  assert.deepEqual(told(0, 12, 7200, 0), [['starting', '12s', '<1%'], ['training', '2h 00m', '100%']]);
  assert.deepEqual(told(0, 0, 0, 0), []);
});

test('reports are read out of a series of differences', () => {
  const series = { trialId: 1, group: 'training', name: 'loss', firstTime: at(3), batches: [10, 5], values: [1, 1], milliseconds: [0, 250] };
  assert.deepEqual(reportsOf(series), [{ ms: START + 3000, batches: 10 }, { ms: START + 3250, batches: 15 }]);
});

test('speed is batches by time between reports, over few stretches; going back to a checkpoint is no speed', () => {
  assert.deepEqual(speeds(reports([0, 0], [1, 10], [2, 30]), 100).map((one) => one.perSecond), [10, 20]);
  const many = reports(...Array.from({ length: 1001 }, (_, n): [number, number] => [n, 4 * n]));
  const few = speeds(many, 10);
  assert.ok(few.length <= 10 && few.every((one) => one.perSecond === 4), JSON.stringify(few));
  assert.deepEqual(speeds(reports([0, 0], [1, 10], [5, 6], [6, 8]), 100).map((one) => one.perSecond), [10, 2]);
  assert.deepEqual(speeds([], 10), []);
});

test('measurements of the machine have units', () => {
  assert.equal(unitText('memory_free', 12e9), '12 GB');
  assert.deepEqual([0, 100, 500e6, 2.09e9].map((value) => unitText('gpu_free_memory.3', value)), ['0 B', '100 B', '500 MB', '2.09 GB']);
  assert.equal(unitText('net_throughput_recv', 1500), '1.5 KB/s');
  assert.equal(unitText('gpu_util.0', 99.5), '99.5%');
  assert.equal(unitText('cpu_util_simple', 12.3456), '12.3%');
  assert.equal(unitText('gpu_power.0', 351.24), '351 W');
  assert.equal(unitText('gpu_temperature.0', 61.7), '61.7 °C');
  assert.deepEqual([0, 999, 2e9, 3e18].map((largest) => unitOf('memory_free', largest)), [[1, ' B'], [1, ' B'], [1e9, ' GB'], [1e15, ' PB']]);
  assert.deepEqual([unitOf('disk_throughput_read', 1e6), unitOf('gpu_power.0', 400), unitOf('loss', 2)], [[1e6, ' MB/s'], [1, ' W'], undefined]);
  assert.equal(unitText('disk_iops', 7), undefined);
  const titles = { 'gpu_util.0': 'GPU 0 use', 'gpu_free_memory.12': 'GPU 12 free memory', 'gpu_power.1': 'GPU 1 power', 'gpu_temperature.1': 'GPU 1 temperature', memory_free: 'Free memory' };
  assert.deepEqual(Object.keys(titles).map(systemTitle), Object.values(titles));
  assert.deepEqual(['gpu_free_memory.0', 'gpu_power.1', 'net_throughput_recv', 'gpu_temperature.0', 'disk_iops'].map(isAmount), [true, true, true, false, false]);
  assert.deepEqual(['own', 'memory_free', 'cpu_util_simple', 'gpu_power.0', 'gpu_util.1'].sort((a, b) => systemRank(a) - systemRank(b)), ['gpu_util.1', 'cpu_util_simple', 'memory_free', 'gpu_power.0', 'own']);
  assert.deepEqual(['own', 'gpu_own.0', 'gpu_util'].map(systemTitle), [undefined, undefined, undefined]);
});
