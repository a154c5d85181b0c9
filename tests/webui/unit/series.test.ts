// Conversion of metric groups to charts.
import assert from 'node:assert/strict';
import test from 'node:test';
import { areFew, toBands, whole } from '../../../webui-static/src/charts/bands';
import { paleOf, withPale } from '../../../webui-static/src/charts/behind';
import { bestOf, coinciding, isLoud, keyedGroups, lastOf, rateRange, sectionsOf, styleOf } from '../../../webui-static/src/charts/facts';
import { groupNote } from '../../../webui-static/src/charts/Legend';
import { focusOf, steadiness } from '../../../webui-static/src/charts/focus';
import { hoverRows } from '../../../webui-static/src/charts/hover';
import { leadsOf, ledBy, matching, onGrid, panelName, smooth, tickTexts, toPanels, type Axis, type Panel, type Series } from '../../../webui-static/src/charts/series';
import type { MetricSeries } from '../../../webui-static/src/wire';

// Points are [batches, value], one second apart.
const metric = (group: string, name: string, points: [number, number | string][]): MetricSeries => ({
  trialId: 1,
  group,
  name,
  firstTime: '1970-01-01T00:00:10Z',
  batches: points.map(([at], i) => at - (points[i - 1]?.[0] ?? 0)),
  values: points.map(([, value]) => value),
  milliseconds: points.map((_, i) => (i === 0 ? 0 : 1000)),
});
const panelsOf = (metrics: MetricSeries[], axis?: Axis) => toPanels([{ trial: 1, startMs: 0, metrics }], axis);

test('validation_loss of the group validation is the loss', () => {
  assert.equal(panelName('validation', 'validation_loss'), 'loss');
  assert.equal(panelName('validation', 'val_accuracy'), 'accuracy');
  assert.equal(panelName('training', 'validation_loss'), 'validation_loss');
  assert.equal(panelName('disk', 'disk_util'), 'disk_util');
  assert.equal(panelName('validation', 'val_'), 'val_');
});

test('training and validation of one metric share a panel, training first', () => {
  const panels = panelsOf([
    metric('validation', 'accuracy', [[100, 0.5]]),
    metric('validation', 'validation_loss', [[100, 1]]),
    metric('training', 'loss', [
      [50, 2],
      [100, 1.5],
    ]),
  ]);
  assert.deepEqual(panels, [
    {
      name: 'accuracy',
      series: [{ label: 'validation', group: 'validation', trial: 1, place: 0, x: [100], y: [0.5], steps: [100] }],
    },
    {
      name: 'loss',
      series: [
        { label: 'training', group: 'training', trial: 1, place: 0, x: [50, 100], y: [2, 1.5], steps: [50, 100] },
        { label: 'validation (validation_loss)', group: 'validation', trial: 1, place: 0, x: [100], y: [1], steps: [100] },
      ],
    },
  ]);
});

test('of several trials training has charts of its own where validation has one of the same metric', () => {
  const own = [
    metric('training', 'loss', [[50, 2]]),
    metric('training', 'lr', [[50, 0.1]]),
    metric('training', 'epochs', [[50, 1]]),
    metric('validation', 'validation_loss', [[100, 1]]),
    metric('validation', 'epochs', [[100, 2]]),
    metric('gradients', 'loss', [[50, 3]]),
  ];
  const leads = leadsOf(own);
  const panels = toPanels([{ trial: 1, startMs: 0, metrics: own }], 'batches', leads);
  assert.deepEqual(panels.map(({ name, series }) => [name, ...series.map(({ group }) => group)]), [
    ['epochs', 'training', 'validation'],
    ['gradients loss', 'gradients'],
    ['loss', 'validation'],
    ['lr', 'training'],
    ['training loss', 'training'],
  ]);
  // A trial behind the others has not been validated.
  const behind = toPanels([{ trial: 2, startMs: 0, metrics: own.slice(0, 1) }], 'batches', leads);
  assert.deepEqual(behind.map(({ name }) => name), ['training loss']);
  assert.equal(rateRange({ name: 'training lr', series: [1e-1, 1e-4].map((peak, at) => curve(at, 'training', [peak, peak])) })?.[0], 2.5e-5);
});

test('values that are not finite are gaps', () => {
  const panels = panelsOf([
    metric('training', 'loss', [
      [1, 'NaN'],
      [2, '-Infinity'],
      [3, 0],
    ]),
  ]);
  assert.equal(panels.length, 1);
  assert.deepEqual(panels[0]?.series[0]?.y, [null, null, 0]);
});

test('the time axis counts from the start of the trial', () => {
  const panels = panelsOf([metric('training', 'loss', [[1, 3], [5, 2], [9, 1]])], 'time');
  assert.deepEqual(panels[0]?.series[0]?.x, [10, 11, 12]);
});

test('the epoch axis lies between the points where the group told epochs; other groups are left out', () => {
  const panels = panelsOf(
    [
      metric('training', 'epochs', [[10, 1], [30, 2]]),
      metric('training', 'loss', [[5, 9], [10, 3], [20, 2], [30, 1], [40, 0]]),
      metric('validation', 'loss', [[10, 1]]),
    ],
    'epochs',
  );
  const loss = panels.find(({ name }) => name === 'loss');
  assert.equal(loss?.series.length, 1);
  assert.deepEqual(loss?.series[0]?.x, [1, 1.5, 2]);
  assert.deepEqual(loss?.series[0]?.steps, [10, 20, 30]);
});

test('many series share the places of a grid, and none loses a peak', () => {
  const sources = Array.from({ length: 9 }, (_, n) => {
    const x = Array.from({ length: 5000 }, (_, at) => at * (1 + n / 100));
    return { x, y: x.map((_, at) => (at === 1234 ? 50 + n : at === 4321 ? -50 - n : Math.sin(at / 9))) };
  });
  const [places, ...columns] = onGrid(sources, 300);
  assert.ok(places && places.length <= 602);
  assert.ok(places.every((place, at) => at === 0 || (place as number) > (places[at - 1] as number)));
  columns.forEach((column, n) => {
    const values = column.filter((value): value is number => typeof value === 'number');
    assert.equal(column.length, places.length);
    assert.equal(Math.max(...values), 50 + n);
    assert.equal(Math.min(...values), -50 - n);
  });
});

test('a gap of a series stays one on the grid, and one point is enough', () => {
  const [, gap] = onGrid([{ x: [0, 10, 20], y: [1, null, 2] }, { x: [5], y: [7] }], 100);
  assert.deepEqual(gap?.filter((value) => value !== undefined), [1, null, 2]);
  assert.deepEqual(onGrid([{ x: [3], y: [1] }], 10), [[3], [1]]);
});

test('the panel of the objective comes first, also when the panel has its name without the group; parts of a model come last', () => {
  const names = (objective: string | undefined): string[] => ledBy(['a', 'a/norm', 'accuracy', 'loss'].map((name) => ({ name, series: [] })), objective).map(({ name }) => name);
  assert.deepEqual(names('validation_loss'), ['loss', 'a', 'accuracy', 'a/norm']);
  assert.deepEqual(names('accuracy'), ['accuracy', 'a', 'loss', 'a/norm']);
  assert.deepEqual(names(undefined), ['a', 'accuracy', 'loss', 'a/norm']);
  assert.deepEqual(names('unknown'), ['a', 'accuracy', 'loss', 'a/norm']);
});

test('ticks of long axes are thousands and millions, and stay different', () => {
  assert.deepEqual(tickTexts('batches', [2000, 4000, 6000]), ['2,000', '4,000', '6,000']);
  assert.deepEqual(tickTexts('batches', [0, 10000, 20000]), ['0', '10k', '20k']);
  assert.deepEqual(tickTexts('batches', [10000, 10050, 10100]), ['10k', '10.05k', '10.1k']);
  assert.deepEqual(tickTexts('batches', [500000, 1000000, 1500000]), ['500k', '1M', '1.5M']);
  assert.deepEqual(tickTexts('time', [0, 36000]), ['0', '10 h']);
  assert.deepEqual(tickTexts('time', [0, 30, 60, 90]), ['0', '30 s', '60 s', '90 s']);
  assert.deepEqual(tickTexts('time', [60, 120, 180]), ['1 min', '2 min', '3 min']);
  assert.deepEqual(tickTexts('epochs', []), []);
});

test('panels are found by words of their names, in any order and case', () => {
  const panels = ['train/loss', 'val/loss', 'val/Accuracy'].map((name) => ({ name, series: [] }));
  const found = (text: string) => matching(panels, text).map(({ name }) => name);
  assert.deepEqual(found('LOSS'), ['train/loss', 'val/loss']);
  assert.deepEqual(found('acc val'), ['val/Accuracy']);
  assert.deepEqual(found('  val  '), ['val/loss', 'val/Accuracy']);
  assert.deepEqual(found('none'), []);
});

// Facts in the title of a chart.
const curve = (trial: number, group: string, y: (number | null)[]): Series => ({
  label: `trial ${trial}`,
  group,
  trial,
  place: trial,
  x: y.map((_, at) => at),
  y,
  steps: y.map((_, at) => at),
});
const panelOf = (...all: Series[]): Panel => ({ name: 'loss', series: all });

test('training is paler beside validation, and no group is pale alone', () => {
  const both = panelOf(curve(1, 'training', [1]), curve(1, 'validation', [1]), curve(1, 'gradients', [1]));
  assert.deepEqual(['training', 'validation', 'gradients'].map((group) => isLoud(styleOf(both, group))), [false, true, true]);
  assert.ok(styleOf(both, 'gradients').dash);
  assert.equal(groupNote([panelOf({ ...curve(1, 'training', [1]), low: [0], high: [2] })], true), 'thick: mean · thin: single runs');
  assert.equal(groupNote([panelOf({ ...curve(1, 'training', [1]), low: [0], isPartial: true })], false), 'mean ± standard deviation · dashed: not of all runs');
  assert.deepEqual(keyedGroups(both), ['training', 'validation', 'gradients']);
  for (const group of ['training', 'validation', 'gradients'])
    assert.deepEqual(styleOf(panelOf(curve(1, group, [1]), curve(2, group, [1])), group), { width: 1.5, opacity: 1 });
  assert.deepEqual(keyedGroups(panelOf(curve(1, 'training', [1]))), []);
  assert.deepEqual(keyedGroups(panelOf(curve(1, 'validation', [1]))), ['validation']);
});

test('the last and the best value pass over gaps', () => {
  assert.equal(lastOf({ y: [1, 3, null] }), 3);
  assert.equal(lastOf({ y: [null] }), undefined);
  assert.equal(bestOf({ y: [2, null, 1, 3] }, true), 1);
  assert.equal(bestOf({ y: [2, null, 1, 3] }, false), 3);
  assert.equal(bestOf({ y: [] }, true), undefined);
});

test('curves of one group of metrics coincide if one hides the other', () => {
  const same = panelOf(curve(1, 'training', [1, 2, 3]), curve(2, 'training', [1, 2, 3]), curve(3, 'training', [1, 2.5, 3]), curve(1, 'validation', [1, 2, 3]));
  assert.deepEqual(coinciding(same).map((set) => set.map(({ label }) => label)), [['trial 1', 'trial 2']]);
  assert.deepEqual(coinciding(panelOf(curve(1, 'training', [1, 2, 4, 3]), curve(2, 'training', [1, 9, 4, 3]))), []);
  // The second is the beginning of the first, nearly.
  assert.deepEqual(coinciding(panelOf(curve(1, 'training', [1, 2, 4, 3]), curve(2, 'training', [1, 2.001]))).map((set) => set.map(({ label }) => label)), [['trial 1', 'trial 2']]);
  const pairs = [1, 1, 2, 2, 2].map((value, at) => curve(at + 1, 'training', [value, value]));
  assert.deepEqual(coinciding(panelOf(...pairs)).map((set) => set.map(({ trial }) => trial)), [[3, 4, 5], [1, 2]]);
  assert.deepEqual(coinciding(panelOf(curve(1, 'training', [1, 1, 1]), curve(2, 'training', [2, 2, 2]))), []);
  // A logarithmic axis has small values apart that a linear one has on each other.
  const rates = panelOf(...[6e-3, 2.5e-4, 2.3e-4].map((rate, at) => curve(at + 1, 'training', [rate, rate, 0])));
  assert.deepEqual([coinciding(rates).length, coinciding(rates, 1e-4).length], [1, 0]);
});

test('metrics are in sections by the words before the first slash, whatever their digits', () => {
  const named = (name: string): Panel => ({ name, series: [] });
  const all = sectionsOf([named('loss'), named('layer01/norm'), named('layer02/norm'), named('head/bias'), named('accuracy')]);
  assert.deepEqual(
    all.map(({ title, panels }) => [title, panels.map(({ name }) => name)]),
    [['', ['loss', 'accuracy']], ['layer…/', ['layer01/norm', 'layer02/norm']], ['head/', ['head/bias']]],
  );
});

test('a group is drawn as the mean of its runs and a band of one deviation, no further than their values', () => {
  const [own] = toBands(panelOf(curve(1, 'training', [1, 2]), curve(2, 'training', [3, 4]), curve(3, 'training', [2, 9])), () => ({ place: 0, label: 'a' })).series;
  assert.deepEqual(own?.y, [2, 5]);
  assert.deepEqual(own?.low, [1, 2]);
  assert.deepEqual(own?.high, [3, 5 + Math.sqrt(13)]);
  // Not where most of them have ended.
  const [shorter, ...none] = toBands(panelOf(curve(1, 'training', [1, 2, 3]), curve(2, 'training', [3, 4]), curve(3, 'training', [5, 6])), () => ({ place: 0, label: 'a' })).series;
  assert.deepEqual([shorter?.x, shorter?.y], [[0, 1], [3, 4]]);
  assert.equal(none.length, 0);
});

test('the mean of a group goes on as a curve of its own where some of its runs have ended', () => {
  const panel = panelOf(curve(1, 'validation', [1, 2, 3, 5]), curve(2, 'validation', [3, 4, 5, 7]), curve(3, 'validation', [5, 9]));
  const parts = toBands(panel, () => ({ place: 0, label: 'a' })).series;
  assert.deepEqual(parts.map(({ label, y, isPartial }) => [label, y, isPartial]), [
    ['a · validation (3)', [3, 5], undefined],
    ['a, some ended · validation (3)', [null, 4, 6], true],
  ]);
  // The band has no gap between the parts.
  assert.deepEqual([parts[1]?.x[0], parts[1]?.low?.[0], parts[1]?.high?.[0]], [1, parts[0]?.low?.[1], parts[0]?.high?.[1]]);
  const x = [...new Set(parts.flatMap((one) => one.x))];
  const table = parts.map((one) => x.map((at) => one.y[one.x.indexOf(at)]));
  const labels = (at: number): string[] => hoverRows([x, ...table], [at, ...table.map((own) => (own[at] == null ? null : at))], { series: parts }, undefined).map(({ label }) => label);
  assert.deepEqual(labels(1), ['a']);
  assert.deepEqual(labels(2), ['a, some ended']);
  assert.deepEqual(whole(parts).map(({ x, y }) => [x.length, y]), [[4, [3, 5, 4, 6]]]);
  // Of the same runs to its end: each run that leaves a mean makes it jump, which looks like a change of the metric.
  const ending = toBands(panelOf(...[5, 5, 5, 4, 3].map((count, at) => curve(at, 'validation', Array(count).fill(at)))), () => ({ place: 0, label: 'a' })).series;
  assert.deepEqual(ending.map(({ x, y }) => [x, y]), [[[0, 1, 2], [2, 2, 2]], [[2, 3, 4], [null, 1, 1]]]);
});

test('of small groups the runs are drawn, in the color of their group, instead of a band', () => {
  assert.deepEqual([areFew([5, 1]), areFew([5, 6])], [true, false]);
  const panel = panelOf(curve(1, 'validation', [1, 2]), curve(2, 'validation', [3, 4]), curve(3, 'validation', [5, 6]));
  const { series, behind = [] } = toBands(panel, (trial) => ({ place: trial === 3 ? 1 : 0, label: 'a' }), true);
  assert.deepEqual(series.map(({ place, y }) => [place, y]), [[0, [2, 3]], [1, [5, 6]]]);
  assert.ok(series.every(({ low }) => low?.every((value) => value === null)));
  // A run alone is its mean.
  assert.deepEqual(behind.map(({ trial, place }) => [trial, place]), [[1, 0], [2, 0]]);
});

test('curves behind the others are in sight, and smoothed like these', () => {
  const behind = [run(1, [9, null, 7]), run(2, [-1, 0, 1])];
  assert.deepEqual(withPale([2, 3], behind), [-1, 9]);
  assert.deepEqual(withPale([null, null], behind), [-1, 9]);
  assert.deepEqual(withPale([2, 3], []), [2, 3]);
  assert.deepEqual(withPale([2, 3], behind, 0), [1, 9], 'of a logarithmic axis');
  assert.deepEqual(paleOf({ behind }, { smoothing: undefined }), behind);
  assert.deepEqual(paleOf({ behind }, { smoothing: 0.5 })[1]?.y, smooth([-1, 0, 1], 0.5));
});

const run = (trial: number, y: (number | null)[], step = 1): Series => ({ label: '', group: 'training', trial, place: 0, x: y.map((_, at) => at * step), y, steps: y.map((_, at) => at * step) });

test('first values are out of sight, so that the last ones fill a third of the plot, but never a last or a best one', () => {
  const falling = [9, 5, 4, 3.5, 3, 2, 1.5, 1, 0.5, 0.4, 0.2];
  const steep = [20, ...falling.slice(1)];
  const two = (y: number[]): Series[] => [run(1, y), run(2, y)];
  assert.equal(focusOf({ series: [run(1, steep)] }), undefined, 'one run');
  assert.deepEqual(focusOf({ series: two(steep) }), { range: [0.2, 4], beyond: 20 });
  assert.deepEqual(focusOf({ series: two(steep.map((value) => -value)) }), { range: [-4, -0.2], beyond: -20 });
  // Runs whose last values are near each other: up to two tenths.
  const near = falling.map((value) => value + 0.1);
  const found = focusOf({ series: [run(1, falling), run(2, near)] });
  assert.deepEqual([found?.range, found?.beyond], [[0.2, 4.1], 9.1]);
  assert.equal(focusOf({ series: [run(1, [6, ...falling.slice(1)]), run(2, [6, ...near.slice(1)])] }), undefined, 'it would gain little');
  // A run that is at its first part has its later half in sight; only its last value, if nothing would be out of sight then.
  const many = Array.from({ length: 31 }, (_, at) => 1 + 8 * 0.8 ** at);
  assert.equal(focusOf({ series: [run(1, many), run(2, many.map((value) => value + 0.1)), run(3, [9, 8, 7, 6, 5, 4])] })?.range[1], 4);
  assert.equal(focusOf({ series: [run(1, many), run(2, many.map((value) => value + 0.1)), run(3, [9, 7, 5.5, 4.8, 4.3, 4])] })?.range[1], 4.8);
  // Runs with other last values: no more than needed.
  assert.deepEqual(focusOf({ series: [run(1, falling), run(2, [9, 5, 3, 3, 3, 3, 3, 3, 3, 3, 1.8])] }), { range: [0.2, 5], beyond: 9 });
  // A learning rate rises first: its peak is in sight.
  assert.equal(focusOf({ series: [run(1, [0, 9, ...falling.slice(2)]), run(2, [0, 9, ...near.slice(2)])] }), undefined);
  // A short curve ends within the first part.
  assert.deepEqual(focusOf({ series: [run(1, falling, 10), run(2, [6, 4.5])] })?.range[1], 4.5);
  assert.equal(focusOf({ series: two([0, 9, ...Array(9).fill(0.5).map((value, at) => value - at / 100)]) }, false), undefined, 'the best one is the farthest');
  assert.equal(focusOf({ series: two(falling.slice(0, 9)) }), undefined, 'few points');
  // A trial behind the others that was stopped early keeps its end in sight.
  const pair = [run(1, falling), run(2, near)];
  assert.ok((focusOf({ series: pair })?.range[1] ?? 9) < 5);
  assert.ok((focusOf({ series: pair, behind: [run(3, [9, 5], 1)] })?.range[1] ?? 9) >= 5);
  // Not so a group: that of a failed run would keep all others in a narrow strip.
  const means = [run(1, falling, 10), run(2, near, 10), run(3, [9, 8.5])].map((one) => ({ ...one, low: one.y, high: one.y }));
  means.forEach((one, at) => (one.place = at));
  const cropped = focusOf({ series: means }, true);
  assert.ok((cropped?.range[1] ?? 9) < 5);
  assert.deepEqual(cropped?.hidden, [2]);
  assert.equal(focusOf({ series: two([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]) }), undefined, 'the others change as much');
  assert.equal(focusOf({ series: two([9, ...Array(10).fill(1)]) }), undefined, 'the others are one line');
  // Smoothed curves that differ by noise alone: it fills a third of the plot at most.
  const noisy = Array.from({ length: 60 }, (_, at) => 12 * 0.8 ** at + (at % 2));
  const highest = (smoothing: number): string => (focusOf({ series: two(noisy) }, undefined, smoothing)?.range[1] ?? 0).toFixed(1);
  assert.deepEqual([0, 0.7].map(highest), ['1.7', '3.5']);
});

test('curves that change from point to point as much as the runs differ are smoothed, the more points the more', () => {
  const wave = (height: number, middle: number, length = 40): number[] => Array.from({ length }, (_, at) => middle + (at % 2 === 0 ? height : -height));
  assert.equal(steadiness({ series: [run(1, wave(0.5, 1, 60)), run(2, wave(0.5, 1.2, 60))] }), 0.75);
  assert.equal(steadiness({ series: [run(1, wave(0.5, 1, 180)), run(2, wave(0.5, 1.2, 180))] }), 0.9);
  assert.ok(steadiness({ series: [run(1, wave(0.5, 1, 180)), run(2, wave(0.5, 1, 90))] }) > 0.8, 'a shorter run');
  assert.equal(steadiness({ series: [run(1, wave(0.04, 1)), run(2, wave(0.04, 1.2))] }), 0, 'the runs differ more');
  assert.equal(steadiness({ series: [run(1, wave(0.5, 1, 60))] }), 0.75, 'one run');
  assert.equal(steadiness({ series: [run(1, [200, ...wave(0.5, 1, 59)])] }), 0, 'changes that cannot be seen beside the first value of one run');
  assert.equal(steadiness({ series: [run(1, wave(0.5, 1, 60).map((value, at) => value + at))] }), 0, 'the course of one run is much more');
  assert.equal(steadiness({ series: [run(1, wave(0.5, 1, 20))] }), 0, 'few points of one run');
  assert.equal(steadiness({ series: [{ ...run(1, wave(0.5, 1, 60)), group: 'gpu' }] }), 0, 'a measurement of the machine');
  assert.equal(steadiness({ series: [] }), 0);
  assert.equal(steadiness({ series: [run(1, wave(0.5, 1, 20)), run(2, wave(0.5, 1, 20))] }), 0, 'few points');
  assert.equal(steadiness({ series: [run(1, Array(40).fill(1)), run(2, Array(40).fill(1))] }), 0, 'equal ones');
  const falling = (by: number): number[] => Array.from({ length: 60 }, (_, at) => by * Math.cos(at / 40));
  assert.equal(steadiness({ series: [run(1, falling(1)), run(2, falling(1.0001))] }), 0, 'curves that fall together');
  const early = [run(3, wave(0.5, 7, 30)), run(4, wave(0.5, 1, 30))];
  assert.ok(steadiness({ series: [run(1, wave(0.5, 1, 60)), run(2, wave(0.5, 1.2, 60)), ...early] }) > 0, 'runs that began later');
});

test('learning rates whose peaks are wide apart have a logarithmic axis, from below the lowest peak', () => {
  const rates = [run(1, [0, 0.008, 0]), run(2, [0.0001, 0.0004, null])];
  assert.deepEqual(rateRange({ name: 'lr', series: rates }), [0.0001, 0.008]);
  assert.deepEqual(rateRange({ name: 'optimizer/learning_rate', series: rates.slice(0, 1), behind: rates.slice(1) }), [0.0001, 0.008]);
  const band = { low: [0.00001], high: [0.002] };
  assert.equal(rateRange({ name: 'lr', series: [{ ...run(1, [0.001]), ...band }] }), undefined, 'the lower edge of a band');
  assert.deepEqual(rateRange({ name: 'lr', series: [{ ...run(1, [0.001]), ...band }, run(2, [0.0001])] }), [0.000025, 0.002], 'means');
  assert.equal(rateRange({ name: 'lr', series: [run(1, [0.001]), run(2, [0.002])] }), undefined, 'near each other');
  assert.equal(rateRange({ name: 'lr', series: [run(1, [0, 0.001])] }), undefined, 'one run');
  const end = { ...run(1, [1e-6, 0]), isPartial: true };
  assert.equal(rateRange({ name: 'lr', series: [run(1, [0.001]), end, run(2, [0.002])] }), undefined, 'the end of a mean');
  assert.deepEqual(coinciding({ series: [run(1, [0.001, 0.002]), end, run(2, [0.002, 0.001]), { ...end, place: 1 }] }), [], 'ends of means');
  for (const name of ['loss', 'clr', 'lrs']) assert.equal(rateRange({ name, series: rates }), undefined);
});

test('the y axis has the range of the newest panel; a plot is made again when its lines lose their dots', async () => {
  Object.assign(globalThis, { matchMedia: () => ({ matches: false, addEventListener: () => {} }) });
  const { shapeOf } = await import('../../../webui-static/src/charts/MetricChart');
  const { rangeOfY } = await import('../../../webui-static/src/charts/plot');
  const of = (count: number, range?: [number, number]) => {
    const x = Array.from({ length: count }, (_, at) => at);
    const panel: Panel = { name: 'memory_free', range, series: [{ label: '', group: 'memory', trial: 1, place: 0, x, y: x, steps: x }] };
    return { panel, look: { axis: 'time', log: false, smoothing: 0 }, colors: [], zoom: () => {}, focus: undefined, rates: undefined, isBelow: false, pale: [] };
  };
  assert.deepEqual(rangeOfY(false, of(3, [0, 8]), 1, 9), [0, 8]);
  const [low, high] = rangeOfY(false, of(3), 1, 9);
  assert.ok((low ?? 1) < 1 && (high ?? 9) > 9);
  assert.deepEqual(rangeOfY(true, of(3, [0, 8]), 1, 9), [1, 10]);
  const shapes = [1, 2, 8, 9, 10].map((count) => shapeOf(of(count), 'light'));
  assert.deepEqual(shapes.slice(1).map((shape, at) => shape === shapes[at]), [false, true, false, true]);
});
