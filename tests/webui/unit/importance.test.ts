// Importance of hyperparameters for a metric.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bestCell, heatMap, importance } from '../../../webui-static/src/charts/importance';
import { dimensions } from '../../../webui-static/src/charts/dimensions';
import type { Trial } from '../../../webui-static/src/wire';

const trials = Array.from({ length: 60 }, (_, n) => {
  const [lr, act, noise] = [n / 60, ['relu', 'tanh'][n % 2] as string, ((n * 7919) % 61) / 61];
  return { id: n, hparams: { lr, act, noise }, searcherMetricValue: 3 * lr + (act === 'relu' ? 0.4 : 0) } as unknown as Trial;
});

test('what the metric follows is important, what it does not is not', () => {
  const found = importance(trials, dimensions(trials));
  assert.deepEqual(found.map((one) => one.name), ['lr', 'act', 'noise']);
  assert.ok((found[0]?.share ?? 0) > 0.8 && (found[2]?.share ?? 1) < 0.1, JSON.stringify(found));
});

test('a number that the metric follows has the values of its best trials, a choice those of few; one without effect has mixed ones', () => {
  const best = (all: Trial[], smallerIsBetter?: boolean) => new Map(importance(all, dimensions(all), smallerIsBetter).map((one) => [one.name, one.best]));
  // The sixth part of `lr` costs as much as another `act`.
  const found = best(trials);
  assert.deepEqual(found.get('lr'), { count: 12, low: 0, high: 15 / 60 });
  assert.deepEqual([found.get('act'), found.get('noise')], [{ count: 12, isMixed: true }, { count: 12, isMixed: true }]);
  assert.deepEqual(best(trials, false).get('lr'), { count: 12, low: 44 / 60, high: 59 / 60 });
  // The best value is in the middle.
  const middle = trials.map((trial) => ({ ...trial, searcherMetricValue: ((trial.hparams as { lr: number }).lr - 0.5) ** 2 }));
  assert.deepEqual(best(middle).get('lr'), { count: 12, low: 24 / 60, high: 35 / 60 });
  assert.equal(best(middle.slice(25, 32)).get('lr')?.count, 3, 'few trials');
  const only = trials.map((trial) => ({ ...trial, searcherMetricValue: (trial.hparams as { act: string }).act === 'relu' ? 1 : 0 }));
  assert.deepEqual(best(only).get('act'), { count: 12, words: ['tanh'] });
});

test('trials without a hyperparameter do not count for its importance; too few with it leave it out', () => {
  const failed = Array.from({ length: 4 }, (_, n) => ({ id: 100 + n, hparams: { lr: 0.5, crashes: n }, searcherMetricValue: -50 }) as unknown as Trial);
  const all = [...trials, ...failed];
  const found = new Map(importance(all, dimensions(all)).map((one) => [one.name, one.share]));
  assert.equal(found.has('crashes'), false);
  assert.ok((found.get('act') ?? 1) < 0.5, `${found.get('act')}`);
});

test('few trials say nothing, equal metrics give no importance', () => {
  assert.deepEqual(importance(trials.slice(0, 3), dimensions(trials)), []);
  const equal = trials.map((trial) => ({ ...trial, searcherMetricValue: 1 }));
  assert.ok(importance(equal, dimensions(equal)).every((one) => one.share === 0));
});

test('a heat map holds each trial once, the highest row on top', () => {
  const all = dimensions(trials);
  const [act, lr] = [all.find((one) => one.name === 'act'), all.find((one) => one.name === 'lr')];
  assert.ok(act && lr);
  const cells = heatMap(trials, act, lr);
  assert.equal(cells.flat().reduce((sum, cell) => sum + cell.count, 0), 60);
  assert.ok((cells[0]?.[0]?.mean ?? 0) > (cells[cells.length - 1]?.[0]?.mean ?? 9));
  const means = cells.flat().flatMap(({ mean }) => mean ?? []);
  assert.equal(bestCell(cells, false)?.mean, Math.max(...means));
  assert.equal(bestCell(cells, true)?.mean, Math.min(...means));
  assert.equal(bestCell([[{ count: 0, mean: undefined }]], true), undefined);
});
