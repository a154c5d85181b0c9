// Accounting of held slots: ranges, buckets, sums, files.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Held } from '../../../webui-static/src/calls/usage';
import { csv } from '../../../webui-static/src/csv';
import {
  available, averageStart, firstDay, fromPeriods, rangeOf, rangeText, shares, slotTime, totalRows, totals, usageStart, utilization, withKnown,
} from '../../../webui-static/src/cluster/account';
import { average, fromHeld, lastHour, type Cell } from '../../../webui-static/src/cluster/held';
import { ticks, timeTicks } from '../../../webui-static/src/cluster/UsageChart';

const NOW = Date.parse('2026-03-10T12:00:00Z');
const one = (start: string, end: string | null, more: Partial<Held> = {}): Held => ({
  kind: 'training',
  startTime: start,
  endTime: end,
  experimentId: 7,
  username: 'ann',
  labels: [],
  seconds: 0,
  slots: 1,
  resourcePool: 'default',
  ...more,
});

test('an address without a range asks for the last seven days, a wrong one likewise', () => {
  for (const query of [{}, { over: 'toString' }, { from: '2026-13-01' }, { to: 'x' }]) {
    const range = rangeOf(query, NOW);
    assert.deepEqual(range, {
      kind: 'days',
      first: '2026-03-04',
      last: '2026-03-10',
      fromMs: Date.parse('2026-03-04T00:00:00Z'),
      toMs: NOW,
    });
  }
});

test('an hour is of allocations, a quarter of days, a year of months, chosen days end with the last of them', () => {
  assert.deepEqual(rangeOf({ over: 'hour' }, NOW), { kind: 'raw', fromMs: NOW - 3600_000, toMs: NOW });
  assert.equal(rangeOf({ over: 'quarter' }, NOW).kind, 'days');
  assert.equal(rangeOf({ over: 'year' }, NOW).kind, 'months');
  const chosen = rangeOf({ over: 'hour', from: '2026-01-01', to: '2026-01-02' }, NOW);
  assert.equal(chosen.kind, 'days');
  assert.equal(chosen.toMs - chosen.fromMs, 2 * 86_400_000);
});

test('an allocation is cut at the stretches that it crosses, times its slots; what runs counts until the end', () => {
  const [from, to] = [Date.parse('2026-03-10T10:00:00Z'), Date.parse('2026-03-10T12:00:00Z')];
  const cells = fromHeld(
    [
      one('2026-03-10T09:30:00Z', '2026-03-10T10:30:00Z', { slots: 4, labels: ['a', 'b'] }),
      one('2026-03-10T11:30:00Z', null, { username: 'bob', experimentId: 0, resourcePool: 'gpu' }),
      one('2026-03-10T08:00:00Z', '2026-03-10T09:00:00Z'),
    ],
    [
      { agentId: 'a', resourcePool: 'default', slots: 4, startTime: '2026-03-10T11:00:00Z', endTime: '2026-03-10T11:30:00Z' },
      { agentId: 'b', resourcePool: 'gpu', slots: 1, startTime: '2026-03-10T11:00:00Z' },
    ],
    from,
    to,
    2,
  );
  assert.deepEqual(cells.map((cell) => cell.total), [4 * 1800, 1800]);
  // The capacity of the first hour is unknown. In the second hour there are 4 slots for half of it, and one
  // slot.
  assert.deepEqual(cells.map((cell) => cell.capacity), [0, 4 * 1800 + 3600]);
  assert.deepEqual(utilization(cells), { share: undefined, available: 4 * 1800 + 3600, since: cells[1] });
  assert.equal(utilization(cells.slice(0, 1)), undefined);
  assert.deepEqual(totals(cells, 'user'), [['ann', 7200], ['bob', 1800]]);
  assert.deepEqual(totals(cells, 'label'), [['a', 7200], ['b', 7200]]);
  assert.deepEqual(totals(cells, 'experiment'), [['7', 7200], ['commands', 1800]]);
  assert.equal(average(7200, from, to), 1);
});

test('days and months end where the range does, and what no experiment held was of commands', () => {
  const range = rangeOf({ from: '2026-03-09', to: '2026-03-10' }, NOW);
  const period = (periodStart: string) => ({
    periodStart,
    seconds: 100,
    byUsername: { ann: 100 },
    byExperimentLabel: {},
    byResourcePool: { default: 100 },
    byExperimentId: { '7': 60 },
    capacityByResourcePool: { default: 300, gpu: 100 },
  });
  const cells = fromPeriods([period('2026-03-09'), period('2026-03-10')], range);
  assert.deepEqual(cells.map((cell) => (cell.toMs - cell.fromMs) / 3600_000), [24, 12]);
  assert.deepEqual(totals(cells, 'experiment'), [['7', 120], ['commands', 80]]);
  assert.deepEqual(utilization(cells), { share: 0.25, available: 800, since: undefined });
  const months = fromPeriods([period('2026-02'), period('2026-03')], rangeOf({ from: '2025-02-10', to: '2026-03-10' }, NOW));
  assert.deepEqual(months.map((cell) => (cell.toMs - cell.fromMs) / 86_400_000), [28, 9.5]);
  assert.deepEqual(totalRows(cells).slice(0, 4), [
    ['aggregation_type', 'aggregation_key', 'date', 'seconds'],
    ['resource_pool', 'default', '2026-03-09', 100],
    ['username', 'ann', '2026-03-09', 100],
    ['experiment_id', '7', '2026-03-09', 60],
  ]);
});

test('a file keeps commas and quotes, and no name becomes a formula of a spreadsheet', () => {
  assert.equal(csv([['a,b', 'say "x"', -1.5], ['=1+1', '@x', '']]), '"a,b","say ""x""",-1.5\r\n\'=1+1,\'@x,\r\n');
});

test('an axis has a few round steps', () => {
  assert.deepEqual(ticks(3), [0, 1, 2, 3]);
  assert.deepEqual(ticks(8), [0, 2, 4, 6, 8]);
  assert.deepEqual(ticks(100), [0, 50, 100]);
});

test('records of the last interval only begin with the first allocation or agent', () => {
  const [before, now] = [cell(0), cell(100)];
  const recent = { resourceEntries: [{ startTime: '2026-01-02T10:00:00Z' }], capacity: [{ startTime: '2026-01-02T09:00:00Z' }] };
  const first = (cells: Cell[], found: object): number | undefined => firstDay(cells, found as Parameters<typeof firstDay>[1]);
  assert.equal(first([before, now], recent), Date.parse('2026-01-02T09:00:00Z'));
  assert.equal(first([now, now], recent), undefined);
  assert.equal(first([before, now], { resourceEntries: [], capacity: [] }), undefined);
});

function cell(total: number, capacity = 0): Cell {
  return { fromMs: 0, toMs: 1, label: '', total, capacity, parts: new Map() };
}

test('usage is compared with available slots only if their record covers it and is complete', () => {
  const first = cell(90, 100);
  assert.deepEqual(utilization([cell(1000), first, cell(10, 100)]), { share: undefined, available: 200, since: first });
  assert.deepEqual(utilization([cell(0), first]), { share: 0.9, available: 100, since: undefined });
  assert.deepEqual(utilization([cell(100.5, 100)]), { share: 1, available: 100, since: undefined });
  assert.equal(utilization([first, cell(1000)]), undefined);
  assert.equal(utilization([cell(1000)]), undefined);
});

test('slots are averaged since their record begins', () => {
  const there = [{ agentId: 'a', resourcePool: 'default', slots: 3, startTime: new Date(600).toISOString() }];
  const [, known, after] = withKnown([cell(0), { ...cell(0, 1.2), toMs: 1000 }, cell(0, 3)], there);
  assert.deepEqual([known?.knownMs, after?.knownMs], [600, undefined]);
  assert.equal(known && available(known), 3);
});

test('usage and slots of a partly recorded interval are averaged over the same time, so that their ratio is the utilization', () => {
  const there = [{ agentId: 'a', resourcePool: 'default', slots: 3, startTime: new Date(400).toISOString() }];
  const [first] = withKnown([{ ...cell(1.7, 1.8), toMs: 1000 }], there);
  assert.ok(first);
  const bar = average(first.total, usageStart(first), first.toMs);
  assert.ok(Math.abs(bar / available(first) - 1.7 / 1.8) < 1e-9, String(bar));
  // Usage before the record does not fit into the slots after it.
  assert.equal(usageStart({ ...first, total: 5 }), 0);
  assert.equal(averageStart([cell(0), first], 0), 400);
  assert.equal(averageStart([cell(1), first], 0), 0);
  assert.equal(averageStart([cell(0), { ...cell(1), fromMs: 500 }], 0), 500);
  assert.equal(averageStart([cell(0)], 7), 7);
});

test('shares are whole percents with a sum of 100', () => {
  assert.deepEqual(shares([34.2, 34.1, 29, 4.7], 102), [34, 33, 28, 5]);
  assert.deepEqual(shares([1, 1, 1], 3), [34, 33, 33]);
  assert.deepEqual(shares([1000, 1], 1001), [100, 0]);
  assert.deepEqual(shares([], 0), []);
});

test('slot time has the unit in which it can be read', () => {
  assert.deepEqual([144072, 3600, 432, 60, 35.4, 0].map(slotTime), ['40.02 h', '1 h', '7.2 min', '1 min', '35 s', '0 s']);
});

test('times on an axis are round', () => {
  const hour = NOW - 3600_000;
  assert.deepEqual(timeTicks(hour + 90_000, NOW, 7).map((ms) => (ms - hour) / 60_000), [10, 20, 30, 40, 50, 60]);
  assert.deepEqual(timeTicks(NOW, NOW + 86_400_000, 5).map((ms) => (ms - NOW) / 3600_000), [0, 6, 12, 18, 24]);
});

test('the usage of the last hour names the minutes with slots', () => {
  const none = Array.from({ length: 58 }, () => cell(0));
  assert.equal(lastHour([...none, cell(30, 40), cell(60, 60)]), '90% in use over the last 2 min');
  assert.equal(lastHour(Array.from({ length: 60 }, () => cell(0, 60))), '0% in use over the last hour');
  assert.equal(lastHour(none), 'No slots in the last hour');
});

test('a range of days names each month and year once', () => {
  assert.equal(rangeText({ first: '2020-01-01', last: '2020-01-31' }), 'from 1 to 31 Jan 2020');
  assert.equal(rangeText({ first: '2020-01-28', last: '2020-02-03' }), 'from 28 Jan to 3 Feb 2020');
  assert.equal(rangeText({ first: '2019-12-28', last: '2020-01-03' }), 'from 28 Dec 2019 to 3 Jan 2020');
  assert.equal(rangeText({ first: '2020-01-03', last: '2020-01-03' }), 'on 3 Jan 2020');
});
