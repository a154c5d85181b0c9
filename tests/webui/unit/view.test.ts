// The view of the experiments table: conversion to and from its address and to the request.
import assert from 'node:assert/strict';
import test from 'node:test';
import { isComplete, keepsOrder, nextSorts, readView, toSearch, withIds, writeView } from '../../../webui-static/src/view';
import { available, column, openValue } from '../../../webui-static/src/columns';
import { heatOf, mayHeat } from '../../../webui-static/src/heat';
import { pagesOf, Store } from '../../../webui-static/src/paged';
import { readSettings } from '../../../webui-static/src/settings';
import type { FoundExperiment } from '../../../webui-static/src/wire';

test('a view survives its address', () => {
  const view = readView({
    q: 'mnist',
    state: 'STATE_ERROR',
    sort: '-hp.lr,name',
    cols: 'id,hp.lr',
    f: '[["hp.lr",">","0.1"],["name","contains","a b"]]',
    any: '1',
  });
  assert.deepEqual(readView(writeView(view)), view);
  assert.deepEqual(view.sorts, [
    { column: 'hp.lr', descending: true },
    { column: 'name', descending: false },
  ]);
});

test('a broken address shows what can be read of it', () => {
  const view = readView({ f: '{"a":1', state: "'; drop", sort: ',-,' });
  assert.deepEqual([view.conditions, view.state, view.sorts], [[], '', []]);
  assert.deepEqual(readView({ f: '[["a","bogus","1"],[1,2,3],["id","=","7"]]' }).conditions, [
    { column: 'id', operator: '=', value: '7' },
  ]);
});

test('numbers are asked for as numbers, text as text, conditions without a value not at all', () => {
  const view = readView({ f: '[["hp.lr",">","0.1"],["name","=","7"],["id","=",""]]' });
  const filter = JSON.parse(toSearch(view).filter ?? '');
  assert.deepEqual(
    filter.filterGroup.children[0].children.map((one: { value: unknown }) => one.value),
    [0.1, '7'],
  );
  assert.equal(toSearch(readView({})).filter, '');
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
  const row = {
    bestTrial: {
      hparams: { opt: { lr: 1 }, width: 3 },
      metadata: { data: { rows: 70 } },
      bestValidation: { metrics: { avgMetrics: { 'top.5': 0.5 } } },
    },
  } as unknown as FoundExperiment;
  const names = available([row]);
  assert.deepEqual(names.slice(-4), ['hp.opt.lr', 'hp.width', 'metadata.data.rows', 'validation.top.5']);
  assert.deepEqual(names.slice(-4).map((key) => openValue(key, row)), [1, 3, 70, 0.5]);
  assert.equal(column('metadata.data.rows')?.title, 'data.rows');
  assert.equal(column('metadata.'), undefined);
});

test('the pages in sight are the ones that hold its rows', () => {
  assert.deepEqual(pagesOf(0, 40, 100000), [0]);
  assert.deepEqual(pagesOf(95, 205, 100000), [0, 1, 2]);
  assert.deepEqual(pagesOf(190, 400, 201), [1, 2]);
  assert.deepEqual(pagesOf(0, 40, 0), [0]);
});

test('settings that cannot be read are the defaults, each for itself', () => {
  assert.deepEqual(readSettings('{"theme":"dark","density":7,"views":[{"name":"a","query":"q=1"},{"name":1}]}'), {
    theme: 'dark',
    density: 'roomy',
    views: [{ name: 'a', query: 'q=1' }],
  });
  assert.equal(readSettings('nonsense').theme, 'system');
});

test('numbers are colored by their size among the rows there are', () => {
  const row = (lr: unknown): FoundExperiment => ({ experiment: { numTrials: 3 }, bestTrial: { hparams: { opt: { lr } } } }) as never;
  const rows = [row(1), row(2), row(5), row('auto')];
  const heat = heatOf(['hp.opt.lr', 'numTrials'], rows);
  assert.deepEqual(rows.map((one) => heat('hp.opt.lr', one)), ['heat-0', 'heat-1', 'heat-4', '']);
  assert.equal(heat('numTrials', row(1)), 'heat-0');
  assert.equal(heat('name', row(1)), '');
  assert.deepEqual(['name', 'hp.lr', 'progress'].map(mayHeat), [false, true, true]);
});

test('a query for some rows keeps the filter of the list', () => {
  const view = readView({ f: '[["name","contains","a"]]', archived: '1' });
  const filter = JSON.parse(withIds(toSearch(view), [3, 5]).filter ?? '');
  assert.equal(filter.showArchived, true);
  assert.equal(filter.filterGroup.conjunction, 'and');
  assert.deepEqual(filter.filterGroup.children[0], JSON.parse(toSearch(view).filter ?? '').filterGroup);
  assert.deepEqual(filter.filterGroup.children[1], { kind: 'field', columnName: 'id', operator: '=', value: [3, 5] });
  assert.equal(JSON.parse(withIds({}, [3]).filter ?? '').filterGroup.children.length, 1);
});

test('updates of rows keep the order unless a changing column sorts', () => {
  assert.equal(keepsOrder(readView({})), true);
  assert.equal(keepsOrder(readView({ sort: '-id,user' })), true);
  assert.equal(keepsOrder(readView({ sort: '-searcherMetricsVal' })), false);
});

test('a condition without a value is incomplete, except for emptiness', () => {
  const conditions = readView({ f: '[["name","contains",""],["name","isEmpty",""],["name","=","x"]]' }).conditions;
  assert.deepEqual(conditions.map(isComplete), [false, true, true]);
});

test('changed rows are taken in portions, oldest first', () => {
  const store = new Store<number>();
  for (const id of [5, 3, 9]) store.changed.add(id);
  assert.deepEqual([store.take(2), store.take(2), store.take(2)], [[5, 3], [9], []]);
});
