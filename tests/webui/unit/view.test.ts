// The view of the experiments table: conversion to and from its address and to the request.
import assert from 'node:assert/strict';
import test from 'node:test';
import { flipTop, keepsOrder, keepsRows, nextSorts, readView, toSearch, withIds, writeView } from '../../../webui-static/src/workbench/view';
import { available, column } from '../../../webui-static/src/workbench/columns';
import { heatOf, mayHeat } from '../../../webui-static/src/workbench/heat';
import { parse } from '../../../webui-static/src/workbench/query';
import { ofExperiment, valueOf, type Run } from '../../../webui-static/src/workbench/runs';
import { readViews, withView } from '../../../webui-static/src/calls/views';
import { PAGE_ROWS, pagesOf, Store } from '../../../webui-static/src/paged';
import { followSettings, readSettings, split, theme } from '../../../webui-static/src/settings';
import type { FoundExperiment } from '../../../webui-static/src/wire';

test('a view survives its address', () => {
  const view = readView({ q: 'mnist', sort: '-hp.lr,name', cols: 'id,hp.lr', group: 'hp.act', drawn: '7,3', archived: '1', top: '9' });
  assert.deepEqual(readView(writeView(view)), view);
  assert.deepEqual(view.sorts, [
    { column: 'hp.lr', descending: true },
    { column: 'name', descending: false },
  ]);
  assert.deepEqual([view.drawn, view.groups], [[7, 3], ['hp.act']]);
});

test('runs are pinned and taken back; the first one makes room for a sixth', () => {
  assert.deepEqual(flipTop([1, 2], 3), [1, 2, 3]);
  assert.deepEqual(flipTop([1, 2, 3], 2), [1, 3]);
  assert.deepEqual(flipTop([1, 2, 3, 4, 5], 6), [2, 3, 4, 5, 6]);
  assert.deepEqual(readView({ top: '4,x,2' }).top, [4, 2]);
});

test('a broken address shows what can be read of it; no drawn run differs from no choice', () => {
  const view = readView({ sort: ',-,', drawn: 'x,2,-1' });
  assert.deepEqual([view.sorts, view.drawn], [[], [2]]);
  assert.deepEqual(readView(writeView({ drawn: [] })).drawn, []);
  assert.equal(readView(writeView({ drawn: undefined })).drawn, undefined);
});

test('the first click on the head of a metric puts the best first', () => {
  const one = nextSorts([], 'accuracy', false, true);
  assert.deepEqual(one, [{ column: 'accuracy', descending: true }]);
  assert.deepEqual(nextSorts(one, 'accuracy', false, true), [{ column: 'accuracy', descending: false }]);
  assert.deepEqual(nextSorts(nextSorts(one, 'accuracy', false, true), 'accuracy', false, true), []);
});

test('a head is clicked through rising, falling, none; with Shift others stay', () => {
  const one = nextSorts([], 'name', false);
  const two = nextSorts(one, 'name', false);
  assert.deepEqual(two, [{ column: 'name', descending: true }]);
  assert.deepEqual(nextSorts(two, 'name', false), []);
  assert.deepEqual(nextSorts(two, 'id', true), [...two, { column: 'id', descending: false }]);
  assert.deepEqual(nextSorts([...two, { column: 'id', descending: false }], 'id', false), [
    { column: 'id', descending: true },
  ]);
});

test('columns of hyperparameters, metadata and metrics come from the rows, nested ones by their path', () => {
  const row = ofExperiment({
    experiment: { id: 1 },
    bestTrial: {
      hparams: { opt: { lr: 1 }, width: 3 },
      metadata: { data: { rows: 70 } },
      bestValidation: { metrics: { avgMetrics: { 'top.5': 0.5 } } },
    },
  } as unknown as FoundExperiment);
  const names = available([row], 'experiment');
  assert.deepEqual(names.slice(-4), ['hp.opt.lr', 'hp.width', 'metadata.data.rows', 'validation.top.5']);
  assert.deepEqual(names.slice(-4).map((key) => valueOf(row, key)), [1, 3, 70, 0.5]);
  assert.equal(column('metadata.data.rows')?.title, 'data.rows');
  assert.equal(column('metadata.'), undefined);
});

test('the pages in sight are the ones that hold its rows', () => {
  assert.deepEqual(pagesOf(0, 40, 100000), [0]);
  assert.deepEqual(pagesOf(45, 105, 100000), [0, 1, 2]);
  assert.deepEqual(pagesOf(90, 400, 101), [1, 2]);
  assert.deepEqual(pagesOf(0, 40, 0), [0]);
});

test('settings that cannot be read are the defaults, each for itself', () => {
  assert.deepEqual(readSettings('{"theme":"dark","density":7,"split":99}'), { theme: 'dark', density: 'roomy', split: 48, alerts: false });
  assert.equal(readSettings('{"split":30}').split, 30);
  assert.equal(readSettings('nonsense').theme, 'system');
});

test('saved views that cannot be read are left out', () => {
  assert.deepEqual(readViews('[{"name":"a","query":"q=1"},{"name":1},null]'), [{ name: 'a', query: 'q=1' }]);
  assert.deepEqual([readViews('nonsense'), readViews(undefined), readViews('{}')], [[], [], []]);
});

test('a saved view replaces the one of its name', () => {
  const all = [{ name: 'a', query: 'q=1' }, { name: 'b', query: '' }];
  assert.deepEqual(withView(all, 'a', 'q=2'), [{ name: 'b', query: '' }, { name: 'a', query: 'q=2' }]);
  assert.deepEqual(withView(all, 'b'), [{ name: 'a', query: 'q=1' }]);
});

test('settings of another page of the browser are taken over', () => {
  const written: string[] = [];
  let notify = (_: { key: string; newValue: string }): void => {};
  Object.assign(globalThis, {
    document: { documentElement: { dataset: {} } },
    localStorage: { setItem: (_: string, text: string) => written.push(text) },
    addEventListener: (_: string, listener: typeof notify) => (notify = listener),
  });
  followSettings();
  const other = JSON.stringify({ theme: 'dark', density: 'dense', split: 30, alerts: false });
  notify({ key: 'other', newValue: '{"theme":"light"}' });
  notify({ key: 'det.settings', newValue: other });
  assert.deepEqual([theme.value, split.value], ['dark', 30]);
  // Equal to the stored text, so that the other page is not notified.
  assert.deepEqual(written.slice(1), [other]);
});

test('numbers are colored by their size among the rows there are', () => {
  const row = (lr: unknown): Run => ofExperiment({ experiment: { id: 1, numTrials: 3 }, bestTrial: { hparams: { opt: { lr } } } } as never);
  const rows = [row(1), row(2), row(5), row('auto')];
  const heat = heatOf(['hp.opt.lr', 'numTrials'], rows);
  assert.deepEqual(rows.map((one) => heat('hp.opt.lr', one)), ['heat-0', 'heat-1', 'heat-4', '']);
  assert.equal(heat('numTrials', row(1)), 'heat-0');
  assert.equal(heat('name', row(1)), '');
  assert.deepEqual(['name', 'hp.lr', 'progress'].map(mayHeat), [false, true, true]);
});

test('a query for some rows keeps the filter of the list', () => {
  const search = toSearch(parse('name ~ a', [{ key: 'name', title: 'Name' }]), { sorts: [], archived: true });
  const filter = JSON.parse(withIds(search, [3, 5]).filter ?? '');
  assert.equal(filter.showArchived, true);
  assert.equal(filter.filterGroup.conjunction, 'and');
  assert.deepEqual(filter.filterGroup.children[0], JSON.parse(search.filter ?? '').filterGroup);
  assert.deepEqual(filter.filterGroup.children[1], { kind: 'field', columnName: 'id', operator: '=', value: [3, 5] });
  assert.equal(JSON.parse(withIds({}, [3]).filter ?? '').filterGroup.children.length, 1);
});

test('updates of rows keep the order unless a changing column sorts', () => {
  assert.equal(keepsOrder(readView({})), true);
  assert.equal(keepsOrder(readView({ sort: '-id,user' })), true);
  assert.equal(keepsOrder(readView({ sort: '-searcherMetricsVal' })), false);
});

test('a row begins to match by a state or an edit, unless the query is about a changing column', () => {
  const known = ['name', 'state', 'progress', 'duration', 'searcherMetricsVal', 'hp.lr', 'validation.loss'].map((key) => ({ key, title: key }));
  const keeps = (text: string): boolean => keepsRows(parse(text, known));
  for (const text of ['', 'mnist', 'state = completed and name ~ a', 'mnist or state = error']) assert.equal(keeps(text), true, text);
  for (const text of ['metric < 0.1', 'progress > 0.5', 'state = completed and duration > 1h', 'a or (b or loss < 1)', 'lr = 1']) assert.equal(keeps(text), false, text);
});

test('changed rows are taken in portions, oldest first', () => {
  const store = new Store<number>();
  for (const id of [5, 3, 9]) store.changed.add(id);
  assert.deepEqual([store.take(2), store.take(2), store.take(2)], [[5, 3], [9], []]);
});

const answer = (page: number) => ({ rows: [page], total: 3 * PAGE_ROWS });

test('an event during the request of a page leaves it stale for the next run', async () => {
  const store = new Store<number>();
  const asked: number[] = [];
  const run = () =>
    store.loadWanted(
      async (page) => {
        if (asked.push(page) === 1) store.outdate();
        return answer(page);
      },
      () => false,
    );
  await run();
  assert.deepEqual([asked, store.wanted()], [[0], [0]], 'once in a run');
  await run();
  assert.deepEqual([asked, store.wanted()], [[0, 0], []]);
});

test('a page is requested again after a failed request', async () => {
  const store = new Store<number>();
  await store.loadWanted(async (page) => answer(page), () => false);
  store.outdate();
  await assert.rejects(store.loadWanted(() => Promise.reject(new Error('lost')), () => false));
  assert.deepEqual([store.wanted(), store.loading.size], [[0], 0]);
});
