// Configurations as YAML text, and the colored parts of its lines.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parts, toYaml } from '../../../webui-static/src/yamlText';
import { matching } from '../../../webui-static/src/components/Yaml';

test('a configuration is written in blocks; texts that YAML would read otherwise are quoted', () => {
  const text = toYaml({
    name: 'mnist wide',
    empty: {},
    none: null,
    on: 'yes',
    version: '1.0',
    mount: { list: [{ host: '/a', ro: true }, [1, 2]], words: ['x: y', '# no', ''] },
  });
  assert.equal(
    text,
    [
      'name: mnist wide',
      'empty: {}',
      'none: null',
      '"on": "yes"',
      'version: "1.0"',
      'mount:',
      '  list:',
      '    - host: /a',
      '      ro: true',
      '    - - 1',
      '      - 2',
      '  words:',
      '    - "x: y"',
      '    - "# no"',
      '    - ""',
      '',
    ].join('\n'),
  );
});

test('the parts of a line are the line, and name keys, texts, numbers, words and comments', () => {
  const kinds = (line: string): string[] => {
    assert.equal(parts(line).map(({ text }) => text).join(''), line);
    return parts(line).flatMap(({ kind, text }) => (kind === 'plain' ? [] : [`${kind} ${text}`]));
  };
  assert.deepEqual(kinds('  lr: {type: log, base: 10, "max val": -1.5e-3} # note'), [
    'key lr', 'key type', 'key base', 'number 10', 'key "max val"', 'number -1.5e-3', 'comment # note',
  ]);
  assert.deepEqual(kinds('- true'), ['word true']);
  assert.deepEqual(kinds("path: 'a # b'"), ['key path', "string 'a # b'"]);
  assert.deepEqual(kinds('name: run-3 v1.2'), ['key name']);
  assert.deepEqual(kinds('<img src=x>'), []);
});

test('fields of a configuration are found by path and by value, in any case', () => {
  const config = { searcher: { name: 'single', max_length: { batches: 100 } }, labels: [], entrypoint: 'python Train.py' };
  assert.deepEqual(matching(config, 'max_len'), ['searcher.max_length.batches: 100']);
  assert.deepEqual(matching(config, 'TRAIN'), ['entrypoint: python Train.py']);
  assert.deepEqual(matching(config, 'single'), ['searcher.name: single']);
  assert.deepEqual(matching(null, 'a'), []);
});
