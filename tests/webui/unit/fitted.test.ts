// Widths of the columns of a run table.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitted } from '../../../webui-static/src/workbench/fitted';

const columns = (...widths: [string, number][]) => widths.map(([key, width]) => ({ key, width }));
const widthsIn = (room: number, ...widths: [string, number][]): number[] => fitted(columns(...widths), room).map(({ width }) => width);

test('the name takes the room in which no further column fits', () => {
  assert.deepEqual(widthsIn(500, ['id', 60], ['name', 200], ['state', 120], ['user', 200]), [60, 320, 120, 200]);
  assert.deepEqual(widthsIn(1000, ['id', 60], ['name', 200]), [60, 940]);
});

test('the name is narrower where the metric fits then', () => {
  assert.deepEqual(widthsIn(440, ['id', 60], ['name', 200], ['state', 116], ['searcherMetricsVal', 104], ['user', 96]), [60, 160, 116, 104, 96]);
  assert.deepEqual(widthsIn(400, ['id', 60], ['name', 200], ['state', 116], ['searcherMetricsVal', 104]), [60, 224, 116, 104]);
  assert.deepEqual(widthsIn(400, ['id', 60], ['name', 200], ['state', 116], ['user', 104]), [60, 224, 116, 104]);
});

test('without a name the columns after id and state share the room', () => {
  assert.deepEqual(widthsIn(400, ['id', 60], ['state', 100], ['loss', 100], ['lr', 100], ['depth', 100]), [60, 100, 120, 120, 100]);
});

test('a name wider than the room keeps its width', () => {
  assert.deepEqual(widthsIn(100, ['id', 60], ['name', 200]), [60, 200]);
});
