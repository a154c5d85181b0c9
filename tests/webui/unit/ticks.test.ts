// Round ticks of axes.
import assert from 'node:assert/strict';
import test from 'node:test';
import { padded, type Dimension } from '../../../webui-static/src/charts/dimensions';
import { overlap, shortened, ticks, usedTicks } from '../../../webui-static/src/charts/ticks';

const axis = (kind: 'linear' | 'log' | 'words', min: number, max: number, more: { words?: string[]; isWhole?: boolean } = {}) => ({ kind, words: [], min, max, ...more });
const texts = (own: ReturnType<typeof axis>, count = 5): string[] => ticks(own, count).map(({ text }) => text);

test('ticks of a linear axis are steps of 1, 2 or 5 times a power of ten, with equal decimal places', () => {
  assert.deepEqual(texts(axis('linear', 0.293, 0.877)), ['0.4', '0.6', '0.8']);
  assert.deepEqual(texts(axis('linear', 0, 0.5)), ['0', '0.1', '0.2', '0.3', '0.4', '0.5']);
  assert.deepEqual(texts(axis('linear', -1, 1)), ['-1.0', '-0.5', '0', '0.5', '1.0']);
  assert.deepEqual(texts(axis('linear', 8, 48)), ['10', '20', '30', '40']);
  assert.deepEqual(texts(axis('linear', 1e6, 5e6)), ['1e+6', '2e+6', '3e+6', '4e+6', '5e+6']);
  assert.deepEqual(texts(axis('linear', 1e-6, 5e-6)), ['1e-6', '2e-6', '3e-6', '4e-6', '5e-6']);
});

test('an axis with few used numbers has its ticks there, unless they are too close', () => {
  const trials = [60, 800, 60, 1000].map((epochs) => ({ hparams: { epochs } })) as never[];
  const own = { name: 'epochs', ...axis('linear', 0, 1000) } as Dimension;
  assert.deepEqual(usedTicks(own, trials, 0.1), [{ at: 0.06, text: '60' }, { at: 0.8, text: '800' }, { at: 1, text: '1000' }]);
  assert.equal(usedTicks(own, trials, 0.3), undefined);
  assert.equal(usedTicks({ ...own, name: 'depth' }, trials, 0.1), undefined);
  assert.equal(usedTicks(own, [1, 200, 400, 600, 800].map((epochs) => ({ hparams: { epochs } })) as never[], 0.1), undefined, 'five');
});

test('the numbers of one axis have one notation', () => {
  const trials = [5e-5, 1e-4, 2e-3].map((lr) => ({ hparams: { lr } })) as never[];
  assert.deepEqual(usedTicks({ name: 'lr', ...axis('log', 5e-5, 2e-3) } as Dimension, trials, 0.1)?.map(({ text }) => text), ['5e-5', '1e-4', '2e-3']);
  assert.deepEqual(texts(axis('log', 5e-5, 5e-4)), ['5e-5', '1e-4', '2e-4', '5e-4']);
  assert.deepEqual(texts(axis('log', 0.001, 0.01)), ['0.001', '0.002', '0.005', '0.01']);
});

test('ticks of a narrow range have as many digits as make them differ', () => {
  assert.deepEqual(texts(axis('linear', 0.99999, 0.999999)), ['0.999990', '0.999992', '0.999994', '0.999996', '0.999998']);
  assert.deepEqual(texts(axis('linear', -0.999999, -0.99999), 2), ['-0.999995', '-0.999990']);
  assert.deepEqual(texts(axis('linear', 1e6, 1.002e6), 2), ['1e+6', '1.001e+6', '1.002e+6']);
  assert.deepEqual(texts(axis('linear', 0, 2e6), 4), ['0', '5e+5', '1e+6', '1.5e+6', '2e+6']);
  assert.deepEqual(texts(axis('linear', 5e-6, 1.5e-5), 2), ['5e-6', '1e-5', '1.5e-5']);
});

test('a range has at least three ticks', () => {
  assert.deepEqual(texts(axis('linear', 0.209, 0.759), 5), ['0.3', '0.4', '0.5', '0.6', '0.7']);
});

test('ticks of integers are integers', () => {
  assert.deepEqual(texts(axis('linear', 1, 3, { isWhole: true })), ['1', '2', '3']);
  assert.deepEqual(texts(axis('linear', 1, 3)), ['1.0', '1.5', '2.0', '2.5', '3.0']);
});

test('a logarithmic axis has powers of ten, and their multiples where it spans less than two', () => {
  assert.deepEqual(texts(axis('log', 10 ** -5, 10 ** -1)), ['1e-5', '1e-4', '1e-3', '1e-2', '1e-1']);
  assert.deepEqual(texts(axis('log', 10 ** -5, 10 ** -1), 3), ['1e-5', '1e-3', '1e-1']);
  assert.deepEqual(texts(axis('log', 0.15, 6)), ['0.2', '0.5', '1', '2', '5']);
  assert.deepEqual(texts(axis('log', 0.11, 0.19)), ['0.12', '0.14', '0.16', '0.18']);
  const [, middle] = ticks(axis('log', 0.01, 1), 5);
  assert.ok(middle && Math.abs(middle.at - 0.5) < 1e-12);
});

test('all ticks lie within the axis; a choice has its words or the outer ones, a constant its value', () => {
  for (const own of [axis('linear', 0.3, 0.9), axis('log', 0.0003, 4), axis('linear', 1, 999)])
    for (const { at } of ticks(own, 5)) assert.ok(at > -1e-9 && at < 1 + 1e-9, `${at}`);
  assert.deepEqual(texts(axis('words', 0, 1, { words: ['relu', 'gelu'] })), ['relu', 'gelu']);
  assert.deepEqual(ticks(axis('words', 0, 8, { words: [...'abcdefghi'] }), 5), [{ at: 0, text: 'a' }, { at: 1, text: 'i' }]);
  assert.deepEqual(ticks(axis('linear', 5, 5), 5), [{ at: 0.5, text: '5' }]);
});

test('the ticks of a wider range are equally precise, and no value of the range lies at its ends', () => {
  const all = padded({ name: 'accuracy', ...axis('linear', 0.99998, 1) } as Dimension);
  assert.ok(all.min < 0.99998 && all.max > 1);
  assert.deepEqual(texts(all), ['0.999980', '0.999985', '0.999990', '0.999995', '1.000000']);
  assert.deepEqual(texts(padded({ name: 'lr', ...axis('linear', 0.1, 1) } as Dimension)), ['0.2', '0.4', '0.6', '0.8', '1.0']);
  const log = padded({ name: 'lr', ...axis('log', 0.0001, 0.01) } as Dimension);
  assert.deepEqual(texts(log), ['0.0001', '0.001', '0.01']);
  const words = { name: 'act', ...axis('words', 0, 1, { words: ['relu', 'gelu'] }) } as Dimension;
  assert.equal(padded(words), words);
});

test('labels that would overlap are short, and none is left out', () => {
  const of = (...places: number[]): string[] => shortened(places.map((x, at) => ({ x, text: `Stage ${at + 1} · 16 → 7`, short: `${at + 1}` })), 5);
  assert.deepEqual(of(0, 100, 200), ['Stage 1 · 16 → 7', 'Stage 2 · 16 → 7', 'Stage 3 · 16 → 7']);
  assert.deepEqual(of(30, 80, 250), ['Stage 1 · 16 → 7', '2', 'Stage 3 · 16 → 7']);
  assert.deepEqual(of(32, 64, 127, 254), ['1', '2', 'Stage 3 · 16 → 7', 'Stage 4 · 16 → 7']);
  assert.ok(overlap({ x: 0, text: '800' }, { x: 20, text: '1,000' }, 7) && !overlap({ x: 0, text: '800' }, { x: 50, text: '2,000' }, 7));
});
