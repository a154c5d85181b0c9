// The surface of a metric over two hyperparameters.
import assert from 'node:assert/strict';
import test from 'node:test';
import { ranks } from '../../../webui-static/src/charts/dimensions';
import { fifths, shade, shadesOf } from '../../../webui-static/src/charts/paint';
import { isoLines, step, surface, unknownParts } from '../../../webui-static/src/charts/surface';
import type { Trial } from '../../../webui-static/src/wire';

// Samples of a plane that rises along x.
const plane = Array.from({ length: 121 }, (_, at) => ({ x: (at % 11) / 10, y: Math.floor(at / 11) / 10, value: (at % 11) / 10 }));

// The area of a polygon.
const areaOf = (corners: readonly (readonly [number, number])[]): number =>
  Math.abs(corners.reduce((sum, [x, y], at) => sum + x * (corners[(at + 1) % corners.length]?.[1] ?? 0) - y * (corners[(at + 1) % corners.length]?.[0] ?? 0), 0)) / 2;
const unknownArea = (...of: Parameters<typeof surface>): number => unknownParts(surface(...of)).reduce((sum, part) => sum + areaOf(part), 0);

test('the surface follows the samples and is unknown far from all of them', () => {
  const { values } = surface(plane, 10, 10);
  assert.ok(Math.abs((values[5]?.[5] ?? 0) - 0.5) < 1e-9);
  assert.ok((values[5]?.[8] ?? 0) > (values[5]?.[5] ?? 0));
  assert.equal(unknownArea(plane, 10, 10), 0);
  assert.equal(surface([{ x: 0.5, y: 0.5, value: 3 }], 10, 10).values[5]?.[5], 3);
  // One sample is known within a circle, whose edge does not have the steps of the grid.
  const radius = 0.09 * Math.sqrt(-2 * Math.log(0.3));
  for (const cells of [40, 160]) {
    const known = 1 - unknownArea([{ x: 0.5, y: 0.5, value: 3 }], cells, cells);
    assert.ok(Math.abs(known / (Math.PI * radius ** 2) - 1) < 0.03, `${known}`);
  }
});

test('a line of equal value crosses the plane where the value is', () => {
  const { values } = surface(plane, 20, 20);
  const lines = isoLines(values, 0.52);
  assert.equal(lines.length, 20);
  for (const { x1, x2 } of lines) for (const x of [x1, x2]) assert.ok(Math.abs(x - 0.52) < 0.02, `${x}`);
  assert.deepEqual(isoLines(values, 7), []);
});

test('the steps of the surface are those of the colors of trials: fifths of their ranks, from best to worst', () => {
  const trials = (values: readonly number[]): Trial[] => values.map((value, at) => ({ id: at + 1, searcherMetricValue: value }) as Trial);
  assert.deepEqual(fifths(trials([0.6, 0.1, 0.3, 0.2, 0.5, 0.4]), true).map((value) => Number(value.toFixed(9))), [0.1, 0.15, 0.25, 0.35, 0.45, 0.6]);
  assert.deepEqual(fifths(trials([1, 2, 3]), false), [3, 2.5, 2.5, 1.5, 1.5, 1]);
  assert.deepEqual(fifths(trials([1]), false), []);
  // A cell of one trial has the color of that trial.
  for (const count of [2, 3, 6, 24, 25, 64])
    for (const smallerIsBetter of [true, false]) {
      const all = trials(Array.from({ length: count }, (_, at) => at * at));
      const [rank, shadeOf] = [ranks(all, smallerIsBetter), shadesOf(all, smallerIsBetter)];
      for (const { id, searcherMetricValue } of all) assert.equal(shadeOf(Number(searcherMetricValue)), shade(rank.get(id)), `${id} of ${count}`);
    }
  assert.deepEqual([0, 1, 2, 3].map((value) => step(value, [1, 3])), [0, 1, 1, 2]);
});

test('an empty search has an empty surface', () => {
  assert.ok(surface([], 4, 4).values.flat().every((value) => value === 0));
  assert.equal(unknownArea([], 4, 4), 1);
});

test('between the corners that were computed the surface is interpolated, and ends where its samples are too far', () => {
  const [{ values: all }, { values: part }] = [surface(plane, 16, 16), surface(plane, 16, 16, 4)];
  assert.equal(part.length, 17);
  for (const at of [0, 4, 8, 16]) assert.ok(Math.abs((part[at]?.[at] ?? NaN) - (all[at]?.[at] ?? NaN)) < 1e-12);
  assert.ok(Math.abs((part[6]?.[6] ?? NaN) - (all[6]?.[6] ?? NaN)) < 0.01);
  // The end is found between the corners, not at one of them.
  const ends = (times: number): number => unknownArea([{ x: 0, y: 0, value: 3 }], 160, 160, times);
  assert.ok(Math.abs(ends(4) - ends(1)) <= 0.002, `${ends(4)} ${ends(1)}`);
});
