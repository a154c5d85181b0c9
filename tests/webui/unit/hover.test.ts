// Values at the pointer of a chart, and labels at the ends of its curves.
import assert from 'node:assert/strict';
import test from 'node:test';
import { shortNames } from '../../../webui-static/src/charts/Legend';
import { clearest, labeled, merged, placedLabels, roomFor, shortTags, spread } from '../../../webui-static/src/charts/ends';
import { hoverRows, nearest, placed, sizeOf } from '../../../webui-static/src/charts/hover';
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
    { at: 0, label: 's0', isFocused: false, value: 1, raw: 5 },
  ]);
});

test('of many rows the ones around the focused series are kept', () => {
  const data = [[0], ...Array.from({ length: 50 }, (_, at) => [100 - at])];
  const rows = hoverRows(data, Array.from({ length: 51 }, () => 0), panel(50), 30);
  assert.equal(rows.length, 12);
  assert.ok(rows.some(({ at }) => at === 30));
  assert.ok(rows.every(({ at, isFocused }) => isFocused === (at === 30)));
  assert.equal(hoverRows(data, Array.from({ length: 51 }, () => 0), panel(50), undefined)[0]?.at, 0);
});

test('both forms of color become transparent', () => {
  assert.equal(faint('rgb(1, 2, 3)'), 'rgba(1, 2, 3, 0.3)');
  assert.equal(faint('hsl(1 60% 40%)'), 'hsl(1 60% 40% / 0.3)');
});

test('the box of values is in its chart beside the pointer, on the side and at the height where it covers least of the curves, never over the y axis', () => {
  const plot = { left: 160, right: 400, top: 100, bottom: 300 };
  const size = { width: 90, height: 120 };
  const all = (left: number, free: Parameters<typeof placed>[0]['free'], of = size) => {
    const { maxWidth, ...style } = placed({ left, plot, right: 440, free }, of, 1400, 900);
    assert.equal(maxWidth, '276px');
    return style;
  };
  const [above, below, none] = [[120, 0], [0, 120], [0, 0]] as [number, number][];
  assert.deepEqual(all(280, { left: none, right: above }), { left: '292px', top: '100px' });
  assert.deepEqual(all(280, { left: none, right: below }), { left: '292px', bottom: '604px' });
  assert.deepEqual(all(280, { left: above, right: none }), { right: '1132px', top: '100px' });
  assert.deepEqual(all(280, { left: below, right: [60, 0] }), { right: '1132px', bottom: '604px' });
  assert.deepEqual(all(280, { left: none, right: none }), { left: '292px', top: '100px' }, 'on the right without a difference');
  assert.deepEqual(all(380, { left: none, right: above }), { right: '1032px', top: '100px' }, 'no room on the right');
  assert.deepEqual(all(200, { left: above, right: none }), { left: '212px', top: '100px' }, 'no room on the left');
  assert.deepEqual(all(310, { left: none, right: none }), { right: '1102px', top: '100px' }, 'labels at the ends of curves are on the right');
  // A wide box covers the pointer, but stays in the chart.
  const wide = { width: 200, height: 120 };
  assert.deepEqual(all(280, { left: none, right: none }, wide), { right: '964px', top: '100px' });
  assert.deepEqual(all(340, { left: none, right: none }, wide), { left: '160px', top: '100px' });
  // A chart that is partly out of the window.
  const off = { left: 280, plot: { ...plot, top: -20, bottom: 920 }, right: 440 };
  assert.equal(placed({ ...off, free: { left: none, right: above } }, size, 1400, 900).top, '0px');
  assert.equal(placed({ ...off, free: { left: none, right: below } }, size, 1400, 900).bottom, '0px');
});

test('the size of the box is that of its longest texts, with notes in several lines', () => {
  const rows = ['11', '4'].map((label) => ({ label, color: '', isFocused: false, value: '0.84984', raw: '' }));
  const plain = { title: 'batches 3,600', rows, gray: 0, ended: [] };
  const [one, noted, tall] = [sizeOf(plain), sizeOf({ ...plain, gray: 16 }), sizeOf({ ...plain, ended: ['14', '15', '16'] })];
  assert.ok(one.width > 80 && one.width < 110, `${one.width}`);
  assert.deepEqual([one.height, noted.height, tall.height], [58, 74, 90]);
  assert.ok(sizeOf({ ...plain, rows: rows.map((row) => ({ ...row, raw: '0.84984' })) }).width > one.width);
});

test('rows of a panel with one group leave the group out', () => {
  const series = (label: string, group: string) => ({ label, group }) as never;
  const labels = (all: never[]) => hoverRows([[0], [2], [1]], [0, 0, 0], { series: all }, undefined).map(({ label }) => label);
  assert.deepEqual(labels([series('a · b · validation', 'validation'), series('c · validation (val_x)', 'validation')]), ['a · b', 'c']);
  assert.deepEqual(labels([series('a · training', 'training'), series('a · validation', 'validation')]), ['a · training', 'a · validation']);
  assert.deepEqual(labels([series('training', 'training'), series('training (x)', 'training')]), ['training', 'training (x)']);
});

test('labels beside a plot are lines of text near the ends of their curves, without overlap and within its height', () => {
  assert.deepEqual(spread([50, 100], 200), [50, 100]);
  assert.deepEqual(spread([50, 50, 52, 150], 200), [38.666666666666664, 50.666666666666664, 62.666666666666664, 150]);
  assert.deepEqual(spread([0, 1], 200), [6, 18]);
  assert.deepEqual(spread([199, 200], 200), [182, 194]);
  assert.deepEqual(spread([], 200), []);
});

test('labels beside the plot are in the order of the ends, also if these are at one point', () => {
  const ends = [
    { text: '1', x: 300, y: 40 },
    { text: '4', x: 294, y: 40, before: 30 },
    { text: '2', x: 300, y: 120 },
  ];
  assert.deepEqual(
    placedLabels(ends, 300, 200, () => true).map(({ text, left, middle, isJoined }) => [text, left, middle, isJoined]),
    [
      ['4', 310, 34, true],
      ['1', 310, 46, true],
      ['2', 310, 120, false],
    ],
    'curves do not move them',
  );
  const out = [{ text: '5', x: 298, y: 200, before: 60, isOut: true }, { text: '6', x: 298, y: 200, before: 20, isOut: true }];
  assert.deepEqual(placedLabels(out, 300, 200), [], 'nothing in a corner that the curves do not reach');
  const together = Array.from({ length: 4 }, (_, at) => ({ text: `${at}`, x: 300, y: 80 + at / 2 }));
  assert.deepEqual(placedLabels(together, 300, 200, () => true).map(({ text, middle }) => [text, middle]), [['0', 62.75], ['1', 74.75], ['2', 86.75], ['3', 98.75]]);
});

test('a curve that ends within the plot has its label close to the end, where it covers nothing, without a line', () => {
  const one = { text: '1', x: 100, y: 80 };
  const of = (covers?: (end: unknown, left: number, right: number, top: number, bottom: number) => boolean, others: typeof one[] = []) =>
    placedLabels([one, ...others], 300, 200, covers).map(({ text, left, middle, isJoined }) => [text, left, middle, isJoined]);
  assert.deepEqual(of(), [['1', 107, 80, false]]);
  assert.deepEqual(of((_end, _left, _right, top, bottom) => top < 81 && bottom > 79), [['1', 103, 68, false]], 'above');
  assert.deepEqual(of((_end, _left, _right, top) => top < 80), [['1', 103, 92, false]], 'below');
  assert.deepEqual(of((_end, _left, right) => right > 100), [['1', 86, 80, false]], 'left of it');
  assert.deepEqual(of(() => true), [['1', 107, 80, false]], 'over curves of others, if these are everywhere');
  assert.deepEqual(of(undefined, [{ text: '2', x: 100, y: 80 }]), [['1', 107, 80, false], ['2', 103, 68, false]], 'of two at one place');
  assert.deepEqual(placedLabels([{ text: '1', x: 3, y: 4 }], 300, 200).map(({ left, middle }) => [left, middle]), [[6, 16]], 'in a corner');
});

test('labels of ends in a row are in their order, and each is closest to its own end', () => {
  const ends = [{ text: '16', x: 100, y: 80 }, { text: '15', x: 108, y: 80 }, { text: '14', x: 116, y: 80 }];
  const labels = placedLabels(ends, 300, 200).sort((a, b) => a.left - b.left);
  assert.deepEqual(labels.map(({ text, left, middle }) => [text, left, middle]), [['16', 79, 80], ['15', 101, 68], ['14', 123, 80]]);
  // No label is closer to the end of another curve.
  const column = [{ text: '56', x: 100, y: 60 }, { text: '32', x: 100, y: 66 }, { text: '35', x: 100, y: 78 }];
  assert.deepEqual(placedLabels(column, 300, 200).map(({ text, left, middle }) => [text, left, middle]), [['56', 107, 60], ['32', 79, 66], ['35', 107, 78]]);
});

test('a label without a place at its end is on its curve, where it covers no other label and no other curve', () => {
  const columns = [[50, 70], [100, 60], [200, 50], [2, 50]].map(([x = 0, y = 0]) => ({ x, heights: [y] }));
  const of = (ends: { text: string; x: number; y: number; isOut?: boolean }[], covers?: (end: unknown, left: number, right: number, top: number, bottom: number) => boolean) =>
    placedLabels(ends.map((end) => ({ ...end, curves: [0] })), 300, 200, covers, columns).map(({ text, left, middle, isJoined }) => [text, left + 3.5, middle, isJoined]);
  // The first point is too near the edge for its text.
  assert.deepEqual(of([{ text: '1', x: 200, y: 200, isOut: true }]), [['1', 200, 50, false]]);
  assert.deepEqual(of([{ text: '1', x: 200, y: 200, isOut: true }], (_end, left) => left > 150), [['1', 100, 60, false]]);
  const out = Array.from({ length: 4 }, (_, at) => ({ text: `${at}`, x: 200, y: 200, isOut: true }));
  const unseen = [{ x: 50, heights: [204] }, { x: 302, heights: [90] }];
  assert.deepEqual(placedLabels([{ text: '1', x: 200, y: 200, isOut: true, curves: [0] }], 300, 200, undefined, unseen), [], 'points out of sight');
  const isHigh = (_end: unknown, _left: number, _right: number, top: number, bottom: number): boolean => bottom - top > 10;
  const onCurves = [['0', 200, 50, false], ['1', 100, 60, false], ['2', 50, 70, false]];
  assert.deepEqual(of(out), [...onCurves, ['3', 19.5, 36, true]], 'the last one is aside, with a line to a point of its curve');
  assert.deepEqual(of([{ text: '1', x: 100, y: 80 }], isHigh), [['1', 200, 50, false]], 'curves of others at its end');
  assert.deepEqual(of([{ text: '1', x: 200, y: 200, isOut: true }], () => true), [['1', 19.5, 36, true]], 'over curves of others, if these are everywhere');
});

test('more than three curves close to each other have their labels side by side, each on its own', () => {
  const of = (count: number) => {
    const columns = Array.from({ length: 15 }, (_, at) => ({ x: 20 * at, heights: Array.from({ length: count }, (_, curve) => 50 + 5 * curve) }));
    const ends = Array.from({ length: count }, (_, at) => ({ text: `${at}`, x: 300, y: 210, curves: [at], isOut: true }));
    return placedLabels(ends, 300, 200, undefined, columns).map(({ text, x, middle }) => [text, x, middle]);
  };
  const labels = of(5);
  assert.deepEqual(labels.map(([text, , middle]) => [text, middle]), [0, 1, 2, 3, 4].map((at) => [`${at}`, 50 + 5 * at]));
  const places = labels.map(([, x]) => Number(x));
  assert.ok(places.every((x, at) => at === 0 || x - (places[at - 1] ?? 0) >= 20), `${places}`);
  assert.deepEqual(of(3).map(([text]) => text), ['0, 1, 2']);
});

test('curves that leave the plot or meet at its edge have their labels in one column, close ones a common label', () => {
  const columns = [
    { x: 60, heights: [20, 26, 90, 98, 150] },
    { x: 120, heights: [20, 60, 90, 98, 99] },
    { x: 180, heights: [20, 60, 90, 98, 98] },
    { x: 240, heights: [150, 160, 162, 164, undefined] },
  ];
  type Covers = (end: unknown, left: number) => boolean;
  const of = (change: (at: number) => object, covers?: Covers) =>
    placedLabels([0, 1, 2, 3].map((at) => ({ text: `${at}`, x: 300, y: 200, curves: [at], ...change(at) })), 300, 200, covers, columns).map(({ text, left, middle }) => [text, left, middle]);
  const inFirst = [['0, 1', 50, 23], ['2, 3', 50, 94]];
  assert.deepEqual(of(() => ({ isOut: true })), inFirst, 'where no other curve lies on one of them');
  const beside = [['0', 310, 170], ['1', 310, 182], ['2', 310, 194]];
  assert.deepEqual(of(() => ({})), beside, 'not if half of those that meet have none of their own');
  assert.deepEqual(of((at) => ({ y: at === 1 ? 200 : 120, isOut: at === 1 })), inFirst, 'one has left the plot');
  const met = Array.from({ length: 8 }, (_, at) => ({ text: `${at}`, x: 300, y: 100 }));
  assert.deepEqual(placedLabels(met, 300, 200).map(({ text }) => text), ['0', '1', '2', '3', '4'], 'labels far from their ends name none');
  assert.deepEqual(of((at) => ({ y: 40 + 20 * at })), [['0', 310, 40], ['1', 310, 60], ['2', 310, 80], ['3', 310, 100]], 'their ends tell which is which');
  assert.deepEqual(placedLabels([{ text: '0', x: 300, y: 200, curves: [0] }], 300, 200, undefined, columns).map(({ left }) => left), [310], 'one curve meets no other');
  columns.forEach(({ heights }) => heights.splice(4));
  assert.deepEqual(of(() => ({})), [['0', 116.5, 20], ['1', 116.5, 60], ['2, 3', 110, 94]], 'most labels, then the flattest curves');
  assert.deepEqual(of(() => ({}), (_end, left) => left < 150).map(([, left]) => left), [176.5, 176.5, 170], 'where they cover no other curve');
});

test('a trial has one label, at the end of its longest curve, and many trials have none', () => {
  const ends = [
    { place: 0, x: 5, y: 1 },
    { place: 1, x: 9, y: 1 },
    { place: 0, x: 9, y: 2 },
    { place: 1, x: 9, y: 3 },
  ];
  assert.deepEqual(labeled(ends), [ends[2], ends[1]]);
  assert.ok(roomFor(['1', '12']) > roomFor(['1', '2']));
  assert.equal(roomFor(['1']), 0);
  assert.equal(roomFor(Array.from({ length: 13 }, (_, at) => String(at))), 0);
  assert.equal(roomFor(['1', '1234567890123']), 0);
  assert.deepEqual(shortTags(['baseline', 'sweep, paper', 'image sweep, paper', 'image sweep, long']), ['baseline', 'sweep, paper', '…paper', '…long']);
  const alike = ['image sweep, paper', 'image search, paper'];
  assert.deepEqual(shortTags(alike), alike);
});

test('a label on a curve is where the curve is farthest from the others', () => {
  // All are apart enough in the last two columns, of which the later one comes first.
  const heights = [[10, 20, 30], [10, 40, 70], [10, 60, 110], [10, 60, 150]];
  assert.deepEqual(clearest(heights, 0), [3, 2, 1, 0]);
  assert.deepEqual(clearest(heights, 1), [3, 2, 1, 0]);
  // A curve that has not begun, or is alone.
  assert.deepEqual(clearest([[10, undefined], [10, 30], [10, 90]], 1), [2, 1]);
  assert.deepEqual(clearest([[undefined, 5], [10, 12]], 0), [1]);
  assert.deepEqual([false, true].map((isAlone) => clearest([[10, 10.5], [10, 30]], 0, isAlone)), [[1, 0], [1]], 'where the curves lie on each other it would be on both');
});

test('the key beside a table has ids, with what names of one first word differ in if that fits into two lines', () => {
  const named = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `vit lr=0.00${at}`, tag: String(at) }));
  assert.deepEqual(shortNames(named(2)), ['0 lr=0.000', '1 lr=0.001']);
  assert.equal(shortNames(named(8))[7], '7 lr=0.007');
  assert.deepEqual(shortNames(named(16)).slice(14), ['14', '15']);
  assert.deepEqual(shortNames([{ name: 'trial 7', tag: '7' }, { name: 'trial 12', tag: '12' }]), ['7', '12']);
  const names = ['vit_imagenet seed 1', 'vit_imagenet search', 'vit_cifar10 mixup', 'vit_cifar10 lr=0.1', 'resnet'];
  assert.deepEqual(shortNames(names.map((name, at) => ({ name, tag: String(at) }))), ['0 seed 1', '1 search', '2 mixup', '3 lr=0.1', '4 resnet']);
});

test('curves that lie on each other have one label, where there is room for it', () => {
  const ends = [
    { text: '3', x: 100, y: 200, before: 50 },
    { text: '5', x: 100, y: 200, before: 20 },
    { text: '4', x: 100, y: 200.5, before: 50 },
  ];
  assert.deepEqual(merged(ends, () => true).map(({ text, y }) => [text, y]), [['3, 4', 200], ['5', 200]]);
  assert.deepEqual(merged(ends, () => false), ends);
  const named = ends.map((end) => ({ ...end, names: [{ text: end.text, color: `color of ${end.text}` }] }));
  assert.deepEqual(merged(named, () => true)[0]?.names.map(({ color }) => color), ['color of 3', 'color of 4'], 'each id has its color');
  assert.deepEqual(merged([{ text: '1', x: 1, y: 1 }, { text: '2', x: 4, y: 1 }], () => true).length, 2);
});
