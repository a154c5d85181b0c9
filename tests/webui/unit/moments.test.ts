// Times of a log as text, and round times of a timeline.
import assert from 'node:assert/strict';
import test from 'node:test';
import { axisTimes, keyOf } from '../../../webui-static/src/charts/Timeline';
import { momentOf, rangeText } from '../../../webui-static/src/log/moments';

// The tests hold in every time zone: local times are compared.
const local = (text: string): string => new Date(text).toISOString();

test('a moment is a date with a time, a date, or a time of a day', () => {
  const near = local('2026-11-27T12:00:00');
  const read = (text: string): string | undefined => momentOf(text, near)?.toISOString();
  assert.equal(read('2026-11-26 20:04:34'), local('2026-11-26T20:04:34'));
  assert.equal(read('2026-11-26T20:04'), local('2026-11-26T20:04:00'));
  assert.equal(read('2026-11-26'), local('2026-11-26T00:00:00'));
  assert.equal(read(' 8:04:34 '), local('2026-11-27T08:04:34'));
  assert.deepEqual(['', 'noon', '25:00', '2026-13-01', '2026-11-26 8'].map(read), Array(5).fill(undefined));
});

test('a range names its bounds, with the date unless it is today', () => {
  const now = Date.parse(local('2026-11-27T23:00:00'));
  const [a, b] = [local('2026-11-27T20:04:34'), local('2026-11-26T08:10:00')];
  assert.deepEqual(
    [rangeText(a, undefined, now), rangeText(undefined, a, now), rangeText(b, a, now), rangeText(undefined, undefined, now)],
    ['From 20:04:34', 'Until 20:04:34', '26 Nov 08:10:00 – 20:04:34', ''],
  );
});

test('the times of an axis are round and few', () => {
  assert.deepEqual(axisTimes(191, 8), [0, 30, 60, 90, 120, 150, 180]);
  assert.deepEqual(axisTimes(0.9, 8), [0]);
  assert.ok(axisTimes(90 * 86400, 8).length <= 9 && axisTimes(5, 1).length <= 2);
});

test('the key of attempts has the states of the table', () => {
  const ended = (exitKind: string) => ({ state: 'STATE_TERMINATED', endTime: '2020-01-01', exitKind });
  const of = (...all: object[]) => keyOf(all as never[]);
  assert.deepEqual(of(ended('OUT_OF_MEMORY')), [['bad', 'Out of memory']]);
  assert.deepEqual(of({ state: 'STATE_RUNNING', endTime: null, exitKind: '' }, ended('FAILED'), ended('OUT_OF_MEMORY'), ended('FAILED'), ended('PREEMPTED')), [['busy', 'Running'], ['idle', 'Preempted'], ['bad', 'Failed · Out of memory']]);
  assert.deepEqual(of(ended('FAILED'), ended('HUNG'), ended('LOST')), [['bad', 'Failed · Hung …']]);
});
