// Formatting of values, and validation of addresses and errors.
import assert from 'node:assert/strict';
import test from 'node:test';
import { paths, safeNext } from '../../../webui-static/src/address';
import { address, errorMessage } from '../../../webui-static/src/api';
import { ago, apportion, axisTexts, bytes, counted, decimals, digits, duration, grouped, isActive, isEnded, lengthText, metric, metricColumn, percent, progressOf, restOf, roughly, sorted, span, stateName, withoutPadding } from '../../../webui-static/src/format';
import { lineAddress } from '../../../webui-static/src/log/logRows';

test('an estimate of minutes has no seconds', () => {
  assert.deepEqual([45, 90, 640, 3580, 7265].map(roughly), ['45s', '1m 30s', '11m', '59m 40s', '2h 01m']);
});

test('states read as words', () => {
  assert.equal(stateName('STATE_STOPPING_CANCELED'), 'Stopping canceled');
  assert.ok(isActive('STATE_QUEUED') && !isActive('STATE_PAUSED'));
  assert.ok(isEnded('STATE_ERROR') && !isEnded('STATE_STOPPING_ERROR'));
});

test('what ended before its time has no progress', () => {
  const all = ['STATE_RUNNING', 'STATE_PAUSED', 'STATE_COMPLETED', 'STATE_CANCELED', 'STATE_ERROR'];
  assert.deepEqual(all.map((state) => progressOf({ state, progress: 0.5 })), [0.5, 0.5, 0.5, undefined, undefined]);
  assert.equal(progressOf({ state: 'STATE_RUNNING', progress: null }), undefined);
});

test('one thing has no s', () => {
  assert.deepEqual([0, 1, 1200].map((count) => counted(count, 'file')), ['0 files', '1 file', '1,200 files']);
  assert.deepEqual([0, 999, -1234, 1234567, 1234.56789].map(grouped), ['0', '999', '-1,234', '1,234,567', '1,234.568']);
});

test('durations keep two units', () => {
  assert.deepEqual([-5, 0, 59.9, 187, 7500, 360000].map(duration), [
    '0s',
    '0s',
    '59s',
    '3m 07s',
    '2h 05m',
    '4d 04h',
  ]);
});

test('a span ends at its end, or now', () => {
  const start = '2026-01-01T00:00:00Z';
  assert.equal(span(start, '2026-01-01T00:01:00Z', 0), '1m 00s');
  assert.equal(span(start, null, Date.parse('2026-01-01T00:00:30Z')), '30s');
  assert.equal(span(null, null, 0), '');
});

test('metrics keep what matters', () => {
  assert.deepEqual(
    [0, 42, 0.987123456, 0.00001234, 12345678, -0.5].map((value) => metric(value)),
    ['0', '42', '0.98712', '1.234e-5', '1.235e+7', '-0.5'],
  );
  assert.equal(metric('NaN'), 'NaN');
  assert.equal(metric(null), '');
});

test('the numbers of a column keep the zeros at their ends', () => {
  assert.deepEqual([0.8394, 0.85459, 1.5, 12, 0, 1e-7, 'NaN', null].map(digits), ['0.83940', '0.85459', '1.5000', '12', '0', '1.000e-7', 'NaN', '']);
});

test('metrics of a column have equal decimal places, and fractions are not shown as whole numbers', () => {
  const told = (...values: number[]): string[] => values.map(metricColumn(values));
  assert.deepEqual(told(0.5, 0.123456, 2), ['0.50000', '0.12346', '2.00000']);
  assert.deepEqual(told(0.999996, 0.23407), ['0.99999', '0.23407']);
  assert.deepEqual(told(0.0013784, 1.986e-5), ['0.0013784', '1.986e-5']);
  assert.deepEqual([2.5, 12345.6].map(metricColumn([1, 4, 12345.6])), ['2.5', '12346']);
});

test('a fraction is never rounded up to a whole number', () => {
  assert.deepEqual([0.999996, -0.999996, 9999.96, 1.9999999].map(digits), ['0.99999', '-0.99999', '9999.9', '1.9999']);
  // The series of a chart have 32 bits, and cannot tell this one from 1.
  assert.deepEqual([0.99999999, Math.fround(0.99999999)].map(digits), ['1', '1']);
  // A float of a series reads like the number in a table, also where that is half way between two.
  assert.deepEqual([0.772045, Math.fround(0.772045)].map(digits), ['0.77204', '0.77204']);
  assert.deepEqual([0.772045, Math.fround(0.772045)].map(metric), ['0.77204', '0.77204']);
  assert.deepEqual([0.99999, 0.9995, 0.5, 1.0000004].map(digits), ['0.99999', '0.99950', '0.50000', '1.0000']);
});

test('whole units of parts add up to the whole', () => {
  assert.deepEqual(apportion([2.4, 0.4, 64.6, 32.6], 100), [2, 0, 65, 33]);
  assert.deepEqual(apportion([1, 1, 1], 100), [34, 33, 33]);
  assert.deepEqual([apportion([0, 0], 100), apportion([], 5)], [[0, 0], []]);
});

test('the numbers of a column have as many decimal places as three digits of the smallest need', () => {
  assert.equal(decimals([0.1, 0.2, 0.3]), 1);
  assert.equal(decimals([0.0003, 0.001]), 4);
  assert.equal(decimals([0.1798, 0.131882, 0.0478561]), 4);
  assert.equal(decimals([4, 8, 0]), 0);
  assert.equal(decimals([0.5, 1e-6]), undefined);
  assert.equal(decimals([]), 0);
});

test('progress never says 100% before the end', () => {
  assert.deepEqual([0.99999, 0.29, 0.212].map(percent), ['99%', '29%', '21%']);
  assert.equal(percent(1), '100%');
  assert.equal(percent(-1), '0%');
});

test('bytes are decimal', () => {
  assert.deepEqual([0, 999, 2500, 5242880].map((n) => bytes(n)), ['0 B', '999 B', '2.5 KB', '5.2 MB']);
});

test('keys are put in order, at every depth, lists are left as they are', () => {
  assert.equal(JSON.stringify(sorted({ b: [{ d: 1, c: null }, 2], a: 'x' })), '{"a":"x","b":[{"c":null,"d":1},2]}');
});

test('queries are escaped and arrays repeated', () => {
  assert.equal(address('/a', { q: 'x&y', ids: [1, 2] }), '/a?q=x%26y&ids=1&ids=2');
  assert.equal(address('/a'), '/a');
});

test('errors say what the master said', () => {
  assert.equal(
    errorMessage(400, '{"error":{"code":9,"reason":"FailedPrecondition","error":"not paused"}}'),
    'not paused',
  );
  assert.equal(errorMessage(404, '{"message":"gone"}'), 'gone');
  assert.equal(errorMessage(502, '<html>'), 'the master answered with status 502');
});

test('sign-in leads back only to pages of ours', () => {
  assert.equal(safeNext('/det/experiments/3?trial=4'), '/det/experiments/3?trial=4');
  for (const bad of [
    undefined,
    '',
    'https://evil',
    '//evil',
    '/det',
    '/other',
    '/det/\\evil',
    '/det/login?next=/det/login',
  ]) {
    assert.equal(safeNext(bad), '/det/');
  }
});

test('a moment is told relative to now, and by its date after four weeks', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  const at = (seconds: number): string => ago(new Date(now - seconds * 1000).toISOString(), now);
  assert.deepEqual([10, 60, 3599, 7200, 86400 * 3, -120].map(at), ['just now', '1 min ago', '60 min ago', '2 h ago', '3 d ago', 'in 2 min']);
  assert.match(at(86400 * 40), /^\d{4}-\d\d-\d\d$/);
});

test('the rest of the work follows from the progress, and is unknown at the start', () => {
  assert.deepEqual([0.25, 0.02, 0.01, 1, undefined].map(restOf), [3, 49, undefined, undefined, undefined]);
});

test('the length of a list that was cut has a plus', () => {
  assert.deepEqual([lengthText(1200, false), lengthText(200, true)], ['1,200', '200+']);
});

test('archived runs can be compared', () => {
  assert.equal(paths.compare([3, 5], 'code'), '/det/experiments?q=id%20in%20(3%2C%205)&archived=1&drawn=3,5&layout=panels&panels=compare&of=code');
  assert.equal(paths.compare([]), '/det/experiments');
});

test('the address of a line names its trial', () => {
  Object.assign(globalThis, { location: { pathname: '/det/experiments/4', search: '?tab=log&trial=7' } });
  assert.equal(lineAddress('99', { trial: '8' }), '/det/experiments/4?tab=log&trial=8&line=99');
  assert.equal(lineAddress('99'), '/det/experiments/4?tab=log&trial=7&line=99');
});

test('states have plain names', () => {
  assert.deepEqual(['STATE_PULLING', 'STATE_WAITING', 'STATE_RUNNING'].map(stateName), ['Building', 'Queued', 'Running']);
});

test('the ticks of an axis have one notation', () => {
  assert.deepEqual(axisTexts([0, 0.00005, 0.0001, 0.00015]), ['0', '0.00005', '0.00010', '0.00015']);
  assert.deepEqual(axisTexts([0.5, 1, 1.5]), ['0.5', '1.0', '1.5']);
  assert.deepEqual(axisTexts([0, 2e6]), ['0', '2e+6']);
  assert.deepEqual(axisTexts([1e-9, 2e-9]), ['1e-9', '2e-9']);
});

test('zeros at the end of a number are apart, unless it was rounded', () => {
  assert.deepEqual([withoutPadding(0.003, 6), withoutPadding(2, 3), withoutPadding(0.30004, 3), withoutPadding(20, 0)], [['0.003', '000'], ['2', '.000'], ['0.300', ''], ['20', '']]);
});
