// The surface of a metric over two hyperparameters.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fifths } from '../../../webui-static/src/charts/paint';
import { finer, isoLines, step, surface } from '../../../webui-static/src/charts/surface';
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

test('a finer grid has the corners of the given one and values between them; unknown corners stay unknown', () => {
  assert.deepEqual(finer([[0, 2], [4, 6]], 2), [[0, 1, 2], [2, 3, 4], [4, 5, 6]]);
  assert.deepEqual(finer([[0, undefined], [4, 6]], 1).flat().filter((value) => value !== undefined), []);
});
