// Texts of pages: amounts of quotas as a user types and reads them, the effect of a continuation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountText, readAmount } from '../../../webui-static/src/calls/quotas';

test('a limit is a whole number, or for bytes a size', () => {
  assert.equal(readAmount('slots', ' 40 '), 40);
  assert.equal(readAmount('log_bytes', '40'), 40);
  assert.equal(readAmount('log_bytes', '1.5 GB'), 1.5e9);
  assert.equal(readAmount('checkpoint_bytes', '2GiB'), 2 * 1024 ** 3);
  assert.equal(readAmount('checkpoint_bytes', '3 kb'), 3000);
});

test('another limit is refused with what is expected', () => {
  for (const text of ['', '-1', '1.5', '8 GB', 'many', '1e3']) assert.throws(() => readAmount('slots', text), /whole number/);
  for (const text of ['', '-1 GB', '5 XB', 'GB']) assert.throws(() => readAmount('log_bytes', text), /500 GB/);
});

test('amounts of bytes are shown as sizes', () => {
  assert.equal(amountText('checkpoint_bytes', 2_500_000), '2.5 MB');
  assert.equal(amountText('log_bytes', 500e9), '500 GB');
  assert.equal(amountText('slots', 8), '8');
});

Object.assign(globalThis, { matchMedia: () => ({ matches: false }) });
const { effect } = await import('../../../webui-static/src/pages/ContinuePage');

test('a continuation is described by the state of a single trial, or for all trials of a search', () => {
  const of = (searcherType: string, state: string): string => effect({ searcherType, state, numTrials: 1 });
  assert.match(of('single', 'STATE_COMPLETED'), /^The trial goes on/);
  for (const state of ['STATE_ERROR', 'STATE_CANCELED']) assert.match(of('single', state), /^The trial runs again/);
  assert.match(of('random', 'STATE_COMPLETED'), /^Failed trials run again/);
});
