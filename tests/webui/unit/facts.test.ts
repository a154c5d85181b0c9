// Facts in the title of a chart: line styles, last and best values, coinciding curves, sections of metrics.
import assert from 'node:assert/strict';
import test from 'node:test';
import { toBands } from '../../../webui-static/src/charts/bands';
import { bestOf, coinciding, dashOf, keyedGroups, lastOf, sectionsOf } from '../../../webui-static/src/charts/facts';
import type { Panel, Series } from '../../../webui-static/src/charts/series';

const series = (trial: number, group: string, y: (number | null)[]): Series => ({
  label: `trial ${trial}`,
  group,
  trial,
  place: trial,
  x: y.map((_, at) => at),
  y,
  steps: y.map((_, at) => at),
});
const panel = (...all: Series[]): Panel => ({ name: 'loss', series: all });

test('validation has the same dashes with one trial and with several, and alone', () => {
  const dash = dashOf(panel(series(1, 'validation', [1])), 'validation');
  assert.ok(dash);
  assert.deepEqual(dashOf(panel(series(1, 'training', [1]), series(1, 'validation', [1]), series(2, 'validation', [1])), 'validation'), dash);
  assert.equal(dashOf(panel(series(1, 'training', [1])), 'training'), undefined);
  assert.equal(dashOf(panel(series(1, 'gradients', [1])), 'gradients'), undefined);
  assert.deepEqual(keyedGroups(panel(series(1, 'training', [1]))), []);
  assert.deepEqual(keyedGroups(panel(series(1, 'validation', [1]))), ['validation']);
});

test('the last and the best value pass over gaps', () => {
  assert.equal(lastOf({ y: [1, 3, null] }), 3);
  assert.equal(lastOf({ y: [null] }), undefined);
  assert.equal(bestOf({ y: [2, null, 1, 3] }, true), 1);
  assert.equal(bestOf({ y: [2, null, 1, 3] }, false), 3);
  assert.equal(bestOf({ y: [] }, true), undefined);
});

test('curves coincide that have the same points in one group of metrics', () => {
  const same = panel(series(1, 'training', [1, 2, 3]), series(2, 'training', [1, 2, 3]), series(3, 'training', [1, 2.5, 3]), series(1, 'validation', [1, 2, 3]));
  assert.deepEqual(coinciding(same), ['trial 1', 'trial 2']);
  assert.deepEqual(coinciding(panel(series(1, 'training', [1, 2, 4, 3]), series(2, 'training', [1, 9, 4, 3]))), []);
});

test('metrics are in sections by the words before the first slash, whatever their digits', () => {
  const named = (name: string): Panel => ({ name, series: [] });
  const all = sectionsOf([named('loss'), named('layer01/norm'), named('layer02/norm'), named('head/bias'), named('accuracy')]);
  assert.deepEqual(
    all.map(({ title, panels }) => [title, panels.map(({ name }) => name)]),
    [['', ['loss', 'accuracy']], ['layer…/', ['layer01/norm', 'layer02/norm']], ['head/', ['head/bias']]],
  );
});

test('a group has the mean and the deviation of the last values of its runs, and their curves', () => {
  const grouped = toBands(panel(series(1, 'training', [1, 2]), series(2, 'training', [3, 4, 6])), () => ({ place: 0, label: 'a' }));
  assert.deepEqual(grouped.series[0]?.spread, { count: 2, mean: 4, deviation: Math.sqrt(8) });
  assert.equal(grouped.members?.length, 2);
});
