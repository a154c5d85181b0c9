// Amounts of quotas as a user types and reads them.
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
