// Log lines with ANSI escapes, colorful and hostile ones.
import assert from 'node:assert/strict';
import test from 'node:test';
import { pieces } from '../../../webui-static/src/ansi';

const text = (line: string): string =>
  pieces(line)
    .map((piece) => piece.text)
    .join('');

test('a plain line is one piece', () => {
  assert.deepEqual(pieces('loss 0.25'), [{ text: 'loss 0.25' }]);
});

test('an empty line has no pieces', () => {
  assert.deepEqual(pieces(''), []);
});

test('colors and weight follow the escapes and end with a reset', () => {
  const found = pieces('\x1b[1;31mbad\x1b[0m then \x1b[92mgood\x1b[39m.');
  assert.deepEqual(
    found.map(({ text: t, color, bold }) => [t, color, bold]),
    [
      ['bad', 1, true],
      [' then ', undefined, undefined],
      ['good', 10, undefined],
      ['.', undefined, undefined],
    ],
  );
});

test('palette and true colors are skipped whole, so that their numbers are not read as styles', () => {
  assert.deepEqual(
    pieces('\x1b[38;5;3ma\x1b[38;2;1;1;1mb\x1b[48;5;1mc').map(({ text: t, color, bold }) => [t, color, bold]),
    [
      ['a', 3, undefined],
      ['b', 3, undefined],
      ['c', 3, undefined],
    ],
  );
});

test('escapes that move, retitle or link are dropped', () => {
  assert.equal(text('a\x1b[2Jb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x1b[10;5He'), 'abcde');
});

test('an unfinished escape swallows nothing else', () => {
  assert.equal(text('tail \x1b['), 'tail ');
  assert.equal(text('tail \x1b'), 'tail ');
});

test('a carriage return starts the line over', () => {
  assert.equal(text('10%\r50%\r100%'), '100%');
  assert.equal(text('windows line\r'), 'windows line');
});

test('control characters vanish and reordering characters show their code', () => {
  assert.equal(text('a\x00b\x08c\td'), 'abc\td');
  assert.equal(text('user\u202etxt.exe'), 'user<U+202E>txt.exe');
});

test('markup stays text', () => {
  assert.equal(text('<img src=x onerror=alert(1)>'), '<img src=x onerror=alert(1)>');
});
