import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diff, fileChanges, near } from '../../../webui-static/src/diff';

const shown = (left: string, right: string): string =>
  diff(left, right)
    .map(({ kind, text }) => ({ same: ' ', left: '-', right: '+' })[kind] + text)
    .join('\n');

test('what only one text has is marked, in its place', () => {
  assert.equal(shown('a\nb\nc\n', 'a\nx\nc\nd\n'), ' a\n-b\n+x\n c\n+d');
  assert.equal(shown('', 'a\n'), '+a');
  assert.equal(shown('a\n', ''), '-a');
  assert.equal(shown('same', 'same'), ' same');
});

test('both texts can be read back from any difference', () => {
  let seed = 7;
  const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 200; round++) {
    const text = (): string => Array.from({ length: random(30) }, () => `line ${random(6)}`).join('\n');
    const [left, right] = [text(), text()];
    const lines = diff(left, right);
    assert.equal(lines.filter((one) => one.kind !== 'right').map((one) => one.text).join('\n'), left);
    assert.equal(lines.filter((one) => one.kind !== 'left').map((one) => one.text).join('\n'), right);
    lines.forEach((one) => assert.equal(one.left > 0, one.kind !== 'right'));
  }
});

test('few differences are found as few', () => {
  const lines = Array.from({ length: 500 }, (_, n) => `line ${n}`);
  const changed = lines.map((line, n) => (n === 100 || n === 400 ? `${line}!` : line));
  assert.equal(diff(lines.join('\n'), changed.join('\n')).filter((one) => one.kind !== 'same').length, 4);
});

test('only what is near a difference is kept', () => {
  const lines = Array.from({ length: 100 }, (_, n) => `${n}`);
  const kept = near(diff(lines.join('\n'), lines.map((line) => (line === '50' ? 'x' : line)).join('\n')), 2);
  assert.deepEqual(
    kept.map((one) => one?.text),
    [undefined, '48', '49', '50', 'x', '51', '52', undefined],
  );
});

test('files that differ come first', () => {
  const left = new Map([['a', '1'], ['b', '1'], ['gone', '']]);
  const right = new Map([['a', '1'], ['b', '2'], ['new', '']]);
  assert.deepEqual(
    fileChanges(left, right).map(({ path, kind }) => `${path} ${kind}`),
    ['b changed', 'gone left', 'new right', 'a same'],
  );
});
