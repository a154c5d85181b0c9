// Values at the pointer of a chart.
import assert from 'node:assert/strict';
import test from 'node:test';
import { hoverRows, nearest, placed } from '../../../webui-static/src/charts/hover';
import { faint } from '../../../webui-static/src/colors';

test('the nearest value is searched in x on both sides', () => {
  const x = [0, 1, 8, 10];
  assert.equal(nearest(x, [5, undefined, undefined, 7], 1), 0);
  assert.equal(nearest(x, [5, undefined, undefined, 7], 2), 3);
  assert.equal(nearest(x, [5, 6, null, 7], 1), 1);
});

test('a series has no value before its first and after its last point', () => {
  const x = [0, 1, 2, 3];
  assert.equal(nearest(x, [5, 6, undefined, undefined], 3), null);
  assert.equal(nearest(x, [undefined, undefined, 5, 6], 0), null);
  assert.equal(nearest(x, [], 0), null);
});

const panel = (count: number) => ({
  series: Array.from({ length: count }, (_, at) => ({ label: `s${at}` })) as never[],
});

test('the rows at the pointer are ordered by value, without series that have none', () => {
  const data = [[0, 1], [1, 2], [3, 4], [9, 9]];
  assert.deepEqual(
    hoverRows(data, [1, 1, 1, null], panel(3), undefined).map(({ label, value, raw }) => [label, value, raw]),
    [
      ['s1', 4, undefined],
      ['s0', 2, undefined],
    ],
  );
});

test('with smoothing a row has the raw value beside the smoothed one', () => {
  assert.deepEqual(hoverRows([[0], [1], [5]], [0, 0, null], panel(1), undefined), [
    { at: 0, label: 's0', value: 1, raw: 5 },
  ]);
});

test('of many rows the ones around the focused series are kept', () => {
  const data = [[0], ...Array.from({ length: 50 }, (_, at) => [100 - at])];
  const rows = hoverRows(data, Array.from({ length: 51 }, () => 0), panel(50), 30);
  assert.equal(rows.length, 12);
  assert.ok(rows.some(({ at }) => at === 30));
  assert.equal(hoverRows(data, Array.from({ length: 51 }, () => 0), panel(50), undefined)[0]?.at, 0);
});

test('both forms of color become transparent', () => {
  assert.equal(faint('rgb(1, 2, 3)'), 'rgba(1, 2, 3, 0.3)');
  assert.equal(faint('hsl(1 60% 40%)'), 'hsl(1 60% 40% / 0.3)');
});

test('a box has the room beside the pointer, on the right unless it is too narrow', () => {
  assert.deepEqual(placed(100, 50, 1400, 900), { left: '114px', top: '50px', maxWidth: '1272px' });
  assert.deepEqual(placed(1300, 800, 1400, 900), { right: '114px', bottom: '100px', maxWidth: '1272px' });
  assert.deepEqual(placed(100, 50, 390, 844), { left: '114px', top: '50px', maxWidth: '262px' });
  assert.deepEqual(placed(300, 50, 390, 844), { right: '104px', top: '50px', maxWidth: '272px' });
});

test('rows of a panel with one group leave the group out', () => {
  const series = (label: string, group: string) => ({ label, group }) as never;
  const labels = (all: never[]) => hoverRows([[0], [2], [1]], [0, 0, 0], { series: all }, undefined).map(({ label }) => label);
  assert.deepEqual(labels([series('a · b · validation', 'validation'), series('c · validation (val_x)', 'validation')]), ['a · b', 'c']);
  assert.deepEqual(labels([series('a · training', 'training'), series('a · validation', 'validation')]), ['a · training', 'a · validation']);
  assert.deepEqual(labels([series('training', 'training'), series('training (x)', 'training')]), ['training', 'training (x)']);
});
