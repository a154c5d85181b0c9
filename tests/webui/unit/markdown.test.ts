// Markdown rendering, and its safety: no text becomes markup or a script.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inline, markdown, safeLink } from '../../../webui-static/src/markdown';

test('blocks are told apart', () => {
  const text = '# Title\n\nSome text\ngoes on\n\n- one\n- two\n  more\n\n1. first\n\n> said\n\n```\n<b>code</b>\n```\n---\n';
  assert.deepEqual(
    markdown(text).map((block) => block.kind),
    ['heading', 'paragraph', 'list', 'list', 'quote', 'code', 'rule'],
  );
  const [, , list, ordered] = markdown(text);
  assert.ok(list?.kind === 'list' && !list.ordered && list.items.length === 2);
  assert.ok(ordered?.kind === 'list' && ordered.ordered);
});

test('items of a task list have boxes', () => {
  const [list] = markdown('- [x] done\n- [ ] open\n- [y] text\n');
  assert.ok(list?.kind === 'list');
  assert.deepEqual(list.items, [
    [{ kind: 'text', text: '☑ done' }],
    [{ kind: 'text', text: '☐ open' }],
    [{ kind: 'text', text: '[y] text' }],
  ]);
});

test('marks within a line nest; what is no mark is text', () => {
  assert.deepEqual(inline('a **b *c* d** `*x*` 2*3*4 snake_case_name \\*no\\*'), [
    { kind: 'text', text: 'a ' },
    {
      kind: 'strong',
      inner: [
        { kind: 'text', text: 'b ' },
        { kind: 'emphasis', inner: [{ kind: 'text', text: 'c' }] },
        { kind: 'text', text: ' d' },
      ],
    },
    { kind: 'text', text: ' ' },
    { kind: 'code', text: '*x*' },
    { kind: 'text', text: ' 2' },
    { kind: 'emphasis', inner: [{ kind: 'text', text: '3' }] },
    { kind: 'text', text: '4 snake_case_name *no*' },
  ]);
});

test('HTML stays text', () => {
  const text = '<img src=x onerror=alert(1)> <script>alert(1)</script>';
  assert.deepEqual(inline(text), [{ kind: 'text', text }]);
});

test('only addresses of the web, of mail and of our own pages become links', () => {
  for (const bad of ['javascript:alert(1)', ' JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', '//evil', '/det\\evil', 'file:///etc', 'java\nscript:x'])
    assert.equal(safeLink(bad), undefined, bad);
  for (const good of ['https://example.org/a?b#c', 'http://x', 'mailto:a@b', '/det/experiments/1'])
    assert.equal(safeLink(good), good);
  assert.deepEqual(inline('[x](javascript:alert(1))'), [{ kind: 'text', text: '[x](javascript:alert(1))' }]);
  assert.equal(inline('see https://example.org/x now')[1]?.kind, 'link');
});

test('long and deep texts are read in a moment', () => {
  const start = performance.now();
  for (const text of ['*'.repeat(20000), '['.repeat(20000), '> '.repeat(5000), '`'.repeat(20001), '_a'.repeat(10000)]) markdown(text);
  assert.ok(performance.now() - start < 5000);
});

test('tables have a head and rows of its width; markup and bars in cells stay text', () => {
  const [table, after] = markdown('| run | **loss** |\n|---|:--:|\n| a \\| b | <b>1</b> |\n| short |\n\nend');
  assert.equal(table?.kind, 'table');
  if (table?.kind !== 'table') return;
  assert.deepEqual(table.head, [[{ kind: 'text', text: 'run' }], [{ kind: 'strong', inner: [{ kind: 'text', text: 'loss' }] }]]);
  assert.deepEqual(table.rows, [
    [[{ kind: 'text', text: 'a | b' }], [{ kind: 'text', text: '<b>1</b>' }]],
    [[{ kind: 'text', text: 'short' }], []],
  ]);
  assert.equal(after?.kind, 'paragraph');
  assert.equal(markdown('a | b\nc')[0]?.kind, 'paragraph');
});
