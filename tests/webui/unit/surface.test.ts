// The surface of a metric over two hyperparameters.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fifths } from '../../../webui-static/src/charts/paint';
import { isoLines, step, surface } from '../../../webui-static/src/charts/surface';
import type { Trial } from '../../../webui-static/src/wire';

// Samples of a plane that rises along x.
const plane = Array.from({ length: 121 }, (_, at) => ({ x: (at % 11) / 10, y: Math.floor(at / 11) / 10, value: (at % 11) / 10 }));

test('the surface follows the samples and is unknown far from all of them', () => {
  const grid = surface(plane, 10, 10);
  assert.ok(Math.abs((grid[5]?.[5] ?? 0) - 0.5) < 1e-9);
  assert.ok((grid[5]?.[8] ?? 0) > (grid[5]?.[5] ?? 0));
  const corner = surface([{ x: 0, y: 0, value: 3 }], 10, 10);
  assert.equal(corner[0]?.[0], 3);
  assert.equal(corner[10]?.[10], undefined);
});

test('a line of equal value crosses the plane where the value is', () => {
  const grid = surface(plane, 20, 20);
  const lines = isoLines(grid, 0.52);
  assert.equal(lines.length, 20);
  for (const { x1, x2 } of lines) for (const x of [x1, x2]) assert.ok(Math.abs(x - 0.52) < 0.02, `${x}`);
  assert.deepEqual(isoLines(grid, 7), []);
});

test('the steps of the surface are those of the colors of trials: fifths of their ranks, from best to worst', () => {
  const trials = (values: readonly number[]): Trial[] => values.map((value, at) => ({ id: at + 1, searcherMetricValue: value }) as Trial);
  assert.deepEqual(fifths(trials([0.6, 0.1, 0.3, 0.2, 0.5, 0.4]), true), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
  assert.deepEqual(fifths(trials([1, 2, 3]), false), [3, 3, 2, 2, 1, 1]);
  assert.deepEqual(fifths(trials([1]), false), []);
  assert.deepEqual([0, 1, 2, 3].map((value) => step(value, [1, 3])), [0, 1, 1, 2]);
});

test('an empty search has an empty surface', () => {
  const grid = surface([], 4, 4);
  assert.ok(grid.flat().every((value) => value === undefined));
});

test('between the corners that were computed the surface is interpolated, and ends where its samples are too far', () => {
  const [all, part] = [surface(plane, 16, 16), surface(plane, 16, 16, 4)];
  assert.equal(part.length, 17);
  for (const at of [0, 4, 8, 16]) assert.ok(Math.abs((part[at]?.[at] ?? NaN) - (all[at]?.[at] ?? NaN)) < 1e-12);
  assert.ok(Math.abs((part[6]?.[6] ?? NaN) - (all[6]?.[6] ?? NaN)) < 0.01);
  // The end is found between the corners, not at one of them.
  const ends = (times: number): number => surface([{ x: 0, y: 0, value: 3 }], 160, 160, times)[0]?.findIndex((value) => value === undefined) ?? -1;
  assert.ok(Math.abs(ends(4) - ends(1)) <= 1, `${ends(4)} ${ends(1)}`);
});
