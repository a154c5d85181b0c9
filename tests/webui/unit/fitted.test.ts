// Widths of the columns of a run table.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edges, fitted, revealed } from '../../../webui-static/src/workbench/fitted';

const columns = (...widths: [string, number][]) => widths.map(([key, width]) => ({ key, width }));
const widthsIn = (room: number, ...widths: [string, number][]): number[] => fitted(columns(...widths), room).map(({ width }) => width);

test('the name takes the room in which no further column fits', () => {
  assert.deepEqual(widthsIn(500, ['id', 60], ['name', 220], ['state', 120], ['user', 200]), [60, 320, 120, 200]);
  assert.deepEqual(widthsIn(1000, ['id', 60], ['name', 200]), [60, 940]);
});

test('the name is narrower where another column fits then', () => {
  assert.deepEqual(widthsIn(510, ['id', 60], ['name', 240], ['state', 116], ['searcherMetricsVal', 104], ['user', 96]), [60, 230, 116, 104, 96]);
  assert.deepEqual(widthsIn(440, ['id', 60], ['name', 240], ['state', 116], ['searcherMetricsVal', 104]), [60, 264, 116, 104]);
  assert.deepEqual(widthsIn(510, ['id', 60], ['name', 240], ['state', 116], ['user', 104]), [60, 230, 116, 104]);
});

test('beside columns that scroll a name leaves them the room that is kept', () => {
  const sized = (room: number, kept: number, ...widths: [string, number][]): number[] => fitted(columns(...widths), room, kept).map(({ width }) => width);
  assert.deepEqual(sized(480, 180, ['id', 60], ['name', 220], ['searcherMetricsVal', 100], ['user', 120]), [60, 300, 120, 120]);
  assert.deepEqual(sized(480, 180, ['id', 60], ['name', 240], ['searcherMetricsVal', 100]), [60, 320, 100], 'nothing scrolls');
});

test('a table scrolls to edges of columns, and its end is one', () => {
  assert.deepEqual(edges([100, 90, 80], 300), { at: [0], filler: 0 });
  assert.deepEqual(edges([100, 90, 80, 70], 200), { at: [0, 100, 190], filler: 50 });
  const widths = [100, 90, 80, 70];
  assert.equal(revealed(widths, 1, 200, 0), 0, 'in sight');
  assert.equal(revealed(widths, 2, 200, 0), 100);
  assert.equal(revealed(widths, 3, 200, 0), 190);
  assert.equal(revealed(widths, 0, 200, 190), 0);
  assert.equal(revealed([100, 300, 80], 1, 200, 0), 100, 'a column wider than the room: its start');
});

test('without a name the columns after id and state share the room', () => {
  assert.deepEqual(widthsIn(400, ['id', 60], ['state', 100], ['loss', 100], ['lr', 100], ['depth', 100]), [60, 100, 120, 120, 100]);
});

test('a name wider than the room keeps its width', () => {
  assert.deepEqual(widthsIn(100, ['id', 60], ['name', 200]), [60, 200]);
});
