// Rows of the comparison table.
import assert from 'node:assert/strict';
import test from 'node:test';
import { asChosen, steadilyRanked } from '../../../webui-static/src/compare/order';
import { bestPlace, configSections, metricRow, missingText, objectiveRow, onlyDiffering, rowsOf, sections, leaderText, type Row } from '../../../webui-static/src/compare/rows';
import { withRow, type Subject } from '../../../webui-static/src/compare/subjects';
import { metricColumn, sharedStart } from '../../../webui-static/src/format';
import type { Run } from '../../../webui-static/src/workbench/runs';

const told = ({ cells }: Row): string[] => cells.map(({ text, difference }) => `${text} ${difference}`.trim());

test('a comparison marks the best value unless all are equal', () => {
  assert.equal(bestPlace([0.5, undefined, 0.7], false), 2);
  assert.equal(bestPlace([0.5, undefined, 0.7], true), 0);
  assert.equal(bestPlace([undefined], true), undefined);
  assert.deepEqual(objectiveRow('loss', [0.5, 0.4], true).cells.map(({ isBest, tone }) => [isBest, tone]), [[false, ''], [true, 'better']]);
  assert.deepEqual(objectiveRow('accuracy', [0.5, 0.4], false).cells.map(({ isBest, tone }) => [isBest, tone]), [[true, ''], [false, 'worse']]);
  // Values that read the same are equally good.
  assert.deepEqual(objectiveRow('accuracy', [0.999996, 0.999998, 0.9], false).cells.map(({ text, isBest }) => [text, isBest]), [['0.99999', true], ['0.99999', true], ['0.90000', false]]);
  assert.ok(objectiveRow('loss', [0.5, 0.5000000001], true).cells.every(({ isBest, tone }) => !isBest && tone === ''));
});

test('differences from the first value have its decimal places', () => {
  assert.deepEqual(told(metricRow('loss', [0.5, 0.75, 0.25, undefined])), ['0.50', '0.75 +0.25', '0.25 −0.25', '']);
  assert.deepEqual(told(metricRow('loss', [0.123454, 0.123456])), ['0.12345', '0.12346 +0.00001']);
  assert.deepEqual(told(metricRow('loss', [1e-6, 3e-6])), ['1.000e-6', '3.000e-6 +2e-6']);
  assert.equal(metricRow('loss', [0.7500000001, 0.75]).differs, false);
});

test('a setting that all leave out is unset, a metric that none has reported is not', () => {
  assert.equal(missingText(metricRow('loss', [undefined, undefined])), '–');
  const [shared, own] = [['', ''], ['', '1']].map(([one, other]) => rowsOf([{ a: one ?? '' }, { a: other ?? '' }])[0] as Row);
  assert.deepEqual([shared, own].map((row) => missingText(row as Row)), ['unset', '–']);
});

test('hyperparameters keep their digits; numbers have a difference, other values have none', () => {
  const rows = rowsOf([{ lr: 0.1, act: 'relu', depth: 4, same: 7 }, { lr: 0.30000000000000004, act: 'gelu', depth: 16, same: 7 }, { act: 'relu', same: 7 }]);
  assert.deepEqual(rows.map(({ name, differs }) => [name, differs]), [['act', true], ['depth', true], ['lr', true], ['same', false]]);
  assert.deepEqual(rows.map(told), [['relu', 'gelu', 'relu'], ['4', '16 +12', ''], ['0.1', '0.3 +0.2', ''], ['7', '7', '7']]);
  // With the decimal places of the run table's columns, and a factor where the magnitudes differ.
  assert.deepEqual(rowsOf([{ lr: 0.0003 }, { lr: 0.0040482 }]).map(told), [['0.0003', '0.004048 ×13']]);
  assert.deepEqual(rowsOf([{ lr: 3e-7 }, { lr: 0.0040482 }]).map(told), [['3e-7', '0.0040482 ×13000']]);
  assert.deepEqual(rowsOf([{ lr: 0.1 }, { lr: 0.1000001 }]).map(told), [['0.1', '0.1000001 +1e-7']]);
});

test('settings have no differences, large ones have separators, and objects are sections', () => {
  const all = configSections([{ name: 'a', reproducibility: { seed: 1535000000 }, searcher: { max_length: { batches: 2000000 } } }, { name: 'a', reproducibility: { seed: 7 }, searcher: { max_length: { batches: 1000000 } } }]);
  assert.deepEqual(all.map(({ name, rows }) => [name, rows.map((row) => [row.name, ...told(row)])]), [
    ['', [['name', 'a', 'a']]],
    ['reproducibility', [['seed', '1535000000', '7']]],
    ['searcher', [['max_length.batches', '2,000,000', '1,000,000']]],
  ]);
  assert.deepEqual(rowsOf([{ seed: 1535000000 }, { seed: 7 }]).map(told), [['1535000000', '7']]);
});

const subject = (id: number, metric: number, more: object = {}): Subject =>
  ({
    name: `trial ${id}`,
    path: 'trial',
    experiment: { id: 1, name: 'one', searcherMetric: 'accuracy', searcherType: 'random', state: 'STATE_COMPLETED', ...more },
    trial: {
      id,
      state: 'STATE_COMPLETED',
      searcherMetricValue: metric,
      totalBatchesProcessed: 1000 * id,
      startTime: '2026-01-01T00:00:00Z',
      endTime: `2026-01-01T00:0${id}:05Z`,
      hparams: { lr: id / 10 },
      bestValidation: { metrics: { avgMetrics: { accuracy: metric, loss: 1 - metric } } },
    },
  }) as unknown as Subject;

test('a comparison has sections; only the rows that differ are left on demand', () => {
  const all = sections([subject(1, 0.5), subject(2, 0.75)], false, 0);
  assert.deepEqual(all.map(({ name, rows }) => [name, rows.map((row) => row.name)]), [
    ['Summary', ['State', 'best accuracy', 'Batches', 'Duration', 'Searcher']],
    ['At the best validation', ['loss']],
    ['Hyperparameters', ['lr']],
  ]);
  const left = onlyDiffering(all);
  assert.deepEqual(left.map(({ rows }) => rows.map(told)), [
    [['0.50', '0.75 +0.25'], ['1,000', '2,000 +1,000'], ['1m 05s', '2m 05s +1m 00s']],
    [['0.50', '0.25 −0.25']],
    [['0.1', '0.2 +0.1']],
  ]);
  assert.deepEqual(onlyDiffering(sections([subject(1, 0.5), subject(1, 0.5)], false, 0)), []);
});

test('durations that are nearly equal have no difference', () => {
  const lasting = (...seconds: number[]) => {
    const all = seconds.map((one, at) => {
      const known = subject(at + 1, 0.5);
      const [startTime, endTime] = [new Date(0).toISOString(), new Date(1000 * one).toISOString()];
      return { ...known, experiment: { ...known.experiment, startTime, endTime }, trial: known.trial && { ...known.trial, startTime, endTime } };
    });
    return sections(all, false, 0).flatMap(({ rows }) => rows.filter(({ name }) => name === 'Duration').map((row) => (row.differs ? told(row) : row.cells[0]?.text)));
  };
  assert.deepEqual(lasting(5, 14), [['5s', '14s']], 'less than ten seconds');
  assert.deepEqual(lasting(5, 5.5), ['5s'], 'the same text');
  assert.deepEqual(lasting(17, 18), ['about 17s']);
  assert.deepEqual(lasting(5, 15), [['5s', '15s +10s']]);
  assert.deepEqual(lasting(1000, 1049), ['about 17m'], 'less than a twentieth');
  assert.deepEqual(lasting(1000, 1060), [['16m 40s', '17m 40s +1m 00s']]);
});

test('a comparison of experiments has the training metrics of the run table whose better direction is known', () => {
  const named = (id: number, loss: number): Subject => ({ ...subject(id, 0.5), training: { loss, grad_norm: id } });
  const rows = sections([named(1, 0.5), named(2, 0.25)], false, 0).find(({ name }) => name === 'At the best validation')?.rows ?? [];
  assert.deepEqual(rows.map((row) => [row.name, ...told(row)]), [['loss', '0.5', '0.5'], ['loss (training)', '0.50', '0.25 −0.25']]);
  const row = { kind: 'experiment', experiment: {}, trial: { id: 1 }, training: { loss: 0.5 } } as unknown as Run;
  assert.deepEqual(withRow(subject(1, 0.5), row).training, { loss: 0.5 });
});

test('a comparison has the batch of the best validation, and the last learning rate and norm of gradients', () => {
  const of = (id: number, totalBatches: number, last: object): Subject => {
    const { trial, ...one } = subject(id, 0.5);
    const summaryMetrics = { avg_metrics: Object.fromEntries(Object.entries(last).map(([name, value]) => [name, { last: value, min: 0 }])) };
    return { ...one, trial: { ...trial, bestValidation: { ...trial?.bestValidation, totalBatches }, summaryMetrics } } as Subject;
  };
  const all = [of(1, 800, { lr: 0.25, grad_norm: 2, loss: 1 }), of(2, 1000, { lr: 0.125, loss: 2, 'head/gradient_norm': 3 })];
  const rows = (name: string) => sections(all, false, 0).find((one) => one.name === name)?.rows.map((row) => [row.name, ...told(row)]);
  assert.deepEqual(rows('At the best validation')?.[0], ['Batch', '800', '1,000 +200']);
  assert.deepEqual(rows('At the last report'), [['grad_norm', '2', ''], ['head/gradient_norm', '', '3'], ['lr', '0.250', '0.125 −0.125']]);
  // A row of the table has no batch: that of the same validation is kept.
  const row = (value: number) => ({ kind: 'experiment', experiment: {}, trial: { id: 1, searcherMetricValue: value, bestValidation: { metrics: {}, totalBatches: 0 } } }) as unknown as Run;
  assert.deepEqual([0.5, 0.75].map((value) => withRow(all[0] as Subject, row(value)).trial?.bestValidation?.totalBatches), [800, 0]);
});

test('the first line names the one that leads, by the difference of the shown values', () => {
  assert.equal(leaderText([subject(1, 0.5), subject(2, 0.75)], false), 'Trial 2 has the best accuracy, 0.25 ahead of trial 1');
  assert.equal(leaderText([subject(1, 0.5), subject(2, 0.75)], true), 'Trial 1 has the best accuracy, 0.25 ahead of trial 2');
  assert.equal(leaderText([subject(1, 0.5), subject(2, 0.5)], true), 'Both reach accuracy 0.5');
  assert.equal(leaderText([subject(1, 0.5), subject(2, 0.5, { searcherMetric: 'loss' })], true), '');
  assert.equal(leaderText([subject(1, 0.5), subject(2, 0.75), subject(3, 0.75)], false), 'Trial 2 and trial 3 lead accuracy with 0.75');
  assert.equal(leaderText([{ ...subject(1, 0.5, { bestTrialSearcherMetric: 0.5 }), path: 'experiment' }, { ...subject(2, 0.75, { name: 'two', bestTrialSearcherMetric: 0.75 }), path: 'experiment' }], false), 'two has the best accuracy, 0.25 ahead of one');
  assert.equal(leaderText([subject(1, 0.5)], true), '');
});

test('differences of a loss have a tone', () => {
  const row = sections([subject(1, 0.5), subject(2, 0.75)], false, 0)[1]?.rows[0];
  assert.deepEqual(row?.cells.map(({ tone }) => tone), ['', 'better']);
});

test('a comparison shows the values of the run table, in the format of its column', () => {
  const one = subject(1, 0.5);
  const row = { kind: 'trial', experiment: one.experiment, trial: { ...one.trial, searcherMetricValue: 0.625 } } as unknown as Run;
  const [summary] = sections([withRow(one, row), subject(2, 0.75)], false, 0, metricColumn([0.625, 0.1234]));
  assert.deepEqual(summary?.rows.filter(({ name }) => name === 'best accuracy').map(told), [['0.6250', '0.7500 +0.1250']]);
  // The best trial has changed since: only the values of the experiment are taken.
  const other = withRow({ ...one, path: 'experiment' }, { ...row, kind: 'experiment', trial: { ...one.trial, id: 9 } } as unknown as Run);
  assert.equal(other.trial?.searcherMetricValue, 0.5);
});

test('values of different metrics are named and have no difference', () => {
  const [summary] = sections([subject(1, 0.5), subject(2, 0.75, { searcherMetric: 'loss' })], true, 0);
  const row = summary?.rows.find(({ name }) => name === 'Best metric');
  assert.deepEqual(row && told(row), ['accuracy 0.5', 'loss 0.75']);
});

test('the beginning that all names share is whole words, and leaves something of each', () => {
  assert.equal(sharedStart(['vit_cifar10 lr=0.003 gelu', 'vit_cifar10 lr=0.003 relu', 'vit_cifar10 lr=0.001 gelu']), 'vit_cifar10 ');
  assert.equal(sharedStart(['run one', 'run two']), 'run ');
  assert.equal(sharedStart(['ab 1', 'ab 2']), '');
  assert.equal(sharedStart(['number 1', 'number 1 again']), 'number ');
  assert.equal(sharedStart(['alone in here']), '');
  assert.equal(sharedStart(['some name', 'other name']), '');
  assert.equal(sharedStart([]), '');
});

// Trials by id with their best values, which may be missing.
const runsOf = (values: Record<number, number | undefined>): Run[] =>
  Object.entries(values).map(([id, value]) => ({ kind: 'trial', id: Number(id), trial: { id: Number(id), searcherMetricValue: value } }) as unknown as Run);
const idsOf = (runs: readonly Run[]): number[] => runs.map(({ id }) => id);

test('the best run comes first, and reports do not move columns that are being read', () => {
  const loss = { metric: 'loss', smallerIsBetter: true };
  const first = steadilyRanked([], runsOf({ 1: 0.5, 2: 0.4, 3: undefined }), loss);
  assert.deepEqual(idsOf(first), [2, 1, 3]);
  // The run that had no value takes its place.
  const second = steadilyRanked(first, runsOf({ 1: 0.5, 2: 0.4, 3: 0.45 }), loss);
  assert.deepEqual(idsOf(second), [2, 3, 1]);
  const third = steadilyRanked(second, runsOf({ 1: 0.1, 2: 0.4, 3: 0.2 }), loss);
  assert.deepEqual(third.map(({ id, trial }) => [id, trial?.searcherMetricValue]), [[2, 0.4], [3, 0.2], [1, 0.1]]);
  // Other runs are ranked again.
  assert.deepEqual(idsOf(steadilyRanked(third, runsOf({ 1: 0.1, 3: 0.2 }), loss)), [1, 3]);
  assert.deepEqual(idsOf(steadilyRanked(third, runsOf({ 1: 0.1, 2: 0.4, 4: 0.3 }), { ...loss, smallerIsBetter: false })), [2, 4, 1]);
});

test('a chosen baseline comes before pinned runs, the others keep the order of the table', () =>
  assert.deepEqual(idsOf(asChosen(runsOf({ 1: 0.5, 2: 0.4, 3: 0.3, 4: 0.2 }), [4, 2], 3)), [3, 4, 2, 1]));
